#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PNG files as inputs: pixels are those that were written by the specification (W3C PNG, 2nd edition), chunk by chunk with zlib, and
those that Pillow reads; what is left out and what is damaged are errors that say which file, what it is, and what to do."""

import pathlib
import struct
import sys
import tempfile
import zlib

from images import NAMED, Image, expect, graph_of, np, refuse, refuse_prefixes, run, wrong

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGBA: 4}
PASSES = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]  # row, column, steps


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def packed(pixels, depth):
    """Rows of [row, column, channel] as bytes: numbers of few bits are put together, the first in the highest bits."""
    rows = pixels.reshape(len(pixels), -1)
    if depth == 16:
        return [row.astype(">u2").tobytes() for row in rows]
    bits = (rows[:, :, None] >> np.arange(depth - 1, -1, -1)) & 1
    return [np.packbits(row.reshape(-1).astype(np.uint8)).tobytes() for row in bits]


def nearest(left, above, corner):
    """Of left + above - corner, as the specification has it (Paeth)."""
    guess = left + above - corner
    return min((abs(guess - x), i, x) for i, x in enumerate((left, above, corner)))[2]


def filtered(rows, step, first):
    """Each row by another of the five filters, of which 0 changes nothing."""
    out, before = b"", bytes(len(rows[0]) if rows else 0)
    for i, row in enumerate(rows):
        kind, done = (first + i) % 5, bytearray()
        for k, value in enumerate(row):
            left, above, corner = row[k - step] if k >= step else 0, before[k], before[k - step] if k >= step else 0
            done.append((value - (0, left, above, (left + above) // 2, nearest(left, above, corner))[kind]) % 256)
        out, before = out + bytes([kind]) + done, row
    return out


def png(pixels, kind, depth=8, interlaced=False, extra=b""):
    """pixels: [height, width, channels of the kind], whole numbers below 2^depth."""
    step, data = max(1, CHANNELS[kind] * depth // 8), b""
    if interlaced:
        for row, column, down, right in PASSES:
            some = pixels[row::down, column::right]
            data += filtered(packed(some, depth), step, row) if some.size else b""
    else:
        data = filtered(packed(pixels, depth), step, 0)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], depth, kind, 0, 0, int(interlaced))
    packed_data = zlib.compress(data, 9)
    half = len(packed_data) // 2  # data may be in several chunks
    return (SIGNATURE + chunk(b"IHDR", header) + extra + chunk(b"IDAT", packed_data[:half]) + chunk(b"IDAT", packed_data[half:])
            + chunk(b"IEND", b""))


def numbers(r, height, width, channels, below=256):
    return r.integers(0, below, (height, width, channels))


def opaque(pixels):
    pixels = pixels.copy()
    pixels[..., -1] = 255
    return pixels


def kinds(r, height, width, interlaced):
    """Title, file, and the pixels that should come of it."""
    for depth in (1, 2, 4, 8):
        gray = numbers(r, height, width, 1, 2**depth)
        yield f"gray of {depth} bits", png(gray, GRAY, depth, interlaced), gray * (255 // (2**depth - 1))
        index, colours = numbers(r, height, width, 1, 2**depth), numbers(r, 1, 2**depth, 3)[0]
        table = chunk(b"PLTE", colours.astype(np.uint8).tobytes())
        yield f"palette of {depth} bits", png(index, PALETTE, depth, interlaced, table), colours[index[..., 0]]
        clear = table + chunk(b"tRNS", bytes([255] * (2**depth // 2)))
        yield f"opaque palette of {depth} bits", png(index, PALETTE, depth, interlaced, clear), colours[index[..., 0]]
    colour, both, four = numbers(r, height, width, 3), opaque(numbers(r, height, width, 2)), opaque(numbers(r, height, width, 4))
    yield "colour", png(colour, RGB, 8, interlaced), colour
    told = chunk(b"gAMA", struct.pack(">I", 22222)) + chunk(b"tEXt", b"Title\0of a test") + chunk(b"abCd", b"nobody knows")
    yield "colour with chunks that change no number", png(colour, RGB, 8, interlaced, told), colour
    yield "opaque gray", png(both, GRAY_ALPHA, 8, interlaced), both[..., :1]
    yield "opaque colour", png(four, RGBA, 8, interlaced), four[..., :3]


def as_it_was_written(folder, r):
    file = folder / "one.png"
    for interlaced in (False, True):
        for height, width in ((13, 21), (1, 1), (3, 2)):
            for title, data, want in kinds(r, height, width, interlaced):
                file.write_bytes(data)
                code, said, out = run(folder, graph_of(NAMED), file)
                title = f"{title}, {height} x {width}{', interlaced' * interlaced}"
                expect(code == 0 and np.array_equal(out[0], want), f"{title}: exit {code}, {said!r}")
                with Image.open(file) as image:  # Pillow has decoders of its own, and agrees with the writer above
                    expect(np.array_equal(np.asarray(image.convert("RGBA"))[..., :3], np.broadcast_to(want, (height, width, 3))), f"Pillow reads {title} so")
                code, said, out = run(folder, graph_of(["height", "width", 3]), file)
                expect(code == 0 and np.array_equal(out, np.broadcast_to(want, (height, width, 3))), f"{title}, in 3 channels: {code}, {said!r}")


def several(folder, r):
    photos = folder / "photos"
    photos.mkdir()
    want = numbers(r, 60, 41 * 11, 3).reshape(60, 11, 41, 3).swapaxes(0, 1).astype(np.uint8)
    for i, pixels in enumerate(want):
        Image.fromarray(pixels).save(photos / f"{i:02}.PNG" if i == 4 else photos / f"{i:02}.png", compress_level=i % 10)
    found = run(folder, graph_of(NAMED), photos / "*.png")
    expect(found[0] == 0 and np.array_equal(found[2], np.delete(want, 4, 0)), f"10 files: {found[:2]}")
    found = run(folder, graph_of(["height", "width", 3]), photos / "04.PNG")
    expect(found[0] == 0 and np.array_equal(found[2], want[4]), f"capital letters: {found[:2]}")
    return photos


def left_out(folder, photos, r):
    bad = photos / "03x.png"
    transparent = opaque(numbers(r, 60, 41, 4))
    transparent[59, 40, 3] = 254
    index = np.zeros((60, 41, 1), int)
    index[30, 20] = 1
    clear = chunk(b"PLTE", bytes(6)) + chunk(b"tRNS", bytes([255, 0]))
    for title, data, text in (
            ("16 bits", png(numbers(r, 60, 41, 3, 65536), RGB, 16), "16 bits a channel; 8 are allowed"),
            ("gray of 16 bits", png(numbers(r, 60, 41, 1, 65536), GRAY, 16), "16 bits a channel"),
            ("one pixel that is not opaque", png(transparent, RGBA), "transparent pixels"),
            ("a transparent colour of the palette", png(index, PALETTE, 1, extra=clear), "transparent pixels"),
            ("a transparent gray", png(index, GRAY, 1, extra=chunk(b"tRNS", b"\0\1")), "transparent pixels")):
        bad.write_bytes(data)
        refuse(folder, title, graph_of([11, 60, 41, 3]), photos / "*.png", 2, "03x.png: cannot be read as PNG: ", text)
    bad.write_bytes(png(numbers(r, 60, 42, 3), RGB))
    refuse(folder, "another size", graph_of(NAMED), photos / "*.png", 2, "03x.png is 60 high and 42 wide", "41 wide", "resize")
    bad.write_bytes(png(numbers(r, 60, 41, 3), RGB))
    refuse(folder, "colour into one channel", graph_of(["n", "height", "width", 1]), bad, 2, "03x.png is in colour", "1 channel")
    refuse(folder, "no module", graph_of(NAMED), bad, 2, "PNG files are read by gantry-png.so", "libpng-dev", ".npy", env={"GANTRY_MODULES": str(folder)})
    bad.unlink()
    refuse(folder, "no file", graph_of(NAMED), photos / "x*.png", 2, "x*.png: no file has such a name", ".png")


def damaged(folder, photos, r):
    whole = (photos / "00.png").read_bytes()
    bad = photos / "03x.png"
    header = SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 999999, 999999, 8, RGB, 0, 0, 0))
    cases = {"empty": b"", "text": b"this is no photograph", "no end": whole[:-12], "half": whole[: len(whole) // 2], "header only": whole[:33],
             "huge": header + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b""), "a JPEG": b"\xff\xd8\xff\xe0" + bytes(64),
             "no rows": SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 0, 0, 8, RGB, 0, 0, 0)), "a bit of the data": whole[:60] + bytes([whole[60] ^ 1]) + whole[61:]}
    for title, data in cases.items():
        bad.write_bytes(data)
        refuse(folder, title, graph_of([11, 60, 41, 3]), photos / "*.png", 2, "03x.png", "999999 wide" if title == "huge" else "cannot be read as PNG: ")
    for i in range(200):  # Anything may come of it but a crash: an error with the name, or pixels.
        data = bytearray(whole)
        for _ in range(r.integers(1, 4)):
            data[r.integers(len(data) if i % 2 else 60)] = r.integers(256)
        bad.write_bytes(data[: r.integers(len(data))] if i % 5 == 0 else data)
        code, said, out = run(folder, graph_of([1, 60, 41, 3]), bad)
        expect(code == 0 and out.shape == (1, 60, 41, 3) or code == 2 and "03x.png" in said, f"bytes changed, {i}: exit {code}, {said!r}")


def fed(folder, r):
    """With --feed each start reads the next files, as many as an array has images; without it all are one array, or refused."""
    frames = folder / "frames"
    frames.mkdir()
    pixels = r.integers(256, size=(6, 7, 9, 3), dtype="u1")
    for i, image in enumerate(pixels):
        Image.fromarray(image).save(frames / f"{i}.png")
    for shape, each in ([2, 7, 9, 3], 2), ([7, 9, 3], 1), ([3, 7, 9, 3], 3):
        for starts in 1, 2, 5, 7:
            code, said, out = run(folder, graph_of(shape), frames / "*.png", "--feed", "cycle", "--iterations", str(starts))
            first = (starts - 1) * each % 6
            expect(code == 0 and (out == pixels[first : first + each].reshape(shape)).all(), f"{each} images a start, {starts} starts: exit {code}, {said!r}")
    code, said, out = run(folder, graph_of(NAMED), frames / "*.png", "--feed", "cycle", "--iterations", "3")
    expect(code == 0 and (out == pixels).all() and "one a start" not in said, f"all fill the array: exit {code}, {said!r}")
    refuse(folder, "no --feed", graph_of([2, 7, 9, 3]), frames / "*.png", 2, "6 files are of that name", "takes 2; give as many files", "--feed cycle")
    refuse(folder, "some are left", graph_of([4, 7, 9, 3]), frames / "*.png", 2, "takes 4 of them at a time, so 2 would be left", words=["--feed", "once"])
    refuse(folder, "once", graph_of([2, 7, 9, 3]), frames / "*.png", 2, "there are 3 arrays", words=["--feed", "once", "--iterations", "4"])
    (frames / "5.png").write_bytes(b"no picture")
    refuse(folder, "a damaged one", graph_of([2, 7, 9, 3]), frames / "*.png", 1, "5.png: cannot be read as PNG", words=["--feed", "cycle", "--iterations", "3"])


def main():
    r = np.random.default_rng(8)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        as_it_was_written(folder, r)
        photos = several(folder, r)
        left_out(folder, photos, r)
        damaged(folder, photos, r)
        refuse_prefixes(folder, png(numbers(r, 2, 3, 3), RGB), "PNG")
        fed(folder, r)
    print("wrong" if wrong else "all as it was written")
    return bool(wrong)


sys.exit(main())
