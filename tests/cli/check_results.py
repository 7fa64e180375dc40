# SPDX-License-Identifier: Apache-2.0
"""Outputs of a run as a reader gets them: values and summaries in the report, text, JSON and PNG files, drawings. Arrays of NumPy go in, and what comes
out is read by NumPy, the csv and json modules, and PNG files by zlib.

check_results.py GANTRY
"""
import csv
import io
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np

TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8, "i32": np.int32, "u32": np.uint32,
         "i64": np.int64, "u64": np.uint64}
NAMES = {np.dtype(kind): name for name, kind in TYPES.items()}
random = np.random.default_rng(20)


class Place:
    def __init__(self, gantry, here):
        self.gantry, self.here = gantry, here

    def run(self, arrays, *words, code=0, environment=None):
        """The arrays go through copy nodes, so that they are outputs of the same names; bf16 arrives as pairs of bytes."""
        buffers, nodes, bound = {}, [], []
        for name, array in arrays.items():
            dtype = "bf16" if array.dtype == np.dtype("V2") else NAMES[array.dtype]
            for suffix, more in (("_in", {"class": "input"}), ("", {"output": True})):
                buffers[name + suffix] = {"dtype": dtype, "shape": list(array.shape), **more}
            nodes.append({"id": f"copy_{name}", "copy": {"from": f"{name}_in", "to": name}})
            array.tofile(self.here / f"{name}_in.raw")
            bound += ["--input", f"{name}_in={name}_in.raw"]
        (self.here / "graph.json").write_text(json.dumps({"gantry": 1, "name": "results", "buffers": buffers, "nodes": nodes}))
        done = subprocess.run([self.gantry, "run", "graph.json", "--devices", "1", *bound, *words], cwd=self.here, capture_output=True,
                              text=True, timeout=60, env={**os.environ, "COLUMNS": "60", **(environment or {})})
        assert done.returncode == code, (words, done.returncode, done.stderr)
        return done

    def bytes(self, name):
        return (self.here / name).read_bytes()


def some(kind, shape):
    """Numbers of every size, those next to the ends of the type among them."""
    count = int(np.prod(shape))
    if np.issubdtype(kind, np.integer):
        ends = np.iinfo(kind)
        values = random.integers(ends.min, ends.max, count, dtype=kind, endpoint=True)
        values[:2] = ends.min, ends.max
    else:
        ends = np.finfo(kind)
        size = random.uniform(np.log10(float(ends.tiny)) + 1, np.log10(float(ends.max)) - 1, count)
        values = (random.choice([-1.0, 1.0], count) * 10**size).astype(kind)
        values[:4] = ends.max, ends.tiny, ends.smallest_subnormal, 0.1
    return values.reshape(shape)


# ---- the report ----

def lines_below(report, name):
    lines = report.splitlines()
    at = next(i for i, line in enumerate(lines) if re.match(rf"  output {name} ", line))
    end = next((i for i in range(at + 1, len(lines)) if not lines[i].startswith("      ")), len(lines))
    return lines[at + 1 : end]


def check_few(p):
    """Up to 16 elements: each, to six digits or as a whole number, and a matrix row by row."""
    arrays = {name: some(kind, (16,)) for name, kind in TYPES.items()}
    arrays |= {"one": np.array([2.5], np.float32), "odd": np.array([np.nan, np.inf, -np.inf, -0.0], np.float64), "m": some(np.float32, (3, 4)),
               "row": some(np.int64, (1, 7)), "cube": np.arange(8, dtype=np.int32).reshape(2, 2, 2)}
    report = p.run(arrays).stdout
    for name, array in arrays.items():
        lines = lines_below(report, name)
        head = f"      {NAMES[array.dtype]} [{', '.join(map(str, array.shape))}]"
        assert lines[0].startswith(head), (name, lines)
        rows = [lines[0][len(head) :], *lines[1:]]
        if len(lines) > 1:
            assert not rows[0] and len(rows) - 1 == array.shape[0], (name, lines)
            assert len({len(row) for row in rows[1:]}) == 1, (name, lines)
            rows = rows[1:]
        found = [row.split() for row in rows]
        assert [len(row) for row in found] == ([array.shape[1]] * array.shape[0] if len(lines) > 1 else [array.size]), (name, lines)
        for word, value in zip(sum(found, []), array.ravel()):
            wanted = str(int(value)) if np.issubdtype(array.dtype, np.integer) else f"{float(value):.6g}"
            assert word == wanted, (name, word, wanted)


