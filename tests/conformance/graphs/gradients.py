# SPDX-License-Identifier: Apache-2.0
"""The graphs that train: gradients of their losses against central differences of the same loss in NumPy, in double.

gradients.py GANTRY GRAPHS [WORD ...]: a copy of the graphs in f64, where nothing but the differences rounds noticeably, and the
same bits on every number of devices; with words, such as --backend cuda --devices 2, as these say. check_graphs.py
takes the cases as well, for the graphs as they are, in f32.
"""
import math
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from numpy_gantry import np, run  # noqa: E402

STARTS = 2  # the second has other weights, and the momentum of the first
SINGLE = 1e-5  # sums of some hundred products, each off by at most 6e-8, relative to the largest of an array
DOUBLE = 1e-10  # of the largest: differences leave out about h^4, and divide what the loss is rounded by, 1e-16, by h, which is 1e-12 each


def difference(loss, array, h):
    """d loss / d array, element by element: four points, so that powers up to the fourth leave no error. Where the loss
    has kinks it tells on which side of each it is, and all points have to be on the same."""
    gradient, flat, side = np.empty(array.shape), array.reshape(-1), loss()[1]
    for i in range(flat.size):
        kept, found = flat[i], []
        for step in (h, -h, 2 * h, -2 * h):
            flat[i] = kept + step
            value, there = loss()
            assert np.array_equal(there, side), "a difference crosses a kink of the loss: take another seed"
            found.append(value)
        flat[i] = kept
        gradient.reshape(-1)[i] = (8 * (found[0] - found[1]) - (found[2] - found[3])) / (12 * h)
    return gradient


def train(loss, weights, x, rate, momentum, h):
    """Some steps of gradient descent. weights: arrays in double by name, changed in place. What the graph gives."""
    speed = {name: np.zeros_like(w) for name, w in weights.items()}
    for _ in range(STARTS):
        want = {"loss": np.array([loss()[0]]), "dx": difference(loss, x, h)}
        want |= {f"d{name}": difference(loss, w, h) for name, w in weights.items()}
        for name, w in weights.items():
            speed[name] = momentum * speed[name] + want[f"d{name}"]
            w -= rate * speed[name]
    want |= weights
    return {name: (array, SINGLE) for name, array in want.items()}


