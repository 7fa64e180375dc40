# SPDX-License-Identifier: Apache-2.0
"""Ways to damage a schedule. Each takes (random, schedule as an object) and says whether it did anything."""


def pick(r, rows):
    return r.choice(rows) if rows else None


def near(r, number):
    """Another number that may be right or wrong."""
    return r.choice((number + 1, max(0, number - 1), 0, number + 256, number * 2, r.randint(0, 20), max(0, number - 256)))


def drop_row(r, s):
    return bool(s["sync"]) and (s["sync"].pop(r.randrange(len(s["sync"]))), True)[1]


def drop_rows(r, s):
    kept = [row for row in s["sync"] if r.random() < 0.8]
    changed = len(kept) != len(s["sync"])
    s["sync"] = kept
    return changed


def double_row(r, s):
    row = pick(r, s["sync"])
    if row:
        s["sync"].insert(r.randrange(len(s["sync"]) + 1), dict(row))
    return bool(row)


def swap_rows(r, s):
    if len(s["sync"]) < 2:
        return False
    a, b = r.sample(range(len(s["sync"])), 2)
    s["sync"][a], s["sync"][b] = s["sync"][b], s["sync"][a]
    return True


def row_number(r, s):
    row = pick(r, s["sync"])
    if not row:
        return False
    key = r.choice(("from", "to", "slot", "distance"))
    row[key] = r.choice((near(r, row.get(key, 0)), r.randrange(len(s["ops"])), len(s["ops"]), 1))
    return True


def row_word(r, s):
    row = pick(r, s["sync"])
    if not row:
        return False
    if r.random() < 0.3:
        row["why"] = r.choice(("data", "order", "reuse", "luck"))
        return True
    row["by"] = r.choice(("lane", "lane", "event", "edge", "flag"))
    if r.random() < 0.7:
        if row["by"] in ("event", "flag"):
            row.setdefault("slot", r.randrange(len(s["ops"])))
        else:
            row.pop("slot", None)
    return True


def row_ends(r, s):
    row = pick(r, s["sync"])
    if row:
        row["from"], row["to"] = row["to"], row["from"]
    return bool(row)


def counter_number(r, s):
    one = pick(r, s.get("counters", []))
    if not one:
        return False
    rows = r.choice((one["signals"], one["waits"], [one]))
    row = pick(r, rows)
    if rows is one["waits"] and row:
        i = r.randrange(3)
        row[i] = r.choice((row[i] + 1, max(0, row[i] - 1), r.randrange(len(s["ops"]))))
    elif rows is one["signals"] and row is not None:
        rows[rows.index(row)] = r.choice((row + 1, max(0, row - 1), r.randrange(len(s["ops"]))))
    else:
        one[r.choice(("from", "to"))] = r.randrange(len(s["lanes"]) + 1)
    return True


def drop_counter(r, s):
    """A wait, with the signal that is for nobody else then; a signal; or all of it."""
    one = pick(r, s.get("counters", []))
    if not one or not one["waits"] or not one["signals"]:
        return False
    row = r.choice(one["waits"])
    if r.random() < 0.2:
        one["signals"].pop(r.randrange(len(one["signals"])))
    else:
        one["waits"].remove(row)
        if type(row) is list and len(row) == 3 and not any(other[1] == row[1] for other in one["waits"]) and 1 <= row[1] <= len(one["signals"]):
            one["signals"].pop(row[1] - 1)
            for other in one["waits"]:
                other[1] -= other[1] > row[1]
    if not one["waits"] or r.random() < 0.1:
        s["counters"].remove(one)
    return True


def op_lane(r, s):
    op = pick(r, s["ops"])
    if "lanes" in op:
        i = r.randrange(len(op["lanes"]))
        op["lanes"][i] = r.randrange(len(s["lanes"]) + 1)
    else:
        op["lane"] = r.randrange(len(s["lanes"]) + 1)
    return True


def rename(s, new):
    """Positions after a change of the order; `new` maps old positions to new ones or None."""
    for i, op in enumerate(s["ops"]):
        if "position" in op:
            op["position"] = i
    s["sync"] = [row for row in s["sync"] if new(row["from"]) is not None and new(row["to"]) is not None]
    for row in s["sync"]:
        row["from"], row["to"] = new(row["from"]), new(row["to"])