def check_summaries(p):
    arrays = {name: some(kind, (5000,)) for name, kind in TYPES.items() if np.issubdtype(kind, np.integer)}
    arrays |= {f"r{i}": random.normal(i, 1, (17, 1 + i * 611)).astype(kind) for i, kind in enumerate([np.float16, np.float32, np.float64])}
    arrays["holes"] = random.uniform(-3, 5, 10000)
    arrays["holes"][random.integers(0, 10000, 700)] = np.nan
    arrays["holes"][random.integers(0, 10000, 300)] = np.inf
    arrays["holes"][17] = -np.inf
    arrays["none"] = np.full(40, np.nan, np.float32)
    arrays["huge"] = np.full(100, 1.5e308)  # whose sum is not finite
    arrays["near"] = np.array([2**63 - 1 - i for i in range(20)], np.int64)  # all the same as doubles
    report = p.run(arrays).stdout
    for name, array in arrays.items():
        line, = lines_below(report, name)
        finite = array[np.isfinite(array)]
        words = line.split("]  ")[1]
        whole = np.issubdtype(array.dtype, np.integer)
        if not finite.size:
            assert words.startswith("no finite value, "), words
        else:
            low, mean, high = re.match(r"min (\S+), mean (\S+), max (\S+?)(?:,|$)", words).groups()
            ends = [str(int(v)) if whole else f"{float(v):.6g}" for v in (finite.min(), finite.max())]
            assert [low, high] == ends, (name, words, ends)
            exact = sum(map(int, finite)) / finite.size if whole else np.mean(finite.astype(np.longdouble))
            assert abs(float(mean) - float(exact)) <= 6e-6 * max(abs(float(exact)), 1e-12), (name, mean, exact)
        for count, what in ((np.isnan(array).sum(), "NaN"), (np.isinf(array).sum(), "infinite")):
            assert (f", {count} {what}" in words) if count else (what not in words), (name, words)


# ---- files ----

