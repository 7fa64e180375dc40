# SPDX-License-Identifier: Apache-2.0
"""The command while it runs: the line of progress on a terminal (a pty), signals at random moments, how long things may take, files
that cannot be written.

check_interrupts.py GANTRY [ROUNDS]
"""
import fcntl
import json
import os
import pathlib
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

N = 1 << 20


def many(rows, steps):
    """y and z of so many starts; each takes some milliseconds."""
    buffers = {"x": {"dtype": "f64", "shape": [rows], "init": 2}, **{b: {"dtype": "f64", "shape": [rows], "output": True} for b in "yz"}}
    nodes = [{"id": "half", "map": {"y": "x / 2"}, "args": {"x": "x", "y": "y"}},
             {"id": "more", "map": {"z": "+".join(["sqrt(y)"] * steps)}, "args": {"y": "y", "z": "z"}}]
    return {"gantry": 1, "name": "many", "buffers": buffers, "nodes": nodes}


def loop():
    """Two million iterations, which end by themselves only after minutes."""
    buffers = {"x": {"dtype": "f64", "shape": [4096], "init": 0, "output": True}, "next": {"dtype": "f64", "shape": [4096]},
               "done": {"dtype": "f64", "shape": [1], "output": True}}
    body = [{"id": "add", "map": {"next": "x + 1"}, "args": {"x": "x", "next": "next"}}, {"id": "test", "fill": {"to": "done", "value": 0}}]
    return {"gantry": 1, "name": "loop", "buffers": buffers,
            "nodes": [{"repeat": 2000000, "carry": {"x": "next"}, "until": {"buffer": "done", "every": 10}, "nodes": body}]}


