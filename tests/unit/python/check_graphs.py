# SPDX-License-Identifier: Apache-2.0
"""Building, loading, scheduling and looking: the same as from files and by the command, and mistakes with the line of the program.

check_graphs.py GANTRY
"""
import copy
import inspect
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import warnings
import xml.etree.ElementTree

import numpy as np

from suite import ROOT, Case, gantry, main, scaled

COMMAND = sys.argv.pop()
H200 = str(ROOT / "graphs/machines/hgx-h200-8.json")


def line():
    return inspect.currentframe().f_back.f_lineno


class Building(Case):
    def same(self, built, form):
        """Built by calls, and read from JSON: the same normal form."""
        self.assertEqual(json.loads(built.json()), json.loads(gantry.parse(form, fuse=False).json()))

    def test_another_graph_is_used(self):
        layer = {"gantry": 1, "params": {"n": 8, "a": 1, "b": "devices"}, "buffers": {
            "x": {"dtype": "f32", "shape": ["n"]}, "y": {"dtype": "f32", "shape": ["n"]}, "gain": {"dtype": "f32", "shape": [1], "init": 3}},
            "nodes": [{"id": "norm", "map": {"y": "x * g + s"}, "args": {"x": "x", "y": "y", "g": "gain", "s": "it * a + b"}}]}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "layer.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(layer, file)
            g = gantry.Graph("model")
            h = g.buffer("h", 24, split=4, init=1)
            flag = g.buffer("flag", 2, "i32", init=1)
            with g.repeat(5):
                for i in range(3):
                    nodes = g.use(path, f"layer[{i}]", when=flag.rows(1, 2), devices=2, x=h[i], y=h.rows(6 * i + 6, 6 * i + 12), n=6,
                                  a=f"{i} + 0.5")
                    self.assertEqual([node.id for node in nodes], [f"layer[{i}].norm"])
            form = {"gantry": 1, "name": "model", "buffers": {
                "h": {"dtype": "f32", "shape": [24], "split": 4, "init": 1}, "flag": {"dtype": "i32", "shape": [2], "init": 1}},
                "nodes": [{"repeat": 5, "nodes": [{
                    "id": "layer[i]", "for": {"i": 3}, "use": "layer.json", "when": {"buffer": "flag{1:2}"},
                    "with": {"x": "h[i]", "y": "h{6*i+6:6*i+12}", "n": 6, "a": "i + 0.5"}}]}]}
            expected = gantry.parse(form, folder=folder, devices=2, fuse=False)
            self.assertEqual(json.loads(g.json()), json.loads(expected.json()))
            wrong = gantry.Graph("wrong")
            at = line() + 1
            wrong.use(path, x=wrong.buffer("h", 5, init=1), devices=1)
            with self.assertRaisesRegex(gantry.GraphError, rf'which is 5, not 8.*used as "layer" at .*check_graphs.py:{at}'):
                wrong.check()

    def test_everything_that_a_file_can_say(self):
        g = gantry.Graph("all")
        x = g.buffer("x", (8, 4), "f32", cls="input", split=2).init_uniform(7, -1, 1)
        y = g.buffer("y", (8, 4), np.float32, split=2, output=True).tolerance(1e-3, 1e-5).equal_nan()
        t = g.buffer("t", (6, 6), "f64", tiles=(3, 2)).init_normal(3, 1, 2)
        g.buffer("n", [4], "i64").init_iota().class_("const")
        s = g.buffer("s", 1, "f32", init=0, output=True)
        flag = g.buffer("flag", 1, "i32", init=1)
        for i in range(2):
            a = g.map("y = x * k", id=f"a{i}", x=x[i], y=y[i], k=2).on("dev0").priority(3).share(0.5)
            g.reduce("s = sum(y)", id=f"r{i}", y=y[i], s=s.as_access("sum")).after(a).when(flag)
        g.copy(t[0:1, 0:2], t[1:2, 0:2], id="c")
        g.fill(t[2, -1], 1.5, id="f")
        big = g.buffer("big", 6, "u64", init=2**64 - 1)
        g.buffer("down", 4, "i64").init_iota(-2**53 - 1, -3)
        g.fill(big.rows(0, 1), 2**53 + 1, id="g")
        g.fill_iota(big.rows(1, 3), 2**53 + 1, 2, id="h")
        g.fill_uniform(big.rows(3, 4), 5, 2, 9, id="i")
        g.fill_normal(t[0, 0], 6, 1, 0.5, id="j")
        with g.repeat(3, index="step"):
            with g.repeat(2):
                g.node("scale", id="k", x=x[:], a=gantry.Expression("step * 100 + it"), y=y[0:2])
        g.collective("all_reduce", [x[0], x[1]], [y[0], y[1]], "sum", id="l").algorithm("ring")
        g.work("w").read(x.rows(1, 3)).readwrite(t).reduce(s, "sum").cost(100, 200).time(5).time(7, "gpu")
        with g.repeat(4):
            g.node("scale", id="d", x=x[:], a=gantry.Dynamic(0.5), y=y[0:2])
            g.work("v").readwrite(s)
        self.same(g, {"gantry": 1, "name": "all", "buffers": {
            "x": {"dtype": "f32", "shape": [8, 4], "class": "input", "split": 2, "init": {"random": {"seed": 7, "low": -1, "high": 1}}},
            "y": {"dtype": "f32", "shape": [8, 4], "split": 2, "output": True, "check": {"rtol": 1e-3, "atol": 1e-5, "equal_nan": True}},
            "t": {"dtype": "f64", "shape": [6, 6], "tiles": [3, 2], "init": {"normal": {"seed": 3, "mean": 1, "deviation": 2}}},
            "n": {"dtype": "i64", "shape": [4], "init": "iota", "class": "const"},
            "s": {"dtype": "f32", "shape": [1], "init": 0, "output": True},
            "flag": {"dtype": "i32", "shape": [1], "init": 1}, "big": {"dtype": "u64", "shape": [6], "init": str(2**64 - 1)},
            "down": {"dtype": "i64", "shape": [4], "init": {"iota": {"start": -2**53 - 1, "step": -3}}}},
            "nodes": [*(n for i in range(2) for n in (
                {"id": f"a{i}", "map": {"y": "x * k"}, "args": {"x": f"x[{i}]", "y": f"y[{i}]", "k": 2}, "on": "dev0", "priority": 3, "share": 0.5},
                {"id": f"r{i}", "reduce": {"s": "sum(y)"}, "args": {"y": f"y[{i}]", "s": "s"}, "access": {"s": "sum"}, "after": [f"a{i}"], "when": {"buffer": "flag"}})),
                {"id": "c", "copy": {"from": "t[0][0:2]", "to": "t[1][0:2]"}},
                {"id": "f", "fill": {"to": "t[2][1]", "value": 1.5}},
                {"id": "g", "fill": {"to": "big{0:1}", "value": 2**53 + 1}},
                {"id": "h", "fill": {"to": "big{1:3}", "iota": {"start": 2**53 + 1, "step": 2}}},
                {"id": "i", "fill": {"to": "big{3:4}", "random": {"seed": 5, "low": 2, "high": 9}}},
                {"id": "j", "fill": {"to": "t[0][0]", "normal": {"seed": 6, "mean": 1, "deviation": 0.5}}},
                {"repeat": 3, "index": "step", "nodes": [{"repeat": 2, "nodes": [
                    {"id": "k", "kernel": "scale", "args": {"x": "x[0:2]", "a": "step * 100 + it", "y": "y[0:2]"}}]}]},
                {"id": "l", "collective": "all_reduce", "op": "sum", "in": ["x[0]", "x[1]"], "out": ["y[0]", "y[1]"], "algorithm": "ring"},
                {"id": "w", "work": {}, "reads": ["x{1:3}"], "writes": [{"readwrite": "t"}, {"sum": "s"}],
                 "cost": {"flops": 100, "bytes": 200, "time_us": {"*": 5, "gpu": 7}}},
                {"repeat": 4, "nodes": [{"id": "d", "kernel": "scale", "args": {"x": "x[0:2]", "a": {"dynamic": 0.5}, "y": "y[0:2]"}},
                                         {"id": "v", "work": {}, "writes": [{"readwrite": "s"}]}]}]})

    def test_loops_carry_and_end(self):
        g = gantry.Graph()
        x = g.buffer("x", 1, "f64", cls="input")
        y, done = g.buffer("y", 1, "f64"), g.buffer("done", 1, "f64")
        out, count = g.buffer("out", 1, "f64", output=True), g.buffer("count", 1, "f64", init=0, cls="input", output=True)
        with g.repeat(100) as loop:
            g.map("y = x / 2", x=x, y=y)
            g.map("c = c + 1; d = f64(y < 1)", c=count, y=y, d=done)
            g.copy(y, out)
            loop.carry(x, y)
            loop.until(done)
        result = g.schedule(1).run()(x=np.array([37.0]))
        self.assertEqual((result["out"][0], result["count"][0]), (37 / 64, 6))

    def test_collectives(self):
        g = gantry.Graph()
        xs = [g.input(f"x{i}", 6, "f64") for i in range(3)]
        ys = [g.buffer(f"y{i}", 6, "f64", output=True) for i in range(3)]
        g.collective("all_reduce", xs, ys, "sum")
        given = {f"x{i}": np.random.default_rng(i).integers(0, 99, 6).astype(float) for i in range(3)}
        out = g.schedule(3).run()(given)
        for y in out.values():
            self.equal(y, sum(given.values()))

    def test_fusing_changes_no_bit(self):
        def built(fuse):
            g = gantry.Graph()
            x, t, y = g.input("x", 100), g.buffer("t", 100), g.buffer("y", 100, output=True)
            g.map("t = sin(x)", id="a", x=x, t=t)
            g.map("y = t * t", id="b", t=t, y=y)
            if fuse:
                g.fuse()
            return g.check()

        self.assertEqual((built(True).nodes, built(False).nodes), (["a+b"], ["a", "b"]))
        a = np.random.default_rng(1).normal(size=100).astype(np.float32)
        self.equal(built(True)(x=a)["y"], built(False)(x=a)["y"])

    def test_indices(self):
        g = gantry.Graph()
        x, t, whole = g.buffer("x", 10, split=5), g.buffer("t", (6, 6), tiles=(3, 2)), g.buffer("w", 3)
        self.assertEqual((len(x), len(t), len(whole)), (5, 3, 1))
        for region, wanted in [(x[1], (1, 2)), (x[-1], (4, 5)), (x[1:3], (1, 3)), (x[:], (0, 5)), (x[3:], (3, 5)), (x.rows(2, 9), (2, 9))]:
            self.assertEqual((region.region.first, region.region.last), wanted)
        with self.assertRaisesRegex(IndexError, 'buffer "x" has 5 parts along axis 0; 5 is none of them'):
            x[5]
        for beyond in (slice(0, 6), slice(-6, None), slice(2, 10)):
            with self.assertRaisesRegex(IndexError, r'buffer "x" has 5 parts along axis 0, which .*:.* goes beyond; rows are named by .rows'):
                x[beyond]
        with self.refused(gantry.InvalidError, 'buffer "w" is not cut, and was given 1 indices; cut it with .split'):
            whole[0]
        with self.refused(gantry.InvalidError, 'buffer "t" is in 3 x 2 parts, and was given 3 indices'):
            t[0, 0, 0]
        with self.refused(gantry.InvalidError, "have the step 2"):
            x[::2]
        with self.refused(gantry.InvalidError, 'the index of buffer "x" is 1.5; it must be a whole number'):
            x[1.5]


