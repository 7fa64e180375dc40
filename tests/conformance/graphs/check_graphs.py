# SPDX-License-Identifier: Apache-2.0
"""Every graph in graphs/ on 1, 2 and 4 devices, with and without checking mode, against NumPy.

check_graphs.py GANTRY GRAPHS
"""
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "kernels"))
from numpy_gantry import np, run  # noqa: E402
import gradients  # noqa: E402
import samples  # noqa: E402

rng = np.random.default_rng(2)


def params(**values):
    return [word for name, value in values.items() for word in ("--param", f"{name}={value}")]


def saxpy():
    x, y = rng.random(1003, np.float32), rng.random(1003, np.float32)
    new = (np.float32(2) * x + y).astype(np.float32)
    return {"x": x, "y": y}, params(n=1003), {"y": (new, 0), "total": ([new.astype(float).sum()], 1e-5)}


def reduce_sum():
    x = rng.integers(-100, 100, 10007).astype(np.int32)
    return {"x": x}, params(n=10007), {"total": ([x.sum()], 0), "top": ([x.max()], 0)}


def image_blur():
    frames = rng.integers(0, 256, (7, 30, 50, 3)).astype(np.uint8)
    r = 6
    k = np.exp(-np.arange(-r, r + 1) ** 2 / 8)
    k /= k.sum()
    want = frames.astype(float)
    for axis in (1, 2):
        pad = [(0, 0)] * 4
        pad[axis] = (r, r)
        wide = np.pad(want, pad, mode="edge")
        want = sum(k[i] * np.take(wide, range(i, i + want.shape[axis]), axis) for i in range(2 * r + 1))
    return {"frames": frames}, [], {"blurred": (want, nearest)}  # the shape's params come from the file


def pipeline3():
    x = rng.random(5 * 64).astype(np.float32)
    return {"x": x}, params(batches=5, batch=64, stage_us=100), {"y": (((x * np.float32(2)) * np.float32(3)) * np.float32(5), 0)}


def jacobi():
    u = rng.random((37, 37))
    want = u.copy()
    for _ in range(9):
        new = want.copy()
        new[1:-1, 1:-1] = 0.25 * ((want[:-2, 1:-1] + want[2:, 1:-1]) + (want[1:-1, :-2] + want[1:-1, 2:]))
        want = new
    return {"u": u}, params(n=37, steps=9), {"u": (want, 0)}


def jacobi_until():
    """How many iterations it takes is what matters: the sum of squares passes the limit with room on both sides."""
    u = rng.random((20, 20))
    now, done = u.copy(), 0.0
    for it in range(1, 1001):
        new = now.copy()
        new[1:-1, 1:-1] = 0.25 * ((now[:-2, 1:-1] + now[2:, 1:-1]) + (now[1:-1, :-2] + now[1:-1, 2:]))
        excess, now = np.sum((new - now) ** 2) - 1e-8, new
        done = max(0.0, -excess)
        if it % 7 == 0 and done:
            break
    assert 50 < it < 1000 and abs(excess) > 1e-11
    return {"u": u}, params(n=20, every=7, steps=1000), {"u": (now, 0), "done": ([done], 1e-5)}


def heat_implicit():
    """Each step is (1 + 4 r) v - r (the four neighbours of v) = u, of which sweeps make v better and better."""
    n, steps, sweeps, r = 29, 4, 5, 0.7
    u = rng.random((n, n))
    want, v = u.copy(), u.copy()
    for _ in range(steps):
        for _ in range(sweeps):
            around = v.copy()
            around[1:-1, 1:-1] = 0.25 * ((v[:-2, 1:-1] + v[2:, 1:-1]) + (v[1:-1, :-2] + v[1:-1, 2:]))
            v = (want + 4 * r * around) / (1 + 4 * r)
        want = v
    return {"u": u}, params(n=n, steps=steps, sweeps=sweeps, r=r), {"u": (want, 1e-14)}


def heat_3d():
    n, steps, r = 13, 5, 0.15
    u = rng.random((n, n, n))
    want = u.copy()
    for _ in range(steps):
        mean, v = want.copy(), want
        mean[1:-1, 1:-1, 1:-1] = (((v[:-2, 1:-1, 1:-1] + v[2:, 1:-1, 1:-1]) + (v[1:-1, :-2, 1:-1] + v[1:-1, 2:, 1:-1])) +
                                  (v[1:-1, 1:-1, :-2] + v[1:-1, 1:-1, 2:])) / 6
        want = want + 6 * r * (mean - want)
    return {"u": u}, params(n=n, steps=steps, r=r), {"u": (want, 1e-14)}


