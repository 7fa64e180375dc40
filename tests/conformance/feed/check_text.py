# SPDX-License-Identifier: Apache-2.0
"""A real text: tools/text.py packs it, `gantry train` learns to continue it, graphs/decode continues it with the weights that were learnt. Arrays against the text itself, the loss on
what is held out against the GPT by hand in NumPy and float64, and against the entropy of the text's bytes; tokens against the largest logits by hand. Exit 77: no NumPy, no text.

check_text.py GANTRY ROOT
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

from gpt_by_hand import forward  # noqa: E402

COMMAND, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
TEXT = pathlib.Path("/usr/share/common-licenses/GPL-3")  # of base-files, which each Debian and Ubuntu has
BATCH, TOKENS, STEPS, WORDS, STARTS = 4, 32, 60, 128, 40
WEIGHTS = ["table", "gain1", "wq", "wk", "wv", "wo", "gain2", "up", "down", "gain_of_head", "head"]
ASKED = "You may "
wrong = []


def expect(holds, what):
    if not holds:
        wrong.append(what)
        print("wrong:", what)


def tool(here, *words, given=None):
    return subprocess.run([sys.executable, ROOT / "tools/text.py", *words], cwd=here, capture_output=True, text=True, timeout=60, input=given)


def gantry(here, *words):
    done = subprocess.run([COMMAND, *words], cwd=here, capture_output=True, text=True, timeout=200)
    expect(done.returncode == 0, f"{words[:2]}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def check_arrays(here, text):
    """Each sequence is there once, at a place of the text, with the bytes that follow; the last tenth is no part of what is trained on."""
    done = tool(here, "pack", "text", TEXT, str(BATCH), str(TOKENS))
    expect(done.returncode == 0, f"pack: {done.stderr}")
    end = len(text) * 9 // 10
    for name, part in ("", text[:end]), ("held_", text[end:]):
        ids, following = (np.load(here / f"text/{name}{what}.npy") for what in ("ids", "next"))
        expect(ids.dtype == np.int32 and ids.shape == following.shape == ((len(part) - 1) // TOKENS // BATCH, BATCH * TOKENS), f"{name}: {ids.dtype} {ids.shape}")
        rows, after = ids.reshape(-1, TOKENS), following.reshape(-1, TOKENS)
        expect((rows[:, 1:] == after[:, :-1]).all(), f"{name}: what follows a byte is the next one")
        there = sorted(bytes(part[at:at + TOKENS + 1]) for at in range(0, len(part) - TOKENS, TOKENS))
        found = sorted(bytes([*row, last]) for row, last in zip(rows, after[:, -1]))
        left = list(there)
        expect(all(one in left and not left.remove(one) for one in found) and len(left) < BATCH, f"{name}: sequences are those of the text")
    share = np.bincount(np.frombuffer(text[end:], np.uint8)) / (len(text) - end)
    entropy = float(-(share[share > 0] * np.log(share[share > 0])).sum())
    expect(f"{entropy:.4f} nats" in done.stdout, f"entropy {entropy}: {done.stdout}")
    return entropy


def train(here):
    outputs = [word for name in WEIGHTS for word in ("--output", f"{name}=text/{name}.npy")]
    report = json.loads(gantry(here, "train", "gpt", "--devices", "2", "--param", f"words={WORDS}", "--param", f"batch={BATCH}", "--param", "lr=0.005", "--steps", str(STEPS),
                               "--input", "ids=text/ids.npy", "--input", "next=text/next.npy", "--evaluate", str(STEPS), "--evaluate-input", "ids=text/held_ids.npy",
                               "--evaluate-input", "next=text/held_next.npy", *outputs, "--json"))
    return report["evaluations"][-1]["loss"], {name: np.load(here / f"text/{name}.npy").astype("f8") for name in WEIGHTS}


def loss_by_hand(here, w):
    ids, following = (np.load(here / f"text/held_{what}.npy").reshape(-1, TOKENS) for what in ("ids", "next"))
    losses = []
    for row, after in zip(ids, following):
        z = forward(row, w)
        losses += list(np.log(np.exp(z - z.max(1, keepdims=True)).sum(1)) + z.max(1) - z[range(TOKENS), after])
    return float(np.mean(losses))


def check_decoding(here, w):
    expect(tool(here, "ask", "text", ASKED, str(STARTS)).returncode == 0, "ask")
    inputs = [word for name in [*WEIGHTS, "given"] for word in ("--input", f"{name}=text/{name}.npy")]
    out = gantry(here, "run", ROOT / "graphs/decode/gpt.json", "--devices", "1", "--param", f"words={WORDS}", "--param", f"context={STARTS}", "--iterations", str(STARTS), *inputs,
                 "--watch", "token", "--json")
    said = [json.loads(line)["token"] for line in out.splitlines()[:-1]]
    read = [*ASKED.encode(), *said[len(ASKED) - 1:-1]]
    logits = forward(np.array(read), w)
    expect(len(said) == STARTS and all(z[token] >= z.max() - 1e-3 for z, token in zip(logits, said)), f"tokens {said}, not {logits.argmax(1).tolist()}")
    shown = tool(here, "show", ASKED, given=out).stdout
    expect(shown == bytes([*read, said[-1]]).decode() + "\n", f"show: {shown!r}")


def main():
    if not TEXT.exists():
        print(f"skipped: no {TEXT}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        entropy = check_arrays(here, TEXT.read_bytes())
        loss, w = train(here)
        hand = loss_by_hand(here, w)
        expect(np.isclose(loss, hand, rtol=1e-5), f"held out: {loss}, by hand {hand}")
        expect(loss < entropy - 0.2, f"held out: {loss}, and by frequencies alone {entropy}")
        check_decoding(here, w)
        refused = tool(here, "pack", "text", TEXT, "64", "1000")
        expect(refused.returncode == 1 and "less than one array of 64 x 1000 bytes" in refused.stderr, f"too large: {refused.stderr}")
        expect(tool(here, "pack", "text").returncode == 1, "words that are missing")
    print(f"{len(wrong)} wrong")
    return bool(wrong)


sys.exit(main())
