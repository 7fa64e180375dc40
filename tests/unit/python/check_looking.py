# SPDX-License-Identifier: Apache-2.0
"""Pictures, reports, machines and imported graphs: what notebooks are shown, against the texts that the command writes.

check_looking.py COMMAND
"""
import html
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.dom.minidom

import numpy as np

from suite import ROOT, Case, gantry, main, scaled

COMMAND = sys.argv.pop()


def command(*words):
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout


def planned(parts=4, devices=2):
    return scaled(4096, parts=parts).schedule(devices)


class Pictures(Case):
    def test_a_schedule_in_a_notebook(self):
        plan = planned()
        picture = plan.plot()
        shown = picture._repr_html_()
        self.assertIn(plan.timeline("svg"), shown)
        self.assertEqual(picture._repr_svg_(), plan.timeline("svg"))
        self.assertEqual(picture._repr_mimebundle_(), {"text/plain": repr(picture), "text/html": shown})
        for form in (picture.forms["svg"], plan.plot("graph").forms.get("svg", "<none/>")):
            xml.dom.minidom.parseString(form)
        self.assertIn("map#3", shown)  # the graph is there, drawn or as text
        self.assertEqual(plan.plot("timeline")._repr_html_(), plan.timeline("svg"))

    def test_pictures_without_graphviz(self):
        path = os.environ["PATH"]
        try:
            os.environ["PATH"] = "/nowhere"
            graph = planned().plot("graph")
            self.assertIsNone(graph._repr_svg_())
            self.assertEqual(html.unescape(graph._repr_html_()), f"<pre>{graph.forms['dot']}</pre>")
            with self.refused(gantry.InvalidError, r'"g.svg" ends in "svg"; the schedule of "scaled" can be written as "dot"$'):
                graph.save("g.svg")
        finally:
            os.environ["PATH"] = path

    def test_saved(self):
        plan = planned()
        with tempfile.TemporaryDirectory() as folder:
            for form, wanted in (("svg", plan.timeline("svg")), ("html", plan.timeline("html")), ("json", plan.timeline("chrome"))):
                path = pathlib.Path(folder, f"plan.{form}")
                plan.plot().save(path)
                self.assertEqual(path.read_text(), wanted)
        with self.refused(gantry.InvalidError, r'"plan" ends in ""; .* can be written as "(svg", ")?dot", "svg", "json", "html"|"plan" ends in ""'):
            plan.plot().save("plan")

    def test_the_page_in_a_frame(self):
        plan = planned()
        frame = plan.plot("page", height=300)._repr_html_()
        document = re.fullmatch(r'<iframe srcdoc="([^"]*)" width="100%" height="300" frameborder="0" sandbox="allow-scripts"></iframe>', frame)
        self.assertEqual(html.unescape(document.group(1)), plan.timeline("html"))

    def test_part_of_a_graph(self):
        """As the command draws it."""
        with tempfile.TemporaryDirectory() as folder:
            graph = gantry.load("saxpy", {"n": 4096, "parts": 4})
            drawn = pathlib.Path(folder, "g.dot")
            near = graph.nodes[5]
            command("dot", "saxpy", "--param", "n=4096", "--param", "parts=4", "--node", f"{near}~2", "--cluster", "family", "-o", drawn)
            self.assertEqual(graph.drawing(near=near, distance=2, clusters="families"), drawn.read_text())
            self.assertEqual(graph.drawing(near=graph.find(near), distance=2, clusters="families"), drawn.read_text())
            self.assertEqual(graph.plot(near=near, distance=2, clusters="families").forms["dot"], drawn.read_text())
            self.assertEqual(graph.drawing(), graph.dot())
            self.assertLess(len(graph.drawing(max_nodes=4)), len(graph.dot()))

    def test_what_there_is_not(self):
        plan = planned()
        with self.refused(gantry.InvalidError, """'tree' is no picture of a schedule; there are "timeline", "graph", "page\""""):
            plan.plot("tree")
        with self.refused(gantry.InvalidError, """'rows' is nothing that frames are drawn around; there are "loops", "devices", "families\""""):
            plan.plot("graph", clusters="rows")
        with self.refused(gantry.InvalidError, "a cluster for each device needs a schedule"):
            plan.graph.drawing(clusters="devices")
        with self.refused(gantry.InvalidError, "nowhere"):
            plan.graph.drawing(near="nowhere")

    def test_two_schedules(self):
        first, second = planned(), planned(devices=4)
        difference = first.diff(second)
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in ("a.json", "b.json")]
            for plan, path in zip((first, second), paths):
                plan.save(path)
            self.assertEqual(difference.report(), json.loads(command("diff", *paths, "--json")))
        self.assertEqual(str(difference), difference.text)
        self.assertIn("<iframe", difference._repr_html_())
        same = first.diff(first).report()
        self.assertEqual(same["first"]["makespan_us"], same["second"]["makespan_us"])


