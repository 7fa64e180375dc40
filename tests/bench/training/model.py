# SPDX-License-Identifier: Apache-2.0
"""The models of graphs/models in PyTorch: shapes, first contents, loss and optimiser are read from the graph's file, so that both begin with the same
numbers (docs/graph-format.md, "First contents": Philox4x32-10 by Salmon et al., SC 2011, and the polar form of Box and Muller)."""
import json
import math
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

MASK = 0xFFFFFFFF
DTYPES = {"f32": torch.float32, "i32": torch.int64}  # labels and words are 64 bits wide in PyTorch


class Description:
    """A graph file with the values of its params: what others are computed from is given as in --param."""

    def __init__(self, path, given, devices):
        self.graph = json.loads(pathlib.Path(path).read_text())
        self.train = self.graph["train"]
        self.params = {"devices": devices}
        for name, text in self.graph["params"].items():
            self.params[name] = given.get(name, self.value(text))

    def value(self, text, **more):
        return text if isinstance(text, (int, float)) else eval(text, {"__builtins__": {}, "min": min, "max": max, **self.params, **more})

    def rate(self, step):
        """The learning rate of a step, from 1 on."""
        return self.value(self.train["learning_rate"]) * self.value(self.train["schedule"], step=step)

    def array(self, name, device):
        buffer = self.graph["buffers"][name]
        shape, init = [int(self.value(extent)) for extent in buffer["shape"]], buffer.get("init", 0)
        count, dtype = math.prod(shape), DTYPES[buffer["dtype"]]
        if not isinstance(init, dict):
            return torch.full(shape, init, dtype=dtype, device=device)
        (kind, what), = init.items()
        what = {key: self.value(text) for key, text in what.items()}
        make, step = {"normal": (normal, 2), "random": (whole, 4)}[kind]
        found = torch.empty(count, dtype=dtype, device=device)
        for first in range(0, count, CHUNK):  # numbers on the way take 20 times the room
            most = min(CHUNK, count - first)
            blocks = torch.arange(first // step, (first + most + step - 1) // step, device=device)
            found[first:first + most] = make(philox(blocks, what.get("seed", 0)), what)[:most].to(dtype)
        return found.reshape(shape)


CHUNK = 1 << 22


def philox(c0, seed):
    """Four words of 32 bits for each counter. Products wrap at 64 bits, and their halves are what is wanted."""
    c1, c2, c3 = c0 >> 32, torch.zeros_like(c0), torch.zeros_like(c0)
    c0, k0, k1 = c0 & MASK, seed & MASK, seed >> 32
    for _ in range(10):
        p, q = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = ((q >> 32) & MASK) ^ c1 ^ k0, q & MASK, ((p >> 32) & MASK) ^ c3 ^ k1, p & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return torch.stack([c0, c1, c2, c3], 1)


def normal(words, what):
    pairs = words.reshape(-1, 2).double()
    radius = torch.sqrt(-2 * torch.log((pairs[:, 0] + 1) / 2.0**32))
    return what.get("mean", 0) + what.get("deviation", 1) * radius * torch.cos(2 * math.pi * pairs[:, 1] / 2.0**32)


def whole(words, what):
    return torch.floor(what["low"] + (what["high"] - what["low"]) * (words.reshape(-1).double() / 2.0**32))


class Layer(nn.Module):
    def __init__(self, w, b):
        super().__init__()
        self.w, self.b = nn.Parameter(w), nn.Parameter(b)

    def forward(self, x):
        return x @ self.w + self.b


class Mlp(nn.Module):
    def __init__(self, of, device):
        super().__init__()
        self.fc1 = Layer(of.array("w1", device), of.array("b1", device))
        self.fc2 = Layer(of.array("w2", device), of.array("b2", device))
        self.units = [self.fc1, self.fc2]

    @staticmethod
    def data(of, device):
        return of.array("x", device), of.array("labels", device)

    def forward(self, x, labels):
        return F.cross_entropy(self.fc2(torch.relu(self.fc1(x))), labels)


def rms_norm(x, gain):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * gain


class Block(nn.Module):
    """graphs/models/blocks/gpt.json, of all sequences at once."""

    def __init__(self, weights, heads):
        super().__init__()
        self.heads = heads
        for name, w in weights.items():
            setattr(self, name, nn.Parameter(w))

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def turn(self, x, cos, sin):
        u, v = x.chunk(2, -1)
        return torch.cat([u * cos - v * sin, v * cos + u * sin], -1)

    def forward(self, x, cos, sin):
        n = rms_norm(x, self.gain1)
        q, k, v = self.turn(self.split(n @ self.wq), cos, sin), self.turn(self.split(n @ self.wk), cos, sin), self.split(n @ self.wv)
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2) @ self.wo
        return x + F.gelu(rms_norm(x, self.gain2) @ self.up) @ self.down


class Gpt(nn.Module):
    def __init__(self, of, device):
        super().__init__()
        p = of.params
        names = ("gain1", "wq", "wk", "wv", "wo", "gain2", "up", "down")
        stacks = {name: of.array(name, device).chunk(p["layers"]) for name in names}
        self.blocks = nn.ModuleList(Block({name: stacks[name][i].clone() for name in names}, p["heads"]) for i in range(p["layers"]))
        self.table, self.head = nn.Parameter(of.array("table", device)), nn.Parameter(of.array("head", device))
        self.gain_of_head = nn.Parameter(of.array("gain_of_head", device))
        half = p["dim"] // 2
        angles = torch.outer(torch.arange(p["tokens"], device=device).double(), 10000.0 ** (-torch.arange(half, device=device).double() / half))
        self.register_buffer("cos", angles.cos().float())
        self.register_buffer("sin", angles.sin().float())
        self.units = list(self.blocks)

    @staticmethod
    def data(of, device):
        return tuple(of.array(name, device).reshape(of.params["batch"], -1) for name in ("ids", "next"))

    def forward(self, ids, labels):
        x = F.embedding(ids, self.table)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return F.cross_entropy((rms_norm(x, self.gain_of_head) @ self.head).flatten(0, 1), labels.flatten())


MODELS = {"mlp": Mlp, "gpt": Gpt}