def jacobi_blocks():
    n, steps = 37, 6
    u = rng.random((n, n), np.float32)
    want = u.copy()
    for _ in range(steps):
        v = want.copy()
        v[1:-1, 1:-1] = np.float32(0.25) * ((want[:-2, 1:-1] + want[2:, 1:-1]) + (want[1:-1, :-2] + want[1:-1, 2:]))
        want = v
    return {"u": u}, params(n=n, steps=steps, a=3, b=2), {"u": (want, 0)}


def mlp_step():
    batch, inputs, hidden, classes, lr = 24, 13, 9, 5, 0.1
    x = rng.random((batch, inputs), np.float32)
    labels = rng.integers(0, classes, batch).astype(np.int32)
    w1, b1 = rng.normal(0, 0.3, (inputs, hidden)).astype(np.float32), rng.normal(0, 0.1, (1, hidden)).astype(np.float32)
    w2, b2 = rng.normal(0, 0.3, (hidden, classes)).astype(np.float32), rng.normal(0, 0.1, (1, classes)).astype(np.float32)
    X, W1, B1, W2, B2 = (a.astype(float) for a in (x, w1, b1, w2, b2))
    z = X @ W1 + B1
    h = np.maximum(z, 0)
    logits = h @ W2 + B2
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss = -np.log(p[np.arange(batch), labels]).mean()
    d = (p - np.eye(classes)[labels]) / batch
    dz = np.where(z > 0, d @ W2.T, 0)
    return ({"x": x, "labels": labels, "w1": w1, "b1": b1, "w2": w2, "b2": b2},
            params(batch=batch, inputs=inputs, hidden=hidden, classes=classes),
            {"loss": ([loss], 1e-5), "w1": (W1 - lr * X.T @ dz, 1e-5), "b1": (B1 - lr * dz.sum(0, keepdims=True), 1e-5),
             "w2": (W2 - lr * h.T @ d, 1e-5), "b2": (B2 - lr * d.sum(0, keepdims=True), 1e-5)})


def train_pipeline():
    stages, batches, n, lr = 3, 5, 40, 0.25
    x, w = rng.random(batches * n, np.float32), rng.random(stages * n, np.float32)
    last = x.reshape(batches, n).astype(float) / 2**stages  # each forward halves
    d = np.stack([2 * last.mean(0) / 2**(stages - 1 - s) for s in range(stages)])  # so does each backward but the first
    return ({"x": x, "w": w}, params(stages=stages, batches=batches, n=n, lr=lr, forward_us=10),
            {"w": (w - lr * d.reshape(-1), 1e-6)})


def stages():
    x, one, three, half = rng.random(1003, np.float32), np.float32(1), np.float32(3), np.float32(0.5)
    t = x * x - x / three
    return {"x": x}, params(n=1003), {"y": (np.sqrt(np.abs(t)) * half + one, 0), "high": ((t > half / 2).astype(np.uint8), 0)}


def cg():
    """Eigenvalues from 1 to 1000: over a hundred iterations, and a solution by elimination."""
    n = 150
    q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    a = (q * np.logspace(0, 3, n)) @ q.T
    b = rng.random(n)
    return {"A": (a + a.T) / 2, "b": b}, params(n=n, most=1000, tolerance="1e-26"), {"x": (np.linalg.solve((a + a.T) / 2, b), 1e-10)}


