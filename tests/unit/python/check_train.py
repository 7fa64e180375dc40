# SPDX-License-Identifier: Apache-2.0
"""Graphs that Python builds, differentiated and spread over devices, against the gradients and optimisers of NumPy by hand."""
from suite import Case, gantry, main, np

RNG = np.random.default_rng(4)
X, Y, W = RNG.normal(size=(24, 5)), RNG.normal(size=24), RNG.normal(size=5)


def model(stepped=True):
    """The mean of squared differences of x w from y; `stepped`: w is an output, as what an optimiser makes of it."""
    g = gantry.Graph("squares")
    x, y = g.input("x", (24, 5), "f64"), g.input("y", 24, "f64")
    w, guess, loss = g.buffer("w", 5, "f64", cls="state", output=stepped), g.buffer("guess", 24, "f64"), g.buffer("loss", 1, "f64")
    g.reduce("guess = sum(x * w, 1)", x=x, w=w, guess=guess)
    g.reduce("loss = mean(square(guess - y))", guess=guess, y=y, loss=loss)
    return g, loss, w


def gradient(w):
    return 2 * X.T @ (X @ w - Y) / len(Y)


def trained(g, steps, devices=1):
    run = g.schedule(devices).run()
    return [run(x=X, y=Y, **({"w": W} if step == 0 else {})) for step in range(steps)]


class Gradients(Case):
    def test_a_gradient_is_an_output(self):
        g, loss, w = model(stepped=False)
        self.assertIs(g.differentiate(loss, [w], "none"), g)
        out = trained(g, 1)[0]
        np.testing.assert_allclose(out["w.grad"], gradient(W), rtol=1e-12)
        np.testing.assert_allclose(out["loss"], [np.mean((X @ W - Y) ** 2)], rtol=1e-12)

    def test_names_and_patterns_are_as_good_as_buffers(self):
        for loss, weights in ("loss", "w"), ("loss", ["w*"]):
            g, _, _ = model(stepped=False)
            out = trained(g.differentiate(loss, weights, "none"), 1)[0]
            np.testing.assert_allclose(out["w.grad"], gradient(W), rtol=1e-12)


class Steps(Case):
    def test_sgd_and_momentum(self):
        for optimizer, momentum in ("sgd", 0), ("momentum", 0.8):
            g, loss, w = model()
            g.differentiate(loss, w, optimizer, learning_rate=0.05, momentum=0.8, weight_decay=0.1, schedule="1 / step")
            want, v = W.copy(), 0
            for step, out in enumerate(trained(g, 4), 1):
                v = momentum * v + gradient(want) + 0.1 * want
                want = want - 0.05 / step * v
                np.testing.assert_allclose(out["w"], want, rtol=1e-12)

    def test_adamw_with_its_usual_numbers(self):
        g, loss, w = model()
        g.differentiate(loss, w, "adamw")
        want, m, v = W.copy(), 0, 0
        for step, out in enumerate(trained(g, 5), 1):
            d = gradient(want)
            m, v = 0.9 * m + 0.1 * d, 0.999 * v + 0.001 * d * d
            want = want - 0.01 * (m / (1 - 0.9 ** step) / (np.sqrt(v / (1 - 0.999 ** step)) + 1e-8) + 0.01 * want)
            np.testing.assert_allclose(out["w"], want, rtol=1e-10)

    def test_a_norm_that_is_clipped(self):
        g, loss, w = model()
        out = trained(g.differentiate(loss, w, learning_rate=1, clip_norm=0.25, loss_scale=8), 1)[0]
        np.testing.assert_allclose(np.linalg.norm(out["w"] - W), 0.25, rtol=1e-9)

    def test_replicas_step_as_one(self):
        for strategy in "dp=2,micro=3", {"dp": 2, "micro": 3}:
            g, loss, w = model()
            g.parallelize(strategy, loss, w, learning_rate=0.05, batch=["x", "y"])
            self.assertIs(g.differentiate(), g)
            self.assertGreater(len(g.nodes), 6)
            want = W.copy()
            for out in trained(g, 3, devices=2):
                want = want - 0.05 * gradient(want)
                np.testing.assert_allclose(out["w"], want, rtol=1e-11)


class Refusals(Case):
    def test_options(self):
        for more, pattern in (({"loss": "loss"}, "weights must be named too"), ({"weights": "w"}, "a loss must be named too"),
                              ({"optimizer": "adam"}, "a loss and weights are wanted"),
                              ({"loss": "loss", "weights": "w", "optimizer": "adamv"}, r"did you mean \"adam"),
                              ({"loss": "loss", "weights": "w", "learning_rat": 1}, r"did you mean \"learning_rate\""),
                              ({"loss": "loss", "weights": "w", "momentum": "much"}, "momentum is 'much'; it must be a number"),
                              ({"loss": ["loss", "w"], "weights": "w"}, "the loss is 2 buffers"),
                              ({"loss": "loss", "weights": 3}, "the weights must be buffers, or their names, and not 3"),
                              ({"loss": "loss", "weights": [3]}, "3 is among the weights")):
            with self.refused(gantry.InvalidError, pattern):
                model()[0].differentiate(**more)

    def test_what_the_library_refuses(self):
        with self.refused(gantry.InvalidError, "strategy|dq"):
            model()[0].parallelize("dq=2", "loss", "w")
        with self.refused(gantry.InvalidError, "lost"):
            model()[0].differentiate("lost", "w")
        with self.refused(gantry.GraphError, "does not say what training it means"):
            model()[0].differentiate()
        g, loss, w = model(stepped=False)
        g.check()
        with self.refused(gantry.InvalidError, "was checked"):
            g.differentiate(loss, w)


main()
