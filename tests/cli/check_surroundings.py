# SPDX-License-Identifier: Apache-2.0
"""The command in surroundings that lack something: room on the disk, the right to write, descriptors, threads, stack, memory,
a clock that can be trusted, a processor. It succeeds with the right result, or ends with an exit code and a message that
says what is missing; it is never ended by a signal, never hangs, and leaves no half files.

check_surroundings.py GANTRY CLOCK [SIZE [NAME]]
    CLOCK: the library surroundings_clock; SIZE 1 takes seconds, 20 minutes; NAME: only checks with that in their names
"""
import itertools
import json
import os
import pathlib
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROWS = 60_000
NOBODY = 65534
MESSAGES = ("No space left", "File too large", "Read-only file system", "Too many open files", "Bad file descriptor",
            "out of host memory", "Resource temporarily unavailable", "Permission denied", "set XDG_CACHE_HOME or HOME",
            "nested more than", "No such file or directory", "is not known", "was not compiled", "ended by signal")
CODE = """#include <gantry/kernel.h>
gantry_status twice(const gantry_launch *l);
gantry_status twice(const gantry_launch *l)
{
    const float *x = l->arg[0].data;
    float *y = l->arg[1].data;
    for (int64_t i = 0; i < l->arg[1].rows; i++)
        y[i] = 2 * x[i];
    return GANTRY_OK;
}
"""


def graph(kernel):
    """y = 2 x, x = 0, 1, 2, ..., so that the result is known by a formula."""
    x = {"dtype": "f32", "shape": [ROWS], "split": 4}
    args = {"x": "x[i]", "y": "y[i]", **({"a": 2} if kernel == "scale" else {})}
    kernels = {"twice": {"host": "twice.c", "args": [{"name": "x", "access": "read", "dtype": "f32"},
                                                     {"name": "y", "access": "write", "dtype": "f32"}]}}
    return {"gantry": 1, "name": kernel, **({"kernels": kernels} if kernel == "twice" else {}),
            "buffers": {"x": {**x, "init": "iota"}, "y": {**x, "output": True}},
            "nodes": [{"id": "s[i]", "for": {"i": 4}, "kernel": kernel, "args": args}]}


def nested(depth):
    node = {"id": "a", "fill": {"to": "y", "value": 1}}
    for i in range(depth):
        node = {"for": {f"i{i}": 1}, "nodes": [node]}
    return node


def chain(length):
    nodes = [{"id": f"s{i}", "kernel": "scale", "args": {"a": 1, "x": "x" if i == 0 else "y" if i % 2 else "z",
                                                       "y": "z" if i % 2 else "y"}} for i in range(length)]
    buffers = {name: {"dtype": "f32", "shape": [4]} for name in "xyz"}
    return {"gantry": 1, "name": "chain", "buffers": {**buffers, "x": {**buffers["x"], "init": 1}}, "nodes": nodes}


def is_schedule(data):
    try:
        return json.loads(data)["graph"] in ("scale", "twice")
    except ValueError:
        return False


class Place:
    def __init__(self, gantry, clock, here, size):
        self.gantry, self.clock, self.here, self.size = gantry, clock, here, size
        self.wrong, self.count, self.refused, self.skipped = [], 0, 0, []
        here.chmod(0o755)
        for kernel in ("scale", "twice"):
            (here / f"{kernel}.json").write_text(json.dumps(graph(kernel)))
        (here / "twice.c").write_text(CODE)
        self.result = struct.pack(f"<{ROWS}f", *(2 * i for i in range(ROWS)))
        self.random = random.Random(size)

    def folder(self, name):
        made = self.here / name
        made.mkdir(exist_ok=True)
        made.chmod(0o777)
        return made

    def words(self, out, *more, graph="scale"):
        return [self.gantry, "run", self.here / f"{graph}.json", "--devices", "2", "--output", f"y={out}/y.raw",
                "--output-schedule", f"{out}/s.json", *more]

    def expect(self, title, fine, said=""):
        if not fine:
            self.wrong.append(f"{title}: {said[-300:]}")

    def judge(self, title, code, said, out, told=True):
        """`told`: somebody can read what the command says."""
        self.count += 1
        self.refused += code != 0
        self.expect(f"{title}: ended by signal {-code}", 0 <= code <= 5, said)
        if code:
            self.expect(f"{title}: exit code {code} without a reason", not told or any(m in said for m in MESSAGES), said)
        names = {path.name for path in out.iterdir()} if out else set()
        self.expect(f"{title}: files {names}", names <= {"y.raw", "s.json"})
        for name in names:
            (out / name).chmod(0o644)
            data = (out / name).read_bytes()
            self.expect(f"{title}: {name} is not what it should be, {len(data)} bytes",
                        data == self.result if name == "y.raw" else is_schedule(data))
        self.expect(f"{title}: success without files", code or not out or len(names) == 2, said)
        for name in names:
            (out / name).unlink()

    def go(self, title, words, out=None, told=True, seconds=120, **how):
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "cwd": self.here, **how}
        try:
            done = subprocess.run(words, timeout=seconds, **how)
        except subprocess.TimeoutExpired:
            self.expect(f"{title}: still there after {seconds} s", False)
            return None
        said = (done.stdout or b"").decode(errors="replace")
        self.judge(title, done.returncode, said, out, told)
        return done.returncode


