# SPDX-License-Identifier: Apache-2.0
"""Ranks that are lost: killed, or stopped for good. The launcher says which, begins anew from the last checkpoint on as many ranks or on one less,
and the result has the bits of one process that nothing happened to. No process is left, nothing in shared memory.

check_losses.py GANTRY ROOT mpich|openmpi 1|0 [LOSSES [SEED]]: with LOSSES, as many on random graphs at random moments, and a table; with moments:ROUNDS in its place, so many of each of MOMENTS.
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

LAUNCH = {"mpich": "mpirun.mpich", "openmpi": "mpirun.openmpi --oversubscribe --allow-run-as-root"}
MLP = ["--param", "batch=16", "--param", "inputs=12", "--param", "hidden=8", "--param", "classes=4"]
# Words of the run, and after how much of it a checkpoint is written: loops in phases, starts with states, starts that are alike.
CASES = {
    "jacobi_until": (["--param", "n=32"], 100),
    "mlp_step": ([*MLP, "--iterations", "1500"], 50),
    "pagerank": (["--param", "n=24", "--param", "most=40", "--iterations", "150"], 40),
    "kmeans": (["--param", "n=60", "--param", "rounds=3", "--iterations", "800"], 50),
    "jacobi": (["--param", "n=16", "--param", "steps=8", "--iterations", "3000"], 50),
}
TIMEOUT = 3  # seconds of silence after which a rank is lost


def report(text):
    """MPICH says on standard output, too, that a process was killed, before or behind what an attempt prints."""
    return json.JSONDecoder().raw_decode(text, text.index("{"))[0]


def hashes(text):
    return {name: output["xxh64"] for name, output in report(text)["outputs"].items()}


def workers(graph):
    """The working process of each rank: the child of its guard."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            env = dict(pair.split(b"=", 1) for pair in (entry / "environ").read_bytes().split(b"\0") if b"=" in pair)
            parent = next(line for line in (entry / "status").read_text().splitlines() if line.startswith("PPid")).split()[1]
            parents = pathlib.Path("/proc", parent, "cmdline").read_bytes().split(b"\0")
        except (OSError, StopIteration):
            continue
        rank = env.get(b"OMPI_COMM_WORLD_RANK", env.get(b"PMI_RANK"))
        if words[0].endswith(b"/gantry") and str(graph).encode() in words and parents == words and rank is not None:
            found[int(rank)] = int(entry.name)
    return found


def processes(graph):
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if str(graph).encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def count_gpus(gantry):
    return sum(device["type"] == "gpu" for device in json.loads(subprocess.run([gantry, "machine", "--json"], capture_output=True, text=True, check=True).stdout)["devices"])


def shared_memory():
    """But for what other programs put there by tempfile."""
    return {entry.name for entry in pathlib.Path("/dev/shm").iterdir() if not entry.name.startswith("tmp")} if pathlib.Path("/dev/shm").exists() else set()


def used_by_others():
    """Of that, what a process has: runs of somebody else beside this one."""
    found = set()
    for maps in pathlib.Path("/proc").glob("[0-9]*/maps"):
        try:
            found |= {line.rsplit("/", 1)[1].removesuffix(" (deleted)").strip() for line in maps.read_text().splitlines() if "/dev/shm/" in line}
        except OSError:
            continue
    return found


def wait_until(child, found, most=100):
    """What it found, or what is no truth: the run was over before."""
    begun, there = time.monotonic(), found()
    while not there and child.poll() is None and time.monotonic() < begun + most:
        time.sleep(0.002)
        there = found()
    return there


def kill(child, victim, sig=signal.SIGKILL):
    if not victim or child.poll() is not None:
        return False
    try:
        os.kill(victim, sig)
    except ProcessLookupError:
        return False
    return True


