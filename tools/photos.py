# SPDX-License-Identifier: Apache-2.0
"""Photographs to one array of frames and back, for graphs/image_blur.json.

photos.py pack FRAMES.npy PHOTO ...           every photo, fitted to 1920 x 1080, as u8 [n, 1080, 1920, 3]
photos.py unpack FRAMES.npy FOLDER PHOTO ...  frame i as FOLDER/<name of photo i>.jpg
"""
import pathlib
import sys

import numpy
from PIL import Image, ImageOps

SIZE = (1920, 1080)


def pack(target, *photos):
    frames = numpy.empty((len(photos), SIZE[1], SIZE[0], 3), numpy.uint8)
    for i, photo in enumerate(photos):
        with Image.open(photo) as image:
            frames[i] = ImageOps.fit(image.convert("RGB"), SIZE)
    numpy.save(target, frames)
    print(f"{len(photos)} photographs as {frames.shape} of u8")


def unpack(source, folder, *photos):
    for frame, photo in zip(numpy.load(source, mmap_mode="r"), photos):
        Image.fromarray(frame).save(pathlib.Path(folder) / (pathlib.Path(photo).stem + ".jpg"), quality=90)


if len(sys.argv) < 4 or sys.argv[1] not in ("pack", "unpack"):
    sys.exit(__doc__)
{"pack": pack, "unpack": unpack}[sys.argv[1]](*sys.argv[2:])