class Mistakes(Case):
    def told(self, words, here, build, error=gantry.GraphError):
        g = gantry.Graph("wrong")
        build(g)
        with self.refused(error, words) as refused:
            g.check()
        self.assertEqual((os.path.basename(refused.value.file), refused.value.line), ("check_graphs.py", here))
        self.assertIn(f"check_graphs.py:{here}: ", str(refused.value))

    def test_the_line_of_the_program(self):
        def kernel(g):
            g.node("sxpy", x=g.buffer("x", 3))
        self.told(r'there is no kernel "sxpy" \(did you mean "saxpy"\?\)', line() - 1, kernel)

        def twice(g):
            g.buffer("x", 3)
            g.buffer("x", 4)
        self.told('"x"', line() - 1, twice)

        def argument(g):
            x = g.buffer("x", 3)
            g.node("scale", x=x, b=1.0)
        self.told('has no argument "b"', line() - 1, argument)

        def formula(g):
            x = g.buffer("x", 3)
            g.map("x = sqr(x)", x=x)
        self.told('no function "sqr"', line() - 1, formula)

        def first(g):  # and not the second
            g.buffer("x", -3)
            g.node("nothing")
        self.told("-3", line() - 2, first)

        def loop(g):
            with g.repeat(-1):
                pass
        self.told("-1", line() - 2, loop)

        def another(g):
            g.copy(g.buffer("x", 3), gantry.Graph("other").buffer("y", 3))
        self.told('buffer 0 belongs to another graph', line() - 1, another, gantry.InvalidError)

    def test_words_that_are_refused_at_once(self):
        g = gantry.Graph("w")
        x = g.buffer("x", 3)
        for call, words in [
                (lambda: g.buffer("y", 3, "f33"), r"'f33' is no element type of Gantry; use one of \"f16\", "),
                (lambda: g.buffer("y", 3, np.complex64), "complex64.* is no element type"),
                (lambda: g.buffer("y", 2.5), "an extent of buffer \"y\" is 2.5; it must be a whole number"),
                (lambda: x.class_("inptu"), r"'inptu' is no class of buffers \(did you mean \"input\"\?\); there are"),
                (lambda: x.as_access("sun"), r"'sun' is no access \(did you mean \"sum\"\?\)"),
                (lambda: g.collective("allreduce", [x], [x]), r"'allreduce' is no collective \(did you mean \"all_reduce\"\?\)"),
                (lambda: g.node("scale", x=x, a="two"), "argument \"a\" is 'two'; give a buffer, a region of one, or a number"),
                (lambda: g.node("scale", x=x, y=x, on="dev1"), r"argument \"on\" is 'dev1'; .*: g.node\(...\).on\(...\)$"),
                (lambda: g.node("scale", x=x, a=gantry.Dynamic(2**53 + 1)), r"argument \"a\" is 9007199254740993, which a double does not hold exactly"),
                (lambda: g.node("scale", x=x, a=2**64), r"argument \"a\" is 18446744073709551616"),
                (lambda: gantry.Expression(3), "an expression is 3; it is a text"),
                (lambda: g.copy(x, 3), "3 is no region; give a buffer"),
                (lambda: g.buffer("a\0b", 3), "has a zero byte"),
                (lambda: scaled().schedule(1.5), "machine is 1.5; give a gantry.Machine"),
                (lambda: scaled().schedule(True), "machine is True; give a gantry.Machine")]:
            with self.refused(gantry.InvalidError, words):
                call()

    def test_files_with_mistakes(self):
        """The message that the command prints, and its place as numbers."""
        for path in sorted((ROOT / "graphs/invalid").glob("*.json"))[::3]:
            if "devices" in path.read_text() or path.with_suffix(".options").exists():
                continue  # the command counts them; what is wrong is so with options only
            done = subprocess.run([COMMAND, "schedule", path, "--devices", "1"], capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    gantry.load(path).schedule(1)
            except gantry.Error as error:
                self.assertEqual(str(error), done.stderr.splitlines()[-1])
                self.assertIn(error.code, ("GANTRY_E_GRAPH", "GANTRY_E_SYNTAX", "GANTRY_E_UNSUPPORTED", "GANTRY_E_INVALID", "GANTRY_E_IO", "GANTRY_E_MACHINE"))
            else:
                self.fail(f"{path} was accepted")

    def test_classes_by_cause(self):
        with tempfile.TemporaryDirectory() as folder:
            wrong = os.path.join(folder, "a\x1b[31mb.json")
            with open(wrong, "w") as file:
                file.write("{\n  nonsense")
            with self.refused(gantry.JSONError, ":2:"):
                gantry.load(wrong)
            with self.refused(gantry.FileError, "none.json") as refused:
                gantry.load(os.path.join(folder, "none.json"))
            self.assertNotEqual(refused.value.native, 0)
            with self.refused(gantry.MachineError, "b.json"):
                with open(wrong, "w") as file:
                    file.write('{"gantry_machine": 1}')
                gantry.Machine.load(wrong)
        with self.refused(gantry.GraphError, 'parsed:1:22: /nme: unknown key "nme" .did you mean "name".'):
            gantry.parse('{"gantry": 1, "nme": "x"}', name="parsed")
        with self.refused(gantry.GraphError, r"^1:22: /nme: "):
            gantry.parse('{"gantry": 1, "nme": "x"}')
        with self.refused(gantry.CapacityError, "memory|fit"):
            scaled(1 << 20).schedule(2, max_memory="dev0=1KiB,dev1=1KiB", spill="off")
        with self.assertRaises(gantry.CapacityError):
            scaled(1 << 20).schedule(2, max_memory={"dev0": 1024, "dev1": "1KiB"}, spill="off")
        with self.refused(gantry.InvalidError, "3 is given where a text is wanted"):
            scaled(8).schedule(2, policy=3)
        with self.refused(gantry.InvalidError, 'did you mean "heft"'):
            scaled().schedule(1, policy="hefft")
        for cls in (ValueError, gantry.Error):
            self.assertTrue(issubclass(gantry.GraphError, cls))
        self.assertTrue(issubclass(gantry.OutOfMemoryError, MemoryError) and issubclass(gantry.LibraryError, ImportError))

    def test_errors_are_one_line_and_travel(self):
        error = gantry.GraphError("a\nb\x1b[31m", file="g.json", line=3, column=4, where="/nodes")
        self.assertEqual(str(error), "g.json:3:4: /nodes: a b?[31m")
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(again), str(again), again.line), (gantry.GraphError, str(error), 3))

    def test_names_that_are_not_there(self):
        g = scaled(parts=2)
        plan = g.schedule(1)
        for call in (lambda: plan.explain("mpa"), lambda: g.find("mpa"), lambda: plan.run().set_scalar("mpa", "k", 1)):
            with self.refused(gantry.InvalidError, r'graph "scaled" has no node "mpa" \(did you mean "map"\?\); it has "map", "map#1"'):
                call()
        with self.refused(gantry.InvalidError, "is fixed|no scalar"):
            plan.run().set_scalar("map", "k", 1.0)

    def test_warnings_are_pythons(self):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            g = gantry.load(ROOT / "tests/cli/graphs/learns.json")
            here = line() - 1
            g.schedule(2)
        self.assertEqual([(w.category, w.filename, w.lineno) for w in seen], [(gantry.GantryWarning, __file__, here)])
        self.assertRegex(str(seen[0].message), r"learns.json:\d+:\d+: /buffers/w: no node writes 1 of the 1 rows")


    def test_slips_of_the_first_minutes(self):
        g = gantry.Graph("first")
        x, y = g.input("x", 4), g.buffer("y", 4)
        a = np.ones(4, np.float32)
        with self.refused(gantry.InvalidError, r"the id of a node is <gantry.Buffer 'x' of 'first'>; .*arguments are given by name, as in x=x"):
            g.node("copy", x, y)
        with self.refused(gantry.InvalidError, r"a node has the kernel <function .*>; .*@gantry.kernel"):
            g.node(lambda x, y: None, x=x, y=y)
        with self.refused(gantry.InvalidError, r'argument "x" is array\(.{1,40}\); .*an array is what an input is bound to'):
            g.map("y = x", x=np.ones(1000), y=y)
        with self.refused(gantry.InvalidError, r'the init of buffer "z" is array\(.*one number for all elements.*graph.input\("z", ...\)'):
            g.buffer("z", 4, init=a)
        self.assertEqual(gantry.Graph("n").buffer("s", 4, init=np.float32(3)).name, "s")
        g.map("y = 2 * x", x=x, y=y)
        with self.refused(gantry.InvalidError, r"the inputs are ndarray, without a name; .*as in x=array"):
            g(a)
        with self.refused(gantry.InvalidError, r"the inputs are list, without a name"):
            g.schedule(1).run().start([a])
        with self.refused(KeyError, r'"y" is no output of the graph; it has none: give a buffer output=True'):
            g.schedule(1).run()({"x": a})["y"]

    def test_what_is_of_the_wrong_kind(self):
        """Whatever is given where a node, a buffer or a number is wanted, the error is the library's; no number is cut to its low bits."""
        g = gantry.Graph("kinds")
        x, y = g.input("x", 4), g.buffer("y", 4)
        node = g.map("y = 2 * x", x=x, y=y)
        calls = {
            r"what a node is after is 'map'; g.find\('map'\) is the node of that id": lambda: node.after("map"),
            r"what a node is with is 3; it must be a node": lambda: node.with_(3),
            r"what a node is apart from is <gantry.Buffer 'x' of 'kinds'>; it must be a node": lambda: node.apart(x),
            r"the priority is 'high'; it must be a whole number": lambda: node.priority("high"),
            r"the priority is 4294967297; it must be from -2147483648 to 2147483647": lambda: node.priority(2**32 + 1),
            r"the time is None; it must be a number": lambda: node.time(None),
            r"the share is 'half'; it must be a number": lambda: node.share("half"),
            r"nbytes is array.*; it must be a number": lambda: node.cost(1, np.ones(2)),
            r"the value is None; it must be a number": lambda: g.fill(y, None),
            r"rtol is 'x'; it must be a number": lambda: y.tolerance("x"),
            r"the seed is -1; it must be from 0 to 18446744073709551615": lambda: x.init_normal(-1),
            r"the limit is 1.5; it must be a whole number": lambda: g.limit(1.5),
            r"an extent of buffer \"z\" is 18446744073709551620; it must be from": lambda: g.buffer("z", 2**64 + 4),
            r"parts is 18446744073709551618; it must be from": lambda: x.split(2**64 + 2),
            r"the last row is 18446744073709551619; it must be from": lambda: g.copy(x.rows(0, 2**64 + 3), y),
            r"the halo is 18446744073709551617; it must be from": lambda: x.halo(2**64 + 1),
            r"the first row is 0.5; it must be a whole number": lambda: x.rows(0.5, 2),
            r"the count of a repeat is 18446744073709551617; it must be from": lambda: g.repeat(2**64 + 1).__enter__(),
            r"the number of virtual devices is 4294967298; it must be from 1 to 4096": lambda: gantry.Machine.virtual(2**32 + 2),
            r"effort is 4294967297; it must be from -2147483648 to 2147483647": lambda: scaled().schedule(1, effort=2**32 + 1),
            r"in_flight is 'two'; it must be a whole number": lambda: scaled().schedule(1, in_flight="two"),
            r"seed is -1; it must be from 0 to 18446744073709551615": lambda: scaled().schedule(1, seed=-1),
            r"threads is 4294967297; it must be from": lambda: scaled().schedule(1).run(threads=2**32 + 1),
            r"devices is 4294967297; it must be from": lambda: gantry.load(ROOT / "graphs/saxpy.json", devices=2**32 + 1),
            r"the count of a repeat is 'n'; it must be a whole number": lambda: g.repeat("n").__enter__(),
        }
        for words, call in calls.items():
            with self.refused(gantry.InvalidError, words):
                call()
        with self.refused(gantry.InvalidError, "what is carried is 'y'; give a buffer of the graph, as a whole"), g.repeat(2, carry={x: "y"}):
            pass

    def test_names_of_other_libraries(self):
        for name, remedy in {"Read": "; it is gantry.In here", "Grahp": ' \\(did you mean "Graph"\\?\\)', "zebra": ""}.items():
            with self.refused(AttributeError, f"^gantry has no {name}{remedy}$"):
                getattr(gantry, name)
        self.assertFalse(hasattr(gantry, "__wrapped__"))

    def test_a_graph_without_output_says_so(self):
        def calls(**how):
            g = gantry.Graph("mute")
            x = g.input("x", 4)
            y = g.buffer("y", 4, **how)
            g.map("y = 2 * x", x=x, y=y)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                for _ in range(2):
                    here = line() + 1
                    g(x=np.ones(4, np.float32))
            return here, [(str(w.message), w.filename, w.lineno) for w in seen]
        here, seen = calls()
        self.assertEqual(seen, [('graph "mute" has no output, so that nothing comes back; a buffer is one by output=True, and comes with what was written to it',
                                 __file__, here)])
        self.assertEqual(calls(output=True)[1], [])
        with self.refused(gantry.InvalidError, r"compared with 'a.json'; give another Schedule"):
            scaled(parts=2).schedule(1).diff("a.json")

    def test_what_is_of_a_process_is_not_copied(self):
        g = scaled(parts=2)
        for make in (pickle.dumps, copy.deepcopy, copy.copy):
            for one in (g, g.schedule(1), gantry.Machine(2)):
                with self.refused(TypeError, f"^a {type(one).__name__} is an object of this process and cannot be copied or pickled; hand over its text"):
                    make(one)
        self.assertEqual(gantry.parse(g.json()).json(), g.json())

    def test_machines_are_made_of_what_schedule_takes(self):
        self.assertEqual(gantry.Machine("dgx1-v100").name, "dgx1-v100")
        self.assertEqual([d.id for d in gantry.Machine(2).devices], ["dev0", "dev1"])
        self.assertGreater(gantry.Machine().workers, 0)
        with self.refused(gantry.InvalidError, "is a machine already"):
            gantry.Machine(gantry.Machine(2))
        with self.refused(gantry.InvalidError, "give a gantry.Machine, the name or path"):
            gantry.Machine(2.5)

    def test_loops_carry_in_one_line(self):
        g = gantry.Graph("carried")
        x, y = g.buffer("x", 4, init=1), g.buffer("y", 4, output=True)
        with g.repeat(3, carry={x: y}):
            g.map("y = 2 * x", x=x, y=y)
        self.assertEqual(g()["y"].tolist(), [8] * 4)

    def test_kernels_that_would_not_run(self):
        async def later(x: gantry.In, y: gantry.Out):
            y[:] = x

        def some(x: gantry.In, y: gantry.Out):
            yield x
        for function, word in ((later, "async"), (some, "yield")):
            with self.refused(gantry.InvalidError, f'kernel "{function.__name__}" is a function with {word}, .* plain one'):
                gantry.kernel(function)

        @gantry.kernel
        def copied(x: gantry.In, y: gantry.Out):
            y[:] = x
        g = gantry.Graph("order")
        x = g.input("x", 4)
        with self.refused(gantry.InvalidError, r'a kernel stands before the id of its node, as in g.node\(kernel, "id"'):
            g.node("copied", copied, x=x, y=x)

    def test_verbs_of_other_libraries(self):
        """The things that somebody who knows NumPy writes first."""
        g = gantry.Graph("verbs")
        x, y = g.input("x", 4, split=2), g.buffer("y", 4, split=2, output=True)
        for compute in (lambda: x + 1, lambda: 2 * x[0], lambda: x @ y, lambda: -x, lambda: np.asarray(x), lambda: np.sqrt(x)):
            with self.refused(gantry.InvalidError, r"'x'.* has no elements while the graph is built; .*g.map\("):
                compute()
        with self.refused(gantry.InvalidError, r"'y'.* has no elements .*g.node\(kernel"):
            y[0] = x[0]
        with self.refused(gantry.InvalidError, r'"scale" is a name, .*g.node\("scale"'):
            g.kernel("scale", x=x)
        for i in range(2):
            g.map("y = 2 * x", x=x[i], y=y[i])
        with self.refused(gantry.InvalidError, r'no option "polcy" \(did you mean "policy"\?\); .*as in g.schedule\(2\)'):
            g.schedule(2, polcy="heft")
        with self.refused(gantry.InvalidError, r'no option "devices"; it has .*"policy"'):
            g.schedule(devices=2)
        with self.refused(gantry.InvalidError, r"make a run of it, .*run\(x=array\)"):
            g.schedule(2)(x=[1] * 4)
        with self.refused(AttributeError, r"a graph has no run; g\(x=array\) runs it"):
            g.run()
        with self.refused(AttributeError, r"a graph has no plt$"):
            g.plt
        out = g(x=[1] * 4)
        with self.refused(AttributeError, r'in brackets, as in out\["y"\]'):
            out.y
        with self.refused(AttributeError, r"a dictionary of outputs has no z"):
            out.z

    def test_names_and_texts_of_other_libraries(self):
        g = gantry.Graph("names")
        x, y = g.input("x", 4), g.buffer("y", 4, output=True)
        with self.refused(gantry.InvalidError, r"the formulas of a node are <function .*@gantry.kernel"):
            g.map(lambda x: x + 1, x=x, y=y)
        g.map("y = 2 * x", x=x, y=y)
        for nothing in (None, "x.npy", np.array(["a"] * 4)[0]):
            with self.refused(gantry.InvalidError, r'input "x" was given .*np.load'):
                g(x=nothing)
        with self.refused(gantry.InvalidError, r'a run has no option "thread" \(did you mean "threads"\?\); it has'):
            g.schedule(1).run(thread=2)
        g(x=np.ones(4, np.float32))
        for change in (lambda: g.map("y = x", x=x, y=y), lambda: g.buffer("z", 4), lambda: y.output()):
            with self.refused(gantry.InvalidError, r'graph "names" was checked, scheduled or called, .*make a new one'):
                change()
        for name, meant in (("matmul", "gemm"), ("cumsum", "scan"), ("topk", "top_k"), ("axpy", "saxpy"), ("cholesky", "potrf"), ("conv", "conv2d"), ("gem", "gemm")):
            other = gantry.Graph("other")
            other.node(name, x=other.input("x", 4))
            with self.refused(gantry.GraphError, f'there is no kernel "{name}" .did you mean "{meant}"'):
                other.check()
        product = gantry.Graph("product")
        product.map("y = x @ x", x=product.input("x", (4, 4)), y=product.buffer("y", (4, 4), output=True))
        with self.refused(gantry.GraphError, "there is no '@': products of matrices are nodes of the kernel gemm"):
            product.check()

    def test_parts_that_write_over_each_other(self):
        g = gantry.Graph("parts")
        x, s = g.input("x", 4, split=2), g.buffer("s", 1, output=True)
        for i in range(2):
            g.reduce("s = sum(x)", x=x[i], s=s)
        with self.assertWarnsRegex(gantry.GantryWarning, 'node "reduce#1" writes over s, which node "reduce" wrote'):
            g.check()