class Losses:
    def __init__(self, gantry, root, mpi, folder):
        self.gantry, self.root, self.mpi, self.folder, self.want, self.rows = gantry, root, mpi, folder, {}, []

    def words(self, name, devices=4):
        graph = self.folder / f"{name}.json"
        shutil.copy(self.root / f"graphs/{name}.json", graph)
        return graph, ["run", graph, "--devices", devices, "--backend", "host", *CASES[name][0], "--json"]

    def expected(self, name, devices=4):
        if (name, devices) not in self.want:
            _, words = self.words(name, devices)
            self.want[name, devices] = hashes(subprocess.run([self.gantry, *map(str, words)], capture_output=True, text=True, check=True).stdout)
        return self.want[name, devices]

    def machine_of(self, words, ranks, told):
        return report(subprocess.run([*LAUNCH[self.mpi].split(), "-n", str(ranks), self.gantry, *map(str, words)], capture_output=True, text=True, check=True, env={**os.environ, **told}).stdout)["machine"]

    def under(self, attack, name, ranks, how, devices=4):
        """Runs it, and attack(child, graph, kept) beside it: the lines of standard error with their times. The result is right, and nothing is left."""
        want, (graph, words), kept, before = self.expected(name, devices), self.words(name, devices), self.folder / "kept", shared_memory()
        shutil.rmtree(kept, ignore_errors=True)
        words = [*words, "--processes", ranks, "--on-loss", how, "--mpirun", LAUNCH[self.mpi], "--timeout", TIMEOUT, "--checkpoint", f"{CASES[name][1]}:{kept}", "--verbose"]
        child = subprocess.Popen([self.gantry, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines, out = [], []
        readers = [threading.Thread(target=lambda: [lines.append((time.monotonic(), line)) for line in child.stderr]), threading.Thread(target=lambda: out.append(child.stdout.read()))]
        for reader in readers:
            reader.start()
        attack(child, graph, kept)
        child.wait(timeout=300)
        for reader in readers:
            reader.join()
        text = "".join(line for _, line in lines)
        begun = time.monotonic()
        while processes(graph) and time.monotonic() < begun + 20:  # who was killed may not be gone yet
            time.sleep(0.02)
        assert not processes(graph), f"left behind: {processes(graph)}"
        left, begun = shared_memory() - before - used_by_others(), time.monotonic()
        while left & shared_memory() and time.monotonic() < begun + 2:  # who was about to use, or to remove it
            time.sleep(0.1)
            left &= shared_memory() - used_by_others()
        assert not left & shared_memory(), f"left in shared memory: {left}"
        if how != "stop":
            assert child.returncode == 0 and hashes(out[0]) == want, f"{name}: exit {child.returncode}\n{text}\n{out}"
        return lines, child.returncode

    def lose(self, name, ranks, how, sig, rank, delay, devices=4):
        """One rank is sent the signal, `delay` after the first checkpoint is there."""
        sent = []

        def attack(child, graph, kept):
            wait_until(child, lambda: list(kept.glob("checkpoint-0*")))
            time.sleep(delay)
            if kill(child, workers(graph).get(rank), sig):
                sent.append(time.monotonic())

        lines, code = self.under(attack, name, ranks, how, devices)
        text = "".join(line for _, line in lines)
        assert how != "stop" or not sent or code != 0, text
        recovery = next((at - sent[0] for at, line in lines if "going on from checkpoint" in line and sent and at > sent[0]), None)
        return bool(sent), "beginning anew" in text, recovery, text


def lose_surely(losses, *case):
    """A run may be over before the signal: then it is tried again, with less delay."""
    name, ranks, how, sig, rank, delay, *devices = case
    for attempt in range(6):
        result = losses.lose(name, ranks, how, sig, rank, delay if attempt == 0 else 0, *devices)
        if result[0]:
            break
    return result


def check_told(losses):
    """Whoever is killed, or silent for as long as --timeout allows, is named with how far it was; it is told once. What a
    rank is at is noted ten times a second, which may be between two ops each time, so runs are made until one tells the op."""
    for _ in range(5):
        _, lost, _, text = lose_surely(losses, "jacobi_until", 4, "replan", signal.SIGKILL, 2, 0.3)
        told = [line for line in text.splitlines() if "rank 2 on node" in line]
        assert lost and len(told) == 1 and "was killed by signal 9" in told[0], text
        assert re.search(r"it was last seen after \d+ complete starts and \d+ iterations", told[0]), text
        assert "beginning anew with 3 processes, from the last checkpoint in" in text, text
        if 'on device "dev' in told[0]:
            break
    else:
        raise AssertionError("the op that a rank was at is never told\n" + text)
    _, lost, recovery, text = lose_surely(losses, "mlp_step", 2, "restart", signal.SIGSTOP, 1, 0.1)
    told = [line for line in text.splitlines() if "rank 1 is lost: nothing was heard of it for" in line]
    assert lost and len(told) == 1 and "where 3 s are allowed" in told[0], text
    assert "beginning anew with 2 processes" in text and recovery < TIMEOUT + 30, (recovery, text)


def check_stops(losses):
    """Without --on-loss all ends, with the exit code of a loss or a signal."""
    sent, lost, _, text = lose_surely(losses, "jacobi_until", 2, "stop", signal.SIGKILL, 0, 0.2)
    assert sent and not lost and "rank 0 on node" in text, text


def check_slow(losses):
    """A rank that stands still for less than is allowed, again and again, is slow, and not lost."""
    graph, words = losses.words("mlp_step")
    words = [200 if word == "1500" else word for word in words]
    want = hashes(subprocess.run([losses.gantry, *map(str, words)], capture_output=True, text=True, check=True).stdout)
    child = subprocess.Popen([losses.gantry, *map(str, words), "--processes", "2", "--on-loss", "restart", "--mpirun", LAUNCH[losses.mpi], "--timeout", str(TIMEOUT)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    stood, begun = 0, time.monotonic()
    while child.poll() is None and stood < 3 and time.monotonic() < begun + 60:
        victim = workers(graph).get(1)
        if not victim:
            time.sleep(0.02)
            continue
        try:
            os.kill(victim, signal.SIGSTOP)
            time.sleep(TIMEOUT / 5)
            os.kill(victim, signal.SIGCONT)
            stood += 1
            time.sleep(0.05)
        except ProcessLookupError:
            break
    out, errors = child.communicate(timeout=120)
    assert stood and child.returncode == 0 and "beginning anew" not in errors and hashes(out) == want, (stood, errors)


def check_full(losses):
    """The disk is full at a checkpoint: rank 0 says so, once, all end, nothing is begun anew, and the checkpoint before it is complete. The disk is a small one of a
    namespace, where one may be made."""
    (graph, words), kept = losses.words("mlp_step"), losses.folder / "disk"
    kept.mkdir()
    probe = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=64k none "$0" && exec "$@"', kept]
    if not shutil.which("unshare") or subprocess.run([*map(str, probe), "true"], capture_output=True).returncode:
        print("check_full is passed over: no disk can be made here (unshare -rm, mount -t tmpfs)")
        return
    # What fills the disk comes while the ranks are at work, once there is a checkpoint.
    words[words.index("--iterations") + 1] = "1000000"  # so many are not over before
    fill = 'n=0; until ls "$0" | grep -q "^checkpoint-0" || [ $n = 3000 ]; do sleep 0.02; n=$((n + 1)); done; cat /dev/zero > "$0"/filled 2>/dev/null'
    inner = f"({fill}) & \"$@\"; code=$?; ls \"$0\"; exit $code"
    done = subprocess.run([*map(str, [*probe, "sh", "-c", inner, kept, losses.gantry, *words, "--processes", 2, "--on-loss", "restart", "--mpirun", LAUNCH[losses.mpi], "--checkpoint", f"50:{kept}"])],
                          capture_output=True, text=True, timeout=120)
    told = [line for line in done.stderr.splitlines() if "No space left on device" in line]
    assert done.returncode == 1 and len(told) == 1 and "checkpoint" in told[0] and "beginning anew" not in done.stderr, done
    assert "checkpoint-0" in done.stdout and "checkpoint.writing" not in done.stdout, done.stdout


def check_kept(losses):
    """What the first attempt has planned is dealt out to those who are left, and not planned again; what is there and is no such schedule is passed over."""
    text = lose_surely(losses, "jacobi_until", 4, "replan", signal.SIGKILL, 1, 0.2)[3]
    assert text.count("planned for") == 1, text
    kept, launch = losses.folder / "plan", LAUNCH[losses.mpi].split()
    joined, host = losses.folder / "joined.json", losses.root / "graphs/machines/host-2.json"
    subprocess.run([losses.gantry, "machine", "join", host, host, "--link", "latency_us=2,GBps=12.5", "-o", joined], check=True)

    def plan(name, ranks, *where, keeps=True):
        """The schedule that a run comes to, and whether it planned."""
        (losses.folder / "out.json").unlink(missing_ok=True)
        words = ["run", losses.root / f"graphs/{name}.json", *where, *CASES[name][0], "--iterations", 1, "--verbose", "-o", losses.folder / "out.json"]
        done = subprocess.run([*map(str, [*launch, "-n", ranks, losses.gantry, *words])], capture_output=True, text=True, env={**os.environ, **({"GANTRY_KEPT": str(kept)} if keeps else {})})
        assert done.returncode == 0, done.stderr
        return (losses.folder / "out.json").read_bytes(), "planned for" in done.stderr

    def other_graph(text):
        return re.sub(rb'(?<="graph_hash": ").', lambda digit: b"1" if digit[0] == b"0" else b"0", text)

    damages = (lambda text: text[:len(text) // 2], lambda text: b"{}", other_graph)
    for name, where, all_damages in (("jacobi_until", ["--devices", 4], ()), ("mlp_step", ["--devices", 4], damages), ("mlp_step", ["--machine", joined], ())):
        for damage in (None, *all_damages):
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir()
            first, planned = plan(name, 4 if damage is None and "--devices" in where else 2, *where)
            file = kept / "schedule.json"
            assert planned and file.exists() == ("--devices" in where), f"{name} {where}: planned {planned}, kept {list(kept.iterdir())}"
            if damage and file.exists():
                file.write_bytes(damage(file.read_bytes()))
            for ranks in (3, 2, 1) if "--devices" in where else (2,):
                again, planned = plan(name, ranks, *where)
                assert again == plan(name, ranks, *where, keeps=False)[0], f"{name} {where} on {ranks} ranks: another schedule"
                assert planned == (damage is not None or not file.exists()), f"{name} {where} on {ranks} ranks, damaged {damage is not None}: planned {planned}"
                if damage:
                    break


# ---- moments ----


def in_beginning(draw, ranks, kills):
    """While MPI begins: MPICH's mpirun may wait for ever then, and a file in shared memory may be left; the launcher sees to both."""
    def attack(child, graph, kept):
        wait_until(child, lambda: workers(graph))
        time.sleep(draw.uniform(0, 0.06))
        found = workers(graph)
        kills.append(bool(found) and kill(child, draw.choice(sorted(found.values()))))
    return attack


def in_planning(draw, ranks, kills):
    """Before there is any checkpoint, as soon as there are all ranks or somewhat later."""
    def attack(child, graph, kept):
        found = wait_until(child, lambda: len(workers(graph)) == ranks and workers(graph))
        time.sleep(draw.uniform(0, 0.2))
        kills.append(bool(found) and kill(child, found.get(draw.randrange(ranks))))
    return attack


def in_checkpoint(draw, ranks, kills):
    """Rank 0, while it writes one."""
    def attack(child, graph, kept):
        wait_until(child, lambda: list(kept.glob("checkpoint-0*")))
        first = workers(graph).get(0)
        kills.append(bool(wait_until(child, lambda: (kept / "checkpoint.writing").exists())) and kill(child, first))
    return attack


def first_rank(draw, ranks, kills):
    def attack(child, graph, kept):
        wait_until(child, lambda: list(kept.glob("checkpoint-0*")))
        time.sleep(draw.uniform(0, 0.2))
        kills.append(kill(child, workers(graph).get(0)))
    return attack


def all_but_one(draw, ranks, kills):
    def attack(child, graph, kept):
        wait_until(child, lambda: list(kept.glob("checkpoint-0*")))
        time.sleep(draw.uniform(0, 0.2))
        found, spared = workers(graph), draw.randrange(ranks)
        kills.append(sum([kill(child, found.get(rank)) for rank in range(ranks) if rank != spared]) == ranks - 1)
    return attack


def all_of_them(draw, ranks, kills):
    def attack(child, graph, kept):
        wait_until(child, lambda: list(kept.glob("checkpoint-0*")))
        found = workers(graph)
        kills.append(sum([kill(child, found.get(rank)) for rank in range(ranks)]) == ranks)
    return attack


def in_recovery(draw, ranks, kills):
    """A second one among those that go on, between their start and some tenths of a second later."""
    def attack(child, graph, kept):
        wait_until(child, lambda: list(kept.glob("checkpoint-0*")))
        old = workers(graph)
        if not kill(child, old.get(draw.randrange(ranks))):
            kills.append(False)
            return
        new = wait_until(child, lambda: {rank: pid for rank, pid in workers(graph).items() if pid not in old.values()})
        time.sleep(draw.uniform(0, 0.3))
        new = {rank: pid for rank, pid in workers(graph).items() if pid not in old.values()} or new
        kills.append(bool(new) and kill(child, draw.choice(sorted(new.values()))))
    return attack


MOMENTS = (in_beginning, in_planning, in_checkpoint, first_rank, all_but_one, all_of_them, in_recovery)


def at_moments(losses, rounds, seed):
    """Of each moment, how often it came to be, and how often somebody began anew. A run may be over before."""
    draw = random.Random(seed)
    for moment in MOMENTS:
        kills, anew = [], 0
        for _ in range(rounds):
            name, ranks, how = draw.choice(("jacobi_until", "mlp_step", "jacobi")), draw.choice((2, 4)), draw.choice(("restart", "replan"))
            how = "restart" if ranks == 2 and moment is in_recovery else how  # two are lost
            lines, _ = losses.under(moment(draw, ranks, kills), name, ranks, how)
            anew += sum("beginning anew" in line for _, line in lines)
        print(f"{moment.__name__}: {rounds} runs, {sum(kills)} killed then, begun anew {anew} times, all results equal", flush=True)
        yield moment, sum(kills), anew


def check_moments(losses):
    """Runs last long enough that none is over between the sight of a process and the signal to it, on a computer that is busy with others, too."""
    for moment, kills, anew in at_moments(losses, 1, 19):
        assert anew >= kills, (moment.__name__, kills, anew)


def check_eight(losses):
    """Eight ranks, of which one is killed: seven go on."""
    _, lost, _, text = lose_surely(losses, "jacobi", 8, "replan", signal.SIGKILL, 5, 0.1, 8)
    assert lost and "beginning anew with 7 processes" in text, text


def check_counted(losses):
    """Without --devices a computer without GPUs has one for each process: after a loss as many as before, also where there is no plan that was kept, so that sums are of the same parts. One
    process that is left has no network."""
    graph, words = losses.words("jacobi_until")
    want, at = losses.expected("jacobi_until"), words.index("--devices")
    words = words[:at] + words[at + 2:]
    assert hashes(subprocess.run([*map(str, [losses.gantry, *words, "--devices", 3])], capture_output=True, text=True, check=True).stdout) != want, "three devices have the bits of four: nothing is tried"
    if count_gpus(losses.gantry):
        print("check_counted is passed over: there are GPUs")
        return
    for ranks in (4, 2):
        child = subprocess.Popen([*map(str, [losses.gantry, *words, "--processes", ranks, "--on-loss", "replan", "--mpirun", LAUNCH[losses.mpi]])], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        found = wait_until(child, lambda: len(workers(graph)) == ranks and workers(graph))
        sent = bool(found) and kill(child, found[ranks // 2])
        out, errors = child.communicate(timeout=120)
        assert sent and f"beginning anew with {ranks - 1} process" in errors and hashes(out) == losses.expected("jacobi_until", ranks) and report(out)["machine"] == f"host-{ranks}", (sent, out, errors)
    # What a later attempt is told; without a loss it says nothing.
    own = losses.machine_of(words, 1, {})
    for ranks, told, machine in ((1, {"GANTRY_FIRST_PROCESSES": "2", "GANTRY_LEFT": "1"}, "host-2"), (1, {"GANTRY_FIRST_PROCESSES": "1", "GANTRY_LEFT": "1"}, own), (1, {"GANTRY_FIRST_PROCESSES": "2"}, own),
                                 (2, {"GANTRY_FIRST_PROCESSES": "4"}, losses.machine_of(words, 2, {})), (2, {"GANTRY_FIRST_PROCESSES": "4", "GANTRY_LEFT": "1"}, "host-4")):
        assert losses.machine_of(words, ranks, told) == machine, (ranks, told, machine)


def check_taken_slowly(losses):
    """Rank 0 writes for longer than a silent rank is allowed, to somebody who is slow to read: the others wait, and nobody ends the run. A guard that gets SIGUSR2 from elsewhere does not
    take it for the word of its rank that all have done all."""
    count, graph = 1000000, losses.folder / "slowly.json"
    shutil.copy(losses.root / "graphs/saxpy.json", graph)
    words = [losses.gantry, "run", graph, "--param", f"n={count}", "--devices", 2, "--processes", 2, "--mpirun", LAUNCH[losses.mpi], "--timeout", TIMEOUT, "--output", "y=-"]
    with subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        found = wait_until(child, lambda: len(workers(graph)) == 2 and workers(graph))
        for worker in found.values():
            os.kill(int(pathlib.Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()[1]), signal.SIGUSR2)
        time.sleep(2 * TIMEOUT + 4)
        out, errors = child.communicate(timeout=60)
    assert child.returncode == 0 and len(out) > 4 * count, (child.returncode, len(out), errors)


def check_words(losses):
    graph = losses.root / "graphs/saxpy.json"
    for words, says in ((["--on-loss", "restart"], "--on-loss is for --processes N"), (["--mpirun", "x"], "--mpirun is for --processes N"),
                        (["--processes", 2, "--on-loss", "restrat"], "takes stop, restart or replan (did you mean \"restart\"?)"),
                        (["--processes", 2, "--mpirun", "nosuchprogram"], "cannot start nosuchprogram: No such file or directory; name it with --mpirun")):
        done = subprocess.run([losses.gantry, "run", str(graph), *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 2 and says in done.stderr, (words, done)
    # An error that is no loss is not tried again.
    done = subprocess.run([losses.gantry, "run", str(losses.folder / "nosuch.json"), "--processes", "2", "--on-loss", "restart", "--mpirun", LAUNCH[losses.mpi]], capture_output=True, text=True)
    assert done.returncode != 0 and "beginning anew" not in done.stderr and done.stderr.count("nosuch.json") == 1, done.stderr


def at_random(losses, count, seed):
    draw, rows = random.Random(seed), {}
    for _ in range(count):
        name, ranks, how = draw.choice(sorted(CASES)), draw.choice((2, 4)), draw.choice(("restart", "replan"))
        sig = draw.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP))
        sent, lost, recovery, _ = losses.lose(name, ranks, how, sig, draw.randrange(ranks), draw.uniform(0, 0.6))
        row = rows.setdefault((name, ranks, sig.name), [0, 0, []])
        row[0] += 1
        row[1] += lost
        row[2] += [recovery] if recovery else []
        print(f"{name}, {ranks} ranks, {how}, {sig.name}: {'lost' if lost else 'over before'}, recovered in {recovery}", flush=True)
    print("| graph | ranks | signal | runs | lost a rank | recovery, median and longest (s) |\n|---|---|---|---|---|---|")
    for (name, ranks, sig), (runs, lost, times) in sorted(rows.items()):
        print(f"| {name} | {ranks} | {sig} | {runs} | {lost} | " + (f"{statistics.median(times):.1f}, {max(times):.1f}" if times else "-") + " |")


def main(gantry, root, mpi, built, count="0", seed="1"):
    if built != "1" or not shutil.which(LAUNCH[mpi].split()[0]):
        print(f"skipped: gantry-mpi-{mpi}.so was not built, or {LAUNCH[mpi].split()[0]} was not found; tools/setup test installs what they need")
        return 77
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        losses = Losses(gantry, pathlib.Path(root), mpi, pathlib.Path(folder))
        if count.startswith("moments:"):
            for _ in at_moments(losses, int(count.split(":")[1]), int(seed)):
                pass
            return 0
        if int(count):
            at_random(losses, int(count), int(seed))
            return 0
        for check in (check_words, check_counted, check_kept, check_slow, check_taken_slowly, check_full, check_told, check_stops, check_moments, check_eight):
            begun = time.monotonic()
            check(losses)
            print(f"{check.__name__}: {time.monotonic() - begun:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
