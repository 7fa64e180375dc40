# SPDX-License-Identifier: Apache-2.0
"""Arrays that are cut into tiles along 1 to 4 axes against NumPy, on 1 to 4 devices; both checkers on each schedule.

check_tiles.py GANTRY RECHECK [FIRST COUNT]     random graphs number FIRST to FIRST + COUNT - 1
"""
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from numpy_gantry import DTYPES, np, run  # noqa: E402


def tile(shape, tiles, index):
    """The slices of a tile: part i of axis k is [i * n // p, (i + 1) * n // p)."""
    return tuple(slice(i * n // p, (i + 1) * n // p) for n, p, i in zip(shape, tiles, index))


def named(name, index, tiles, draw):
    """A reference to a tile. Axes at the end that are not cut may be left out."""
    axes = len(index)
    while axes > 1 and tiles[axes - 1] == 1 and draw.random() < 0.5:
        axes -= 1
    return name + "".join(f"[{i}]" for i in index[:axes])


def elements(seed):
    """Maps, copies, fills and reductions, tile by tile, of arrays that begin as a file or as numbers of their elements."""
    draw = random.Random(seed)
    rank = draw.randint(1, 4)
    shape = [draw.randint(1, 9) for _ in range(rank)]
    tiles = [draw.randint(1, 3) for _ in range(rank)]
    dtype = draw.choice(["f32", "f64", "i32", "u8", "i64"])
    every = [*itertools.product(*map(range, tiles))]
    given = tiles[:]
    while len(given) > 1 and given[-1] == 1:
        given.pop()
    form = {"dtype": dtype, "shape": shape, "tiles": draw.choice([given, tiles])}
    x = np.random.default_rng(seed).integers(0, 50, shape).astype(DTYPES[dtype])
    y, z = 3 * x + DTYPES[dtype](1), np.arange(x.size).reshape(shape).astype(DTYPES[dtype])
    tops, nodes = np.zeros(tiles, DTYPES[dtype]), []
    for at in every:
        name, here = ",".join(map(str, at)), tile(shape, tiles, at)
        if x[here].size:
            tops[at] = y[here].max()
            nodes.append({"id": f"top[{name}]", "reduce": {"m": "max(y)"}, "args": {"y": named("y", at, tiles, draw), "m": named("tops", at, tiles, draw)}})
        else:
            nodes.append({"id": f"top[{name}]", "fill": {"to": named("tops", at, tiles, draw), "value": 0}})
        nodes.insert(0, {"id": f"map[{name}]", "map": {"y": "3 * x + 1"}, "args": {"x": named("x", at, tiles, draw), "y": named("y", at, tiles, draw)}})
        nodes.append({"id": f"copy[{name}]", "copy": {"from": named("x", at, tiles, draw), "to": named("c", at, tiles, draw)}})
        if draw.random() < 0.5:
            z[here] = 7
            nodes.append({"id": f"fill[{name}]", "fill": {"to": named("z", at, tiles, draw), "value": 7}})
    nodes.append({"id": "lists", "work": {}, "reads": ["y" + "".join(draw.choice(["[*]", "[0]", f"[0:{p}]"]) for p in tiles)]})
    buffers = {"x": {**form, "init": 0}, "y": {**form, "output": True}, "c": {**form, "output": True},
               "z": {**form, "init": "iota", "output": True}, "tops": {**form, "shape": tiles, "output": True}}
    return {"buffers": buffers, "nodes": nodes}, {"x": x}, {"y": y, "c": x, "z": z, "tops": tops}


# ---- other tiles of the same array ----

def retiled(seed):
    """x is cut in one way and y in another: by tiles that both cuts are made of, or from all of x; now and then x is in parts, or whole."""
    draw = random.Random(seed)
    rank = draw.randint(1, 4)
    shape = [draw.randint(1, 11) for _ in range(rank)]
    cuts = [[draw.randint(1, 3 if rank < 4 else 2) for _ in range(rank)] for _ in "xy"]
    dtype = draw.choice(["f32", "f64", "i32", "u8", "i64"])
    x = np.random.default_rng(seed).integers(0, 100, shape).astype(DTYPES[dtype])
    form, both = {"dtype": dtype, "shape": shape}, [a * b for a, b in zip(*cuts)]
    how = draw.choice(["tiles", "tiles", "list", "parts"])
    given = {"split": draw.randint(1, 3)} if how == "parts" else {"tiles": cuts[0]}
    buffers = {"x": {**form, **given, "init": 0}, "both": {**form, "tiles": both}, "y": {**form, "tiles": cuts[1], "output": True}}
    nodes = []

    def beneath(index, axes):
        return "".join(f"[{i * p}:{(i + 1) * p}]" for i, p in zip(index, axes))

    for at in itertools.product(*map(range, cuts[0])) if how == "tiles" else ():
        tile = "".join(f"[{i}]" for i in at)
        nodes.append({"id": f"cut{tile}", "kernel": "retile", "args": {"x": f"x{tile}", "y": "both" + beneath(at, cuts[1])}})
    for at in itertools.product(*map(range, cuts[1])):
        tile = "".join(f"[{i}]" for i in at)
        source = "both" + beneath(at, cuts[0]) if how == "tiles" else "x" + "[*]" * rank if how == "list" else "x"
        nodes.append({"id": f"join{tile}", "kernel": "retile", "args": {"x": source, "y": f"y{tile}"}})
    return {"buffers": buffers, "nodes": nodes}, {"x": x}, {"y": x}


# ---- halos ----

STENCIL = """#include <gantry/kernel.h>
#include <stdint.h>
/* y = the sum of what x has from `before` to `after` around each element, as far as the array has it. */
gantry_status around(const gantry_launch *l)
{
    const gantry_arg *x = gantry_launch_arg(l, 0), *y = gantry_launch_arg(l, 1);
    int64_t size = 1, at[4] = { 0 }, one[4], of[4] = { 0 };
    for (int k = 0; k < y->rank; k++)
        size *= y->shape[k];
    for (int64_t i = 0; i < size; i++) {
        int64_t rest = i, boxes = 1, sum = 0;
        for (int k = y->rank - 1; k >= 0; k--) {
            at[k] = rest % y->shape[k] + y->axis[k].first;
            rest /= y->shape[k];
            of[k] = 1 + (int64_t)gantry_launch_arg(l, 2 + 2 * k)->number + (int64_t)gantry_launch_arg(l, 3 + 2 * k)->number;
            boxes *= of[k];
        }
        for (int64_t b = 0; b < boxes; b++) {
            int64_t left = b, from = 0, stride = 1;
            int there = 1;
            for (int k = x->rank - 1; k >= 0; k--) {
                one[k] = at[k] + left % of[k] - (int64_t)gantry_launch_arg(l, 2 + 2 * k)->number;
                left /= of[k];
                there = there && one[k] >= 0 && one[k] < x->whole[k];
                from += (one[k] - x->axis[k].first) * stride;
                if (there && (one[k] < x->axis[k].first || one[k] >= x->axis[k].first + x->shape[k]))
                    return GANTRY_E_KERNEL;
                stride *= x->shape[k];
            }
            sum += there ? ((const int64_t *)x->data)[from] : 0;
        }
        ((int64_t *)y->data)[i] = sum;
    }
    return GANTRY_OK;
}
"""


def summed(x, sides):
    """The sums of boxes, clipped."""
    wide, out = np.pad(x, sides), np.zeros_like(x)
    for at in itertools.product(*(range(a + b + 1) for a, b in sides)):
        out += wide[tuple(slice(i, i + n) for i, n in zip(at, x.shape))]
    return out


def around(seed):
    """A box of random sides around each element, a few times over, by a kernel that looks at where its regions lie; other nodes
    write tiles, in turn or one alone, between; two halos of one array; loops or none."""
    draw = random.Random(seed)
    rank = draw.choice([1, 2, 2, 3, 3, 4])
    tiles = [draw.randint(1, 3) for _ in range(rank)]
    shape = [p * draw.randint(2, 4) + draw.randint(0, p - 1) for p in tiles]
    sides = [(draw.randint(0, 2), draw.randint(0, 2)) for _ in range(rank)]
    if draw.random() < 0.5:
        sides = [(1, 1)] * rank
    plain = len({width for side in sides for width in side}) == 1
    halo = str(sides[0][0]) if plain else ",".join(f"{a}:{b}" if a != b else str(a) for a, b in sides)
    x = np.random.default_rng(seed).integers(0, 5, shape)
    every, steps, loop = [*itertools.product(*map(range, tiles))], draw.randint(1, 3), draw.random() < 0.6
    numbers = {f"{word}{k}": side[i] for k, side in enumerate(sides) for i, word in enumerate(("before", "after"))}
    alone = draw.choice(every) if draw.random() < 0.7 else None

    def sweep(name, source, to):
        nodes = []
        for at in every:
            places = [one + "".join(f"[{i}]" for i in at) for one in (source, to)]
            nodes.append({"id": f"{name}[{','.join(map(str, at))}]", "kernel": "around", "args": {"x": places[0] + "~" + halo, "y": places[1], **numbers}})
        draw.shuffle(nodes)
        return nodes

    def bump(name, of):
        place = of + "".join(f"[{i}]" for i in alone)
        return [{"id": name, "map": {"x": "x + 1"}, "args": {"x": place}}]

    want = x.copy()
    if loop:
        nodes = [{"repeat": steps, "carry": {"u": "v"}, "nodes": (bump("bump", "u") if alone else []) + sweep("s", "u", "v")}]
        for _ in range(steps):
            if alone:
                want[tile(shape, tiles, alone)] += 1
            want = summed(want, sides)
        nodes += sweep("last", "u", "w")
    else:
        nodes = sweep("a", "u", "v")
        want = summed(want, sides)
        if alone:
            nodes += bump("bump", "v")
            want[tile(shape, tiles, alone)] += 1
        nodes += sweep("b", "v", "w")
    second = summed(want, sides)
    form = {"dtype": "i64", "shape": shape, "tiles": tiles}
    args = [{"name": "x", "access": "read", "dtype": "i64"}, {"name": "y", "access": "write", "dtype": "i64"}]
    args += [{"name": f"{word}{k}", "type": "i64", "default": 0} for k in range(4) for word in ("before", "after")]
    graph = {"kernels": {"around": {"host": "around.c", "args": args}},
             "buffers": {"u": {**form, "init": 0}, "v": {**form, "output": not loop}, "w": {**form, "output": True}}, "nodes": nodes}
    return graph, {"u": x}, {"w": second} if loop else {"v": want, "w": second}


# ---- images in tiles ----


def edges(p, h, v):
    """Sobel's operator on an image with a border of one pixel around it."""
    at = lambda i, j: p[:, i:i + h, j:j + v]  # noqa: E731
    across = at(0, 2) + 2 * at(1, 2) + at(2, 2) - at(0, 0) - 2 * at(1, 0) - at(2, 0)
    down = at(2, 0) + 2 * at(2, 1) + at(2, 2) - at(0, 0) - 2 * at(0, 1) - at(0, 2)
    return np.sqrt(across * across + down * down)


def images(seed):
    """A filter of own weights or a Gaussian one, then edges, of an image or of frames in tiles; the adjoint of the filter of the edges, too."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    rank, dtype = draw.choice([2, 2, 3, 4]), draw.choice(["u8", "f32", "f32"])
    high, wide, sigma = draw.choice([1, 3, 5]), draw.choice([1, 3, 5, 7]), draw.choice([0.3, 0.6, 1.0])
    own = draw.random() < 0.5
    reach = [high // 2, wide // 2] if own else [int(np.ceil(3 * sigma))] * 2
    tiles = [draw.randint(1, 2)] * (rank > 2) + [draw.randint(1, 3), draw.randint(1, 3)]
    least = [max(2, n) + draw.randint(0, 2) for n in reach]
    shape = [draw.randint(tiles[0], 3)] * (rank > 2) + [p * n + draw.randint(0, p - 1) for p, n in zip(tiles[-2:], least)]
    shape += [draw.randint(1, 4)] * (rank == 4)
    weights = rng.integers(-3, 4, (high, wide)) / 8.0
    if not own:
        line = np.exp(-np.arange(-reach[0], reach[0] + 1) ** 2 / (2 * sigma * sigma))
        weights = np.outer(line, line) / line.sum() ** 2
    full = [1] * (rank == 2) + shape + [1] * (rank < 4)
    h, v = full[1:3]
    x = rng.integers(0, 256, shape).astype(DTYPES[dtype])

    def padded(one, down, across):
        return np.pad(one, [(0, 0), (down, down), (across, across), (0, 0)], mode="edge")

    def weighted(one):
        p = padded(one, *reach)
        return sum(weights[i, j] * p[:, i:i + h, j:j + v] for i, j in np.ndindex(*weights.shape))

    units = np.eye(h * v).reshape(h * v, h, v, 1)
    matrix = weighted(units).reshape(h * v, h * v)  # row p: what pixel p gives to each
    y = weighted(x.astype(float).reshape(full))
    y = np.clip(np.floor(y + 0.5), 0, 255) if dtype == "u8" else y
    z = edges(padded(y, 1, 1), h, v)
    z = np.clip(z, 0, 255) if dtype == "u8" else z
    back = np.einsum("pq,fqc->fpc", matrix, z.reshape(full[0], h * v, full[3])).reshape(shape)
    small = weights.astype(np.float32)
    weights_of = {"tiles": [1, 2]} if draw.random() < 0.5 else {}  # some weights of several
    given = np.concatenate([small[:, ::-1], small], 1) if weights_of else small
    filtering = {"kernel": "filter2d", "args": {"weights": "w[0][1]" if weights_of else "w"}} if own else {"kernel": "gaussian_blur", "args": {"sigma": sigma}}
    widths = lambda *two: "~" + ",".join(map(str, [0] * (rank > 2) + [*two]))  # noqa: E731
    nodes = []
    for at in itertools.product(*map(range, tiles)):
        tile_of = "".join(f"[{i}]" for i in at)
        nodes.append({"id": f"filter{tile_of}", **filtering, "args": {**filtering["args"], "image": f"x{tile_of}{widths(*reach)}", "out": f"y{tile_of}"}})
        nodes.append({"id": f"edges{tile_of}", "kernel": "sobel", "args": {"image": f"y{tile_of}{widths(1, 1)}", "out": f"z{tile_of}"}})
        if dtype == "f32":
            nodes.append({"id": f"back{tile_of}", "kernel": filtering["kernel"] + "_grad",
                          "args": {**filtering["args"], "dout": f"z{tile_of}{widths(*reach)}", "dimage": f"b{tile_of}"}})
    nodes.sort(key=lambda one: ("filter", "edges", "back").index(one["id"].split("[")[0]))
    form = {"dtype": dtype, "shape": shape, "tiles": tiles}
    buffers = {"w": {"dtype": "f32", "shape": [high, wide * 2 if weights_of else wide], "init": 0, **weights_of}, "x": {**form, "init": 0}, "y": {**form, "output": True}, "z": {**form, "output": True}}
    want = {"y": y.reshape(shape), "z": z.reshape(shape)}
    if dtype == "f32":
        buffers["b"], want["b"] = {**form, "output": True}, back
    # a u8 pixel of a Gaussian may be rounded up where the double is below a half; its edges are then up to sqrt(20) away
    near = {"y": 0.0 if own else 1.0, "z": 0.501 if own else 9.5} if dtype == "u8" else {"y": 1e-3, "z": 1e-2, "b": 0.05}
    return {"buffers": buffers, "nodes": nodes}, {"x": x, **({"w": given} if own else {})}, want, near


# ---- schedules and results ----


def schedule_is_right(command, recheck, graph, devices, folder, extra):
    file, schedule, code = folder / "g.json", folder / "s.json", ["--allow-code"] if "kernels" in graph else []
    file.write_text(json.dumps(graph))
    for words in ([command, "schedule", file, "--devices", devices, "-o", schedule, "--effort", 1, *code, *extra],
                  [command, "check", file, schedule, "--devices", devices, *code], [recheck, file, schedule]):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise RuntimeError(f"{words[:2]}: {done.stderr}{done.stdout[-400:]}")


def check(command, recheck, what, made, folder):
    graph, inputs, want, *near = made
    graph = {"gantry": 1, "name": what, "params": {}, **graph}
    (folder / "around.c").write_text(STENCIL)
    failed = 0
    for devices in (1, 2, 3, 4):
        extra = ["--check"] if devices % 2 else ["--effort", "1"]
        try:
            schedule_is_right(command, recheck, graph, devices, folder, [])
            (folder / "r.json").write_text(json.dumps({**graph, "nodes": [one for one in graph["nodes"] if "work" not in one]}))
            extra += ["--allow-code"] if "kernels" in graph else []
            got, _ = run(command, folder / "r.json", inputs, dict.fromkeys(want), ["--devices", devices, *extra])
            for name, array in want.items():
                if near:
                    np.testing.assert_allclose(got[name].astype(float), array, rtol=0, atol=near[0][name], err_msg=name)
                else:
                    np.testing.assert_array_equal(got[name], array, err_msg=name)
        except (AssertionError, RuntimeError) as error:
            failed += 1
            print(f"FAILED {what} on {devices} devices: {error}\n{json.dumps(graph)[:600]}")
    return failed


def moved(command, folder, tiles, steps, n=48):
    """Bytes that steps of heat in a cube move on 8 devices."""
    graph = json.loads((pathlib.Path(__file__).parents[3] / "graphs" / "heat_3d.json").read_text())
    graph["params"] |= {"n": n, "steps": steps, **dict(zip("abc", tiles))}
    (folder / "h.json").write_text(json.dumps(graph))
    done = subprocess.run([command, "schedule", folder / "h.json", "--devices", "8", "--json"], capture_output=True, text=True, timeout=300)
    return json.loads(done.stdout)["bytes_moved"]


def blocks_move_less(command, folder):
    """On 8 devices: 2 x 2 x 2 blocks against 8 slabs, by what each step moves; from the geometry 6 n^2 and 14 n^2 elements, and edges."""
    each = [(moved(command, folder, tiles, 5) - moved(command, folder, tiles, 3)) / 2 for tiles in ((2, 2, 2), (8, 1, 1))]
    n, wrong = 48, 0
    if not 6 * n * n * 8 <= each[0] <= 0.75 * each[1] or each[1] < 14 * n * n * 8:
        wrong = 1
        print("FAILED", end=" ")
    print(f"halos of blocks move {each[0]:.0f} bytes a step, of slabs {each[1]:.0f}: {each[0] / each[1]:.3f}")
    return wrong


def main(command, recheck, first=0, count=10):
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        failed += blocks_move_less(command, pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        for i in range(int(first), int(first) + int(count)):
            for maker in (elements, retiled, around, images):
                failed += check(command, recheck, f"{maker.__name__} {i}", maker(i), pathlib.Path(folder))
    print(f"{count} random graphs of each kind: {failed or 'none'} failed")
    return bool(failed)


sys.exit(main(*sys.argv[1:]))
