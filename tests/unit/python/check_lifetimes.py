# SPDX-License-Identifier: Apache-2.0
"""Objects that go away in any order, starts that overlap, threads, processes; memory that stays level."""
import gc
import itertools
import os
import pathlib
import subprocess
import sys
import threading
import time
import weakref

import numpy as np

from suite import ROOT, Case, gantry, main, scaled

PIPELINE = ROOT / "graphs/pipeline3.json"


def resident_kib():
    text = pathlib.Path("/proc/self/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0])


def with_kernel(n=64):
    @gantry.kernel
    def double(x: gantry.In, y: gantry.Out):
        np.add(x, x, out=y)

    g = gantry.Graph("doubled")
    x, y = g.input("x", n, split=2), g.buffer("y", n, split=2, output=True)
    for i in range(2):
        g.node(double, x=x[i], y=y[i])
    return g


def overlapping(n=16, kernel=None):
    """Two stages on two devices, whose starts may overlap; a state counts the starts."""
    g = gantry.Graph("stages")
    x, t, y = g.input("x", n), g.buffer("t", n), g.buffer("y", n, output=True)
    for node, where in ((g.map("y = x + 1", x=x, y=t), "dev0"), (g.map("y = x * 2", x=t, y=y), "dev1")):
        node.on(where).time(50)
    return g


class Order(Case):
    def test_every_order_of_deletion(self):
        a = np.arange(64, dtype=np.float32)
        for order in itertools.permutations(["machine", "graph", "plan", "run", "result"]):
            machine = gantry.Machine.virtual(2)
            graph = with_kernel()
            plan = graph.schedule(machine)
            run = plan.run()
            things = {"machine": machine, "graph": graph, "plan": plan, "run": run, "result": run(x=a)["y"]}
            refs = {name: weakref.ref(thing) for name, thing in things.items()}
            del machine, graph, plan, run
            for name in order:
                del things[name]
                if "run" in things:
                    self.equal(things["run"](x=a)["y"], 2 * a)
                if "result" in things:
                    self.equal(things["result"], 2 * a)
            gc.collect()
            self.assertEqual([name for name, ref in refs.items() if ref() is not None], [])

    def test_every_order_of_closing(self):
        a = np.arange(64, dtype=np.float32)
        for order in itertools.permutations(range(4)):
            machine, graph = gantry.Machine.virtual(2), with_kernel()
            plan = graph.schedule(machine)
            run = plan.run()
            started = run.start(x=a)
            things = [machine, graph, plan, run]
            for i in order:
                things[i].close()
                things[i].close()  # twice is fine
            self.equal(started.result()["y"], 2 * a)
            for thing, call in ((machine, lambda: machine.json()), (graph, lambda: graph.dot()), (plan, lambda: plan.summary), (run, lambda: run())):
                with self.refused(gantry.InvalidError, f"this {type(thing).__name__} was closed and cannot be used any more"):
                    call()
                self.assertIn("closed", repr(thing))

    def test_circles(self):
        """A kernel that knows its graph, and a graph that knows its run."""
        def make():
            g = gantry.Graph()

            @g.kernel
            def knows(y: gantry.Out):
                y[:] = len(g.nodes)

            g.node(knows, y=g.buffer("y", 3, output=True))
            self.equal(g()["y"], np.ones(3, np.float32))
            return weakref.ref(g), weakref.ref(g._run), weakref.ref(knows)

        alive = [ref for _ in range(3) for ref in make()]
        self.assertTrue(any(ref() for ref in alive), "there is no circle")
        gc.collect()
        self.assertEqual([ref() for ref in alive], [None] * 9)

    def test_with(self):
        with scaled() as g, g.schedule(1) as plan, plan.run() as run:
            self.equal(run(x=np.zeros(8, np.float32))["y"], np.ones(8, np.float32))
        for thing in (g, plan, run):
            with self.refused(gantry.InvalidError, "was closed"):
                thing.handle

    def test_at_the_end_of_the_interpreter(self):
        """A start is under way, whose kernel takes its time, when the program ends."""
        program = """if True:
            import sys, time, numpy as np
            sys.path.insert(0, sys.argv[1])
            import gantry
            @gantry.kernel
            def slow(y: gantry.Out):
                time.sleep(0.3)
                y[:] = 1
                print("done")
            g = gantry.Graph()
            g.node(slow, y=g.buffer("y", 3, output=True))
            run = g.schedule(1).run()
            started = run.start()
            """
        done = subprocess.run([sys.executable, "-B", "-c", program, str(ROOT / "tools/python")], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))

    def test_a_forked_child_is_told(self):
        run = scaled().schedule(1).run()
        a = np.zeros(8, np.float32)
        run(x=a)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                run(x=a)
            except gantry.InvalidError as error:
                os.write(writing, str(error).encode())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            self.assertRegex(pipe.read(), "threads and GPUs of a run do not come along when a process forks")
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.equal(run(x=a)["y"], np.ones(8, np.float32))