def residual_stack():
    layers, rows, width, hidden = 3, 4 * 5, 16, 40
    x, gain = rng.normal(size=(rows, width)).astype(np.float32), rng.uniform(0.5, 2, (layers, width)).astype(np.float32)
    up = rng.normal(0, 0.2, (layers, width, hidden)).astype(np.float32)
    down = rng.normal(0, 0.2, (layers, hidden, width)).astype(np.float32)
    y, erf = x.astype(float), np.vectorize(math.erf)
    for g, a, b in zip(gain.astype(float), up.astype(float), down.astype(float)):
        norm = (y - y.mean(1, keepdims=True)) / np.sqrt(y.var(1, keepdims=True) + 1e-5) * g
        z = norm @ a
        y = y + z / 2 * (1 + erf(z / np.sqrt(2))) @ b
    return ({"x": x, "gain": gain, "up": up.reshape(-1, hidden), "down": down.reshape(-1, width)},
            params(layers=layers, rows=rows // 4, width=width, hidden=hidden), {"y": (y, 1e-5)})


def transformer_block():
    """Attention and two layers in the usual order of axes: what the graph has as heads and pieces are columns here."""
    heads, tokens, dim, pieces, hidden = 3, 17, 8, 2, 40  # heads do not divide by parts
    width, erf = heads * dim, np.vectorize(math.erf)
    x = rng.normal(size=(tokens, width)).astype(np.float32)
    gains = rng.uniform(0.5, 2, (2, width)).astype(np.float32)
    query, key, value, join = rng.normal(0, 0.3, (4, heads, dim, width)).astype(np.float32)
    up, down = rng.normal(0, 0.2, (2, pieces, hidden // pieces, width)).astype(np.float32)

    def norm(a, gain):
        return a / np.sqrt(np.mean(a * a, 1, keepdims=True) + 1e-5) * gain

    a = x.astype(float)
    n = norm(a, gains[0])
    q, k, v = (n @ w.reshape(width, width).astype(float).T for w in (query, key, value))
    seen = np.zeros_like(a)
    for one in range(0, width, dim):
        columns = slice(one, one + dim)
        scores = np.where(np.tri(tokens, dtype=bool), q[:, columns] @ k[:, columns].T / np.sqrt(dim), -np.inf)
        p = np.exp(scores - scores.max(1, keepdims=True))
        seen[:, columns] = p / p.sum(1, keepdims=True) @ v[:, columns]
    a = a + seen @ join.reshape(width, width).astype(float)
    z = norm(a, gains[1]) @ up.reshape(hidden, width).astype(float).T
    a = a + z / 2 * (1 + erf(z / np.sqrt(2))) @ down.reshape(hidden, width).astype(float)
    return ({"x": x[None], "gain1": gains[0], "gain2": gains[1], "query": query, "key": key, "value": value, "join": join, "up": up, "down": down},
            params(heads=heads, tokens=tokens, dim=dim, pieces=pieces, hidden=hidden), {"y": (a[None], 1e-5)})


def black_scholes():
    """By math.erf in f64; puts from their own formula, not from parity as in the graph."""
    n, r, v = 1003, 0.05, 0.4
    price, strike, years = (rng.uniform(low, high, n).astype(np.float32) for low, high in ((5, 30), (1, 100), (0.25, 10)))
    s, k, t = price.astype(float), strike.astype(float), years.astype(float)
    d1 = (np.log(s / k) + (r + v * v / 2) * t) / (v * np.sqrt(t))
    normal = np.vectorize(lambda x: (1 + math.erf(x / math.sqrt(2))) / 2)
    d2 = d1 - v * np.sqrt(t)
    call, put = s * normal(d1) - k * np.exp(-r * t) * normal(d2), k * np.exp(-r * t) * normal(-d2) - s * normal(-d1)
    return ({"price": price, "strike": strike, "years": years}, params(n=n, rate=r, volatility=v),
            {"call": (call, 2e-5), "put": (put, 2e-5), "worth": ([(call + put).sum()], 1e-5)})


def nbody():
    n, steps, dt, e = 45, 7, 0.01, 0.05
    mass, at, speed = rng.random(n), rng.normal(0, 1, (3, n)), rng.normal(0, 1, (3, n))
    names = [*"xyz", "vx", "vy", "vz"]
    files = {"mass": mass, **{name: row[:, None] for name, row in zip(names, np.concatenate([at, speed]))}}
    for _ in range(steps):
        away = at[:, None, :] - at[:, :, None]
        speed = speed + dt * (mass * away * ((away ** 2).sum(0) + e * e) ** -1.5).sum(2)
        at = at + dt * speed
    return files, params(n=n, steps=steps, dt=dt, softening=e), {name: (row[:, None], 1e-11) for name, row in zip(names, np.concatenate([at, speed]))}


def loss_scale():
    """Least squares with errors in half precision: a step whose gradient is not finite is left out, and the scale is halved;
    after some that were it is doubled."""
    n, d, steps, rate, scale, grows_after = 301, 7, 60, 0.25, np.float32(2**20), 5
    x, t = rng.normal(0, 1, (n, d)).astype(np.float32), rng.normal(0, 1, (n, 1)).astype(np.float32)
    files = {"x": x, "t": t}
    w, good, skipped, doubled = np.zeros((1, d), np.float32), 0, 0, 0
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(steps):
            y = (x.astype(float) * w).sum(1, keepdims=True).astype(np.float32)
            e = ((y - t) * scale).astype(np.float16)
            g = (x.astype(float) * e.astype(float)).sum(0, keepdims=True).astype(np.float32)
            if np.isfinite(g).all():
                w, good = w - np.float32(rate) * g / (scale * np.float32(n)), good + 1
            else:
                scale, good, skipped = scale / np.float32(2), 0, skipped + 1
            if good >= grows_after:
                scale, good, doubled = scale * np.float32(2), 0, doubled + 1
    assert skipped > doubled > 1
    return (files, params(n=n, d=d, steps=steps, rate=rate, scale=2**20, grows_after=grows_after),
            {"w": (w, 1e-4), "scale": ([scale], 0), "skipped": ([skipped], 0)})


def kmeans():
    n, d, k, rounds = 517, 3, 5, 4
    points, centres = rng.normal(0, 1, (n, d)).astype(np.float32), rng.normal(0, 1, (k, d))
    files = {"points": points[:, None], "centres": centres}
    for _ in range(rounds):
        distance = ((points[:, None] - centres) ** 2).sum(2)
        nearest = distance.argmin(1)
        centres = np.stack([points[nearest == i].mean(0, dtype=float) if (nearest == i).any() else centres[i] for i in range(k)])
    return (files, params(n=n, d=d, k=k, rounds=rounds),
            {"centres": (centres, 1e-12), "nearest": (nearest[:, None, None], 0), "inertia": ([distance.min(1).sum()], 1e-12)})


def pagerank():
    """The eigenvector of the largest eigenvalue, 1; pages without links link to all."""
    n, q, density = 60, 0.85, 0.05
    chance = rng.random((n, n)).astype(np.float32)
    links = (chance.astype(float) < density).astype(float)
    degree = links.sum(0)
    assert (degree == 0).any()
    walk = (1 - q) / n + q * np.where(degree > 0, links / np.maximum(degree, 1), 1 / n)
    values, vectors = np.linalg.eig(walk)
    rank = vectors[:, np.argmax(values.real)].real
    return {"chance": chance}, params(n=n, damping=q, density=density, tolerance="1e-14"), {"rank": (rank / rank.sum(), 1e-12)}


def cholesky():
    n = 45  # does not divide by nt: tiles differ in size
    a = rng.random((n, n))
    spd = a @ a.T + n * np.eye(n)
    return {"A": spd}, params(n=n, nt=4), {"A": (np.linalg.cholesky(spd), 1e-10, np.tril)}


def lu():
    """Rows of a tile that have to change places, of a matrix that is no symmetric one; tiles differ in size."""
    n, nt = 45, 4
    a, b = rng.normal(size=(n, n)), rng.normal(size=(n, 3))
    for first, last in ((i * n // nt, (i + 1) * n // nt) for i in range(nt)):
        a[first:last, first:last] += n * np.eye(last - first)[rng.permutation(last - first)]
    return {"A": a, "b": b}, params(n=n, nt=nt, systems=3), {"b": (np.linalg.solve(a, b), 1e-12)}


def sort():
    """Eight runs; few different keys, so that many are equal."""
    x = rng.integers(0, 700, 8 * 301).astype(np.uint32)
    return {"x": x}, params(n=len(x), levels=3), {"y": (np.sort(x), 0)}


def steps_of_cg(a, b, tolerance):
    x, r, p, steps = np.zeros_like(b), b, b, 0
    while r @ r >= tolerance:
        alpha = r @ r / (p @ a @ p)
        x, new = x + alpha * p, r - alpha * (a @ p)
        p, r, steps = new + new @ new / (r @ r) * p, new, steps + 1
    return steps


def multigrid_cg():
    """Poisson's equation by elimination. With nothing but conjugate gradients it takes more than twice as many steps."""
    n, tolerance = 32, 1e-18
    b, m = rng.normal(size=(n, n)), n - 2
    line = 2 * np.eye(m) - np.eye(m, k=1) - np.eye(m, k=-1)
    a = np.kron(np.eye(m), line) + np.kron(line, np.eye(m))
    inner, x = b[1:-1, 1:-1].reshape(-1), np.zeros((n, n))
    x[1:-1, 1:-1] = np.linalg.solve(a, inner).reshape(m, m)

    def few(got, want):
        assert 5 < got[0] < want[0] / 2, f"{got[0]} steps, {want[0]} without multigrid"
    return {"b": b}, params(n=n, parts=2, tolerance=tolerance), {"x": (x, 1e-10), "steps": ([steps_of_cg(a, inner, tolerance)], few)}


def fft2d():
    """The result of pencils is transposed: element (i, j) is that of frequencies j and i."""
    x = rng.normal(size=(24, 24, 2))
    want = np.fft.fft2(x[..., 0] + 1j * x[..., 1]).T
    return {"x": x}, params(n=24, parts=3), {"y": (np.stack([want.real, want.imag], -1), 1e-13)}


def fft3d():
    """Sizes that do not divide by the pencils; check_fft3d.py has others."""
    x = rng.normal(size=(12, 10, 9, 2))
    want = np.fft.fftn(x[..., 0] + 1j * x[..., 1])
    return {"x": x}, params(n0=12, n1=10, n2=9, p=4, q=2), {"y": (np.stack([want.real, want.imag], -1), 1e-13)}


def tsqr():
    """Least squares by NumPy's factors of the whole matrix, whose condition is about 2: 1e-12 is some thousand roundings."""
    rows, n = 101, 7
    a, b = rng.normal(size=(rows, n)), rng.normal(size=(rows, 1))
    q, r = np.linalg.qr(a)
    sign = np.where(np.diag(r) < 0, -1, 1)
    return ({"A": a, "b": b}, params(rows=rows, n=n, parts=4),
            {"Q": (q * sign, 1e-12), "R": (r * sign[:, None], 1e-12), "x": (np.linalg.lstsq(a, b, rcond=None)[0], 1e-12)})


def nearest(got, want):
    """Bytes that round reals: half a step, and float's error on it."""
    np.testing.assert_allclose(np.asarray(got, float), want, rtol=0, atol=0.501)


CASES = [saxpy, reduce_sum, image_blur, pipeline3, jacobi, jacobi_until, heat_implicit, heat_3d, jacobi_blocks, mlp_step, train_pipeline, stages, cg, residual_stack, transformer_block, black_scholes, nbody,
         kmeans, loss_scale, pagerank, cholesky, lu, multigrid_cg, sort, fft2d, fft3d, tsqr, *gradients.CASES, *samples.CASES]


def compare(name, got, want, rtol, part=lambda x: x):
    want = np.asarray(want)
    if callable(rtol):
        rtol(got, want)
    elif rtol == 0:
        np.testing.assert_array_equal(part(got), part(want), err_msg=name)
    else:
        scale = float(np.max(np.abs(want)))
        np.testing.assert_allclose(part(np.asarray(got, float)), part(want), rtol=rtol, atol=rtol * scale, err_msg=name)


def main(command, folder):
    failed = passed = 0
    for case in CASES:
        inputs, arguments, want = case()
        for devices in (1, 2, 4):
            for extra in ([], ["--check"], ["--policy", "round-robin"]):
                try:
                    outputs = {name: None for name in want}
                    got, _ = run(command, pathlib.Path(folder) / f"{case.__name__}.json", inputs, outputs,
                                 [*arguments, "--devices", devices, *extra])
                    for name, (array, *how) in want.items():
                        compare(f"{case.__name__} {name} on {devices}", got[name], array, *how)
                    passed += 1
                except (AssertionError, RuntimeError) as error:
                    failed += 1
                    print(f"FAILED {case.__name__} on {devices} devices {' '.join(extra)}: {error}")
    graphs = {path.stem for path in pathlib.Path(folder).glob("*.json")}
    for name in sorted(graphs - {case.__name__ for case in CASES}):
        failed += 1
        print(f"FAILED graphs/{name}.json has no reference here")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main(sys.argv[1], sys.argv[2]))