def limits(**wanted):
    def set_them():
        for name, value in wanted.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    return set_them


# ---- descriptors ----

def check_closed(p):
    """What is printed does not land in a file that took the number of standard output or error."""
    out = p.folder("closed")
    for closed in itertools.chain.from_iterable(itertools.combinations((0, 1, 2), n) for n in range(4)):
        def close(numbers=closed):
            for fd in numbers:
                os.close(fd)
        for words in ([], ["--trace", "-"], ["--json"], ["--svg", "-"], ["--explain", "s[1]"], ["--output", "y=none/y.raw"]):
            p.go(f"closed {closed}, {words}", p.words(out, *words), out, told=False, preexec_fn=close)
        p.go(f"closed {closed}, graph on standard input", [p.gantry, "dot", "-"], None, told=False, preexec_fn=close)


def check_few_descriptors(p):
    out = p.folder("few")
    for most in range(3, 16):
        for graph in ("scale", "twice"):
            env = {**os.environ, "XDG_CACHE_HOME": str(p.folder(f"cache{most}"))}
            # The loader itself needs some, and says so.
            p.go(f"{most} descriptors, {graph}", p.words(out, "--allow-code", graph=graph), out, told=most > 6, env=env,
                 preexec_fn=limits(NOFILE=most)) if most > 3 else None


# ---- disks ----

def check_full(p):
    for size in (4, 64, 200, 300, 600):
        disk = p.folder(f"full{size}")
        if not mount(p, disk, f"size={size}k"):
            return
        p.go(f"a disk of {size} KB", p.words(disk), disk)
        env = {**os.environ, "XDG_CACHE_HOME": str(disk)}
        p.go(f"a disk of {size} KB for the cache", p.words(p.folder("out"), "--allow-code", graph="twice"), p.folder("out"), env=env)


def check_file_size(p):
    out = p.folder("size")
    for most in (0, 1, 1000, 4096, 100_000, len(p.result) - 1, len(p.result), 10**7):
        p.go(f"files of {most} bytes", p.words(out), out, preexec_fn=limits(FSIZE=most))
        env = {**os.environ, "XDG_CACHE_HOME": str(p.folder(f"sizes{most}"))}
        p.go(f"files of {most} bytes, code", p.words(out, "--allow-code", graph="twice"), out, env=env, preexec_fn=limits(FSIZE=most))
    for words in (["--output", "y=/dev/full"], ["--trace", "/dev/full"]):
        p.expect("/dev/full", p.go(f"{words}", [*p.words(out)[:5], *words]) == 1)
    with open("/dev/full", "wb") as full:
        for words in ([], ["--json"], ["--trace", "-"]):
            p.expect("/dev/full", p.go(f"standard output is full, {words}", [*p.words(out)[:5], *words], stdout=full, stderr=subprocess.PIPE,
                                       told=False) == 1)


def check_read_only(p):
    disk = p.folder("read-only")
    if not mount(p, disk, "size=1m"):
        return
    (disk / "scale.json").write_text(json.dumps(graph("scale")))
    subprocess.run(["mount", "-o", "remount,bind,ro", disk], check=True)
    here = [p.gantry, "run", "scale.json", "--devices", "2"]
    p.expect("read-only: nothing is written", p.go("read-only, no output", here, cwd=disk) == 0)
    p.expect("read-only: success", p.go("read-only, output", [*here, "--output", "y=y.npy"], cwd=disk) == 1)
    env = {**os.environ, "XDG_CACHE_HOME": str(disk)}
    p.expect("read-only: success", p.go("read-only cache", p.words(p.folder("out"), "--allow-code", graph="twice"), env=env) != 0)
    gone = p.folder("gone")
    words = f"cd {gone} && rmdir {gone} && exec \"$@\""
    p.expect("no current folder", p.go("no current folder", ["sh", "-c", words, "sh", *p.words(p.folder("out"))], p.folder("out")) == 0)