class Runs(Case):
    def test_a_report_of_a_run(self):
        run = planned().run(record_trace=True)
        run(x=np.zeros(4096, np.float32))
        report = run.report()
        self.assertEqual((report["backend"], report["starts"]), ("host", 1))
        self.assertEqual(sum(d.get("launch", {"count": 0})["count"] for d in report["measured"].values()), 4)
        self.assertEqual(sum(d.get("launch", {"count": 0})["count"] for d in report["predicted"].values()), 4)
        busy = sum(kind["us"] for device in report["measured"].values() for kind in device.values())
        self.assertGreater(busy, 0)
        slices = [e for e in json.loads(run.trace())["traceEvents"] if e["ph"] == "X" and e["pid"] == 0]
        self.assertAlmostEqual(busy, sum(e["dur"] for e in slices))
        self.assertIn("srcdoc", run.plot()._repr_html_())
        with self.refused(gantry.InvalidError, "record_trace"):
            planned().run().report()

    def test_many_starts_at_once(self):
        g = gantry.Graph()
        n = g.buffer("n", 1, cls="state", init=0, output=True)
        g.map("n = n + 1", n=n)
        run = g.schedule(1).run()
        self.assertEqual(run.repeat(100)["n"], [100])
        self.assertEqual(run()["n"], [101])
        self.assertEqual(run.info.starts, 101)

    def test_cut_anew(self):
        g = gantry.Graph("uneven")
        x = g.input("x", 1 << 16, split=None)
        y, n = g.buffer("y", 1 << 16, output=True), g.buffer("n", 1, cls="state", init=0, output=True)
        x.split(2, auto=True), y.split(2, auto=True)
        for i in range(2):
            g.map("y = 2 * x + 1", x=x[i], y=y[i])
        g.map("n = n + 1", n=n)
        run = g.schedule(2).run(record_trace=True)
        a = np.arange(1 << 16, dtype=np.float32)
        for _ in range(3):
            run(x=a)
        figures, new = run.rebalance(1 << 40)
        self.assertGreater(figures.now_us, 0)
        self.assertEqual(new is not None, (1 << 40) * (figures.now_us - figures.then_us) > figures.hand_over_us)
        self.assertIsNone(run.rebalance(0)[1])
        next_run = (new or run.schedule).run().take_over(run)
        out = next_run()
        self.equal(out["y"], 2 * a + 1)
        self.assertEqual(out["n"], [4])
        with self.refused(gantry.InvalidError, "was closed"):
            run()
        with self.refused(TypeError, "polisy"):
            next_run.rebalance(1, polisy="heft")

    def test_a_machine_that_knows_what_was_measured(self):
        run = planned().run(record_trace=True)
        for _ in range(3):
            run(x=np.zeros(4096, np.float32))
            run.sample()
        machine = run.calibrated()
        self.assertTrue(machine.calibrated)
        kernels = json.loads(machine.json())
        self.assertIn("map", json.dumps(kernels))
        with self.refused(gantry.InvalidError, "record_trace"):
            planned().run().sample()