def read_png(data):
    """Without interlacing, 8 bits a channel; the five filters of the PNG specification, section 9."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack_from(">I", data, at + 8 + length)[0]
        if kind == b"IHDR":
            width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and colour in (0, 2) and rest == [0, 0, 0]
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    channels = 3 if colour == 2 else 1
    raw, line, rows = zlib.decompress(packed), [0] * (width * channels), []
    for y in range(height):
        begin = y * (width * channels + 1)
        kind, row = raw[begin], list(raw[begin + 1 : begin + 1 + width * channels])
        for x in range(len(row)):
            a, b, c = (row[x - channels] if x >= channels else 0), line[x], (line[x - channels] if x >= channels else 0)
            pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
            paeth = a if pa <= pb and pa <= pc else b if pb <= pc else c
            row[x] = (row[x] + [0, a, b, (a + b) // 2, paeth][kind]) & 255
        rows.append(row)
        line = row
    return np.array(rows, np.uint8).reshape(height, width, channels)


def same(found, array):
    """Every bit but those of NaN, which have one text."""
    found = np.asarray(found, array.dtype).reshape(array.shape)
    return np.array_equal(found, array, equal_nan=np.issubdtype(array.dtype, np.floating)) and np.array_equal(np.signbit(found), np.signbit(array)) \
        if np.issubdtype(array.dtype, np.floating) else np.array_equal(found, array)


def exact(words, dtype):
    """Whole numbers do not go through doubles; halves and floats are rounded once."""
    return [int(word) for word in words] if np.issubdtype(dtype, np.integer) else np.array([float(word) for word in words]).astype(dtype)


def check_text(p):
    arrays = {name: some(kind, (50, 7)) for name, kind in TYPES.items()}
    arrays |= {"v": some(np.float32, (300,)), "cube": some(np.float64, (3, 4, 5)), "odd": np.array([[np.nan, np.inf, -np.inf], [-0.0, 1e-320, 3]])}
    for end in ("csv", "txt", "json", "npy", "raw", "bin"):
        p.run(arrays, *sum((["--output", f"{name}={name}.{end}"] for name in arrays), []))
        for name, array in arrays.items():
            text = p.bytes(f"{name}.{end}")
            if end in ("npy", "raw", "bin"):
                found = np.load(p.here / f"{name}.npy") if end == "npy" else np.frombuffer(text, array.dtype)
                assert array.tobytes() == found.tobytes(), (name, end)
                continue
            if end == "json":
                found = json.loads(text, parse_constant=lambda word: sys.exit(f"{word} is not JSON"))
                assert found["shape"] == list(array.shape) and found["dtype"] == NAMES[array.dtype] and set(found) == {"shape", "dtype", "data"}
                assert same(exact(found["data"], array.dtype), array), (name, end)
                continue
            rows = list(csv.reader(io.StringIO(text.decode()))) if end == "csv" else [line.split(" ") for line in text.decode().splitlines()]
            assert {len(row) for row in rows} == {array.shape[-1] if array.ndim > 1 else 1}, (name, end)
            assert same(exact(sum(rows, []), array.dtype), array), (name, end)
            if array.dtype != np.float16:  # loadtxt goes through doubles
                read = np.loadtxt(p.here / f"{name}.{end}", array.dtype, delimiter="," if end == "csv" else None)
                assert same(read, array), (name, end)


def check_shortest(p):
    """No digit too many: as short as NumPy's shortest text, or within one digit where rounding to nearest wants another."""
    for kind in (np.float32, np.float64):
        array = np.concatenate([some(kind, (2000,))[4:], np.arange(1, 1000).astype(kind) / 100])
        p.run({"x": array}, "--output", "x=x.txt")
        for word, value in zip(p.bytes("x.txt").decode().split(), array):
            digits = len(word.split("e")[0].replace("-", "").replace(".", "").strip("0"))
            least = len(np.format_float_scientific(value, unique=True, trim="-").split("e")[0].replace("-", "").replace(".", "").strip("0"))
            assert digits <= least + 1, (word, value)
    array = (random.integers(0, 1 << 16, 500, dtype=np.uint16) & 0xFF7F).view("V2")  # bf16, none of them NaN
    p.run({"h": array}, "--output", "h=h.txt")
    bits = np.array([float(w) for w in p.bytes("h.txt").decode().split()], np.float32).view(np.uint32)
    assert np.array_equal(bits >> 16, array.view(np.uint16)) and not (bits & 0xFFFF).any()


def check_stdout(p):
    arrays = {"a": some(np.float32, (3, 5)), "b": some(np.int32, (4,))}
    done = p.run(arrays, "--output", "a=-", "--output", "b=b.npy")
    assert same(np.loadtxt(io.StringIO(done.stdout), np.float32), arrays["a"]), done.stdout
    assert "output a" in done.stderr and "xxh64" in done.stderr
    for words in (["--output", "b=-"], ["--json"], ["--trace", "-"]):
        assert "can go to standard output" in p.run(arrays, "--output", "a=-", *words, code=2).stderr