def mount(p, folder, options):
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], capture_output=True, check=False)
    if done.returncode and "mount" not in p.skipped:
        p.skipped.append("mount")
    return done.returncode == 0


# ---- threads, stack, memory ----

def check_few_threads(p):
    out = p.folder("threads")
    for most in (1, 2, 6):
        def few(most=most):
            if os.environ["SURROUNDINGS_ROOT"] == "yes":  # root may start as many as it likes
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
            limits(NPROC=most)()
        for graph in ("scale", "twice"):
            env = {**os.environ, "XDG_CACHE_HOME": str(p.folder(f"cache{most}-threads"))}
            words = p.words(out, "--allow-code", "--devices", "4", graph=graph)
            p.go(f"{most} threads, {graph}", words, out, env=env, preexec_fn=few)


def check_little_stack(p):
    """256 KB are enough for whatever a file says."""
    one, y = {"id": "a", "fill": {"to": "y", "value": 1}}, {"y": {"dtype": "f32", "shape": [8], "output": True}}
    whole = {"gantry": 1, "name": "d", "buffers": y}
    files = {"deep.json": "[" * 100_000, "deeper.json": "{\"a\":" * 100_000, "string.json": "\"" + "[" * 5000 + "\"",
             "expression.json": {**whole, "buffers": {"y": {**y["y"], "shape": ["(" * 255 + "1" + ")" * 255]}}, "nodes": [one]},
             "nested.json": {**whole, "nodes": [nested(100)]}, "chain.json": chain(200 * p.size)}
    texts = {name: file if isinstance(file, str) else json.dumps(file) for name, file in files.items()}
    for depth in (900, 1000):
        texts[f"loops{depth}.json"] = json.dumps({**whole, "nodes": []})[:-2] + \
            "".join(f"{{\"for\":{{\"i{i}\":1}},\"nodes\":[" for i in range(depth)) + json.dumps(one) + "]}" * depth + "]}"
    for name, text in texts.items():
        (p.here / name).write_text(text)
        for command in (["run"], ["schedule"], ["schedule", "--machine"], ["check", p.here / "scale.json"], ["machine", "show"]):
            words = [p.gantry, *command, p.here / name, *([p.here / "scale.json"] if command[-1] == "--machine" else [])]
            p.go(f"stack, {command[0]} {name}", words, told=False, preexec_fn=limits(STACK=256 << 10))
    for policy in ("heft", "peft", "cpop", "partition", "round-robin"):
        p.go(f"stack, {policy}", [p.gantry, "schedule", p.here / "chain.json", "--devices", "3", "--policy", policy], told=False,
             preexec_fn=limits(STACK=256 << 10))
    out = p.folder("stack")
    for size in (256, 512, 1024):
        p.go(f"stack of {size} KB", p.words(out, "--allow-code", graph="twice"), out, preexec_fn=limits(STACK=size << 10))


def check_little_data(p):
    out = p.folder("data")
    for size in (1, 2, 4, 8, 16, 32, 64):
        # The loader needs some of it, too, and says so.
        p.go(f"{size} MB of data", p.words(out), out, told=size > 2, preexec_fn=limits(DATA=size << 20))


# ---- settings ----

def check_settings(p):
    out = p.folder("settings")
    p.expect("empty environment", p.go("empty environment", p.words(out), out, env={}) == 0)
    code = p.words(out, "--allow-code", graph="twice")
    path = {"PATH": os.environ["PATH"]}
    p.go("no HOME", code, out, env=path)
    p.go("HOME is not there", code, out, env={**path, "HOME": "/nonexistent/home"})
    p.go("HOME is a file", code, out, env={**path, "HOME": str(p.here / "twice.c")}, told=False)
    for name in ("/nonexistent", "", "/dev/null"):
        p.go(f"TMPDIR is {name}", code, out, env={**path, "TMPDIR": name, "XDG_CACHE_HOME": str(p.folder("tmp" + str(len(name))))}, told=False)
    for mask in (0, 0o77, 0o277, 0o777):
        env = {**path, "XDG_CACHE_HOME": str(p.folder(f"umask{mask}"))}
        for words in (p.words(out), code):
            p.go(f"umask {mask:o}", words, out, env=env, preexec_fn=lambda mask=mask: os.umask(mask) and None)
    subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", p.here / "de_DE.UTF-8"], capture_output=True, check=False)
    for locale in ("de_DE.UTF-8", "tr_TR.UTF-8", "none", "C", "x" * 5000):
        env = {**path, "LOCPATH": str(p.here), "LC_ALL": locale, "LANGUAGE": locale}
        p.expect(f"locale {locale[:20]}", p.go(f"locale {locale[:20]}", p.words(out), out, env=env) == 0)


