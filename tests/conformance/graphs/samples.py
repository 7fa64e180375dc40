# SPDX-License-Identifier: Apache-2.0
"""References of graphs that draw numbers, average, or share what they keep among devices: cases of check_graphs.py."""
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "features"))
from numpy_gantry import np  # noqa: E402
import oracle  # noqa: E402

rng = np.random.default_rng(7)


def params(**values):
    return [word for name, value in values.items() for word in ("--param", f"{name}={value}")]


def normals(seed, count):
    """Box and Muller of two words an element, as docs/graph-format.md's `normal` of f32."""
    found = []
    for e in range(count):
        words = oracle.philox(seed, e // 2)
        v, w = (words[2 * (e % 2)] + 1) * 2.0**-32, words[2 * (e % 2) + 1] * 2.0**-32
        found.append(math.sqrt(-2 * math.log(v)) * math.cos(2 * math.pi * w))
    return np.array(found)


def within(mean, error):
    """A mean of draws lies within four standard errors of what it estimates; seeds are fixed, so it always does or never."""
    def check(got, want):
        np.testing.assert_allclose(got, [mean], rtol=1e-6)
        assert abs(got[0] - want[0]) < 4 * error, f"{got[0]} is too far from {want[0]}, {error} at a time"
    return check


def map_reduce():
    """The mean of 4 / (1 + x x) is pi."""
    n = 4001
    y = 4 / (1 + np.array([oracle.uniform(1, e, True) for e in range(n)])**2)
    error = y.std() / math.sqrt(n)
    return ({}, params(n=n),
            {"least": ([y.min()], 1e-15), "most": ([y.max()], 1e-15), "mean": ([math.pi], within(y.mean(), error)), "error": ([error], 1e-11)})


def monte_carlo():
    """The value of a call on the geometric mean of prices has a closed form (Kemna and Vorst, Journal of Banking and Finance 14, 1990),
    here of prices at m times."""
    n, m, s, k, r, v, t = 601, 5, 90.0, 92.0, 0.04, 0.3, 2.0
    walk = np.cumsum(normals(1, n * m).astype(np.float32).astype(float).reshape(n, m), 1) * math.sqrt(t / m)
    times = np.arange(1, m + 1) * t / m
    mean = np.exp(np.log(s * np.exp((r - v * v / 2) * times + v * walk)).mean(1))
    paid = math.exp(-r * t) * np.maximum(mean - k, 0)
    edges = 50 + 5 * np.arange(25.0)
    assert np.abs(mean[:, None] - edges).min() > 1e-4  # no path is in the one bin here and in another there
    error = paid.std() / math.sqrt(n)
    drift, deviation = (r - v * v / 2) * t * (m + 1) / (2 * m), v * math.sqrt(t * (m + 1) * (2 * m + 1) / (6 * m * m))
    d2 = (math.log(s / k) + drift) / deviation
    normal = lambda x: (1 + math.erf(x / math.sqrt(2))) / 2  # noqa: E731
    value = math.exp(-r * t) * (s * math.exp(drift + deviation**2 / 2) * normal(d2 + deviation) - k * normal(d2))
    return ({}, params(paths=n, steps=m, price=s, strike=k, rate=r, volatility=v, years=t),
            {"value": ([value], within(paid.mean(), error)), "error": ([error], 1e-6), "counts": (np.histogram(mean, edges)[0], 0)})


def ensemble():
    """Lorenz, Journal of the Atmospheric Sciences 20, 1963. Sums and products round once each, here and there, so chaos begins alike."""
    n, steps, dt = 203, 40, 0.005
    x, y, z = rng.normal(1, 1, n), rng.normal(1, 1, n), rng.normal(20, 1, n)
    files = {"x": x, "y": y, "z": z}
    for _ in range(steps):
        x, y, z = x + dt * 10 * (y - x), y + dt * (x * (28 - z) - y), z + dt * (x * y - z * (8 / 3))
    return (files, params(members=n, steps=steps, dt=dt),
            {"x": (x, 0), "y": (y, 0), "z": (z, 0), "mean": ([z.mean()], 1e-14), "deviation": ([z.std(ddof=1)], 1e-12)})


def consensus():
    """Weights of a pair are alike both ways (Metropolis; Xiao and Boyd, Systems and Control Letters 53, 2004), so all end at the mean."""
    n, reach, tolerance = 40, 0.45, 1e-9
    east, north, x = rng.random((n, 1)), rng.random((n, 1)), rng.uniform(-1, 1, (n, 1))
    linked = (east - east.T)**2 + (north - north.T)**2 < reach**2
    assert np.linalg.matrix_power(linked.astype(float), n).all()  # everybody hears of everybody
    return ({"east": east, "north": north, "x": x}, params(n=n, reach=reach, tolerance=tolerance),
            {"x": (np.full((n, 1), x.mean()), agreed), "apart": ([0.0], agreed)})


def agreed(got, want):
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9)


def sharded_step():
    """Four steps of least squares with momentum, in double; the loss of the last tells of all weights."""
    batch, inputs, outputs, lr, momentum, starts = 24, 20, 6, 0.3, 0.8, 4
    x, t = rng.normal(size=(batch, inputs)).astype(np.float32), rng.normal(size=(batch, outputs)).astype(np.float32)
    w = rng.normal(0, 0.2, (inputs, outputs)).astype(np.float32)
    files, w, m, losses = {"x": x, "t": t, "w": w}, w.astype(float), 0, []
    for _ in range(starts):
        e = x.astype(float) @ w - t
        losses.append((e * e).mean())
        m = momentum * m + 2 / e.size * x.T.astype(float) @ e
        w = w - lr * m
    assert losses[-1] < losses[0] / 1.5
    return (files, [*params(batch=batch, inputs=inputs, outputs=outputs, lr=lr, momentum=momentum), "--iterations", starts],
            {"loss": ([losses[-1]], 1e-5)})


CASES = [map_reduce, monte_carlo, ensemble, consensus, sharded_step]
