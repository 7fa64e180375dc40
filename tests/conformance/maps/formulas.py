# SPDX-License-Identifier: Apache-2.0
"""Random formulas of map nodes, and their values by NumPy: "Map nodes" in docs/graph-format.md, written down a second time.

A value is (rank, array). Ranks are those of the table of types: "number" and "real number" (of the formula or the node),
"small" and "whole" (computed in int64), "f32", "f64"."""
import math

import numpy as np

RANKS = ["number", "real number", "small", "whole", "f32", "f64"]
COMPUTED = {"number": np.int64, "real number": np.float64, "small": np.int64, "whole": np.int64, "f32": np.float32, "f64": np.float64}
RANK_OF = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64", "i8": "small", "u8": "small", "i32": "whole", "u32": "whole", "i64": "whole"}
INTEGERS = {"i8": np.int8, "u8": np.uint8, "i32": np.int32, "u32": np.uint32, "i64": np.int64}


def round_bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    one, half = np.uint64(1), np.uint64(16)
    rounded = (((bits + np.uint64(0x7FFF) + ((bits >> half) & one)) >> half) << half).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), np.float32(np.nan), rounded).astype(np.float32)


def join(a, b):
    low, high = sorted((a, b), key=RANKS.index)
    if low == "real number" and high in ("small", "whole"):
        return "f64"
    return "f64" if (low, high) == ("whole", "f32") else high


def to(rank, value):
    return np.asarray(value[1]).astype(COMPUTED[rank])


def real(rank):
    return {"number": "real number", "small": "f64", "whole": "f64"}.get(rank, rank)


def cast(name, value):
    rank, x = value
    if name in ("f16", "bf16", "f32"):
        x = x.astype(np.float32)
        return "f32", x.astype(np.float16).astype(np.float32) if name == "f16" else round_bf16(x) if name == "bf16" else x
    if name == "f64":
        return "f64", x.astype(np.float64)
    kind = INTEGERS[name]
    if x.dtype == np.int64:
        return RANK_OF[name], x.astype(kind).astype(np.int64)  # the low bits
    limits, wide = np.iinfo(kind), x.astype(np.float64)
    low, high = wide < float(limits.min), wide >= float(limits.max) + (limits.max < 2**53)
    inside = np.where(low | high | np.isnan(wide), 0, wide).astype(np.int64)
    return RANK_OF[name], np.where(low, limits.min, np.where(high, limits.max, inside)).astype(np.int64)


def binary(op, left, right):
    rank = join(left[0], right[0])
    rank = real(rank) if op in ("/", "pow") else rank
    a, b = to(rank, left), to(rank, right)
    if op in COMPARISONS:
        return "small", COMPARISONS[op](a, b).astype(np.int64)
    return rank, OPERATIONS[op](a, b)


COMPARISONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}
OPERATIONS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide,
              "min": lambda a, b: np.where((a < b) | (a != a), a, b), "max": lambda a, b: np.where((a > b) | (a != a), a, b)}
SAME = {"abs": np.abs, "square": np.square, "floor": lambda x: x if x.dtype == np.int64 else np.floor(x),
        "ceil": lambda x: x if x.dtype == np.int64 else np.ceil(x), "-": np.negative}
ROOTS = {"sqrt": np.sqrt, "rsqrt": lambda x: x.dtype.type(1) / np.sqrt(x)}
# By math.h's names, in double; the last bits are those of a library.
INEXACT = {"exp": math.exp, "log": math.log, "sin": math.sin, "cos": math.cos, "tanh": math.tanh, "erf": math.erf}


class Generator:
    """`names`: argument -> (rank, array). Formulas of exact operations only."""

    def __init__(self, random, names):
        self.random, self.names = random, names

    def leaf(self):
        kind = self.random.randrange(8)
        if kind == 0:
            x = self.random.randrange(10)
            return str(x), ("number", np.int64(x))
        if kind == 1:
            x = self.random.choice([0.5, 0.1, 1e-3, 2.0, 3.25, 1e3])
            return repr(x), ("real number", np.float64(x))
        name = self.random.choice(list(self.names))
        return name, self.names[name]

    def formula(self, depth):
        """(text, value); brackets only where the precedence of Python wants them, sometimes."""
        text, value, _ = self.tree(depth)
        return text, value

    def tree(self, depth):
        if depth == 0:
            return *self.leaf(), 4
        kind = self.random.randrange(10)
        if kind < 5:
            return self.operation(depth)
        (text, value, level) = self.tree(depth - 1)
        if kind == 5:
            inner = text if level >= 3 else f"({text})"
            return f"-{inner}", (value[0], np.negative(to(value[0], value))), 3
        if kind == 6:
            name = self.random.choice(list(SAME)[:-1])
            return f"{name}({text})", (value[0], SAME[name](to(value[0], value))), 4
        if kind == 7:
            name, rank = self.random.choice(list(ROOTS)), real(value[0])
            return f"{name}({text})", (rank, ROOTS[name](to(rank, value))), 4
        if kind == 8:
            name = self.random.choice(list(RANK_OF))
            return f"{name}({text})", cast(name, (value[0], to(value[0], value))), 4
        a, b = self.tree(depth - 1), self.tree(depth - 1)
        rank = join(a[1][0], b[1][0])
        chosen = np.where(to(value[0], value) != 0, to(rank, a[1]), to(rank, b[1]))
        return f"select({text}, {a[0]},{b[0]})", (rank, chosen), 4

    def operation(self, depth):
        op = self.random.choice(["+", "-", "*", "/", "+", "-", "*", "min", "max", *COMPARISONS])
        left, right = self.tree(depth - 1), self.tree(self.random.randrange(depth))
        value = binary(op, left[1], right[1])
        if op in ("min", "max"):
            return f"{op}({left[0]}, {right[0]})", value, 4
        level = 0 if op in COMPARISONS else 1 if op in "+-" else 2
        a = left[0] if left[2] >= level + (level == 0) else f"({left[0]})"
        b = right[0] if right[2] > level else f"({right[0]})"
        return f"{a} {op}{self.random.choice(['', ' '])}{b}", value, level
