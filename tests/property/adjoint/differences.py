# SPDX-License-Identifier: Apache-2.0
"""The gradient that a model gets, against central differences of its loss in float64, along random directions."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "unit/python"))
from suite import gantry, np  # noqa: E402


def buffer(shape, dtype="f64", **more):
    return {"dtype": dtype, "shape": list(shape), **more}


def place(node):
    """The device that a strategy puts the node on, of as many as the strategy is for."""
    return int(str(node["on"]).split()[0])


def model(buffers, nodes, weights, loss="loss", **train):
    """A model whose gradients are outputs, unless an optimiser is given."""
    return {"gantry": 1, "name": "model", "buffers": buffers, "nodes": nodes,
            "train": {"loss": loss, "weights": list(weights), "optimizer": "none", **train}}


def weigh(rng, buffers, nodes, results):
    """Adds the loss: all elements of the results, each times a random number of its own."""
    buffers["loss"] = buffer([1], output=True)
    formulas, args = [], {"loss": "loss"}
    for i, (name, shape) in enumerate(results.items()):
        buffers[f"weight{i}"] = buffer(shape, init={"random": {"seed": int(rng.integers(1 << 30)), "low": -1, "high": 1}})
        buffers[f"weighed{i}"] = buffer([1])
        nodes.append({"id": f"weigh{i}", "reduce": {"s": "sum(y * r)"}, "args": {"y": name, "r": f"weight{i}", "s": f"weighed{i}"}})
        formulas.append(f"s{i}")
        args[f"s{i}"] = f"weighed{i}"
    nodes.append({"id": "loss", "map": {"loss": " + ".join(formulas)}, "args": args})


def runs(text, devices, fuse, folder):
    how = {"fuse": fuse, "devices": devices, "folder": folder, "allow_code": folder is not None}
    forward = gantry.parse(text, **how).schedule(devices, effort=0).run(backend="host", allow_code=folder is not None)
    trained = gantry.parse(text, **how, train=True).schedule(devices, effort=0).run(backend="host", allow_code=folder is not None)
    return forward, trained


def difference(loss, at, direction, h):
    """The derivative along a direction, with an error of order h^4."""
    def value(t):
        return loss({name: w + t * direction[name] for name, w in at.items()})
    return (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h)


def compare(case, rng, text, at, others=None, devices=1, fuse=True, most=1e-6, directions=2, folder=None):
    """Fails where no step width gives the derivative that the gradient says: a kink may lie within one of them."""
    others = others or {}
    forward, trained = runs(text, devices, fuse, folder)
    gradient = {name: out for name, out in trained(**at, **others).items()}

    def loss(weights):
        return float(forward(**weights, **others)["loss"][0])

    for _ in range(directions):
        direction = {name: rng.uniform(-1, 1, w.shape) for name, w in at.items()}
        said = sum(float(np.sum(gradient[f"{name}.grad"].astype(np.float64) * d)) for name, d in direction.items())
        scale = max(1.0, *(float(np.sum(np.abs(gradient[f"{name}.grad"] * d))) for name, d in direction.items()))
        errors = []
        for h in (1e-3, 1e-4, 1e-5):
            errors.append(abs(difference(loss, at, direction, h) - said) / scale)
            if errors[-1] < most:
                break
        case.assertLess(min(errors), most, f"derivative {said}, errors {errors}, of {text}")
    forward.close()
    trained.close()
    return gradient


def descend(case, text, at, others, wanted, devices, dtype="f64", falls=0.9, steps=40):
    """`wanted` gives the loss and its gradients by the weights; plain descent, as the model says."""
    run = gantry.parse(text, train=True, devices=devices).schedule(devices, effort=0).run(backend="host")
    rate, weights = text["train"]["learning_rate"], {name: w.copy() for name, w in at.items()}
    cast = {name: value.astype(dtype.replace("f", "float")) for name, value in at.items()}
    first = run(**cast, **others)["loss"][0]
    got = [float(first)] + [float(run()["loss"][0]) for _ in range(steps - 1)]
    want = []
    for _ in range(steps):
        loss, gradients = wanted(weights)
        want.append(loss)
        weights = {name: w - rate * gradients[name] for name, w in weights.items()}
    case.assertLess(want[-1], falls * want[0], "the training learns something")
    np.testing.assert_allclose(got, want, rtol=1e-9 if dtype == "f64" else 1e-5)
    run.close()
