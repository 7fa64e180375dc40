# SPDX-License-Identifier: Apache-2.0
"""The GPT of graphs/models and graphs/decode in NumPy, in the type of its weights: all tokens at once, no cache."""
import math

import numpy as np

LAYERS, HEADS, DIM = 2, 4, 16
WIDTH, HIDDEN = HEADS * DIM, 4 * HEADS * DIM


def norm(x, gain):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gain


def turned(x):
    """[tokens, heads, dim]: elements i and i + dim / 2 by position * 10000^(-2 i / dim)."""
    half = DIM // 2
    angle = np.arange(len(x))[:, None, None] * 10000.0 ** (-2 * np.arange(half) / DIM)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], -1)


def forward(tokens, w):
    """Logits behind each token of one sequence, of weights by their names in the graphs."""
    x = w["table"][tokens]
    for l in range(LAYERS):
        def part(name, rows=WIDTH):
            return w[name][l * rows : (l + 1) * rows]
        n = norm(x, w["gain1"][l])
        q, k, v = ((n @ part(name)).reshape(-1, HEADS, DIM) for name in ("wq", "wk", "wv"))
        scores = np.einsum("qhd,khd->hqk", turned(q), turned(k)) / math.sqrt(DIM)
        scores[:, ~np.tri(len(tokens), dtype=bool)] = -np.inf
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        x = x + np.einsum("hqk,khd->qhd", p, v).reshape(-1, WIDTH) @ part("wo")
        z = norm(x, w["gain2"][l]) @ part("up")
        x = x + (z / 2 * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))) @ part("down", HIDDEN)
    return norm(x, w["gain_of_head"]) @ w["head"]
