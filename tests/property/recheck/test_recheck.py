#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two checkers, one verdict: schedules of many graphs, machines and options, intact and damaged, are judged by the library
that `gantry check` calls and by tools/recheck, which was written from the documentation alone.

    test_recheck.py COMMAND LIBGANTRY SOURCE [--smoke] [--seed N] [--jobs N] [--graphs N] [--damages N] [--seconds N] [--show N]
                    [--keep FOLDER] [--phases]

LIBGANTRY may be `none`: then every schedule is a process. Else one in 200 is, and must say what the library says. With
--jobs there are so many processes, with seeds from --seed on, and a line for each before that of all. With --phases only schedules in phases are taken.
"""
import argparse
import collections
import concurrent.futures
import ctypes
import importlib.machinery
import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

import damage
import graphs


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("numbers", ctypes.c_int32 * 7), ("file", ctypes.c_char * 120),
                ("where", ctypes.c_char * 120), ("text", ctypes.c_char * 512)]


class LoadOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("params", ctypes.c_void_p), ("param_count", ctypes.c_size_t),
                ("inputs", ctypes.c_void_p), ("input_count", ctypes.c_size_t), ("allow_code", ctypes.c_int32),
                ("devices", ctypes.c_int32), ("max_nodes", ctypes.c_int64), ("fuse", ctypes.c_int32)]


class Library:
    """`gantry check` without a process for each schedule. Maps become one, as they do in the command, but for --no-fuse."""

    def __init__(self, path):
        self.lib, self.error = ctypes.CDLL(path), Error()
        self.lib.gantry_schedule_free.argtypes = self.lib.gantry_graph_free.argtypes = [ctypes.c_void_p]

    def graph(self, path, words=()):
        found, options = ctypes.c_void_p(), LoadOptions(fuse="--no-fuse" not in words)
        options.struct_size = ctypes.sizeof(options)
        status = self.lib.gantry_graph_load(ctypes.byref(found), path.encode(), ctypes.byref(options), ctypes.byref(self.error))
        if status:
            raise ValueError(self.error.text.decode())
        return found

    def free_graph(self, graph):
        self.lib.gantry_graph_free(graph)

    def verdict(self, graph, data):
        schedule = ctypes.c_void_p()
        status = self.lib.gantry_schedule_parse(ctypes.byref(schedule), data, ctypes.c_size_t(len(data)), b"s.json",
                                                ctypes.byref(self.error))
        if status == 0:
            status = self.lib.gantry_schedule_check(schedule, graph, ctypes.byref(self.error))
            self.lib.gantry_schedule_free(schedule)
            if status == 0:
                return "right", ""
        text = self.error.text.decode(errors="replace")
        unsound = re.match(r"(phase \d+: )?rule (?!form)", text)
        return "unsound" if unsound else "malformed", self.error.where.decode(errors="replace") + ": " + text


class Command:
    """`gantry check` itself."""

    def __init__(self, path, folder):
        self.path, self.file, self.words = path, os.path.join(folder, "damaged.json"), []

    def graph(self, path, words=()):
        self.words = ["--no-fuse"] if "--no-fuse" in words else []
        return path

    def free_graph(self, graph):
        pass

    def verdict(self, graph, data):
        with open(self.file, "wb") as file:
            file.write(data)
        done = subprocess.run([self.path, "check", graph, self.file, *self.words], capture_output=True, text=True)
        unsound = re.search(r"(^|: )(phase \d+: )?rule (?!form)[a-z]+: ", done.stderr, re.MULTILINE)
        return "right" if done.returncode == 0 else "unsound" if unsound else "malformed", done.stderr


def second_checker(source):
    path = os.path.join(source, "tools", "recheck")
    loader = importlib.machinery.SourceFileLoader("recheck", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("recheck", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def schedule(command, source, path, words):
    words = list(words)
    if "--machine" in words:
        i = words.index("--machine") + 1
        words[i] = words[i] if os.path.isabs(words[i]) else os.path.join(source, "graphs", "machines", words[i] + ".json")
    if "--max-memory" in words:
        i = words.index("--max-memory") + 1
        words[i] = ",".join(words[i].split(",")[: int(words[words.index("--devices") + 1])])
    done = subprocess.run([command, "schedule", path, "-o", "-"] + words, capture_output=True)
    return done.stdout if done.returncode == 0 else None


def cases(args, folder):
    """(path of a graph, text of a schedule): the graphs of the tree first, then random ones."""
    r = random.Random(args.seed)
    number = 0
    tree = list(graphs.of_the_tree(os.path.join(args.source, "graphs")))
    while number < args.graphs:
        name, form = tree[number % len(tree)] if number % 3 == 0 else ("random", graphs.Maker(r.randrange(2**40)).graph())
        if number % 3 == 0:
            tree.append(tree.pop(r.randrange(len(tree))))
        number += 1
        machine = None
        if number % 8 == 0:
            name, (form, machine) = "products", graphs.products(r)
        elif number % 8 == 4:
            name, (form, machine) = "sums", graphs.sums(r)
        path = os.path.join(folder, f"{name}.json")
        with open(path, "w") as file:
            json.dump(form, file)
        words = graphs.options(r, form)
        if machine:
            words = ["--machine", os.path.abspath(os.path.join(folder, "machine.json"))]
            with open(words[1], "w") as file:
                json.dump(machine, file)
        text = schedule(args.command, args.source, path, words)
        if text is not None and (b'"phases": [' in text or not args.phases):
            yield path, json.dumps(form), text, words


def spoil(r, form):
    """One damage, now and then two. A schedule in phases has one, in a phase or in the whole, since of two in several places
    each checker finds another first."""
    s, done = json.loads(form), []
    one, ways, phased = s, damage.ALL, bool(s.get("phases"))
    if phased:
        one, ways = (s, damage.WHOLE) if r.random() < 0.4 else (r.choice(s["phases"])["schedule"], damage.ALL)
    for _ in range(2 if r.random() < 0.15 and not phased else 1):
        for _ in range(20):
            how = r.choice(ways)
            try:
                if how(r, one):
                    done.append(how.__name__)
                    break
            except (KeyError, IndexError, TypeError, AttributeError, ValueError):
                break  # an earlier damage took what this one wants
    data = json.dumps(s).encode()
    return (damage.scratch(r, data), done + ["scratch"]) if r.random() < 0.05 and not phased else (data, done)


class Tally:
    def __init__(self, args, library, command, second):
        self.libgantry, self.command, self.second = library, command, second
        self.args, self.intact, self.damaged, self.words, self.phased = args, 0, 0, collections.Counter(), 0
        self.differ, self.by_damage = collections.Counter(), collections.Counter()

    def compare(self, graph, path, form, text, how, words):
        first, why = self.libgantry.verdict(graph, text)
        word, message = self.second.verdict(form, text)
        if (self.intact + self.damaged) % 200 == 0 and self.command.verdict(self.command.graph(path, words), text)[0] != first:
            self.differ[("the command", how, first)] += 1
            print(f"gantry check says something else than the library, which says {first}: {why}")
        if word == "unread":
            self.words[word] += 1
            return
        self.words[first] += 1
        # A list of names that was shuffled, where some are of several nodes in one, has names at wrong places, which Gantry looks
        # at first, and nodes that go ahead of what they read, which the second checker does.
        shuffled = "node_name" in how and b"+" in text and message.startswith("rule node: ")
        if first == word or (shuffled and first == "malformed"):
            return
        key = (how, first, word)
        self.differ[key] += 1
        if self.differ[key] <= self.args.show:
            print(f"{'+'.join(how) or 'intact'}: gantry {first} ({why}); recheck {word} ({message}) [{' '.join(words)}]")
        if self.args.keep and self.differ[key] <= 2:
            name = os.path.join(self.args.keep, f"{'+'.join(how)}-{first}-{word}-{self.differ[key]}")
            for end, data in ((".graph.json", form.encode()), (".schedule.json", text)):
                with open(name + end, "wb") as file:
                    file.write(data)


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("command", "libgantry", "source"):
        parser.add_argument(name)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--damages", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--show", type=int, default=1)
    parser.add_argument("--keep")
    parser.add_argument("--phases", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.seconds, args.damages = 30, 30
    return args


def campaign(args):
    """All schedules of one seed: (intact, damaged, in phases, verdicts, disagreements)."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        command = Command(args.command, folder)
        library = command if args.libgantry == "none" else Library(args.libgantry)
        tally = Tally(args, library, command, second_checker(args.source))
        for path, form, text, words in cases(args, folder):
            graph = library.graph(path, words)
            tally.compare(graph, path, form, text, (), words)
            tally.intact += 1
            tally.phased += b'"phases": [' in text
            r = random.Random(f"{args.seed} {tally.intact}")
            for _ in range(args.damages):
                data, how = spoil(r, text)
                tally.compare(graph, path, form, data, tuple(how), words)
                tally.damaged += 1
            library.free_graph(graph)
            if time.monotonic() - began > args.seconds:
                break
    wrong = sum(tally.differ.values())
    report(f"seed {args.seed}", tally.intact, tally.damaged, tally.phased, tally.words, wrong)
    return tally.intact, tally.damaged, tally.phased, tally.words, wrong


def report(name, intact, damaged, phased, words, wrong):
    print(f"{name}: {intact} intact ({phased} in phases), {damaged} damaged schedules: {dict(words)}; {wrong} disagreements", flush=True)


def main():
    args = arguments()
    seeds = [argparse.Namespace(**{**vars(args), "seed": args.seed + i}) for i in range(args.jobs)]
    if args.jobs == 1:
        return campaign(args)[-1] != 0
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        parts = list(pool.map(campaign, seeds))
    intact, damaged, phased, words, wrong = (sum(column, start) for column, start in zip(zip(*parts), (0, 0, 0, collections.Counter(), 0)))
    report(f"all {args.jobs} seeds", intact, damaged, phased, words, wrong)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
