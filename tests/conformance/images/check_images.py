#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JPEG files as inputs: pixels are those that Pillow decodes, in order of names, by one thread and by several; files that do not
fit or are damaged are errors that say which file, what it is, what was wanted, and what to do."""

import os
import pathlib
import subprocess
import sys
import tempfile

from images import COMMAND, NAMED, Image, expect, graph_of, np, refuse, refuse_prefixes, run, wrong

GRAPHS = pathlib.Path(sys.argv[2])


def picture(r, height, width, channels=3):
    """Smooth, with some noise and a hard edge: what JPEG stores well and what it does not."""
    y, x = np.mgrid[0:height, 0:width]
    one = np.stack([128 + 100 * np.sin(x / 9 + k) * np.cos(y / (7 + k)) for k in range(channels)], -1)
    one[:, width // 2 :] += 40
    return Image.fromarray(np.clip(one + r.normal(0, 8, one.shape), 0, 255).astype(np.uint8).squeeze(), "RGB" if channels == 3 else "L")


def decoded(path, mode="RGB"):
    with Image.open(path) as image:
        found = np.asarray(image.convert(mode))
    return found if mode == "RGB" else found[..., None]


def same_as_pillow(folder, r):
    """Subsampled colours, progressive files, odd sizes, and gray ones among those in colour."""
    photos = folder / "photos"
    photos.mkdir()
    for i, ways in enumerate(({"quality": 75}, {"quality": 95, "subsampling": 0}, {"progressive": True, "subsampling": 2}, {"optimize": True, "subsampling": 1})):
        picture(r, 75, 101).save(photos / f"{'dbca'[i]}.jpg", **ways)
    picture(r, 75, 101, 1).save(photos / "gray.JPEG")
    for i in range(9):
        picture(r, 75, 101).save(photos / f"m{i}.jpg")
    names = sorted(p for p in photos.iterdir() if p.suffix == ".jpg")
    want = np.stack([decoded(p) for p in names])
    several = run(folder, graph_of(NAMED), photos / "*.jpg")
    expect(several[0] == 0 and np.array_equal(several[2], want), f"13 files by all processors: {several[:2]}")
    one = run(folder, graph_of(NAMED), photos / "*.jpg", cpu=min(os.sched_getaffinity(0)))
    expect(one[0] == 0 and np.array_equal(one[2], want), f"13 files by one processor: {one[:2]}")
    mixed = run(folder, graph_of(NAMED), photos / "[ag]*.[jJ]*")
    expect(mixed[0] != 0, "a pattern that does not end in .jpg or .jpeg is a raw file")
    given = run(folder, graph_of([2, 75, 101, 3]), photos / "[ab].jpg")
    expect(given[0] == 0 and np.array_equal(given[2], want[:2]), f"a shape in numbers: {given[:2]}")
    single = run(folder, graph_of(["height", "width", 3]), photos / "gray.JPEG")
    expect(single[0] == 0 and np.array_equal(single[2], decoded(photos / "gray.JPEG")), f"a gray one in three channels: {single[:2]}")
    gray = run(folder, graph_of(NAMED), photos / "gray.JPEG")
    expect(gray[0] == 0 and np.array_equal(gray[2], decoded(photos / "gray.JPEG", "L")[None]), f"a gray one: {gray[:2]}")
    return photos


def a_name_is_no_pattern(folder, r):
    odd = folder / "[x]*.jpg"
    picture(r, 8, 9).save(odd)
    picture(r, 8, 9).save(folder / "xy.jpg")
    found = run(folder, graph_of(NAMED), odd)
    expect(found[0] == 0 and np.array_equal(found[2], decoded(odd)[None]), f"a file whose name looks like a pattern: {found[:2]}")


def do_not_fit(folder, photos, r):
    refuse(folder, "no file", graph_of(NAMED), photos / "x*.jpg", 2, "x*.jpg: no file has such a name")
    refuse(folder, "no such file", graph_of(NAMED), photos / "nobody.jpg", 2, "nobody.jpg", "No such file")
    refuse(folder, "too few files", graph_of([4, 75, 101, 3]), photos / "[ab].jpg", 2, "2 files", "u8 [4, 75, 101, 3]", "takes 4")
    refuse(folder, "another size", graph_of([4, 75, 100, 3]), photos / "[a-d].jpg", 2, "a.jpg is 75 high and 101 wide", "75 high and 100 wide", "resize")
    refuse(folder, "another size by --param", graph_of(NAMED), photos / "[a-d].jpg", 2, "a.jpg is 75", "80 high", words=("--param", "height=80"))
    refuse(folder, "colour into one channel", graph_of(["n", "height", "width", 1]), photos / "a.jpg", 2, "a.jpg is in colour", "3 channels", "1 channel")
    refuse(folder, "f32", graph_of([1, 75, 101, 3], "f32"), photos / "a.jpg", 2, "a.jpg", "u8 [images, height, width, channels]", "f32 [1, 75, 101, 3]")
    refuse(folder, "two axes", graph_of(["h", "w"]), photos / "a.jpg", 3, "2 axes")
    refuse(folder, "several in three axes", graph_of([75, 101, 3]), photos / "[ab].jpg", 2, "u8 [75, 101, 3]")
    other = photos / "c2.jpg"
    picture(r, 75, 102).save(other)
    refuse(folder, "one of another size among many", graph_of(NAMED), photos / "*.jpg", 2, "c2.jpg is 75 high and 102 wide", "101 wide")
    other.unlink()


def damaged(folder, photos, r):
    whole = (photos / "a.jpg").read_bytes()
    bad = photos / "bb.jpg"
    cases = {"empty": b"", "text": b"this is no photograph", "no end": whole[:-400], "half": whole[: len(whole) // 2], "header only": whole[:300],
             "a PNG": b"\x89PNG\r\n\x1a\n" + bytes(64)}
    for title, data in cases.items():
        bad.write_bytes(data)
        refuse(folder, title, graph_of([14, 75, 101, 3]), photos / "*.jpg", 2, "bb.jpg: cannot be read as JPEG: ", "leave it out")
        refuse(folder, title + ", alone", graph_of(NAMED), bad, 2, "bb.jpg: cannot be read as JPEG: ")
    picture(r, 75, 101).convert("CMYK").save(bad)
    refuse(folder, "CMYK", graph_of(NAMED), bad, 2, "bb.jpg", "CMYK")
    for i in range(150):  # Anything may come of it but a crash: an error with the name, or pixels.
        data = bytearray(whole)
        for _ in range(r.integers(1, 4)):
            data[r.integers(len(data))] = r.integers(256)
        bad.write_bytes(data[: r.integers(len(data))] if i % 5 == 0 else data)
        code, said, out = run(folder, graph_of([1, 75, 101, 3]), bad)
        expect(code == 0 and out.shape == (1, 75, 101, 3) or code == 2 and "bb.jpg" in said, f"bytes changed, {i}: exit {code}, {said!r}")
    bad.write_bytes(b"")
    (photos / "b.jpg").write_bytes(b"")
    for _ in range(5):
        refuse(folder, "the first of two damaged files", graph_of([14, 75, 101, 3]), photos / "*.jpg", 2, "/b.jpg: cannot be read")


def cut_off(folder, r):
    small = folder / "small.jpg"
    picture(r, 8, 8, 1).save(small, quality=30, optimize=True)
    refuse_prefixes(folder, small.read_bytes(), "JPEG")
    (folder / "tables.jpg").write_bytes(b"\xff\xd8\xff\xd9")  # a whole file in the way of JPEG, of tables alone
    refuse(folder, "no image", graph_of(NAMED), folder / "tables.jpg", 2, "tables.jpg: cannot be read as JPEG: ", "4 bytes", "0 high and 0 wide", "at least 1")


def straight_into_the_blur(folder, photos):
    """The graph of the quick start takes files as they are."""
    out = folder / "blurred.npy"
    done = subprocess.run([COMMAND, "run", GRAPHS / "image_blur.json", "--devices", "2", "--param", "sigma=1", "--input",
                           f"frames={photos}/m*.jpg", "--output", f"blurred={out}"], capture_output=True, text=True, timeout=60)
    expect(done.returncode == 0 and np.load(out).shape == (9, 75, 101, 3), f"image_blur: {done}")


def main():
    r = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        photos = same_as_pillow(folder, r)
        a_name_is_no_pattern(folder, r)
        do_not_fit(folder, photos, r)
        straight_into_the_blur(folder, photos)
        refuse(folder, "no module", graph_of(NAMED), photos / "a.jpg", 2, "libturbojpeg0-dev", ".npy", env={"GANTRY_MODULES": name})
        cut_off(folder, r)
        damaged(folder, photos, r)
    print("wrong" if wrong else "all as Pillow has it")
    return bool(wrong)


sys.exit(main())