def check_pictures(p):
    grey, colour = some(np.uint8, (40, 31)), some(np.uint8, (20, 30, 3))
    field, stack = random.uniform(-4, 9, (25, 60)).astype(np.float32), some(np.uint8, (4, 6, 5, 3))
    field[3, 4], field[5, 6], field[7, 8] = np.nan, np.inf, -np.inf
    arrays = {"grey": grey, "colour": colour, "field": field, "stack": stack, "one": some(np.uint8, (7, 9, 1)), "flat": np.full((4, 4), 3, np.int32)}
    done = p.run(arrays, *sum((["--output", f"{name}={name}.png"] for name in arrays), []))
    found = {name: read_png(p.bytes(f"{name}.png")) for name in arrays}
    assert np.array_equal(found["grey"][..., 0], grey) and np.array_equal(found["colour"], colour)
    assert np.array_equal(found["stack"], stack.reshape(24, 5, 3)) and np.array_equal(found["one"], arrays["one"])
    low, high = np.min(field[np.isfinite(field)]), np.max(field[np.isfinite(field)])
    wanted = np.clip((np.nan_to_num(field.astype(float), nan=low, posinf=high, neginf=low) - low) / (high - low) * 255, 0, 255)
    assert np.abs(found["field"][..., 0] - wanted).max() <= 0.5 + 1e-9
    assert f"note: field.png: 0 is {low:.6g}, 255 is {high:.6g}, and NaN is 0" in done.stderr
    assert "note: grey.png: bytes as they are" in done.stderr and len(set(found["flat"].ravel())) == 1
    for name, array in (("line", np.zeros(9, np.float32)), ("long", np.zeros((1, 1000001), np.uint8))):
        done = p.run({name: array}, "--output", f"{name}={name}.png", code=2)
        assert f"cannot be a picture: \"{name}\" is" in done.stderr and "a picture has two axes or more" in done.stderr
        assert not (p.here / f"{name}.png").exists()


def check_refused(p):
    """Before anything runs, with what is allowed."""
    arrays = {"x": np.zeros((2, 2), np.float32)}
    for path in ("x", "x.jpg", "x.npy.gz", ".csv", "x.NPY", "folder.csv/x"):
        done = p.run(arrays, "--output", f"x={path}", code=2)
        assert all(end in done.stderr for end in (".npy", ".csv", ".txt", ".json", ".png", ".raw", path)), done.stderr
        assert not done.stdout and not (p.here / path).exists()
    p.run(arrays, "--output", "x=/dev/null")


# ---- drawings ----

def braille(text):
    """Dots of Braille characters as a matrix of bool; the order of the bits is in Unicode's chart of U+2800."""
    lines = [line.split("|")[1] for line in text]
    dots = np.zeros((4 * len(lines), 2 * len(lines[0])), bool)
    for y, line in enumerate(lines):
        for x, c in enumerate(line):
            assert 0x2800 <= ord(c) < 0x2900
            for bit, (dx, dy) in enumerate([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)]):
                dots[4 * y + dy, 2 * x + dx] = ord(c) - 0x2800 >> bit & 1
    return dots


def drawing(p, array, **more):
    lines = p.run({"x": array}, "--show", "x", environment=more).stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"x  {NAMES[array.dtype]} ["))
    assert max(map(len, lines[at:])) <= int(more.get("COLUMNS", 60))
    return lines[at + 1 :]