# ---- time ----

def check_clocks(p):
    """CLOCK says what the hands of all clocks do from one look to the next."""
    out = p.folder("clock")
    for way in ("forwards", "backwards", "still", "random"):
        for words in (["--iterations", "20"], ["--iterations", "5", "--trace", f"{out}/t"], ["--check"], ["--compare"], ["--allow-code"]):
            graph = "twice" if words == ["--allow-code"] else "scale"
            env = {**os.environ, "LD_PRELOAD": p.clock, "SURROUNDINGS_CLOCK": way, "XDG_CACHE_HOME": str(p.folder(f"clock-{way}"))}
            kept = [word for word in words if word != f"{out}/t"] if "--trace" not in words else [*words[:2], "--trace", "/dev/null"]
            code = p.go(f"clock {way}, {words[0]}", p.words(out, *kept, graph=graph), out, env=env)
            p.expect(f"clock {way}, {words}: exit code {code}", code == 0 or graph == "twice")


def check_stops(p):
    """SIGSTOP and SIGCONT, so that calls are interrupted and time passes unseen."""
    out = p.folder("stops")
    for i in range(2 * p.size):
        child = subprocess.Popen(p.words(out, "--iterations", "300", "--allow-code", graph=("scale", "twice")[i % 2]), cwd=p.here,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        begin = time.monotonic()
        while child.poll() is None and time.monotonic() - begin < 60:
            for what in (signal.SIGSTOP, signal.SIGCONT):
                child.send_signal(what)
                time.sleep(p.random.uniform(0, 0.004))
        said, _ = child.communicate()
        p.judge("stopped and continued", child.returncode, said.decode(), out)
        p.expect("stopped and continued", child.returncode == 0, said.decode())


def check_starvation(p):
    """One processor, which others want: no watchdog takes that for a hang."""
    out, cpu = p.folder("starved"), min(os.sched_getaffinity(0))
    code = f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
    busy = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    try:
        def idle():
            os.sched_setaffinity(0, {cpu})
            if p.size > 1:
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            else:
                os.nice(10)
        code = p.go("starved", p.words(out, "--iterations", "20"), out, preexec_fn=idle, seconds=900)
        p.expect("starved", code == 0)
    finally:
        for process in busy:
            process.kill()
            process.wait()


CHECKS = [check_closed, check_few_descriptors, check_full, check_file_size, check_read_only, check_few_threads, check_little_stack,
          check_little_data, check_settings, check_clocks, check_stops, check_starvation]


def in_own_mounts():
    """Starts this program again where it may mount. That is forbidden in some containers: then it goes on without."""
    if "SURROUNDINGS_MOUNTS" in os.environ:
        return
    root = os.geteuid() == 0
    os.environ["SURROUNDINGS_ROOT"] = "yes" if root else "no"
    own = ["unshare", "-m" if root else "-rm"]
    try:
        may = subprocess.run([*own, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        may = False
    os.environ["SURROUNDINGS_MOUNTS"] = "yes" if may else "no"
    if may:
        os.execvp(own[0], [*own, sys.executable, *sys.argv])


def main(gantry, clock, size="1", only=""):
    in_own_mounts()
    with tempfile.TemporaryDirectory() as here:
        p = Place(os.path.abspath(gantry), os.path.abspath(clock), pathlib.Path(here).resolve(), int(size))
        for check in CHECKS:
            if only in check.__name__:
                begin, before = time.monotonic(), p.count
                check(p)
                print(f"{check.__name__[6:]}: {p.count - before} runs, {time.monotonic() - begin:.1f} s")
        for folder in pathlib.Path(here).iterdir():
            if folder.is_mount():
                subprocess.run(["umount", folder], check=False)
        print(*p.wrong, *(f"skipped: {what} is not allowed here" for what in p.skipped), sep="\n")
        print(f"{p.count} runs, {p.refused} refused with a message, {len(p.wrong)} wrong")
        return bool(p.wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