class Level(Case):
    def level(self, what, warm, count, kib):
        for _ in range(warm):
            what()
        gc.collect()
        before, threads = resident_kib(), threading.active_count()
        for _ in range(count):
            what()
        gc.collect()
        self.assertLess(resident_kib() - before, kib)
        self.assertEqual(threading.active_count(), threads)

    def test_a_thousand_starts(self):
        """Of 256 KiB in and 256 KiB out each: a start that stayed behind would show as 250 MiB."""
        run = with_kernel(1 << 16).schedule(2).run()
        self.level(lambda: run(x=np.ones(1 << 16, np.float32)), 50, 1000, 8 << 10)

    def test_a_thousand_runs(self):
        """Graph, schedule and run made anew, with 64 KiB buffers: one that stayed behind would show as 190 MiB or more."""
        a = np.ones(1 << 14, np.float32)

        def all_of_it():
            with with_kernel(1 << 14).schedule(1).run() as run:
                run(x=a)
        self.level(all_of_it, 50, 1000, 8 << 10)

    def test_a_thousand_texts(self):
        """Timelines of 30 KiB or more."""
        plan = gantry.load(ROOT / "graphs/saxpy.json", {"n": 1000, "parts": 16}).schedule(4)
        self.assertGreater(len(plan.timeline()), 30000)
        self.level(plan.timeline, 50, 1000, 8 << 10)

    def test_a_thousand_failures(self):
        @gantry.kernel
        def broken(x: gantry.In, y: gantry.Out):
            raise ValueError(str(x[0]))

        g = gantry.Graph()
        g.node(broken, x=g.input("x", 1 << 14), y=g.buffer("y", 1 << 14, output=True))
        run = g.schedule(1).run()

        def fail():
            with self.refused(gantry.KernelError, "ValueError: 1.0"):
                run(x=np.ones(1 << 14, np.float32))
        self.level(fail, 50, 1000, 8 << 10)


class Overlap(Case):
    def test_starts_overlap_and_keep_their_outputs(self):
        plan = overlapping().schedule(2, objective="period", in_flight=3)
        self.assertEqual(plan.summary.in_flight, 3)
        run = plan.run()
        inputs = [np.full(16, k, np.float32) for k in range(20)]
        starts = [run.start(x=array) for array in inputs]
        self.assertTrue(starts[0].done and not starts[-1].done)
        for k in (19, 0, 7, 18):  # in any order
            self.equal(starts[k].result()["y"], np.full(16, 2 * (k + 1), np.float32))
        self.assertIs(starts[3].result(), starts[3].result())
        self.assertTrue(all(s.done for s in starts))

    def test_two_are_under_way_at_once(self):
        """The second start's first stage begins before the first start's second has ended: they wait for each other."""
        meet = threading.Barrier(2, timeout=60)

        @gantry.kernel
        def early(x: gantry.In, t: gantry.Out):
            if x[0] == 1:
                meet.wait()
            t[:] = x

        @gantry.kernel
        def late(t: gantry.In, y: gantry.Out):
            if t[0] == 0:
                meet.wait()
            y[:] = t

        g = gantry.Graph()
        x, t, y = g.input("x", 4), g.buffer("t", 4), g.buffer("y", 4, output=True)
        g.node(early, x=x, t=t).on("dev0").time(50)
        g.node(late, t=t, y=y).on("dev1").time(50)
        run = g.schedule(2, objective="period", in_flight=2).run()
        starts = [run.start(x=np.full(4, k, np.float32)) for k in range(2)]
        self.assertEqual([s.result()["y"][0] for s in starts], [0, 1])

    def test_inputs_live_until_their_start_has_ended(self):
        """Nobody else has the arrays; the next start is bound to another one while the first is still reading."""
        go, inside = threading.Event(), threading.Event()

        @gantry.kernel
        def slow(x: gantry.In, y: gantry.Out):
            inside.set()
            go.wait(60)
            y[:] = x

        g = gantry.Graph()
        g.node(slow, x=g.input("x", 1000), y=g.buffer("y", 1000, output=True))
        run = g.schedule(2, objective="period", in_flight=2).run()
        arrays = [np.full(1000, k, np.float32) for k in range(2)]
        refs = [weakref.ref(array) for array in arrays]
        starts = [run.start(x=arrays.pop(0))]
        inside.wait(60)
        starts.append(run.start(x=arrays.pop(0)))
        run.bind(x=np.zeros(1000, np.float32))
        gc.collect()
        self.assertTrue(all(ref() is not None for ref in refs))
        go.set()
        self.assertEqual([s.result()["y"][7] for s in starts], [0, 1])
        run()
        gc.collect()
        self.assertEqual([ref() for ref in refs], [None, None])

    def test_one_at_a_time_without_a_period(self):
        run = scaled().schedule(1).run()
        first = run.start(x=np.zeros(8, np.float32))
        second = run.start(x=np.ones(8, np.float32))
        self.equal(first.result()["y"], np.ones(8, np.float32))
        self.equal(second.result()["y"], np.full(8, 3, np.float32))

    def test_a_failure_that_nobody_asked_for_is_told(self):
        @gantry.kernel
        def broken(y: gantry.Out):
            raise ValueError("unseen")

        def started():
            g = gantry.Graph()
            g.node(broken, y=g.buffer("y", 3, output=True))
            run = g.schedule(1).run()
            return run, run.start()

        run, start = started()
        with self.refused(gantry.KernelError, "unseen"):
            run.start()  # needs the memory of the first
        with self.refused(gantry.KernelError, "unseen"):
            start.result()
        run, start = started()
        with self.refused(gantry.KernelError, "unseen"):
            run.close()
        with self.refused(gantry.KernelError, "unseen"):
            with started()[0]:
                pass


