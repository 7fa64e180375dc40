# SPDX-License-Identifier: Apache-2.0
"""Arrays in and out: results against NumPy, views and copies, element types, tiles; what is refused, and with which words."""
import itertools
import json

import numpy as np

from suite import ROOT, Case, gantry, main, scaled

NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8, "i32": np.int32, "u32": np.uint32, "i64": np.int64,
         "u64": np.uint64}


class Results(Case):
    def test_graph_file_with_own_arrays(self):
        n = 1003
        rng = np.random.default_rng(1)
        x, y = rng.normal(size=n).astype(np.float32), rng.normal(size=n).astype(np.float32)
        for devices in (1, 3):
            run = gantry.load(ROOT / "graphs/saxpy.json", params={"n": n}).schedule(devices).run()
            out = run(x=x, y=y)
            self.assertEqual(sorted(out), ["total", "y"])
            wanted = np.float32(2) * x + y
            np.testing.assert_allclose(out["y"], wanted, rtol=1e-6)
            np.testing.assert_allclose(out["total"], [wanted.astype(np.float64).sum()], rtol=1e-4)

    def test_formulas_and_reductions(self):
        g = gantry.Graph()
        x = g.input("x", (50, 7), np.float64, split=3)
        y = g.buffer("y", (50, 7), np.float64, split=3, output=True)
        s = g.buffer("s", 1, "f64", init=0, output=True)
        for i in range(len(x)):
            g.map("y = sqrt(x) * k + 1", x=x[i], y=y[i], k=2.5)
            g.reduce("s = sum(square(y))", y=y[i], s=s.as_access("sum"))
        a = np.random.default_rng(2).uniform(1, 9, (50, 7))
        for devices in (1, 2):
            out = g.schedule(devices).run()(x=a)
            np.testing.assert_allclose(out["y"], np.sqrt(a) * 2.5 + 1, rtol=1e-14)
            np.testing.assert_allclose(out["s"], [np.square(out["y"]).sum()], rtol=1e-12)

    def test_every_element_type_there_and_back(self):
        for name, dtype in NUMPY.items():
            g = gantry.Graph()
            x, y = g.input("x", (3, 4), dtype), g.buffer("y", (3, 4), name, output=True)
            g.copy(x, y)
            self.assertEqual(g.infos["x"].dtype, name)
            a = np.random.default_rng(3).integers(0, 100, (3, 4)).astype(dtype)
            self.equal(g(x=a)["y"], a)

    def test_bf16_is_bits(self):
        g = gantry.Graph()
        x, y = g.input("x", 6, "bf16"), g.buffer("y", 6, "bf16", output=True)
        g.map("y = x * 2", x=x, y=y)
        numbers = np.array([1.0, -2.5, 0.0, 3.140625, 1e30, np.inf], np.float32)
        bits = gantry.to_bf16(numbers)
        out = g(x=bits)["y"]
        self.equal(gantry.from_bf16(out), gantry.from_bf16(gantry.to_bf16(numbers * 2)))
        self.assertEqual(out.dtype, np.uint16)
        with self.refused(gantry.InvalidError, r'input "x" was given elements of float32, but takes bf16 of shape \[6\]; convert it: to_bf16\(x\)'):
            g(x=numbers)

    def test_rounding_to_bf16(self):
        """Nearest, ties to even: against all candidates, by their distance."""
        rng = np.random.default_rng(4)
        numbers = np.concatenate([rng.normal(size=500), [1 + 2.0**-8, 1 + 3 * 2.0**-8, 0, -0.0]]).astype(np.float32)
        rounded = gantry.to_bf16(numbers).astype(np.int64)
        for x, bits in zip(numbers.astype(np.float64), rounded):
            near = [b for b in (bits - 1, bits, bits + 1) if 0 <= b <= 0xFFFF and b & 0x7FFF <= 0x7F7F]
            away = {b: abs(float(gantry.from_bf16(np.uint16(b))) - x) for b in near}
            best = [b for b in near if away[b] == min(away.values())]
            self.assertIn(bits, best)
            self.assertTrue(len(best) == 1 or bits % 2 == 0, x)
        self.assertTrue(np.isnan(gantry.from_bf16(gantry.to_bf16(np.array([np.nan], np.float32)))).all())

    def test_tiles_come_back_in_the_order_of_the_array(self):
        """Tiles of 1 to 4 axes that divide nothing evenly, bound and not, read and written tile by tile."""
        for shape, tiles in [((7,), (3,)), ((7, 5), (3, 2)), ((5, 6, 7), (2, 3, 4)), ((3, 5, 4, 6), (2, 1, 3, 4))]:
            g = gantry.Graph()
            x, y = g.input("x", shape, "i32", tiles=tiles), g.buffer("y", shape, "i32", tiles=tiles, output=True)
            for at in itertools.product(*map(range, tiles)):
                g.map("y = i32(3 * x + k)", x=x[at], y=y[at], k=sum(at))
            a = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
            wanted = 3 * a
            for at in itertools.product(*map(range, tiles)):
                box = tuple(slice(i * n // p, (i + 1) * n // p) for i, n, p in zip(at, shape, tiles))
                wanted[box] += sum(at)
            run = g.schedule(2).run()
            self.equal(run(x=a)["y"], wanted)
            mine = np.zeros(shape, np.int32)
            self.assertIs(run.bind_output(y=mine)(x=a)["y"], mine)
            self.equal(mine, wanted)

    def test_halos_of_tiles(self):
        n, t = 9, 3
        g = gantry.Graph()
        x, y = g.input("x", (n, n), "f64", tiles=(t, t)), g.buffer("y", (n, n), "f64", tiles=(t, t), output=True)
        for i, j in itertools.product(range(t), range(t)):
            g.node("jacobi2d", x=x[i, j].halo(1), y=y[i, j])
        form = {"gantry": 1, "name": "j", "buffers": {"x": {"dtype": "f64", "shape": [n, n], "class": "input", "tiles": [t, t]},
                                                      "y": {"dtype": "f64", "shape": [n, n], "tiles": [t, t], "output": True}},
                "nodes": [{"for": {"i": t}, "nodes": [
                    {"id": "n[i][j]", "for": {"j": t}, "kernel": "jacobi2d", "args": {"x": "x[i][j]~1", "y": "y[i][j]"}}]}]}
        a = np.random.default_rng(5).normal(size=(n, n))
        out = g.schedule(2).run()(x=a)["y"]
        self.equal(out, gantry.parse(json.dumps(form)).schedule(1).run()(x=a)["y"])
        inside = (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]) / 4
        np.testing.assert_allclose(out[1:-1, 1:-1], inside, rtol=1e-13)

    def test_empty_arrays(self):
        g = gantry.Graph()
        x, y = g.input("x", (0, 3)), g.buffer("y", (0, 3), output=True)
        g.copy(x, y)
        self.equal(g(x=np.zeros((0, 3), np.float32))["y"], np.zeros((0, 3), np.float32))

    def test_states_go_on_and_can_begin_anew(self):
        g = gantry.Graph()
        x, total = g.input("x", 4), g.buffer("total", 4, cls="state", init=0, output=True)
        g.map("total = total + x", x=x, total=total)
        a = np.arange(4, dtype=np.float32)
        for k in (1, 2, 3):
            self.equal(g(x=a)["total"], k * a)
        run = g.schedule(1).run()
        self.equal(run(x=a, total=np.full(4, 10, np.float32))["total"], a + 10)
        self.equal(run()["total"], 2 * a + 10)


class Memory(Case):
    def test_contiguous_inputs_are_not_copied(self):
        run = scaled().schedule(1).run()
        a = np.arange(8, dtype=np.float32)
        run.bind(x=a)
        for k in range(3):  # what is written to the array is what the next start reads
            a[:] = k
            self.equal(run()["y"], np.full(8, 2 * k + 1, np.float32))

    def test_others_are_copied_once(self):
        run = scaled().schedule(1).run()
        a = np.arange(16, dtype=np.float32)[::2]
        backwards = np.arange(8, dtype=np.float32)[::-1]
        raw = np.zeros(33, np.uint8)[1:]
        crooked = np.frombuffer(raw.data, np.float32)
        self.assertFalse(crooked.flags.aligned)
        for array in (a, backwards, crooked):
            before = array.copy()
            run.bind(x=array)
            array += 100
            self.equal(run()["y"], 2 * before + 1)
            array -= 100

    def test_results_are_the_callers(self):
        run = scaled().schedule(1).run()
        first = run(x=np.zeros(8, np.float32))["y"]
        second = run(x=np.ones(8, np.float32))["y"]
        self.equal(first, np.ones(8, np.float32))
        self.equal(second, np.full(8, 3, np.float32))
        self.assertTrue(first.flags.owndata and first.flags.writeable)
        run.close()
        self.equal(second, np.full(8, 3, np.float32))

    def test_results_in_arrays_of_the_caller(self):
        run = scaled().schedule(1).run()
        mine = np.empty(8, np.float32)
        self.assertIs(run.bind_output(y=mine)(x=np.ones(8, np.float32))["y"], mine)
        self.equal(mine, np.full(8, 3, np.float32))
        frozen = np.empty(8, np.float32)
        frozen.flags.writeable = False
        for wrong in (np.empty(16, np.float32)[::2], frozen):
            with self.refused(gantry.InvalidError, 'output "y" was given an array that is not contiguous, not aligned or read-only, but takes f32'):
                run.bind_output(y=wrong)
        with self.refused(gantry.InvalidError, 'output "y" was given a list, but takes f32 of shape'):
            run.bind_output(y=[0.0] * 8)
        with self.refused(gantry.InvalidError, 'buffer "x" was bound to memory that buffer "y" is bound to'):
            run(x=mine)

    def test_arrays_live_as_long_as_starts(self):
        run = scaled(1 << 16).schedule(1).run()
        started = run.start(x=np.full(1 << 16, 5, np.float32))  # nobody else has this array
        junk = [np.full(1 << 16, 9, np.float32) for _ in range(4)]
        self.equal(started.result()["y"], np.full(1 << 16, 11, np.float32))
        self.assertEqual(len(junk), 4)


class Other:
    """An array of somebody else's package: nothing but DLPack."""

    def __init__(self, array, device=None):
        self.array, self.device = array, device

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.device or self.array.__dlpack_device__()


class OnGpu:
    def __init__(self, **faces):
        self.__cuda_array_interface__ = {"version": 3, "data": (0x1000, False), "typestr": "<f4", "shape": (8,), "strides": None, **faces}


class Foreign(Case):
    def test_dlpack_on_the_host_is_not_copied(self):
        run = scaled().schedule(1).run()
        a = np.arange(8, dtype=np.float32)
        run.bind(x=Other(a))
        a += 1
        self.equal(run()["y"], 2 * np.arange(1, 9, dtype=np.float32) + 1)

    def test_dlpack_elsewhere_is_refused(self):
        with self.refused(gantry.InvalidError, r'input "x" was given an array on a device \(DLPack device type 4\), but takes f32 of shape \[8\]; copy'):
            scaled()(x=Other(np.zeros(8, np.float32), device=(4, 0)))
        with self.refused(gantry.InvalidError, 'input "x" was given an array on a GPU, but is in memory of the host; copy'):
            scaled()(x=Other(np.zeros(8, np.float32), device=(2, 0)))

    def test_gpu_arrays_are_looked_at_first(self):
        """Their address is no address of the host, so nothing but an external buffer may get it."""
        for graph in (scaled(), gantry.parse(scaled().json())):
            run = graph.schedule(1).run()
            for call in (lambda: run(x=OnGpu()), lambda: run.bind_output(y=OnGpu())):
                with self.refused(gantry.InvalidError, r'put "[xy]" was given an array on a GPU, but is in memory of the host; copy it'):
                    call()
        g = gantry.Graph()
        x, y = g.input("x", 8).external("dev0"), g.buffer("y", 8, output=True)
        g.map("y = 2 * x", x=x, y=y)
        for faces, words in [({"typestr": "<f8"}, "elements of <f8 on a GPU"), ({"shape": (4,)}, r"shape \[4\] on a GPU"),
                             ({"strides": (8,)}, "on a GPU that is not contiguous")]:
            with self.refused(gantry.InvalidError, f'input "x" was given .*{words}'):
                g(x=OnGpu(**faces))

    def test_numbers_of_python(self):
        g = scaled(4, "i32")
        self.equal(g(x=[1, 2, 3, 4])["y"], np.array([3, 5, 7, 9], np.int32))
        for wrong in ([1, 2, 3, 4.5], [1, 2, 3, 1 << 40], ["1", "2", "3", "4"]):
            with self.refused(gantry.InvalidError, r'input "x" was given .*, which i32 does not hold, but takes i32 of shape \[4\]'):
                g(x=wrong)
        large = gantry.Graph("large")  # NumPy makes doubles of these numbers, and objects of what is beyond
        x, y = large.input("x", 4, "u64"), large.buffer("y", 4, "u64", output=True)
        large.node("add", x=x, y=x, z=y)
        self.equal(large(x=[1 << 63, 1, 2, (1 << 64) - 2])["y"], np.array([0, 2, 4, (1 << 64) - 4], np.uint64))
        for wrong in ([1 << 63, 1, 2, -1], [1 << 64, 1, 2, 3], [1 << 63, 1, 2, 0.5]):
            with self.refused(gantry.InvalidError, r'input "x" was given .*, which u64 does not hold'):
                large(x=wrong)
        self.equal(scaled(0, "i32")(x=[])["y"], np.zeros(0, np.int32))
        self.equal(scaled(1)(x=2.5)["y"], np.array([6], np.float32))
        with self.refused(gantry.InvalidError, r'input "x" was given shape \[\]'):
            scaled(4)(x=2.5)


class Refused(Case):
    def test_element_types(self):
        g = scaled()
        for dtype, seen in [(np.float64, "float64"), (np.int32, "int32"), (np.dtype(">f4"), ">f4")]:
            with self.refused(gantry.InvalidError, rf'input "x" was given elements of {seen}, but takes f32 of shape \[8\]; convert it: .astype\(np.float32'):
                g(x=np.zeros(8, dtype))

    def test_shapes(self):
        g = scaled()
        for shape in [(7,), (9,), (8, 1), (2, 4), ()]:
            with self.refused(gantry.InvalidError, r'input "x" was given shape .*, but takes f32 of shape \[8\]; reshape it'):
                g(x=np.zeros(shape, np.float32))

    def test_names(self):
        g = gantry.Graph("norms")
        frames, out = g.input("frames", 4), g.buffer("out", 4, output=True)
        g.copy(frames, out)
        a = np.zeros(4, np.float32)
        with self.refused(gantry.InvalidError, r'graph "norms" has no input "frmes" \(did you mean "frames"\?\); it has "frames"$'):
            g(frmes=a)
        with self.refused(gantry.InvalidError, r'graph "norms" has no output "put" \(did you mean "out"\?\); it has "out"$'):
            g.schedule(1).run().bind_output(put=a)
        with self.refused(gantry.InvalidError, r'buffer "out" is an? .*'):
            g(out=a)
        with self.refused(gantry.InvalidError, r'input buffer "frames" is not bound and has no init'):
            g.schedule(1).run()()

    def test_a_refused_input_changes_nothing(self):
        run = scaled().schedule(1).run()
        a = np.ones(8, np.float32)
        run.bind(x=a)
        with self.refused(gantry.InvalidError, "shape"):
            run.bind(x=np.zeros(9, np.float32))
        self.equal(run()["y"], 2 * a + 1)

    def test_a_size_that_differs_is_no_silent_minimum(self):
        """A library that gives other sizes than it told is refused."""
        run = scaled().schedule(1).run()
        run.bind(x=np.ones(8, np.float32))
        ((info, name, nbytes, place),) = run._fetched

        def lie():
            status = place()
            run._count.value = 28
            return status

        run._fetched = [(info, name, nbytes, lie)]
        with self.refused(gantry.InvalidError, r'output "y" \(f32 \[8\]\) has 32 bytes, but the library gave 28'):
            run()


main()