class Loading(Case):
    def test_params_and_inputs(self):
        g = gantry.load(ROOT / "graphs/saxpy.json", {"n": 1000, "parts": 2})
        self.assertEqual((g.infos["x"].shape, g.infos["x"].parts, g.infos["x"].nbytes, g.infos["y"].output), ((1000,), 2, 4000, True))
        self.assertEqual((g.infos["total"].rtol, g.infos["x"].cls, g.name), (1e-4, "input", "saxpy"))
        with self.refused(gantry.InvalidError, r"saxpy.json:4:13: /params: .*\bm: the graph has no param of that name"):
            gantry.load(ROOT / "graphs/saxpy.json", {"m": 1000})

    def test_a_graph_that_asks_for_devices(self):
        form = {"gantry": 1, "name": "d", "buffers": {"x": {"dtype": "f32", "shape": ["4 * devices"], "init": 0, "output": True}},
                "nodes": [{"id": "f", "fill": {"to": "x", "value": 1}}]}
        with self.refused(gantry.UnsupportedError, "devices"):
            gantry.parse(form)
        self.assertEqual(gantry.parse(form, devices=3).infos["x"].shape, (12,))
        self.assertEqual(gantry.parse(form, devices=gantry.Machine.load(H200)).infos["x"].shape, (32,))

    def test_a_graph_that_names_its_machine(self):
        form = {"gantry": 1, "name": "d", "machine": json.loads(gantry.Machine.virtual(3).json()),
                "buffers": {"x": {"dtype": "f32", "shape": [6], "split": 3, "init": 0, "output": True}},
                "nodes": [{"id": "f[i]", "for": {"i": 3}, "fill": {"to": "x[i]", "value": 1}, "on": "i"}]}
        plan = gantry.parse(form).schedule()
        self.assertEqual([plan.device_of(f"f[{i}]") for i in range(3)], [0, 1, 2])


