#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of a model in PyTorch, timed: a process for each GPU, data resident, one line of JSON for each way and mode as soon as it is known.

    tests/bench/training/steps.py ROOT MODEL --gpus 2 --case small:200 --case large:50:batch=4096:hidden=4096 [--modes eager,compile] [--device cpu]

A case is a name, steps that count, and params of the graph. Ways are `one` on one GPU and `ddp` and `fsdp` (fully_shard) on several. Modes: `eager`;
`compile`, torch.compile, for gpt of each block, as is usual since blocks are alike; `graph`, on one GPU, what was compiled as one CUDA graph of
the whole step, replayed. The optimiser is torch.optim.AdamW, fused; f32 is f32. The host does not wait between steps: a step is from event to event, and
the median counts. Losses are of the steps 1, 10 and 50, over the whole batch. What fails has "why" in its line.
"""
import argparse
import itertools
import json
import pathlib
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist

from model import MODELS, Description

LOOK = (1, 10, 50)
WARM_UP = 10


class Training:
    def __init__(self, name, of, way, mode, device, rank, gpus):
        self.of, self.device, self.mode = of, device, mode
        self.at_once = mode == "graph"
        model = MODELS[name](of, device)
        self.data = tuple(array.chunk(gpus)[rank].clone() for array in MODELS[name].data(of, device))
        self.call = self.distributed(model, way, compiled=mode != "eager")
        rate = of.rate(1)
        kind = {"fused": True, "capturable": self.at_once} if device.type == "cuda" else {}
        rate = torch.tensor(rate, device=device) if self.at_once else rate
        self.parameters = list(model.parameters())
        self.optimizer = torch.optim.AdamW(self.parameters, lr=rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, **kind)
        self.clip, self.done = of.train.get("clip_norm", 0), 0

    def distributed(self, model, way, compiled):
        whole = not hasattr(model, "blocks")
        if compiled and not whole:
            for block in model.blocks:
                block.compile()
        if way == "fsdp":
            from torch.distributed.fsdp import fully_shard
            for unit in model.units:
                fully_shard(unit)
            fully_shard(model)
        found = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True) if way == "ddp" else model
        return torch.compile(found) if compiled and whole else found

    def work(self):
        loss = self.call(*self.data)
        loss.backward()
        if self.clip:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def set_rate(self):
        self.done += 1
        rate = self.of.rate(self.done)
        for group in self.optimizer.param_groups:
            if self.at_once:
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def capture(self):
        """What was done before has to be on another stream: the recipe of torch.cuda.graphs."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        losses = []
        with torch.cuda.stream(side):
            for _ in range(3):
                self.set_rate()
                losses.append(self.work().clone())
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = self.work()

        def replay():
            graph.replay()
            return loss
        self.work = replay
        return losses

    def run(self, steps):
        """us of each step that counts, and losses by step."""
        gpu = self.device.type == "cuda"
        losses = dict(enumerate(self.capture(), 1)) if self.at_once else {}
        marks = []
        while self.done < WARM_UP + steps:
            self.set_rate()
            loss = self.work()
            if self.done in LOOK:
                losses[self.done] = loss.clone()
            if self.done >= WARM_UP:
                marks.append(torch.cuda.Event(enable_timing=True) if gpu else time.perf_counter())
                if gpu:
                    marks[-1].record()
        if gpu:
            torch.cuda.synchronize()
        pairs = list(zip(marks, marks[1:]))
        return [a.elapsed_time(b) * 1e3 if gpu else (b - a) * 1e6 for a, b in pairs], {n: losses[n] for n in LOOK if n in losses}


def case_of(text):
    name, steps, *params = text.split(":")
    return name, int(steps), {key: json.loads(value) for key, value in (word.split("=") for word in params)}


def measure(options, text, way, mode, device, rank):
    name, steps, params = case_of(text)
    of = Description(pathlib.Path(options.root) / "graphs" / "models" / f"{options.model}.json", params, options.gpus)
    begin = time.monotonic()
    row = {"case": name, "way": way, "mode": mode, "gpus": options.gpus}
    try:
        us, losses = Training(options.model, of, way, mode, device, rank, options.gpus).run(steps)
        for loss in losses.values() if options.gpus > 1 else []:
            dist.all_reduce(loss)
        row.update(us=statistics.median(us), steps=len(us), losses={n: loss.item() / options.gpus for n, loss in losses.items()})
    except Exception as error:  # another mode may work, and the table tells
        row["why"] = f"{type(error).__name__}: {(str(error).strip() or 'no word').splitlines()[0]}"[:300]
    row["seconds"] = time.monotonic() - begin
    if rank == 0:
        print(json.dumps(row), flush=True)


def process(rank, options, meeting):
    gpu = options.device == "cuda"
    device = torch.device("cuda", rank) if gpu else torch.device("cpu")
    torch.set_float32_matmul_precision("highest")
    if gpu:
        torch.cuda.set_device(device)
    if options.gpus > 1:
        dist.init_process_group("nccl" if gpu else "gloo", init_method=f"file://{meeting}", rank=rank, world_size=options.gpus)
    ways = options.ways or ("ddp,fsdp" if options.gpus > 1 else "one")
    for way, mode, text in itertools.product(ways.split(","), options.modes.split(","), options.case):
        if mode == "graph" and options.gpus > 1:
            continue
        if mode != "eager":
            torch.compiler.reset()
        measure(options, text, way, mode, device, rank)
        if gpu:
            torch.cuda.empty_cache()
    if options.gpus > 1:
        dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--case", action="append", required=True)
    parser.add_argument("--modes", default="eager,compile,graph")
    parser.add_argument("--ways", default="")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    options = parser.parse_args()
    if options.gpus == 1:
        return process(0, options, None)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(process, (options, f"{folder}/meeting"), options.gpus)


if __name__ == "__main__":
    sys.exit(main())