def swap_ops(r, s):
    if len(s["ops"]) < 2:
        return False
    a = r.randrange(len(s["ops"]) - 1)
    b = a + 1 if r.random() < 0.7 else r.randrange(len(s["ops"]))
    s["ops"][a], s["ops"][b] = s["ops"][b], s["ops"][a]
    if r.random() < 0.9:
        rename(s, lambda i: {a: b, b: a}.get(i, i))
    return True


def drop_op(r, s):
    a = r.randrange(len(s["ops"]))
    del s["ops"][a]
    rename(s, lambda i: None if i == a else i - (i > a))
    for row in s["sync"]:
        if row.get("slot") == len(s["ops"]):
            row["slot"] = 0
    return True


def double_op(r, s):
    a = r.randrange(len(s["ops"]))
    copy = {**s["ops"][a], "uses": [list(u) for u in s["ops"][a]["uses"]]}
    if r.random() < 0.5 and "node" in copy:
        copy["repeat"] = True
    s["ops"].insert(a + 1, copy)
    rename(s, lambda i: i + (i > a))
    return True


def batch_length(r, s):
    op = pick(r, [op for op in s["ops"] if op.get("batch")])
    if op is None:
        return False
    op["batch"] += r.choice((-1, 1))
    return True


def batch_begins(r, s):
    """Two launches, or collectives, that stand next to each other in their lanes become one."""
    ops, on = s["ops"], lambda op: op.get("lanes", op.get("lane"))
    op = pick(r, [a for a, b in zip(ops, ops[1:]) if a["kind"] == b["kind"] and a["kind"] in ("launch", "collective") and on(a) == on(b)])
    if op is None:
        return False
    op["batch"] = 2
    return True


def batch_row(r, s):
    """Something inside of a batch waits."""
    heads = [i for i, op in enumerate(s["ops"]) if op.get("batch")]
    if not heads:
        return False
    head = pick(r, heads)
    s["sync"].append({"from": r.randrange(head + 1), "to": head + r.randrange(s["ops"][head]["batch"]), "by": "edge", "why": "order"})
    return True


def op_word(r, s):
    op = pick(r, s["ops"])
    key = r.choice(("kind", "node", "collective", "reduce", "algorithm", "cost", "repeat", "iteration", "spare", "batch"))
    words = {"kind": ("launch", "host", "fill", "copy", "collective", "evict", "fetch"), "node": s["nodes"] + ["nobody"],
             "collective": ("all_reduce", "reduce", "broadcast", "scatter", "gather", "all_gather", "reduce_scatter", "all_to_all"),
             "reduce": ("sum", "min", "max", "prod"), "cost": ("given", "measured", "roofline"), "repeat": (True, False),
             "algorithm": ("copy_engine", "ring", "tree", "recursive", "one_shot", "two_shot", "islands", "counters", "nccl"), "iteration": (0, 1, 2, 5), "spare": (0, 1, 500, 999, 1000, -1),
             "batch": (0, 1, 2, 3, 5)}
    if key in op and r.random() < 0.2:
        del op[key]
    else:
        op[key] = r.choice(words[key])
    return True


def op_time(r, s):
    op = pick(r, s["ops"])
    i = r.randrange(3)
    op["ps"][i] = near(r, op["ps"][i])
    return True


def op_position(r, s):
    op = pick(r, s["ops"])
    if r.random() < 0.5:
        op.pop("position", None)
    else:
        op["position"] = near(r, op.get("position", 0))
    return True


def use_number(r, s):
    op = pick(r, [op for op in s["ops"] if op["uses"]])
    if not op:
        return False
    use = r.choice(op["uses"])
    i = r.randrange(1, len(use))
    use[i] = r.choice((near(r, use[i]), r.randrange(len(s["instances"]) + 1)))
    return True


def use_twin(r, s):
    """Another instance of the same rows."""
    op = pick(r, [op for op in s["ops"] if op["uses"]])
    if not op:
        return False
    use = r.choice(op["uses"])
    mine = s["instances"][use[1]]
    twins = [i for i, one in enumerate(s["instances"]) if i != use[1] and one["rows"][0] <= use[2] and use[3] <= one["rows"][1]
             and (one["value"] == mine["value"] or r.random() < 0.2)]
    if twins:
        use[1] = r.choice(twins)
    return bool(twins)