class Machines(Case):
    def test_by_name(self):
        self.assertEqual(gantry.Machine.known(), sorted(p.stem for p in (ROOT / "graphs/machines").glob("*.json")))
        by_name = gantry.Machine.load("dgx1-v100")
        self.assertEqual(by_name.json(), gantry.Machine.load(ROOT / "graphs/machines/dgx1-v100.json").json())
        self.assertGreater(scaled(4096, parts=4).schedule("dgx1-v100").makespan, 0)
        self.assertEqual(gantry.load("saxpy").json(), gantry.load(ROOT / "graphs/saxpy.json").json())
        with self.refused(gantry.FileError, 'there is no file "dgx1-v10", and none of the machines that come with Gantry \\(did you mean "dgx1-v100"'):
            gantry.Machine.load("dgx1-v10")
        with self.refused(gantry.FileError, 'none of the graphs that come with Gantry; there are ".*\\(.* in all\\)'):
            gantry.load("zzzzzzzzzzzzzzz")
        with self.refused(gantry.FileError, "nowhere/dgx1-v100"):
            gantry.Machine.load("nowhere/dgx1-v100")

    def test_a_folder_that_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "machines").mkdir()
            gantry.Machine.virtual(3).save(pathlib.Path(folder, "machines/three.json"))
            os.environ["GANTRY_DATA"] = folder
            try:
                self.assertEqual((gantry.Machine.known(), gantry.Machine.load("three").workers), (["three"], 3))
            finally:
                del os.environ["GANTRY_DATA"]

    def test_saved_and_read_back(self):
        with tempfile.TemporaryDirectory() as folder:
            machine = gantry.Machine.virtual(2)
            machine.save(f"{folder}/m.json")
            self.assertEqual(gantry.Machine.load(f"{folder}/m.json").json(), machine.json())
            self.assertFalse(machine.calibrated)
            with self.refused(gantry.FileError, "cannot .*nowhere/m.json"):
                machine.save(f"{folder}/nowhere/m.json")

    def test_nothing_to_calibrate(self):
        os.environ["GANTRY_MODULES"] = "/nowhere"
        try:
            with self.refused(gantry.DeviceError, "measure|GPU"):
                gantry.Machine.virtual(2).calibrate(1)
        finally:
            del os.environ["GANTRY_MODULES"]


class Imports(Case):
    STG = "2\n0 0 0\n1 5 1 0\n2 3 1 0\n3 0 2 1 2\n"

    def test_formats(self):
        said = command("help", "import")
        self.assertGreater(len(gantry.formats()), 2)
        for name, summary in gantry.formats().items():
            self.assertTrue(name in said and summary)

    def test_as_the_command_does(self):
        with tempfile.TemporaryDirectory() as folder:
            path, made = pathlib.Path(folder, "two.stg"), pathlib.Path(folder, "two.json")
            path.write_text(self.STG)
            command("import", "stg", path, "-o", made, "--devices", 2)
            graph = gantry.import_graph(path, "stg", devices=2)
            self.assertEqual(graph.json(), gantry.load(made).json())
            self.assertGreater(graph.schedule().makespan, 0)
            slower = gantry.import_graph(path, "stg", devices=2, time_unit_us=1000.0)
            self.assertGreater(slower.schedule().makespan, graph.schedule().makespan)
            with self.refused(gantry.UnsupportedError, "only a cost"):
                graph.schedule(2).run()

    def test_what_cannot_be_read(self):
        with self.refused(gantry.InvalidError, """'sgt' is no format that can be read \\(did you mean "stg"\\?\\); there are"""):
            gantry.import_graph("two.stg", "sgt")
        with self.refused(gantry.FileError, "nowhere.stg"):
            gantry.import_graph("nowhere.stg", "stg")


main()
