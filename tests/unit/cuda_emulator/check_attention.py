# SPDX-License-Identifier: Apache-2.0
"""attention and attention_grad in all types against NumPy in double, their kernels launched on the emulator: heads that share keys, queries
that see no key, sizes that are no multiples of tiles, addresses that asynchronous copies cannot take. Then what attention by products of
cuBLAS has of softmax and its gradient: bands of rows of several heads, which see more keys from row to row.

check_attention.py EMULATOR ATTENTION ATTENTION_GRAD SOFTMAX SOFTMAX_GRAD
"""
import ctypes
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))
from numpy_gantry import from_bf16, np, to_bf16  # noqa: E402

rng = np.random.default_rng(7)
emulator = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
libraries = [ctypes.CDLL(path) for path in sys.argv[2:]]
emulator.emulator_find.restype = ctypes.c_void_p
TYPES = {"f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64}
CLOSE = {"f16": 1.5e-3, "bf16": 1e-2, "f32": 2e-6, "f64": 1e-14}  # of the largest result
KEPT = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64"}  # types of logarithms


class Extents(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("early", ctypes.c_int)]


class Attention(ctypes.Structure):
    """gy_attention of kernels/attention/attention.h."""
    _fields_ = [(name, ctypes.c_int64) for name in ("n", "m", "d", "heads", "rows", "lengths", "per", "causal")] + [("scale", ctypes.c_double)] + [
        (name, ctypes.c_int64) for name in ("beside", "line", "key_line")]


class Arrays(ctypes.Structure):
    """gy_grad_arrays of kernels/attention_grad."""
    _fields_ = [(name, ctypes.c_void_p) for name in ("q", "k", "v", "y", "dy", "dq", "dk", "dv", "sums", "lse")]


def launch(name, blocks, *values, block=(256, 1, 1)):
    kernel = emulator.emulator_find(name.encode())
    assert kernel, f"no kernel {name}"
    extents = Extents((ctypes.c_uint * 3)(blocks, 1, 1), (ctypes.c_uint * 3)(*block), 0)
    params = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
    error = ctypes.create_string_buffer(240)
    code = emulator.emulator_run(ctypes.c_void_p(kernel), ctypes.byref(extents), params, ctypes.c_uint64(int(rng.integers(1 << 30))), error,
                                 ctypes.c_size_t(240))
    assert code == 0, f"{name}: {error.value.decode()}"


def placed(values, dtype, past):
    """So many elements past a multiple of 16 bytes, with others around that must stay."""
    held = to_bf16(values.astype(np.float32)) if dtype == "bf16" else values.astype(TYPES[dtype])
    room = np.full(held.size + 64, 7, held.dtype)
    first = -room.ctypes.data % 16 // room.itemsize + 16 + past
    room[first:first + held.size] = held.reshape(-1)
    return room, room[first:first + held.size].reshape(held.shape)


def double(held, dtype):
    return (from_bf16(held) if dtype == "bf16" else held).astype(float)


def expect(what, room, got, want, dtype, least=1e-3):
    largest = max(np.abs(want).max(), least)
    error = np.abs(double(got, dtype) - want).max() / largest
    assert error < CLOSE[dtype], f"{what}: wrong by {error:.2g} of {largest:.2g}"
    expect_around(what, room, got)


def expect_around(what, room, got):
    first = (got.ctypes.data - room.ctypes.data) // room.itemsize
    assert (room[:first] == 7).all() and (room[first + got.size:] == 7).all(), f"{what}: stores beside the result"


def weights(q, k, scale, causal):
    s = q @ k.T * scale
    if causal:
        rows, columns = np.indices(s.shape)
        s = np.where(columns <= len(k) - len(q) + rows, s, -np.inf)
    p = np.exp(s - np.maximum(s.max(1, keepdims=True), -1e300))
    with np.errstate(divide="ignore"):
        return p / np.maximum(p.sum(1, keepdims=True), 1e-300), np.log(np.exp(s).sum(1))


def expect_logarithms(what, room, got, want, dtype):
    """Infinite ones are the same, others close: scores are sums that were rounded, of some tens at most."""
    assert (np.isinf(got) == np.isinf(want)).all(), f"{what}: -infinity is not where no key is seen"
    error = np.abs(np.where(np.isinf(want), 0, got - np.where(np.isinf(want), got, want))).max()
    assert error < CLOSE[KEPT[dtype]] * max(10, np.abs(want[np.isfinite(want)]).max(initial=0)), f"logarithms of {what}: wrong by {error:.2g}"
    expect_around(f"logarithms of {what}", room, got)


def in_rows(array, sequences):
    """Heads [many, n, d] side by side, as products leave them: a matrix of n rows for each sequence; 0: they follow each other."""
    if not sequences:
        return array
    parts = array.reshape(sequences, -1, *array.shape[1:]).swapaxes(1, 2)
    return np.ascontiguousarray(parts).reshape(sequences * array.shape[1], -1)


def by_heads(rows, sequences, like):
    """Back again."""
    if not sequences:
        return rows
    many, n, d = like.shape
    return rows.reshape(sequences, n, many // sequences, d).swapaxes(1, 2).reshape(like.shape)


def check(dtype, many, few, n, m, d, causal, scale, past, sequences):
    what = f"{dtype}, {many} heads of {n} queries, {few} of {m} keys, {d} elements, causal {causal}, {past} past, {sequences} sequences in rows"
    shapes = {"q": (many, n, d), "k": (few, m, d), "v": (few, m, d), "dy": (many, n, d)}
    arrays = {name: placed(in_rows(rng.uniform(-2, 2, shape), sequences), dtype, past) for name, shape in shapes.items()}
    Q, K, V, D = (by_heads(double(arrays[name][1], dtype), sequences, np.empty(shape)) for name, shape in shapes.items())
    p, lse = zip(*(weights(Q[h], K[h // (many // few)], scale, causal) for h in range(many)))
    y = np.stack([p[h] @ V[h // (many // few)] for h in range(many)])
    y = in_rows(y, sequences)
    arrays["y"] = placed(np.full_like(y, 9), dtype, past)
    side = 128 if dtype in ("f16", "bf16") and d <= 128 else 32 if dtype == "f64" else 64
    block = (128 if dtype == "f32" and d <= 128 else 256, 1, 1)
    width = 64 if d <= 64 else 128 if d <= 128 else 256
    beside = few // sequences if sequences else 1
    a = Attention(n, m, d, few, many // few * n, 0, 1, causal, scale, beside, many // sequences * d if sequences else d, beside * d)
    at = {name: ctypes.c_void_p(array[1].ctypes.data) for name, array in arrays.items()}
    status = np.zeros(1, np.int32)
    across = -(-a.rows // side)
    plain = None
    for kept in (None, placed(np.full((many, n), 9), KEPT[dtype], past)):
        arrays["y"][1][...] = 9
        launch(f"attention_{width}_{dtype}", across * few, a, ctypes.c_uint32(across), at["q"], at["k"], at["v"], ctypes.c_void_p(), at["y"],
               ctypes.c_void_p(kept and kept[1].ctypes.data), ctypes.c_void_p(status.ctypes.data), block=block)
        expect(what, *arrays["y"], y, dtype)
        plain = arrays["y"][1].copy() if plain is None else plain
    assert (plain == arrays["y"][1]).all(), f"{what}: other bits where logarithms are kept"
    expect_logarithms(what, *kept, np.stack(lse), dtype)

    Y = by_heads(double(arrays["y"][1], dtype), sequences, Q)
    want = [np.zeros_like(Q), np.zeros_like(K), np.zeros_like(V)]
    least = 1e-3
    for h in range(many):
        kv = h // (many // few)
        ds = scale * p[h] * (D[h] @ V[kv].T - (D[h] * Y[h]).sum(1, keepdims=True))
        terms = np.abs(scale * p[h]) * (np.abs(D[h]) @ np.abs(V[kv]).T)
        if m == 1:  # what is 0 is the difference of two products, which is rounded
            least = 0.5 * min((terms @ np.abs(K[kv])).max(), (terms.T @ np.abs(Q[h])).max())
        want[0][h] = ds @ K[kv]
        want[1][kv] += ds.T @ Q[h]
        want[2][kv] += p[h].T @ D[h]
    want = [in_rows(one, sequences) for one in want]
    bits = []
    for lse in (None, kept[1].ctypes.data):
        made = [placed(np.full_like(one, 9), dtype, past) for one in want]
        sums = np.full(2 * many * n, np.nan)
        x = Arrays(*[at[name].value for name in ("q", "k", "v", "y", "dy")], *[one[1].ctypes.data for one in made], sums.ctypes.data, lse)
        for step in range(4):
            across = -(-(a.rows if step < 2 else m) // side)
            launch(f"attention_grad_{width}_{dtype}", across * few, a, ctypes.c_uint32(across), ctypes.c_int32(step), x, block=block)
        for name, one, should in zip(("dq", "dk", "dv"), made, want):
            expect(f"{name} of {what}, logarithms {'given' if lse else 'computed'}", *one, should, dtype, least if name != "dv" else 1e-3)
        bits.append([one[1].copy() for one in made])
    if dtype == "f64" or d > 128:  # on the ordinary cores both kernels add up exponentials in the same way
        assert all((one == other).all() for one, other in zip(*bits)), f"{what}: gradients have other bits where logarithms are given"


class Portion(ctypes.Structure):
    """gy_grad_portion of kernels/attention_grad."""
    _fields_ = [(name, ctypes.c_int64) for name in ("head", "row", "rows", "keys")] + [("weights", ctypes.c_void_p), ("slopes", ctypes.c_void_p)]


def check_weights(many, few, n, m, d, head, heads, row, rows, causal, scale, past):
    """Weights and gradients of scores in f32 for some rows of the queries that share each of some heads of keys, with as many keys as the last
    of them sees; all that nobody sees is 0."""
    what = f"weights of rows {row} to {row + rows} of heads {head} to {head + heads} of {many} and {few}, {n} queries, {m} keys, {d} elements, causal {causal}"
    shared = many // few
    keys = m - n + row + rows if causal and shared == 1 else m
    Q, D, Y = (placed(rng.uniform(-2, 2, (few, shared * n, d)), "f32", past) for _ in "qdy")
    K, V = (placed(rng.uniform(-2, 2, (few, m, d)), "f32", past) for _ in "kv")
    made = [placed(np.full((heads, rows, keys), 9), "f32", 0) for _ in range(2)]
    a, sums = Attention(n, m, d, few, shared * n, 0, 1, causal, scale, 1, d, d), np.full(2 * few * shared * n, np.nan, np.float32)
    x = Arrays(*[one[1].ctypes.data for one in (Q, K, V, Y, D)], None, None, None, sums.ctypes.data, None)
    width, block = 64 if d <= 64 else 128, (128, 1, 1)
    across = -(-a.rows // 64)
    launch(f"attention_grad_{width}_f32", across * few, a, ctypes.c_uint32(across), ctypes.c_int32(0), x, block=block)
    across = -(-rows // 64)
    launch(f"attention_grad_weights_{width}_f32", across * heads * -(-keys // 512), a, ctypes.c_uint32(across), x, Portion(head, row, rows, keys, *[one[1].ctypes.data for one in made]),
           block=block)
    p, slopes = np.zeros((heads, rows, keys)), np.zeros((heads, rows, keys))
    for h in range(heads):
        q, k, v, dy, y = (one[1][head + h].astype(float) for one in (Q, K, V, D, Y))
        all_p = np.concatenate([weights(q[i:i + n], k, scale, causal)[0] for i in range(0, shared * n, n)])
        ds = scale * all_p * (dy @ v.T - (dy * y).sum(1, keepdims=True))
        assert (all_p[row:row + rows, keys:] == 0).all()
        p[h], slopes[h] = all_p[row:row + rows, :keys], ds[row:row + rows, :keys]
    for one, want in zip(made, (p, slopes)):
        expect(what, *one, want, "f32")
        assert (one[1][p == 0] == 0).all(), f"{what}: what nobody sees is not 0"


def check_band(dtype, heads, n, m, d, first, rows, causal, past):
    """Rows [first, first + rows) of n queries of each head, in place, with as many keys as the last of them sees."""
    what = f"{dtype}, rows {first} to {first + rows} of {heads} heads of {n} queries and {m} keys, {d} elements, causal {causal}"
    keys = m - n + first + rows if causal else m
    s, slopes = rng.uniform(-3, 3, (heads, rows, keys)), rng.uniform(-1, 1, (heads, rows, keys))
    room, at = placed(s, dtype, past)
    y, dy = (placed(rng.uniform(-1, 1, (heads, n, d)), dtype, past) for _ in "yd")
    i64, real = ctypes.c_int64, ctypes.c_double
    lanes = 256 if keys > 1024 else 32
    total, blocks, block = i64(heads * rows), min(-(-heads * rows * lanes // 256), 3), (lanes, 256 // lanes, 1)
    pointer = ctypes.c_void_p(at.ctypes.data)
    scores = double(at, dtype)
    if causal:
        _, row, column = np.indices(scores.shape)
        scores = np.where(column <= m - n + first + row, scores, -np.inf)
    p = np.exp(0.7 * (scores - scores.max(2, keepdims=True)))
    kept, held = placed(np.full((heads, n), 9), KEPT[dtype], past), at.copy()
    lse = ctypes.c_void_p(kept[1].ctypes.data + first * kept[1].itemsize)
    for given in (0, 1):  # they are kept first, then used
        at[...] = held
        launch(f"softmax_of_{dtype}", blocks, real(0.7), i64(causal), i64(m - n + first), i64(rows), pointer, pointer, total, i64(keys), lse, i64(given), i64(rows), i64(n),
               block=block)
        expect(what, room, at, p / p.sum(2, keepdims=True), dtype)
        want = np.full((heads, n), 9.0)
        want[:, first:first + rows] = np.log(np.exp(0.7 * scores).sum(2))
        expect_logarithms(what, *kept, want, dtype)
    assert not causal or (at[~np.isfinite(scores)] == 0).all(), f"{what}: what is masked has no weight"

    room, to = placed(slopes, dtype, past)
    sums = (double(y[1], dtype) * double(dy[1], dtype))[:, first:first + rows].sum(2, keepdims=True)
    want = 0.7 * double(at, dtype) * (double(to, dtype) - sums)
    pointers = [ctypes.c_void_p(one[1].ctypes.data + first * d * one[1].itemsize) for one in (y, dy)]
    target = ctypes.c_void_p(to.ctypes.data)
    launch(f"softmax_grad_of_{dtype}", blocks, real(0.7), pointer, target, target, total, i64(keys), *pointers, i64(d), i64(rows), i64(n), block=block)
    expect(f"gradient of {what}", room, to, want, dtype)


def main():
    shapes = [(1, 1, 1, 1, 1), (2, 2, 130, 130, 64), (4, 2, 70, 150, 128), (2, 1, 9, 4, 72), (6, 2, 7, 70, 16), (3, 1, 65, 200, 33),
              (1, 1, 200, 64, 100), (1, 1, 40, 70, 200), (18, 18, 130, 5, 8)]
    for dtype, (number, shape), causal in itertools.product(TYPES, enumerate(shapes), (0, 1)):
        for sequences in {3: (0, 1), 4: (0, 1, 2), 2: (0, 2)}.get(number, (0,)):
            check(dtype, *shape, causal, -0.3 if number == 4 else shape[-1] ** -0.5, number % 3 if dtype != "f64" else 0, sequences)
    bands = [(3, 9, 9, 8, 4, 3), (2, 12, 17, 5, 0, 12), (4, 8, 300, 4, 2, 6), (2, 6, 1300, 8, 3, 3), (1, 1, 1, 1, 0, 1)]
    portions = [(2, 2, 130, 130, 64, 0, 2, 0, 130), (3, 3, 200, 200, 64, 1, 2, 64, 70), (1, 1, 70, 101, 33, 0, 1, 3, 66), (4, 2, 40, 150, 128, 1, 1, 0, 80),
                (2, 2, 256, 256, 16, 0, 1, 128, 128), (5, 5, 90, 300, 100, 2, 3, 10, 7), (2, 2, 40, 1201, 24, 0, 2, 4, 33)]
    for (number, portion), causal in itertools.product(enumerate(portions), (0, 1)):
        check_weights(*portion, causal, -0.3 if number == 4 else portion[4] ** -0.5, number % 3)
    for dtype, band, causal, past in itertools.product(TYPES, bands, (0, 1), (0, 1)):
        check_band(dtype, *band, causal, past)
    print(f"attention and its gradient: {len(TYPES) * len(shapes) * 2} cases and more in rows, {len(TYPES) * len(bands) * 4} bands of softmax, "
          f"{len(portions) * 2} portions")


main()