class Threads(Case):
    def test_threads_that_build_one_graph(self):
        """Not wise, as the order of nodes is chance's, but nothing breaks."""
        g = gantry.Graph()

        def build(k):
            for i in range(300):
                g.fill(g.buffer(f"b{k}.{i}", 4, output=True), k)

        threads = [threading.Thread(target=build, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(g.infos), len(g.nodes)), (1200, 1200))
        self.equal(g.schedule(1, effort=0).run()()["b3.299"], np.full(4, 3, np.float32))

    def test_graphs_are_checked_by_one_thread_at_a_time(self):
        lib, most, inside = gantry.graph.lib, [], []
        real = lib.gantry_graph_check

        def check(*arguments):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.02)
            status = real(*arguments)
            inside.pop()
            return status

        lib.gantry_graph_check = check
        try:
            g = with_kernel()
            threads = [threading.Thread(target=g.seal) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            lib.gantry_graph_check = real
        self.assertEqual(set(most), {1})

    def test_threads_that_check_one_graph(self):
        for _ in range(20):
            g = with_kernel()
            begin, plans = threading.Barrier(4), []

            def plan():
                begin.wait(60)
                plans.append(g.schedule(2).json())

            threads = [threading.Thread(target=plan) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual((len(plans), len(set(plans))), (4, 1))

    def test_two_runs_from_two_threads(self):
        plan = with_kernel(1000).schedule(2)
        wrong = []

        def use(seed):
            run = plan.run()
            rng = np.random.default_rng(seed)
            for _ in range(300):
                a = rng.normal(size=1000).astype(np.float32)
                if not np.array_equal(run(x=a)["y"], 2 * a):
                    wrong.append(seed)

        threads = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
            self.assertFalse(thread.is_alive())
        self.assertEqual(wrong, [])

    def test_the_lock_of_the_interpreter_is_free_meanwhile(self):
        """A kernel waits for the thread that started it to do something else: it would wait for ever otherwise."""
        go = threading.Event()

        @gantry.kernel
        def wait(y: gantry.Out):
            y[:] = go.wait(60)

        g = gantry.Graph()
        g.node(wait, y=g.buffer("y", 2, output=True))
        run = g.schedule(1).run()
        helper = threading.Timer(0.2, go.set)
        helper.start()
        self.equal(run()["y"], np.ones(2, np.float32))
        helper.join()

    def test_planning_lets_others_run(self):
        ticks = []
        over = threading.Event()

        def tick():
            while not over.wait(0.005):
                ticks.append(time.monotonic())

        g = gantry.load(ROOT / "graphs/cholesky.json", params={"n": 1024})
        thread = threading.Thread(target=tick)
        thread.start()
        begin = time.monotonic()
        g.schedule(str(ROOT / "graphs/machines/dgx1-v100.json"))
        end = time.monotonic()
        over.set()
        thread.join()
        self.assertGreater(end - begin, 0.05)
        self.assertGreater(sum(begin < t < end for t in ticks), 2)

    def test_one_run_from_two_threads_is_refused(self):
        inside, go = threading.Event(), threading.Event()

        @gantry.kernel
        def wait(y: gantry.Out):
            inside.set()
            y[:] = go.wait(60)

        g = gantry.Graph()
        g.node(wait, y=g.buffer("y", 2, output=True))
        run = g.schedule(1).run()
        got = []
        thread = threading.Thread(target=lambda: got.append(run()["y"]))
        thread.start()
        inside.wait(60)
        try:
            for call in (run, run.start, run.bind, run.close):
                with self.refused(gantry.InvalidError, "a run is used by two threads at once, or by a kernel of its own; make a run for each"):
                    call()
        finally:
            go.set()
            thread.join()
        self.equal(got[0], np.ones(2, np.float32))
        self.equal(run()["y"], np.ones(2, np.float32))

    def test_a_kernel_that_starts_its_own_run_is_refused(self):
        @gantry.kernel
        def again(y: gantry.Out):
            runs[0]()

        g = gantry.Graph()
        g.node(again, y=g.buffer("y", 2, output=True))
        runs = [g.schedule(1).run()]
        with self.refused(gantry.KernelError, "or by a kernel of its own"):
            runs[0]()


main()