def check_curves(p):
    peak = np.zeros(100000, np.float32)
    peak[70123] = 5
    for array in (np.sin(np.linspace(0, 6.28, 1000)), np.array([3.0, 1.0, 4.0, 1.0, 5.0]), peak, np.arange(30, dtype=np.int64), np.full(9, 2.0)):
        lines = drawing(p, array)
        assert lines[0].split(" |")[0].strip() == f"{float(array.max()):.6g}" and lines[-2].split(" |")[0].strip() == f"{float(array.min()):.6g}"
        assert lines[-1].split() == ["0", str(array.size - 1)]
        dots = braille(lines[:-1])
        assert dots.any(0).all(), "the curve has a hole"
        rows, columns = dots.shape
        span = float(array.max() - array.min()) or 1
        for i in range(0, array.size, max(1, array.size // 200)) if array is not peak else [70123]:  # where an element is, there is a dot
            x, y = min(columns - 1, int(i * columns / (array.size - 1))), (1 - (array[i] - array.min()) / span) * (rows - 1) if array.max() > array.min() else None
            near = dots[:, max(0, x - 1) : x + 1]
            assert y is None or near[max(0, int(y) - 1) : int(y) + 2].any(), (i, x, y)
    holes = np.arange(100.0)
    holes[40:60] = np.nan
    dots = braille(drawing(p, holes)[:-1])
    assert not dots[:, int(dots.shape[1] * 0.45) : int(dots.shape[1] * 0.55)].any() and dots[:, 0].any() and dots[:, -1].any()
    drawing(p, np.arange(5.0), COLUMNS="33")


def check_shades(p):
    """Not a terminal: no escape sequences, darker where the picture is, as high as wide."""
    lines = drawing(p, np.repeat(np.linspace(0, 255, 40)[None], 40, 0).astype(np.uint8))
    rows = lines[:-1]
    assert len(rows) == 20 and {len(row) for row in rows} == {40} and len(set(rows)) == 1 and "\033" not in "".join(lines)
    assert list(dict.fromkeys(rows[0])) == [" ", "░", "▒", "▓", "█"] and lines[-1] == "40 x 40 pixels: bytes as they are"
    assert len(drawing(p, np.zeros((300, 900), np.uint8))[0]) == 60


def check_colours(p):
    """On a terminal each half block has the colours of two pixels; NO_COLOR and files go without."""
    array = some(np.uint8, (32, 32, 3))
    p.run({"x": array})
    words = [p.gantry, "run", "graph.json", "--devices", "1", "--input", "x_in=x_in.raw", "--show", "x"]
    for more, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        master, slave = os.openpty()
        child = subprocess.Popen(words, cwd=p.here, stdout=slave, stderr=slave,
                                 env={**os.environ, "COLUMNS": "60", "TERM": "xterm", **more})
        os.close(slave)
        text = b""
        try:
            while block := os.read(master, 65536):
                text += block
        except OSError:
            pass
        os.close(master)
        assert child.wait() == 0
        cells = re.findall(r"\033\[38;2;(\d+);(\d+);(\d+);48;2;(\d+);(\d+);(\d+)m▀", text.decode())
        if not coloured:
            assert not re.search(rb"\033\[[\d;]*m", text)  # the line of progress is erased, but nothing has a colour
            continue
        cells = np.array(cells, np.uint8).reshape(16, 32, 2, 3)
        assert np.array_equal(cells.transpose(0, 2, 1, 3).reshape(32, 32, 3), array)


def check_show_files(p):
    arrays = {"v": np.sin(np.linspace(0, 6.28, 500)), "m": some(np.uint8, (12, 17)), "a=b": np.arange(40.0)}
    done = p.run(arrays, "--show", "v=v.png", "--show", "m=m.png", "--show", "a=b", "--show", "a=b=c.png")
    assert np.array_equal(read_png(p.bytes("m.png"))[..., 0], arrays["m"])
    curve = read_png(p.bytes("v.png"))[..., 0]
    ink = np.argwhere(curve == 0)
    assert curve.shape == (240, 640) and set(np.unique(curve)) == {0, 192, 255} and (p.here / "c.png").exists()
    for y, x in ink:
        assert abs((1 - np.sin((x - 8) / 624 * 6.28)) / 2 * 223 + 8 - y) < 4, (x, y)
    assert set(ink[:, 1]) == set(range(8, 632)) and f"note: v.png: from {arrays['v'].min():.6g} below to {arrays['v'].max():.6g} above" in done.stderr
    assert "a=b  f64 [40]" in done.stdout
    for words, said in ((["w"], "has no output \"w\""), (["w=a.png"], "has no output \"w\""), (["v_in"], "is no output"),
                        (["v=v.txt"], "ends in .png"), (["v=.png"], "ends in .png"), (["v", "--json"], "--show v=FILE.png")):
        assert said in p.run(arrays, "--show", *words, code=2).stderr, words
    p.run(arrays, "--show", "v=v.png", "--json")


def main(gantry):
    with tempfile.TemporaryDirectory() as here:
        p = Place(os.path.abspath(gantry), pathlib.Path(here))
        checks = [value for name, value in globals().items() if name.startswith("check_")]
        for check in checks:
            check(p)
        print(f"{len(checks)} checks")


main(sys.argv[1])