def transformer_block_train():
    """Pairs of elements that are turned are complex numbers here, and heads are an axis of all sequences at once."""
    rng = np.random.default_rng(11)
    batch, heads, tokens, dim, hidden, rate, momentum = 5, 2, 6, 4, 12, 0.5, 0.75
    width = heads * dim
    files = {name: rng.normal(0, deviation, shape).astype(np.float32) for name, deviation, shape in (
        ("query", 0.5, (width, width)), ("key", 0.5, (width, width)), ("value", 0.4, (width, width)), ("join", 0.4, (width, width)),
        ("up", 0.4, (hidden, width)), ("down", 0.4, (width, hidden)))}
    files |= {name: rng.uniform(0.5, 2, (1, width)).astype(np.float32) for name in ("gain1", "gain2")}
    weights = {name: w.astype(float) for name, w in files.items()}
    files |= {name: rng.normal(size=(batch * tokens, width)).astype(np.float32) for name in ("x", "target")}
    x, target = files["x"].astype(float), files["target"].astype(float)
    angle = np.exp(1j * np.outer(np.arange(tokens), 10000.0 ** (-2 * np.arange(dim // 2) / dim)))
    erf = np.vectorize(math.erf)

    def norm(a, gain):
        return a / np.sqrt(np.mean(a * a, 1, keepdims=True) + 1e-5) * gain

    def split(a):
        return a.reshape(batch, tokens, heads, dim).swapaxes(1, 2)

    def turn(a):
        turned = (a[..., :dim // 2] + 1j * a[..., dim // 2:]) * angle
        return np.concatenate([turned.real, turned.imag], -1)

    def loss():
        n = norm(x, weights["gain1"])
        q, k, v = (split(n @ weights[name].T) for name in ("query", "key", "value"))
        p = np.where(np.tri(tokens, dtype=bool), np.exp(turn(q) @ turn(k).swapaxes(2, 3) / math.sqrt(dim)), 0)
        seen = (p / p.sum(-1, keepdims=True) @ v).swapaxes(1, 2).reshape(batch * tokens, width)
        a = x + seen @ weights["join"].T
        z = norm(a, weights["gain2"]) @ weights["up"].T
        a = a + z * (1 + erf(z / math.sqrt(2))) / 2 @ weights["down"].T
        return np.mean((a - target) ** 2), ()

    want = train(loss, weights, x, rate, momentum, 3e-4)
    words = {"batch": batch, "heads": heads, "tokens": tokens, "dim": dim, "hidden": hidden, "rate": rate, "momentum": momentum}
    return files, arguments(words), want


def cnn_block_train():
    """Convolutions are sums of products of shifted images. The loss is quadratic in each number but for kinks of relu."""
    rng = np.random.default_rng(12)
    parts, images, channels, inner, height, width, rate = 3, 5, 2, 3, 4, 5, 0.25
    files = {"w1": rng.normal(0, 0.5, (inner, channels, 3, 3)), "b1": rng.normal(0, 0.5, (inner, 1, 1)),
             "w2": rng.normal(0, 0.5, (channels, inner, 3, 3)), "b2": rng.normal(0, 0.5, (channels, 1, 1)),
             "x": rng.normal(size=(images, channels, height, width)), "target": rng.normal(size=(images, channels, 1, 1))}
    files = {name: array.astype(np.float32) for name, array in files.items()}
    weights = {name: files[name].astype(float) for name in ("w1", "b1", "w2", "b2")}
    x, target = files["x"].astype(float), files["target"].astype(float)

    def convolve(a, w):
        padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)))
        return sum(np.einsum("nchw,oc->nohw", padded[:, :, i:i + height, j:j + width], w[:, :, i, j]) for i in range(3) for j in range(3))

    def loss():
        z1 = convolve(x, weights["w1"]) + weights["b1"]
        z2 = x + convolve(np.maximum(z1, 0), weights["w2"]) + weights["b2"]
        mean = np.maximum(z2, 0).mean((2, 3), keepdims=True)
        return np.mean((mean - target) ** 2), np.concatenate([z1.reshape(-1), z2.reshape(-1)]) > 0

    want = train(loss, weights, x, rate, 0, 1e-4)
    words = {"parts": parts, "images": images, "channels": channels, "inner": inner, "height": height, "width": width, "rate": rate}
    return files, arguments(words), want


def arguments(words):
    return [word for name, value in words.items() for word in ("--param", f"{name}={value}")] + ["--iterations", STARTS]


CASES = [transformer_block_train, cnn_block_train]
EACH = [("--devices", 1), ("--devices", 2), ("--devices", 3, "--policy", "round-robin"), ("--devices", 8)]


def in_double(folder, target):
    shutil.copytree(folder, target, ignore=lambda _, names: [name for name in names if name in ("invalid", "machines", "reference")])
    for path in target.rglob("*.json"):
        path.write_text(path.read_text().replace('"f32"', '"f64"'))


def main(command, folder, *more):
    with tempfile.TemporaryDirectory() as temporary:
        double = pathlib.Path(temporary) / "graphs"
        in_double(folder, double)
        for case in CASES:
            files, words, want = case()
            files, bits = {name: array.astype(float) for name, array in files.items()}, None
            for extra in [more] if more else EACH:
                got, _ = run(command, double / f"{case.__name__}.json", files, {name: None for name in want}, [*words, *extra])
                for name, (array, _) in want.items():
                    scale = np.abs(array).max()
                    assert scale > 1e-2, f"{case.__name__} {name}: too small to tell"
                    np.testing.assert_allclose(got[name], array, rtol=0, atol=DOUBLE * scale, err_msg=f"{case.__name__} {name} {extra}")
                bits = bits or got
                assert all(np.array_equal(got[name], bits[name]) for name in want), f"{case.__name__}: other bits with {extra}"
            print(f"{case.__name__}: {sum(array.size for array, _ in want.values())} numbers agree to {DOUBLE} of the largest")


if __name__ == "__main__":
    main(*sys.argv[1:])