class Place:
    def __init__(self, gantry, here):
        self.gantry, self.here, self.wrong = gantry, here, []
        # One op of `slow` takes a second or more, and nothing can end it but a second signal.
        for name, made in (("many.json", many(N // 16, 4)), ("slow.json", many(N * 6, 100)), ("loop.json", loop())):
            (here / name).write_text(json.dumps(made))
        self.given = self.names()

    def names(self):
        return {path.name for path in self.here.iterdir()}

    def clear(self):
        for name in self.names() - self.given:
            (self.here / name).unlink()

    def expect(self, title, fine):
        if not fine:
            self.wrong.append(title)

    def words(self, *words):
        return [self.gantry, "run", *words]

    def run(self, *words, **more):
        return subprocess.run(self.words(*words), cwd=self.here, capture_output=True, timeout=200, text=True, **more)

    def begin(self, *words, **more):
        return subprocess.Popen(self.words(*words), cwd=self.here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def on_terminal(self, words, after=None, signals=(), columns=None, env=None):
        """Exit code and all that the terminal was sent. The signals follow once `after` has been seen."""
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.here)
            os.environ.pop("COLUMNS", None)
            os.environ.update({"TERM": "xterm", **(env or {})})
            os.execv(words[0], words)
        if columns:
            fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        sent, left, deadline = b"", list(signals), time.monotonic() + 200
        while time.monotonic() < deadline:
            if select.select([fd], [], [], 0.05)[0]:
                try:
                    got = os.read(fd, 65536)
                except OSError:
                    break
                if not got:
                    break
                sent += got
            if left and re.search(after, sent.decode(errors="replace")):
                os.kill(pid, left.pop(0))
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), sent.decode()


def screen(sent):
    """The lines that a terminal shows in the end, and the widest that it has ever shown of the last one."""
    lines, widest = [""], 0
    at = 0
    for part in re.findall(r"\x1b\[K|\r\n|\r|\n|[^\x1b\r\n]+|\x1b", sent):
        if part in ("\r\n", "\n"):
            lines.append("")
            at = 0
        elif part == "\r":
            at = 0
        elif part == "\x1b[K":
            lines[-1] = lines[-1][:at]
        else:
            lines[-1] = lines[-1][:at] + part + lines[-1][at + len(part):]
            at += len(part)
            widest = max(widest, at if sent.find("\r" + part) >= 0 else 0)
    return [line for line in lines if line], widest


def check_line(p):
    code, sent = p.on_terminal(p.words("many.json", "--devices", "2", "--iterations", "6000"), columns=60)
    lines, widest = screen(sent)
    p.expect(f"exit code {code}", code == 0)
    for wanted in (r"\rloading the graph", r"\rplanning", r"\rpreparing the run", r"\rrunning: \d+ of 6000 starts"):
        p.expect(f"no {wanted!r} on the terminal: {sent[-300:]!r}", re.search(wanted, sent))
    p.expect(f"the line stays: {lines[:2]}", lines and lines[0].startswith("many on host-2"))
    p.expect(f"{widest} columns of 60", 0 < widest < 60)
    code, sent = p.on_terminal(p.words("loop.json", "--devices", "2", "--output", "x=x.npy"), r"iteration \d\d+ of at most 2000000, until 0",
                               [signal.SIGINT], env={"COLUMNS": "200"})
    lines, _ = screen(sent)
    p.expect(f"loop: exit code {code}", code == 130)
    p.expect(f"loop: {lines}", len(lines) == 2 and re.fullmatch(
        r"gantry run: interrupted with 0 of 1 starts complete, and \d+ iterations of the next", lines[0]) and "not written" in lines[1])
    p.expect("loop: a file", p.names() == p.given)
    subprocess.run([p.gantry, "schedule", "many.json", "--devices", "2", "-q", "-o", "read.json"], cwd=p.here, check=True, stdout=subprocess.DEVNULL)
    for words, stages in ((["check", "many.json"], ["loading the graph", "reading the schedule", "checking the schedule"]), (["diff", "read.json"], ["reading the schedules"])):
        code, sent = p.on_terminal([p.gantry, *words, "read.json"])
        p.expect(f"{words}: {sent!r}", code == 0 and all(f"\r{stage}\x1b[K" in sent for stage in stages) and not any(stage in screen(sent)[0] for stage in stages))
    (p.here / "read.json").unlink()
    for words, env in ((["-q"], {}), ([], {"TERM": "dumb"})):
        code, sent = p.on_terminal(p.words("many.json", "--devices", "2", *words), env=env)
        p.expect(f"{words} {env}: {sent!r}", code == 0 and "\x1b" not in sent and (not words or sent == ""))
    done = p.run("many.json", "--devices", "2")
    p.expect(f"without a terminal: {done.stderr!r}", done.returncode == 0 and done.stderr == "")
    done = p.run("many.json", "--devices", "2", "--iterations", "2", "-v", "--json")
    steps = [line for line in done.stderr.splitlines() if line.startswith("gantry run: ")]
    p.expect(f"-v: {done.stderr!r}", json.loads(done.stdout) and len(steps) == len(done.stderr.splitlines()) > 5
             and re.search(r"start 2 of 2: [0-9.]+ us", done.stderr))


def whole_files(p):
    """The bytes of y.npy and z.npy, which are the same after every start."""
    p.run("many.json", "--devices", "2", "--output", "y=y.npy", "--output", "z=z.npy")
    made = {name: (p.here / name).read_bytes() for name in ("y.npy", "z.npy")}
    p.clear()
    return made


def check_signals(p, rounds):
    """Between starts and within them: what was said to be written is there and whole, and nothing else."""
    whole, random_state, seen = whole_files(p), random.Random(5), {"written": 0, "not": 0}
    begin = time.monotonic()
    p.run("many.json", "--devices", "2", "--iterations", "3")
    took = time.monotonic() - begin
    for i in range(rounds):
        number = random_state.choice([signal.SIGINT, signal.SIGTERM])
        child = p.begin("many.json", "--devices", "2", "--iterations", "1000000", "--output", "y=y.npy", "--output", "z=z.npy")
        time.sleep(took * random_state.uniform(0.1, 3))
        child.send_signal(number)
        if i % 2:  # as `timeout` does: to the command, and to its group
            child.send_signal(number)
        sent = time.monotonic()
        out, err = child.communicate(timeout=100)
        title = f"round {i}: exit code {child.returncode}: {err!r}"
        p.expect(title, child.returncode in (128 + number, -number) and out == "")  # the latter: before anything was installed
        p.expect(f"{title}: took {time.monotonic() - sent:.1f} s", time.monotonic() - sent < 20)
        written = set(re.findall(r'=([yz]\.npy)" is written', err))
        seen["written"] += len(written)
        seen["not"] += err.count("is not written")
        p.expect(f"{title}: wrote {p.names() - p.given}", p.names() - p.given == written)
        for name in written:
            p.expect(f"{title}: {name} is not whole", (p.here / name).read_bytes() == whole[name])
        counts = re.search(r"interrupted with (\d+) of 1000000 starts complete", err)
        p.expect(title, counts or child.returncode < 0 or re.search(r"gantry: interrupted while [a-z ]+\n", err))
        p.clear()
    p.expect(f"no round came to a start: {seen}", seen["written"] > 0)
    print(f"{rounds} signals: {seen['written']} files written, {seen['not']} not")


def read_until(child, text):
    seen = ""
    while text not in seen:
        line = child.stderr.readline()
        if not line:
            break
        seen += line
    return seen


def check_twice(p):
    """An op that takes long: the first signal waits for it, the second does not."""
    child = p.begin("slow.json", "--devices", "1", "--iterations", "100", "-v", "--output", "z=z.npy")
    read_until(child, "gantry run: running")
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    sent = time.monotonic()
    _, err = child.communicate(timeout=100)
    p.expect(f"twice: {child.returncode} {err!r} after {time.monotonic() - sent:.1f} s",
             child.returncode == 130 and (err.endswith("gantry: interrupted while running\n") or "interrupted with" in err))
    p.expect(f"twice: {p.names() - p.given}", not (p.names() - p.given) or "is written" in err)
    p.clear()
    # A job in the background of a shell ignores SIGINT, and goes on doing so.
    child = p.begin("many.json", "--devices", "1", "--iterations", "20", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=100)
    p.expect(f"ignored: {child.returncode} {err!r}", child.returncode == 0)


def check_planning(p):
    """Ends within a second, here: ten on a computer that is busy with others."""
    for number in (signal.SIGINT, signal.SIGTERM):
        (p.here / "wide.json").write_text(json.dumps({
            "gantry": 1, "name": "wide", "buffers": {"x": {"dtype": "f64", "shape": [8000], "split": 4000, "output": True}},
            "nodes": [{"id": "fill[i]", "for": {"i": 4000}, "fill": {"to": "x[i]", "value": 1}}]}))
        child = p.begin("wide.json", "--devices", "2000")
        seen = read_until(child, "planning for 2000 devices")
        time.sleep(0.5)
        child.send_signal(number)
        sent = time.monotonic()
        _, err = child.communicate(timeout=100)
        took = time.monotonic() - sent
        p.expect(f"planning: {child.returncode} {seen!r} {err!r} {took:.1f} s", child.returncode == 128 + number and took < 10
                 and "planning for 2000 devices; --effort 0 takes less time\n" in seen and err == "gantry: interrupted while planning\n")
    p.clear()


def check_limits(p):
    done = p.run("slow.json", "--devices", "1", "--timeout", "0.05")
    p.expect(f"--timeout: {done.returncode} {done.stderr!r}", done.returncode == 1 and re.match(
        r'no progress for [0-9.]+ s, where 0.05 s are allowed: op \d+, "[^"]+", on device "dev0" had not returned; allow more with '
        r"timeout_us of the options of the run \(gantry run --timeout SECONDS\)", done.stderr))
    done = p.run("slow.json", "--devices", "1", "--timeout", "0")
    p.expect(f"--timeout 0: {done.returncode} {done.stderr!r}", done.returncode == 2)


def check_outputs(p):
    """Before anything is planned, which would say that it is."""
    (p.here / "folder.npy").mkdir()
    (p.here / "shut").mkdir(mode=0o555)
    places = {"none/y.npy": "No such file or directory", "folder.npy": "Is a directory"}
    if os.geteuid() != 0:
        places["shut/y.npy"] = "Permission denied"
    for place, why in places.items():
        for words in (["--output", f"y={place}"], ["--trace", place], ["--svg", place], ["--calibrate", place], ["-o", place]):
            done = p.run("many.json", "--devices", "2000", *words)
            option = "output-schedule" if words[0] == "-o" else words[0][2:]
            p.expect(f"{words}: {done.returncode} {done.stderr!r}", done.returncode == 1 and done.stderr.count("\n") == 1
                     and done.stderr.startswith(f"--{option}: ") and place in done.stderr and why in done.stderr)
    for name in ("folder.npy", "shut"):
        (p.here / name).rmdir()
    p.expect(f"outputs: {p.names() - p.given}", p.names() == p.given)


def main(gantry, rounds="12"):
    with tempfile.TemporaryDirectory() as here:
        p = Place(os.path.abspath(gantry), pathlib.Path(here))
        for check in (check_outputs, check_line, check_twice, check_planning, check_limits):
            check(p)
        check_signals(p, int(rounds))
        print("\n".join(p.wrong))
        return bool(p.wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
