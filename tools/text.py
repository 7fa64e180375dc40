#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A text as arrays for graphs/models/gpt.json, each byte a token, and tokens of graphs/decode/gpt.json as a text. Needs Python alone.

text.py pack FOLDER FILE BATCH TOKENS   ids.npy and next.npy: arrays of BATCH sequences of TOKENS bytes, and the bytes that follow them; the last tenth of the text is held_ids.npy
                                        and held_next.npy
text.py ask FOLDER TEXT STARTS          given.npy, for --input given=: the bytes of TEXT, then what the model has said
text.py show TEXT                       the lines of `gantry run graphs/decode/gpt.json --watch token --json` as a text: TEXT, and what was said behind it
"""
import array
import collections
import json
import math
import pathlib
import random
import sys


def save(path, numbers, shape):
    """A .npy file of i32, version 1.0 (numpy.lib.format)."""
    header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    values = array.array("i", numbers)
    if sys.byteorder == "big":
        values.byteswap()
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + values.tobytes())


def save_sequences(folder, name, text, batch, tokens):
    """Sequences in an order without meaning; what does not fill an array is left."""
    places = list(range(0, len(text) - tokens, tokens))
    random.Random(1).shuffle(places)
    places = places[:len(places) // batch * batch]
    for what, shift in ("ids", 0), ("next", 1):
        save(folder / f"{name}{what}.npy", [byte for at in places for byte in text[at + shift:at + shift + tokens]], (len(places) // batch, batch * tokens))
    return len(places) // batch


def entropy(text):
    """Of a byte, in nats, if nothing is known but how often each is there: what a model reaches that does not look at what was before."""
    return -sum(n / len(text) * math.log(n / len(text)) for n in collections.Counter(text).values())


def pack(folder, file, batch, tokens):
    folder, text, batch, tokens = pathlib.Path(folder), pathlib.Path(file).read_bytes(), int(batch), int(tokens)
    folder.mkdir(parents=True, exist_ok=True)
    end = len(text) * 9 // 10
    if batch < 1 or tokens < 1 or (len(text) - end - 1) // tokens < batch:
        sys.exit(f"text.py: {file} has {len(text)} bytes, of which a tenth is held out, and that is less than one array of {batch} x {tokens} bytes; give a longer text, or smaller numbers")
    counts = [save_sequences(folder, name, part, batch, tokens) for name, part in (("", text[:end]), ("held_", text[end:]))]
    print(f"{len(text)} bytes: {counts[0]} arrays to train, {counts[1]} held out; by how often each byte is there: {entropy(text[end:]):.4f} nats")


def ask(folder, text, starts):
    given = list(text.encode())
    save(pathlib.Path(folder) / "given.npy", given + [-1] * (int(starts) - len(given)), (max(int(starts), len(given)), 1))


def show(text):
    said = [json.loads(line).get("token") for line in sys.stdin]
    given = text.encode()
    print((given + bytes(token for token in said[len(given) - 1:] if token is not None)).decode(errors="replace"))


COMMANDS = {"pack": (pack, 4), "ask": (ask, 3), "show": (show, 1)}
if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS or len(sys.argv) - 2 != COMMANDS[sys.argv[1]][1]:
    sys.exit(__doc__)
COMMANDS[sys.argv[1]][0](*sys.argv[2:])
