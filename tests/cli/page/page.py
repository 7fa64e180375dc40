# SPDX-License-Identifier: Apache-2.0
"""Reads the data of a page as src/export/page/page.h describes it: a second reader, which shares nothing with the page's own."""
import base64
import re


class Data:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self):
        return unzigzag(self.number())

    def text(self):
        length = self.number()
        self.at += length
        return self.data[self.at - length:self.at].decode()

    def names(self):
        names, before = [], b""
        for _ in range(self.number()):
            shared, rest = self.number(), self.number()
            before = before[:shared] + self.data[self.at:self.at + rest]
            self.at += rest
            names.append(before.decode())
        return names

    def column(self, count):
        return [self.number() for _ in range(count)]

    def sparse(self, count):
        column = []
        while len(column) < count:
            column.append(self.number())
            if column[-1] == 0:
                column += [0] * self.number()
        assert len(column) == count, "more zeros than items"
        return column

    def list(self, read):
        return [read() for _ in range(self.number())]


def unzigzag(number):
    return -(number + 1) // 2 if number % 2 else number // 2


def summed(steps, first=0):
    sums = []
    for step in steps:
        first += step
        sums.append(first)
    return sums


def read_ops(d, part):
    count = part["count"] = d.number()
    kinds = d.column(count)
    part["kind"], part["critical"] = [part["kinds"][k % 8] for k in kinds], [k >> 5 & 1 for k in kinds]
    part["repeat"], part["joined"] = [k >> 3 & 1 for k in kinds], [k >> 4 & 1 for k in kinds]
    part["group"] = d.column(count)
    part["node"] = [n - 1 for n in summed(d.signed() for _ in range(count))]
    part["iteration"], word = d.sparse(count), d.sparse(count)
    lanes = [[c // 2] if c % 2 == 0 else [d.number() for _ in range(c // 2)] for c in (d.number() for _ in range(count))]
    ends, start, late = {}, [], [d.signed() for _ in range(count)]
    length = d.column(count)
    for i in range(count):
        start.append(late[i] + (ends.get(lanes[i][0], 0) if lanes[i] else 0))
        ends |= dict.fromkeys(lanes[i], start[i] + length[i])
    alone = [length[i] + unzigzag(more) for i, more in enumerate(d.sparse(count))]
    part |= {"lanes": lanes, "ps": [[alone[i], start[i], start[i] + length[i]] for i in range(count)], "bytes": d.column(count)}
    part["uses"], before = [], 0
    for _ in range(count):
        uses = []
        for _ in range(d.number()):
            coded = d.number()
            before += unzigzag(coded >> 4)
            region = part["regions"][d.number()] if not coded & 1 else part["instances"][before]
            uses.append([coded >> 1 & 7, before, region["first"], region["first"] + region["rows"]])
        part["uses"].append(uses)
    part["waits"] = [[(i - (c >> 2), part["reasons"][c & 3]) for c in d.list(d.number)] for i in range(count)]
    words = d.list(d.text)
    part["word"] = [words[w - 1] if w else None for w in word]


def read_schedule(d, part):
    part |= {"graph": d.text(), "machine": d.text(), "policy": d.text(), "makespan": d.number(), "bound": d.number()}
    part["memories"] = d.list(lambda: {"id": d.text(), "capacity": d.number(), "slab": d.number()})
    part["devices"] = d.list(lambda: {"id": d.text(), "memory": d.number()})
    part["queues"] = d.list(lambda: {"device": d.number(), "kind": d.number(), "label": d.text()})
    part["groups"] = d.list(lambda: {"label": d.text(), "fill": d.text(), "line": d.text()})
    part["kinds"], part["reasons"], part["nodes"] = d.list(d.text), d.list(d.text), d.names()
    names = d.names()
    part["values"] = [{"name": n, "generation": g, "rows": r} for n, g, r in zip(names, d.column(len(names)), d.column(len(names)))]
    names = d.names()
    value = summed(map(unzigzag, d.sparse(len(names))))
    first = summed(d.signed() for _ in names)
    rows = summed(map(unzigzag, d.sparse(len(names))))
    part["regions"] = [{"name": n, "value": v, "first": f, "rows": r} for n, v, f, r in zip(names, value, first, rows)]
    count = d.number()
    region, memory, place = [part["regions"][r] for r in summed(d.signed() for _ in range(count))], d.column(count), d.column(count)
    size = summed(map(unzigzag, d.sparse(count)))
    offset = summed(d.signed() for _ in range(count))
    part["instances"] = [{"value": r["value"], "memory": m, "space": p % 4, "role": p // 4, "first": r["first"], "rows": r["rows"], "offset": o, "bytes": b}
                         for r, m, p, o, b in zip(region, memory, place, offset, size)]
    read_ops(d, part)


def read(path):
    """The parts of a page, and the page's text without the data."""
    text = path.read_text()
    found = re.search(r'<script type="text/plain" id="data">([A-Za-z0-9+/=]*)</script>', text)
    d, parts = Data(base64.b64decode(found.group(1), validate=True)), []
    assert d.text() == "gantry 2"
    for _ in range(d.number()):
        part = {"title": d.text()}
        base = d.number()
        if base:
            start = summed(d.signed() for _ in range(parts[base - 1]["count"]))
            part |= {"predicted": parts[base - 1], "count": len(start), "ns": [[s, s + d.number()] for s in start]}
        else:
            read_schedule(d, part)
        part["match"] = [m - 1 for m in summed(d.signed() for _ in range(part["count"]))] if d.number() else None
        parts.append(part)
    assert d.at == len(d.data), "bytes are left over"
    return parts, text[:found.start(1)] + text[found.end(1):]