class Machines(Case):
    def test_read_and_selected(self):
        machine = gantry.Machine.load(H200)
        self.assertEqual((machine.workers, [d.id for d in machine.devices if d.gpu]), (8, [f"gpu{i}" for i in range(8)]))
        self.assertEqual(machine.select(3).workers, 3)
        self.assertEqual([d.id for d in machine.select("id:gpu1,gpu5").devices if d.gpu], ["gpu1", "gpu5"])
        self.assertEqual(gantry.Machine.parse(machine.json()).json(), machine.json())
        self.assertIn("gpu7", repr(machine))
        with self.refused(gantry.MachineError, "m.json:1:"):
            gantry.Machine.parse("{}", "m.json")

    def test_this_computer(self):
        machine = gantry.Machine.detect()
        told = json.loads(subprocess.run([COMMAND, "machine", "--json"], capture_output=True, text=True, check=True).stdout)
        self.assertEqual(len(machine.devices), len(json.loads(machine.json())["devices"]))
        self.assertTrue(told)


class Schedules(Case):
    def report(self, *arguments):
        done = subprocess.run([COMMAND, "schedule", *map(str, arguments), "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def test_figures_are_those_of_the_command(self):
        told = self.report(ROOT / "graphs/image_blur.json", "--machine", H200, "--policy", "heft")
        plan = gantry.load(ROOT / "graphs/image_blur.json").schedule(H200, policy="heft")
        report = plan.report()
        self.assertEqual({k: v for k, v in report.items() if k in told and "planning" not in k}, {k: told[k] for k in report if k in told and "planning" not in k})
        self.assertGreater(len(report), 10)
        s = plan.summary
        self.assertEqual((plan.policy, plan.makespan, plan.bound), ("heft", s.makespan_us, s.bound_us))
        self.assertEqual((s.makespan_us, s.nodes, s.bytes_moved), (told["makespan_us"], told["nodes"], report["bytes_moved"]))
        self.assertAlmostEqual(s.gap, s.makespan_us / s.bound_us - 1, 12)
        with gantry.load(ROOT / "graphs/image_blur.json") as g:
            self.assertEqual(g.schedule(gantry.Machine.load(H200), policy="heft").json(), plan.json())

    def test_options_arrive(self):
        g = gantry.load(ROOT / "graphs/pipeline3.json", {"batches": 1})
        self.assertEqual(g.schedule(3).summary.period_us, 0)
        s = g.schedule(3, objective="period", in_flight=2).summary
        self.assertEqual((s.in_flight, s.period_us > 0), (2, True))
        for option, value, words in [("effort", 99, "99"), ("objective", "span", "span"), ("spill", "maybe", "maybe"), ("balance", "bad", "bad"),
                                     ("replay", "no", "no"), ("in_flight", 65, "65"), ("unroll", -1, "-1"), ("max_memory", "dev9=1", "dev9")]:
            with self.refused(gantry.InvalidError, words):
                g.schedule(3, objective=value if option == "objective" else "period", **({} if option == "objective" else {option: value}))

    def test_explain_and_places(self):
        plan = gantry.load(ROOT / "graphs/saxpy.json", {"n": 1000}).schedule(2)
        self.assertIn('node "saxpy[1]" on dev', plan.explain("saxpy[1]"))
        for node in plan.graph.nodes:
            self.assertIn(f'node "{node}" on dev{plan.device_of(node)}', plan.explain(plan.graph.find(node)))

    def test_what_if(self):
        plan = gantry.load(ROOT / "graphs/saxpy.json", {"n": 1000}).schedule(2, policy="heft")
        there = 1 - plan.device_of("saxpy[1]")
        moved = plan.what_if({"saxpy[1]": there})
        self.assertEqual([moved.device_of(node) for node in plan.graph.nodes], [there if str(node) == "saxpy[1]" else plan.device_of(node) for node in plan.graph.nodes])
        self.assertEqual([op["op"] for op in plan.diff(moved).report()["moved"]], ["saxpy[1]"])
        self.assertEqual(plan.what_if().makespan, plan.makespan)
        machine = json.loads(plan.json())["machine"]
        for route in machine["routes"]:
            route["bandwidth_gbs"] /= 100
        self.assertGreater(plan.what_if(machine=gantry.Machine.parse(json.dumps(machine))).makespan, plan.makespan)
        with self.refused(gantry.InvalidError, "the machine has 2"):
            plan.what_if({"saxpy[1]": 2})

    def test_files(self):
        g = gantry.load(ROOT / "graphs/saxpy.json", {"n": 1000})
        plan = g.schedule(2)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s.json")
            plan.save(path)
            again = gantry.Schedule.load(path, g)
            self.assertEqual(again.json(), plan.json())
            self.equal(again.run()()["total"], plan.run()()["total"])
            with self.refused(gantry.ScheduleError, "graph"):
                gantry.Schedule.load(path, scaled())

    def test_pictures(self):
        g = gantry.load(ROOT / "graphs/saxpy.json", {"n": 1000})
        plan = g.schedule(2)
        svg = xml.etree.ElementTree.fromstring(plan.timeline())
        self.assertTrue(svg.tag.endswith("svg"))
        self.assertIn("<html", plan.timeline("html"))
        self.assertIn("saxpy[0]", json.dumps(json.loads(plan.timeline("chrome"))))
        for dot in (g.dot(), plan.dot()):
            self.assertTrue(dot.lstrip().startswith("digraph") and "saxpy[3]" in dot)
        self.assertIn("makespan", plan.text())
        with self.refused(gantry.InvalidError, "a timeline is 'png'; it can be 'svg', 'html', 'chrome'"):
            plan.timeline("png")
        bundle = plan._repr_mimebundle_()
        self.assertEqual((bundle["image/svg+xml"], bundle["text/plain"]), (plan.timeline(), repr(plan)))
        self.assertEqual(plan._repr_svg_(), plan.timeline())

    def test_graphs_are_drawn_where_graphviz_is(self):
        g = scaled()
        if shutil.which("dot"):
            svg = xml.etree.ElementTree.fromstring(g._repr_mimebundle_()["image/svg+xml"])
            self.assertTrue(svg.tag.endswith("svg"))
            self.assertEqual(g._repr_svg_()[:4], "<svg")
        else:
            print("skipped (no graphviz): a graph as SVG")
        path = os.environ["PATH"]
        with tempfile.TemporaryDirectory() as folder:
            try:
                os.environ["PATH"] = folder
                self.assertEqual(g._repr_mimebundle_(), {"text/plain": repr(g)})
                self.assertIsNone(g._repr_svg_())
                broken = os.path.join(folder, "dot")
                with open(broken, "w") as file:
                    file.write("#!/bin/false\n")
                os.chmod(broken, 0o755)
                self.assertEqual(g._repr_mimebundle_(), {"text/plain": repr(g)})
            finally:
                os.environ["PATH"] = path


class Runs(Case):
    def test_info_and_trace(self):
        run = scaled(1000).schedule(2).run(record_trace=True)
        run(x=np.zeros(1000, np.float32))
        run()
        info = run.info
        self.assertEqual((info.backend, info.starts), ("host", 2))
        self.assertGreater(info.last_us, 0)
        self.assertIn("map", json.dumps(json.loads(run.trace())))
        with self.refused(gantry.InvalidError, "record_trace|trace"):
            scaled().schedule(1).run().trace()

    def test_the_simulator_has_times_and_no_outputs(self):
        plan = gantry.load(ROOT / "graphs/image_blur.json").schedule(H200)
        run = plan.run(backend="sim")
        self.assertEqual(run(), {})
        self.assertEqual((run.info.backend, run.info.last_us), ("sim", round(plan.makespan, 3)))

    def test_streams_are_of_gpus(self):
        run = scaled().schedule(1).run().bind(x=np.zeros(8, np.float32))
        with self.refused(gantry.UnsupportedError, 'back end "host" has no streams'):
            run.start(stream=0)
        self.equal(run()["y"], np.ones(8, np.float32))

    def test_external_buffers(self):
        """Bound to memory of the host, which is what the CPU's devices have."""
        g = gantry.Graph()
        x, y = g.input("x", 8).external("dev0"), g.buffer("y", 8, output=True).external("dev0")
        g.map("y = 2 * x", x=x, y=y)
        run = g.schedule(1).run()
        a, b = np.arange(8, dtype=np.float32), np.empty(8, np.float32)
        with self.refused(gantry.InvalidError, 'external buffer "x" is not bound'):
            run()
        with self.refused(gantry.InvalidError, 'external output "y" is not bound'):
            run(x=a)

        self.assertEqual([g.is_external(name) for name in ("x", "y", "z")], [True, True, False])
        self.assertTrue(gantry.parse(g.json()).is_external("x"))

        class Device:
            def __init__(self, array):
                self.array = array
                self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3}

        target = Device(b)
        self.assertIs(run.bind(x=Device(a)).bind_output(y=target)()["y"], target)
        self.equal(b, 2 * a)


main()