def use_mode(r, s):
    op = pick(r, [op for op in s["ops"] if op["uses"]])
    if not op:
        return False
    r.choice(op["uses"])[0] = r.choice(("read", "write", "readwrite", "sum", "min", "max", "prod"))
    return True


def use_list(r, s):
    op = pick(r, [op for op in s["ops"] if op["uses"]])
    if not op:
        return False
    uses, i, how = op["uses"], r.randrange(len(op["uses"])), r.randrange(3)
    if how == 0:
        del uses[i]
    elif how == 1:
        uses.insert(i, list(uses[i]))
    else:
        r.shuffle(uses)
    return True


def both_rows(r, s):
    """A copy of fewer rows, at both ends."""
    op = pick(r, [op for op in s["ops"] if op["kind"] in ("copy", "evict", "fetch") and len(op["uses"]) == 2])
    if not op:
        return False
    i, by = r.choice((2, 3)), r.choice((1, -1))
    for use in op["uses"]:
        use[i] = max(0, use[i] + by)
    return True


def offset(r, s):
    one = pick(r, s["instances"])
    if not one:
        return False
    other = r.choice(s["instances"])
    one["offset"] = r.choice((other["offset"], one["offset"] + 256, max(0, one["offset"] - 256), near(r, one["offset"]),
                              other["offset"] + other["bytes"] // 256 * 256))
    return True


def instance_number(r, s):
    one = pick(r, s["instances"])
    if not one:
        return False
    key = r.choice(("value", "bytes", "rows"))
    if key == "rows":
        one["rows"][r.randrange(2)] = near(r, r.choice(one["rows"]))
    else:
        one[key] = r.choice((near(r, one[key]), r.randrange(len(s["values"]) + 1)))
    return True


def instance_word(r, s):
    one = pick(r, s["instances"])
    if not one:
        return False
    key = r.choice(("memory", "space", "role", "op"))
    words = {"memory": [m["id"] for m in s["machine"]["memories"]] + ["moon"], "space": ("slab", "staging", "input", "output"),
             "role": ("data", "accumulator", "persist", "external"), "op": ("sum", "min", "max", "prod")}
    if key in one and key == "op" and r.random() < 0.3:
        del one[key]
    else:
        one[key] = r.choice(words[key])
    if r.random() < 0.5:
        one.pop("op", None)
        if one["role"] == "accumulator":
            one["op"] = "sum"
    return True


def drop_instance(r, s):
    """An instance that no op uses."""
    a = r.randrange(len(s["instances"]))
    if any(use[1] == a for op in s["ops"] for use in op["uses"]):
        return False
    del s["instances"][a]
    for op in s["ops"]:
        for use in op["uses"]:
            use[1] -= use[1] > a
    return True


def add_instance(r, s):
    one = pick(r, s["instances"])
    if one:
        s["instances"].append({**one, "rows": list(one["rows"])})
    return bool(one)


def numbers(r, s):
    """A size of a slab or window, or another number at the top."""
    key = r.choice(("slabs", "slabs", "windows", "staging", "in_flight", "staging_window", "makespan_ps", "bound_ps", "unroll", "effort"))
    if key in ("slabs", "windows"):
        rows = s.get(key)
        if not rows:
            return False
        i = r.randrange(len(rows))
        rows[i] = near(r, rows[i])
        if r.random() < 0.1:
            rows.pop()
    else:
        s[key] = near(r, s.get(key, 0))
    return True


def top_word(r, s):
    key = r.choice(("policy", "objective", "replay", "seed", "balance", "graph"))
    s[key] = r.choice(("makespan", "period", "max_load", "stream", "graph", "device", "auto", "static", "dynamic", "0", "7", "x"))
    return True


def drop_key(r, s):
    target = r.choice((s, pick(r, s["ops"]), pick(r, s["instances"]), pick(r, s["sync"]), pick(r, s["lanes"]), pick(r, s["values"])))
    if not target:
        return False
    key = r.choice([k for k in target if k != "graph_hash"])
    del target[key]
    return True


def wrong_type(r, s):
    target = r.choice((s, pick(r, s["ops"]), pick(r, s["instances"]), pick(r, s["sync"]), pick(r, s["lanes"]), pick(r, s["values"])))
    if not target:
        return False
    key = r.choice([k for k in target if k not in ("machine", "graph_hash", "params")])
    target[key] = r.choice((None, "text", -1, 1.5, [], {}, True, 2**63, [1, 2], 10**30))
    return True


def new_key(r, s):
    target = r.choice((s, pick(r, s["ops"]), pick(r, s["instances"]), pick(r, s["sync"])))
    if target is None:
        return False
    target[r.choice(("colour", "slot", "op", "lanes", "lane", "distance", "windows", "phases"))] = r.choice((0, 1, [], "sum"))
    return True


def value_number(r, s):
    one = pick(r, s["values"])
    if not one:
        return False
    key = r.choice(list(one))
    one[key] = near(r, one[key]) if isinstance(one[key], int) else "somebody"
    return True


def lane(r, s):
    one = r.choice(s["lanes"]) if s["lanes"] else None
    if not one:
        return False
    if r.random() < 0.5:
        one["kind"] = r.choice(("compute", "copy", "collective"))
    else:
        one["device"] = r.choice([d["id"] for d in s["machine"]["devices"]] + ["nobody"])
    return True


def node_name(r, s):
    i = r.randrange(len(s["nodes"]))
    how = r.randrange(3)
    if how == 0:
        s["nodes"][i] = r.choice(s["nodes"])
    elif how == 1:
        del s["nodes"][i]
    else:
        r.shuffle(s["nodes"])
    return True


def cut(r, s):
    if not s["bounds"]:
        return False
    name = r.choice(list(s["bounds"]))
    cuts = s["bounds"][name]
    how = r.randrange(3)
    if how == 0:
        del s["bounds"][name]
    elif how == 1 or not cuts:
        s["bounds"][r.choice(("nobody", name))] = list(cuts)
    else:
        i = r.randrange(len(cuts))
        cuts[i] = near(r, cuts[i])
    return True


def memory(r, s):
    one = r.choice(s["machine"]["memories"])
    one["capacity"] = r.choice((s["slabs"][s["machine"]["memories"].index(one)] or 1, 256, 1024, one["capacity"] * 2))
    if r.random() < 0.3:
        one["reserved"] = r.choice((0, 1, 256, one["capacity"]))
    return True


def route(r, s):
    routes = s["machine"].get("routes")
    if not routes:
        return False
    del routes[r.randrange(len(routes))]
    return True


def collective(r, s):
    """A collective of another kind, by another algorithm, of other ranks, lanes or rows."""
    op = pick(r, [op for op in s["ops"] if op["kind"] == "collective"])
    if not op or not op["uses"]:
        return False
    use, how = r.choice(op["uses"]), r.randrange(7)
    if how == 0:
        op["algorithm"] = r.choice(("copy_engine", "ring", "tree", "recursive", "one_shot", "two_shot", "islands", "counters", "nccl"))
    elif how == 1:
        op["collective"] = r.choice(("all_reduce", "reduce", "broadcast", "scatter", "gather", "all_gather", "reduce_scatter", "all_to_all"))
    elif how == 2:
        op["reduce"] = r.choice(("sum", "min", "max", "prod"))
    elif how == 3:
        op["lanes"].append(r.choice(op["lanes"]))
    elif how == 4:
        use[4] = r.randrange(len(op["lanes"]))
    elif how == 5:
        use[2 + r.randrange(2)] += r.choice((1, -1))
        use[2] = max(0, use[2])
    else:
        a, b = r.choice(op["uses"]), r.choice(op["uses"])
        a[1:], b[1:] = b[1:], a[1:]
    return True


def phase_number(r, s):
    one, key = pick(r, s["phases"]), r.choice(("first", "iterations", "starts", "every", "loop", "nodes", "hand_over_ps"))
    if key == "nodes":
        i = r.randrange(2)
        one[key][i] = r.choice((near(r, one[key][i]), len(s["nodes"])))
    elif key in one and r.random() < 0.2:
        del one[key]
    else:
        one[key] = r.choice((near(r, one.get(key, 0)), r.randint(0, 12), one.get("iterations", 1) * 2))
    return True


def phase_list(r, s):
    phases, how = s["phases"], r.randrange(4)
    a, b = r.randrange(len(phases)), r.randrange(len(phases))
    if how == 0:
        del phases[a]
    elif how == 1:
        phases.insert(b, phases[a])
    elif how == 2:
        phases[a], phases[b] = phases[b], phases[a]
    else:
        phases[a]["schedule"], phases[b]["schedule"] = phases[b]["schedule"], phases[a]["schedule"]
    return how < 2 or a != b


def phase_split(r, s):
    """The starts of a phase in two phases: right, if both find and leave the same."""
    rows = [one for one in s["phases"] if one.get("starts", 1) > 1]
    if not rows:
        return False
    one = r.choice(rows)
    many = r.randint(1, one["starts"] - 1)
    rest = {**one, "first": one["first"] + many * one["iterations"], "starts": one["starts"] - many}
    one["starts"] = many
    s["phases"].insert(s["phases"].index(one) + 1, rest)
    return True


def phase_merge(r, s):
    """Two phases of one loop as one."""
    pairs = [i for i, (a, b) in enumerate(zip(s["phases"], s["phases"][1:])) if "loop" in a and a["loop"] == b.get("loop")]
    if not pairs:
        return False
    i = r.choice(pairs)
    a, b = s["phases"][i:i + 2]
    b["first"], b["starts"] = a["first"], a.get("starts", 1) + b.get("starts", 1)
    s["phases"][i:i + 2] = [r.choice((b, {**a, "starts": b["starts"]}))]
    return True


def stray(r, s):
    """The whole has something that belongs in a phase."""
    key = r.choice(("values", "lanes", "instances", "ops", "sync"))
    s[key] = r.choice(s["phases"])["schedule"][key]
    return bool(s[key])


def keeping(r, s):
    """Rows of a phase that persist, or do not: what crosses from phase to phase depends on it."""
    one = pick(r, [one for one in r.choice(s["phases"])["schedule"]["instances"] if one["role"] in ("data", "persist")])
    if one:
        one["role"] = "data" if one["role"] == "persist" else "persist"
    return bool(one)


def other_whole(r, s):
    """A phase of another graph, or larger than the whole says."""
    one, key = r.choice(s["phases"])["schedule"], r.choice(("graph_hash", "slabs", "staging", "in_flight", "bounds"))
    if key == "graph_hash":
        one[key] = "1" + one[key][1:]
    elif key == "slabs":
        one[key][r.randrange(len(one[key]))] += r.choice((1, 256))
    elif key == "bounds":
        return cut(r, one)
    else:
        one[key] += r.choice((1, 256))
    return True


def scratch(r, data):
    """Damages the bytes of a file, behind the hash of the graph and the machine."""
    i, how = r.randrange(max(data.find(b'"slabs"'), len(data) // 2), len(data)), r.randrange(6)
    if how == 0:
        return data[:i]
    if how == 1:
        return data[:i] + data[i + 1:]
    if how == 2:
        return data[:i] + data[i:i + 1] + data[i:]
    if how == 3:
        return data.replace(b'"kind": ', b'"kind": "copy", "kind": ', 1)
    return data[:i] + r.choice((b"0", b"9", b"-", b",", b'"', b"}", b"\xff", b"\x01", b"e", b".", b"\\", b" ", b"null")) + data[i + 1:]


ALL = [counter_number, counter_number, drop_counter, drop_counter, batch_length, batch_begins, batch_row, drop_row, drop_row, drop_row, drop_rows, double_row, swap_rows, row_number, row_word, row_ends, op_lane, op_lane, swap_ops, swap_ops,
       drop_op, double_op, op_word, op_word, op_time, op_position, use_number, use_number, use_twin, use_twin, use_mode, use_list,
       both_rows, collective, collective, collective, offset, offset, offset, instance_number, instance_word, drop_instance, add_instance, numbers, numbers, top_word,
       drop_key, wrong_type, new_key, value_number, lane, node_name, cut, memory, route]

# Of a schedule in phases: what its list of phases and its head can suffer. Any of ALL is for the schedule of one phase.
WHOLE = [phase_number, phase_number, phase_number, phase_list, phase_split, phase_split, phase_merge, phase_merge, stray, other_whole,
         keeping, keeping, numbers, top_word, drop_key, wrong_type, new_key, node_name, cut, memory, route]
