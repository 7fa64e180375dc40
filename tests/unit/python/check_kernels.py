# SPDX-License-Identifier: Apache-2.0
"""Functions of Python as kernels: what they see, what they may do, and what becomes of their exceptions."""
import gc
import sys
import threading
import traceback
import weakref

import numpy as np

from suite import Case, gantry, main


def graph_of(kernel, n=12, parts=3, dtype="f64", **scalars):
    """y = kernel(x), in parts."""
    g = gantry.Graph("own")
    x, y = g.input("x", n, dtype, split=parts), g.buffer("y", n, dtype, split=parts, output=True)
    for i in range(parts):
        g.node(kernel, x=x[i], y=y[i], **scalars)
    return g


class Calls(Case):
    def test_results_in_parts_on_devices(self):
        @gantry.kernel(flops="2 * x.size")
        def affine(x: gantry.In, y: gantry.Out, a: float, k: int = 3):
            np.multiply(x, a, out=y)
            y += k

        a = np.random.default_rng(1).normal(size=12)
        for devices in (1, 2, 3):
            self.equal(graph_of(affine, a=0.5).schedule(devices).run()(x=a)["y"], a * 0.5 + 3)
        self.equal(graph_of(affine, a=0.5, k=7)(x=a)["y"], a * 0.5 + 7)
        out = np.empty(2)
        affine(np.ones(2), out, 2.0, 1)  # still a function
        self.equal(out, np.full(2, 3.0))

    def test_views_are_the_memory_of_the_node(self):
        """Two nodes in one memory: what the second reads lies where the first wrote, and nothing was copied between."""
        seen = {}

        @gantry.kernel
        def one(x: gantry.In, y: gantry.Out):
            seen["one"] = y.__array_interface__["data"][0], y.flags.writeable, x.flags.writeable, y.shape, y.dtype.str
            y[:] = x

        @gantry.kernel
        def two(x: gantry.In, y: gantry.Out):
            seen["two"] = x.__array_interface__["data"][0], x.flags.c_contiguous
            y[:] = x

        g = gantry.Graph()
        x, t, y = g.input("x", (4, 3), "f32"), g.buffer("t", (4, 3), "f32"), g.buffer("y", (4, 3), "f32", output=True)
        g.node(one, x=x, y=t)
        g.node(two, x=t, y=y)
        a = np.arange(12, dtype=np.float32).reshape(4, 3)
        self.equal(g.schedule(1).run()(x=a)["y"], a)
        self.assertEqual(seen["one"][1:], (True, False, (4, 3), "<f4"))
        self.assertEqual(seen["two"], (seen["one"][0], True))

    def test_all_element_types(self):
        names = ["f16", "bf16", "f32", "f64", "i8", "u8", "i32", "u32", "i64", "u64"]
        seen = []

        @gantry.kernel
        def copy(x: gantry.In, y: gantry.Out):
            seen.append(x.dtype.name)
            y[:] = x

        for name in names:
            a = np.arange(12).astype(np.uint16 if name == "bf16" else gantry._arrays.NUMPY[name])
            self.equal(graph_of(copy, dtype=name)(x=a)["y"], a)
        wanted = ["float16", "uint16", "float32", "float64", "int8", "uint8", "int32", "uint32", "int64", "uint64"]
        self.assertEqual(seen, [name for name in wanted for _ in range(3)])

    def test_halos_and_places(self):
        places = []

        @gantry.kernel
        def smooth(x: gantry.In, y: gantry.Out, call: gantry.Launch):
            at = call.place["x"]
            places.append((call.node, at.first_row, at.rows, at.own_first, at.own_rows, at.tile))
            for row in range(at.own_first, at.own_first + at.own_rows):
                inside = slice(max(row - 1 - at.first_row, 0), row + 2 - at.first_row)
                y[row - at.own_first] = x[inside].mean()

        g = gantry.Graph()
        x, y = g.input("x", 10, "f64", split=3), g.buffer("y", 10, "f64", split=3, output=True)
        for i in range(3):
            g.node(smooth, id=f"smooth[{i}]", x=x[i].halo(1), y=y[i])
        a = np.random.default_rng(2).normal(size=10)
        np.testing.assert_allclose(g.schedule(2).run()(x=a)["y"], [a[max(i - 1, 0):i + 2].mean() for i in range(10)], rtol=1e-14)
        self.assertEqual(sorted(places), [("smooth[0]", 0, 4, 0, 3, (-1, -1)), ("smooth[1]", 2, 5, 3, 3, (-1, -1)), ("smooth[2]", 5, 5, 6, 4, (-1, -1))])

    def test_tiles(self):
        @gantry.kernel
        def name(y: gantry.Out, call: gantry.Launch):
            y[:] = 10 * call.place["y"].tile[0] + call.place["y"].tile[1]

        g = gantry.Graph()
        y = g.buffer("y", (5, 4), "i32", tiles=(2, 3), output=True)
        for i in range(2):
            for j in range(3):
                g.node(name, y=y[i, j])
        wanted = np.zeros((5, 4), np.int32)
        for i in range(5):
            for j in range(4):
                wanted[i, j] = 10 * (i >= 2) + sum(j >= k * 4 // 3 for k in (1, 2))
        self.equal(g.schedule(2).run()()["y"], wanted)

    def test_sums_of_parts(self):
        @gantry.kernel
        def add(x: gantry.In, total: gantry.Sum):
            total += x.sum()

        g = gantry.Graph()
        x, total = g.input("x", 100, "f64", split=4), g.buffer("total", 1, "f64", init=1000, output=True)
        for i in range(4):
            g.node(add, x=x[i], total=total)
        for devices in (1, 3):
            self.equal(g.schedule(devices).run()(x=np.arange(100.0))["total"], np.array([5950.0]))

    def test_iterations_and_dynamic_scalars(self):
        seen = []

        @gantry.kernel
        def step(x: gantry.InOut, by: float, call: gantry.Launch):
            seen.append(call.iteration)
            x += by

        g = gantry.Graph()
        x = g.buffer("x", 2, "f64", cls="state", init=0, output=True)
        with g.repeat(5):
            node = g.node(step, x=x, by=gantry.Dynamic(1.0))
        run = g.schedule(1).run()
        self.equal(run()["x"], np.full(2, 5.0))
        run.set_scalar(node, "by", 10.0)
        self.equal(run()["x"], np.full(2, 55.0))
        self.assertEqual(seen, [0, 1, 2, 3, 4] * 2)

    def test_checking_mode(self):
        @gantry.kernel
        def twice(x: gantry.In, y: gantry.Out):
            np.add(x, x, out=y)

        a = np.arange(12.0)
        self.equal(graph_of(twice).schedule(2).run(check=True)(x=a)["y"], 2 * a)

    def test_checking_mode_finds_what_is_not_written(self):
        @gantry.kernel
        def lazy(x: gantry.In, y: gantry.Out):
            y[:2] = x[:2]

        with self.refused(gantry.CheckError, "lazy"):
            graph_of(lazy).schedule(2).run(check=True)(x=np.arange(12.0))


class Failures(Case):
    def fail_with(self, error, devices=1):
        @gantry.kernel(name="fragile")
        def broken(x: gantry.In, y: gantry.Out):
            if x[0] < 0:
                raise error
            y[:] = x

        return graph_of(broken).schedule(devices).run()

    def test_the_error_has_node_kernel_and_cause(self):
        cause = ZeroDivisionError("no\nluck")
        run = self.fail_with(cause)
        good, bad = np.arange(12.0), np.arange(12.0)
        bad[8:] *= -1
        self.equal(run(x=good)["y"], good)
        with self.refused(gantry.KernelError, r'check_kernels.py:\d+: node "fragile#2" failed on device "dev0".*kernel "fragile" raised ZeroDivisionError: '
                                              r'no luck$') as refused:
            run(x=bad)
        self.assertIs(refused.value.__cause__, cause)
        self.assertEqual((refused.value.code, refused.value.device), ("GANTRY_E_KERNEL", 0))
        self.assertIn("broken", [frame.name for frame in traceback.extract_tb(cause.__traceback__)])
        self.equal(run(x=good)["y"], good)  # the run can be used again

    def test_even_exits_do_not_pass(self):
        for error in (KeyboardInterrupt(), SystemExit(3), MemoryError("none"), GeneratorExit()):
            with self.refused(gantry.KernelError, f"raised {type(error).__name__}"):
                self.fail_with(error)(x=-np.ones(12))

    def test_each_run_has_its_own_exceptions(self):
        """Two runs of one graph that fail at the same time: to each its own."""
        both = threading.Barrier(2, timeout=60)

        @gantry.kernel
        def broken(x: gantry.In, y: gantry.Out):
            both.wait()
            raise ValueError(f"it was {x[0]:.0f}")

        plan = graph_of(broken, parts=1).schedule(1)
        told = {}

        def use(number, run):
            try:
                run(x=np.full(12, float(number)))
            except gantry.KernelError as error:
                told[number] = str(error.__cause__)

        threads = [threading.Thread(target=use, args=(k, plan.run())) for k in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(told, {1: "it was 1", 2: "it was 2"})

    def test_inputs_are_read_only(self):
        @gantry.kernel
        def wrong(x: gantry.In, y: gantry.Out):
            x[0] = 1

        a = np.zeros(12)
        with self.refused(gantry.KernelError, 'kernel "wrong" raised ValueError: assignment destination is read-only'):
            graph_of(wrong)(x=a)
        self.equal(a, np.zeros(12))

    def test_arguments_may_not_be_kept(self):
        kept = []

        def keep(how):
            @gantry.kernel
            def keeper(x: gantry.In, y: gantry.Out):
                kept.append(how(x))
                y[:] = x
            return graph_of(keeper, parts=1)

        a = np.arange(12.0)
        for how in (lambda x: x, lambda x: x[2:5], lambda x: {"a": [x.reshape(3, 4)]}):
            with self.refused(gantry.KernelError, r'the function kept its argument "x".*keep a copy: x.copy\(\)'):
                keep(how)(x=a)
        self.equal(keep(np.copy)(x=a)["y"], a)
        self.equal(kept[-1], a)

    def test_garbage_in_circles_is_not_kept(self):
        @gantry.kernel
        def circle(x: gantry.In, y: gantry.Out):
            around = [x]
            around.append(around)
            y[:] = x

        a = np.arange(12.0)
        gc.disable()
        try:
            self.equal(graph_of(circle)(x=a)["y"], a)
        finally:
            gc.enable()

    def test_exceptions_hold_no_arguments(self):
        """Their memory is another's when the run is closed, and debuggers look at frames."""
        run = self.fail_with(ValueError("x"))
        try:
            run(x=-np.ones(12))
        except gantry.KernelError as error:
            frames = [frame for frame, _ in traceback.walk_tb(error.__cause__.__traceback__)]
            held = [v for frame in frames for v in frame.f_locals.values() if isinstance(v, np.ndarray)]
            self.assertEqual((len(frames) >= 3, held), (True, []))
        else:
            self.fail("nothing was raised")


class Manifests(Case):
    def test_what_is_refused(self):
        def of(function):
            return lambda: gantry.kernel(function)

        def bare(x, y: gantry.Out): ...
        def strange(x: gantry.In, y: list): ...
        def numbers(a: float): ...
        def many(*x: gantry.In): ...
        def absent(x: gantry.In = None): ...
        def default(x: gantry.In = 3): ...

        for function, words in [(bare, 'parameter "x" of kernel "bare" has the annotation None; say gantry.In'), (strange, 'parameter "y" of .*list'),
                                (numbers, 'kernel "numbers" has no array'), (many, 'parameter "x" of kernel "many" is variadic positional'),
                                (default, "is an array and has a default")]:
            with self.refused(gantry.InvalidError, words):
                of(function)()
        self.assertEqual(repr(gantry.kernel(absent)), "<gantry.Kernel absent(x)>")

    def test_formulas(self):
        """The manifest has what the function says that it computes, and a formula that does not fit is an error of the graph."""
        def twice(x: gantry.In, y: gantry.Out):
            np.multiply(x, 2, out=y)

        given = gantry.kernel(formula="y = 2 * x")(twice)
        self.assertEqual(given.manifest.formula, b"y = 2 * x")
        self.equal(graph_of(given)(x=np.ones(12))["y"], np.full(12, 2.0))
        with self.refused(gantry.GraphError, 'kernel "twice": formula "y = 2 [*] q": the kernel has no argument "q"'):
            graph_of(gantry.kernel(formula="y = 2 * q")(twice)).schedule(1)

    def test_results_that_nobody_takes(self):
        @gantry.kernel
        def given(x: gantry.In, y: gantry.Out):
            return 2 * x

        with self.refused(gantry.KernelError, r"the function returned an array, which nobody takes; write into an argument, such as y\[:\]"):
            graph_of(given)(x=np.ones(12))

        @gantry.kernel
        def its_own(x: gantry.In, y: gantry.Out):
            return np.multiply(x, 2, out=y)

        self.equal(graph_of(its_own)(x=np.ones(12))["y"], np.full(12, 2.0))
        with self.refused(gantry.InvalidError, r'kernel "assigned" assigns to the name "y", which leaves the array as it is; .*y\[:\] = ...'):
            @gantry.kernel
            def assigned(x: gantry.In, y: gantry.Out):
                y = 2 * x  # noqa: F841

        @gantry.kernel
        def shaped(x: gantry.In, y: gantry.Out):
            y = y.reshape(-1, 2)
            y[:] = x.reshape(-1, 2)

        self.equal(graph_of(shaped)(x=np.arange(12.0))["y"], np.arange(12.0))

    def test_mistakes_in_nodes(self):
        @gantry.kernel
        def scale(x: gantry.In, y: gantry.Out, factor: float): ...

        for args, words in [({"factr": 1.0}, r'kernel "scale" has no argument "factr" \(did you mean "factor"\?\)'), ({}, 'factor')]:
            with self.refused(gantry.GraphError, rf"check_kernels.py:\d+: .*{words}"):
                graph_of(scale, **args).check()

    def test_one_name_one_kernel(self):
        g = gantry.Graph("g")

        @g.kernel
        def same(x: gantry.InOut): ...

        self.assertIsInstance(same, gantry.Kernel)
        with self.refused(gantry.InvalidError, 'graph "g" has another kernel "same" already; give one of them a name of its own'):
            @g.kernel(name="same")
            def other(x: gantry.InOut): ...

    def test_a_name_of_the_library_means_the_functions_own(self):
        g = gantry.Graph("g")

        @g.kernel
        def saxpy(x: gantry.InOut):
            x += 1

        g.node(saxpy, x=g.buffer("x", 3, init=0, cls="input", output=True))
        self.equal(g()["x"], np.ones(3, np.float32))

    def test_kernels_live_as_long_as_runs(self):
        """Nobody but the run knows the kernel any more, and its C functions are called."""
        def make():
            @gantry.kernel
            def three(y: gantry.Out):
                y[:] = 3
            g = gantry.Graph()
            g.node(three, y=g.buffer("y", 5, output=True))
            return g.schedule(1).run(), weakref.ref(three)

        run, alive = make()
        gc.collect()
        for _ in range(50):
            self.equal(run()["y"], np.full(5, 3, np.float32))
        self.assertIsNotNone(alive())
        del run
        gc.collect()
        self.assertIsNone(alive())

    def test_no_references_are_left(self):
        """Of arrays, functions and what they hold: after calls, and after failures."""
        class Thing:
            pass

        thing = Thing()

        def work(x, y, fail, held):
            if fail:
                raise ValueError(held)
            y[:] = x

        for fail in (False, True):
            def function(x: gantry.In, y: gantry.Out):
                work(x, y, fail, thing)
            run = graph_of(gantry.kernel(function)).schedule(2).run()
            a = np.arange(12.0)
            before = sys.getrefcount(thing), sys.getrefcount(None)
            for _ in range(200):
                try:
                    run(x=a)
                except gantry.KernelError:
                    pass
            gc.collect()
            self.assertEqual(sys.getrefcount(thing), before[0])
            self.assertLess(abs(sys.getrefcount(None) - before[1]), 100)
            run.close()


main()
