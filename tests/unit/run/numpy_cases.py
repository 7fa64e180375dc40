# SPDX-License-Identifier: Apache-2.0
"""The other side of test_numpy.c: numpy_cases.py check|make|halves FOLDER. Nothing here is taken from the library: Philox
is written from the paper (Salmon et al., SC 2011), the mapping to numbers from the comment in src/run/fill.h."""
import os
import struct
import sys

import numpy as np
from numpy.lib import format as npy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "conformance", "f8"))
import ofp8  # noqa: E402

SHAPE = (37, 11)
TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8,
         "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64}
MASK = 0xFFFFFFFF


def philox(counter, seed):
    c = [counter & MASK, counter >> 32, 0, 0]
    k = [seed & MASK, seed >> 32]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & MASK, (p >> 32) ^ c[3] ^ k[1], p & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def uniform(e, seed, wide):
    if not wide:
        return philox(e // 4, seed)[e % 4] / 2.0**32
    x = philox(e // 2, seed)
    return ((x[2 * (e % 2)] | x[2 * (e % 2) + 1] << 32) >> 11) / 2.0**53


def normal(e, seed, wide):
    if wide:
        x = philox(e, seed)
        v, w = (((x[0] | x[1] << 32) >> 11) + 1) / 2.0**53, ((x[2] | x[3] << 32) >> 11) / 2.0**53
    else:
        x = philox(e // 2, seed)
        v, w = (x[2 * (e % 2)] + 1) / 2.0**32, x[2 * (e % 2) + 1] / 2.0**32
    return np.sqrt(-2 * np.log(v)) * np.cos(2 * np.pi * w)


def bf16(x):
    """Rounded to nearest even by integers: f64 -> f32 would round twice."""
    out = []
    for value in x:
        mantissa, exponent = np.frexp(value)
        scaled = np.rint(np.ldexp(mantissa, 8))  # rint: ties to even; 8 bits
        out.append(np.float32(np.ldexp(scaled, int(exponent) - 8)).view(np.uint32) >> 16)
    return np.array(out, dtype=np.uint16)


def saturate(x, kind):
    if kind is None or np.issubdtype(kind, np.floating):
        return x
    info = np.iinfo(kind)
    return np.clip(np.trunc(x), info.min, info.max)


def expected(what, name):
    kind, count = TYPES.get(name), SHAPE[0] * SHAPE[1]
    narrow = ofp8.FORMATS[name].nearest if name in ofp8.FORMATS else bf16
    wide = name in ("f64", "i64", "u64")
    integral = kind is not None and np.issubdtype(kind, np.integer)
    if what == "iota":
        if kind is None:
            return narrow(np.arange(count, dtype=np.float64))
        return np.arange(count).astype(kind)  # integers: modulo
    if what == "uniform":
        x = np.array([-3 + 103 * uniform(e, 0x123456789ABCDEF0, wide) for e in range(count)])
        x = np.floor(x) if integral else x
    else:
        x = np.array([50 + 10 * normal(e, 77, wide) for e in range(count)])
    return narrow(x) if kind is None else saturate(x, kind).astype(kind)


def read(folder, name):
    return np.load(f"{folder}/{name}.npy", allow_pickle=False)


def check_f8(folder):
    """NumPy does not load what ml_dtypes calls f1, so the header is read here."""
    for name, header in (("f8e4m3", "'|V1'"), ("f8e5m2", "'|f1'")):
        for what in ("iota", "uniform", "normal"):
            data = open(f"{folder}/{what}_{name}.npy", "rb").read()
            assert data[:8] == b"\x93NUMPY\x01\x00"
            length = struct.unpack("<H", data[8:10])[0]
            head = data[10:10 + length].decode()
            assert header in head or header.replace("|", "<") in head, head
            assert "'shape': (37, 11)" in head and "'fortran_order': False" in head, head
            got, want = np.frombuffer(data[10 + length:], np.uint8), expected(what, name)
            if what == "normal":  # another libm may round otherwise
                assert (got == want).mean() > 0.99, (name, (got == want).mean())
            else:
                assert np.array_equal(got, want), (what, name, got[:4], want[:4])


def check(folder):
    check_f8(folder)
    for name in list(TYPES) + ["bf16"]:
        for what in ("iota", "uniform", "normal"):
            got = read(folder, f"{what}_{name}")
            assert got.shape == SHAPE, (name, got.shape)
            assert got.flags.c_contiguous
            if name == "bf16":
                assert got.dtype == np.dtype("V2"), got.dtype
                got = got.view(np.uint16)
            else:
                assert got.dtype == TYPES[name], (name, got.dtype)
            want = expected(what, name).reshape(SHAPE)
            if what == "normal":  # another libm may differ in the last bit
                if name == "bf16":
                    got, want = ((a.astype(np.uint32) << 16).view(np.float32) for a in (got, want))
                close = np.isclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-14 if name == "f64" else 0,
                                   atol=0)
                assert close.mean() > 0.99, (name, close.mean())
                assert np.allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-2, atol=1), name
            else:
                assert np.array_equal(got, want), (what, name, got.ravel()[:4], want.ravel()[:4])


def make(folder):
    for f in ofp8.FORMATS.values():  # as ml_dtypes and ours: V1, or f1 in a header that NumPy does not write
        x = f.nearest(5 + 3 * np.arange(SHAPE[0] * SHAPE[1])).reshape(SHAPE)
        for version in (1, 2, 3):
            with open(f"{folder}/made{version}_{f.name}.npy", "wb") as file:
                npy.write_array(file, x.view("V1"), version=(version, 0))
        if f.name == "f8e5m2":
            for version in (1, 2, 3):
                path = f"{folder}/made{version}_{f.name}.npy"
                data = open(path, "rb").read()
                open(path, "wb").write(data.replace(b"'|V1'", b"'<f1'", 1))
    for name, kind in TYPES.items():
        x = (5 + 3 * np.arange(SHAPE[0] * SHAPE[1])).astype(kind).reshape(SHAPE)
        for version in (1, 2, 3):
            with open(f"{folder}/made{version}_{name}.npy", "wb") as file:
                npy.write_array(file, x, version=(version, 0))
    np.save(f"{folder}/short.npy", np.zeros(SHAPE))
    data = open(f"{folder}/short.npy", "rb").read()
    open(f"{folder}/short.npy", "wb").write(data[:-8])


def halves(folder):
    wide = read(folder, "widened").ravel()
    want = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    assert np.array_equal(wide.view(np.uint32)[~np.isnan(want)], want.view(np.uint32)[~np.isnan(want)])
    assert np.array_equal(np.isnan(wide), np.isnan(want))
    floats, narrow = read(folder, "floats").ravel(), read(folder, "narrowed").ravel()
    with np.errstate(over="ignore", invalid="ignore"):
        want = floats.astype(np.float16)
    fine = ~np.isnan(floats)
    assert fine.sum() > 60000
    assert np.array_equal(narrow.view(np.uint16)[fine], want.view(np.uint16)[fine])
    assert np.isnan(narrow[~fine]).all()


globals()[sys.argv[1]](sys.argv[2])
