# SPDX-License-Identifier: Apache-2.0
"""gantry what-if and gantry serve: times of a small graph as worked out by hand, what is refused, the page's own questions (by node, where there is
one), and requests of nobody's browser: other hosts, tokens, methods, lengths and bytes, and connections that say nothing.

check_serve.py GANTRY SOURCE
"""
import contextlib
import json
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

NODE = next(filter(None, map(shutil.which, ("node", "nodejs"))), None)
# A byte takes 1 us, a route 0 us; T1 (10 us) gives 4 bytes to T2 (20 us).
MACHINE = {"gantry_machine": 1, "name": "two", "memories": [{"id": m, "capacity": "1GiB"} for m in ("host", "m0", "m1")],
           "devices": [{"id": "d0", "memory": "m0"}, {"id": "d1", "memory": "m1"}], "resources": {"wire": 0.001},
           "routes": [{"from": "*", "to": "*", "bandwidth_gbs": 0.001, "via": ["wire"]}], "model": {"launch_us": 0}}
GRAPH = {"gantry": 1, "buffers": {"a": {"dtype": "u8", "shape": [4]}},
         "nodes": [{"id": "T1", "work": {}, "cost": {"time_us": 10}, "writes": ["a"]}, {"id": "T2", "work": {}, "cost": {"time_us": 20}, "reads": ["a"]}]}
# What is asked, and when T2 ends.
ASKED = [(["--move", "T2=d1"], 10 + 4 + 20), (["--move", "T2=d1", "--route", "m0:m1=GBps=0.002"], 10 + 2 + 20), (["--move", "T2=d1", "--route", "m*:m*=latency_us=3"], 10 + 3 + 4 + 20),
         (["--move", "T2=d1", "--route", "m0:m1=GBps=0.004,latency_us=5"], 10 + 5 + 1 + 20), (["--move", "T2=d1", "--resource", "wire=0.0005"], 10 + 8 + 20),
         (["--move", "T2=d0"], 30), (["--move", "T2=d1", "--move", "T2=d0"], 30), (["--route", "m1:m0=GBps=0.1"], 30)]
REFUSED = [([], "nothing is to be changed"), (["--move", "T2"], "NODE=DEVICE"), (["--move", "T3=d0"], 'no node "T3"'), (["--move", "T2=d9"], 'no device "d9"'),
           (["--route", "m0:m1"], "FROM:TO="), (["--route", "m0:m1=GBps=0"], "FROM:TO="), (["--route", "m0:m1=GBps=1,"], "FROM:TO="), (["--route", "m0:m1=GBps=1x"], "FROM:TO="),
           (["--route", "m0:m1=GBps=nan"], "FROM:TO="), (["--route", "m0:m9=GBps=1"], 'no direct route from "m0" to "m9"'), (["--resource", "wire=0"], "NAME=GBps"),
           (["--resource", "wire"], "NAME=GBps"), (["--resource", "wires=1"], 'did you mean "wire"')]


class Check:
    def __init__(self, gantry, source, folder):
        self.gantry, self.source, self.folder, self.wrong = gantry, source, pathlib.Path(folder), []
        (self.folder / "g.json").write_text(json.dumps(GRAPH))
        (self.folder / "m.json").write_text(json.dumps(MACHINE))

    def expect(self, what, fine):
        if not fine:
            self.wrong.append(what)

    def run(self, *words):
        return subprocess.run([self.gantry, *words], cwd=self.folder, capture_output=True, text=True, timeout=100)


BASE = ["g.json", "--machine", "m.json", "--policy", "heft"]


def check_command(c):
    for words, us in ASKED:
        done = c.run("what-if", *BASE, *words, "--json")
        told = json.loads(done.stdout) if done.returncode == 0 else {}
        c.expect(f"{words}: {told.get('second', done.stderr)}, not {us} us", told and abs(told["second"]["makespan_us"] - us) < 1e-6 and told["unchanged_us"] == told["first"]["makespan_us"] == 30)
    for words, text in REFUSED:
        done = c.run("what-if", *BASE, *words)
        c.expect(f"{words}: {done.returncode} {done.stderr}", done.returncode == 2 and text in done.stderr and not done.stdout)
    done = c.run("what-if", *BASE, "--move", "T2=d1", "-o", "s.json", "--html", "d.html")
    c.expect(f"files: {done.stderr}", done.returncode == 0 and "T2  d0 -> d1" in done.stdout)
    c.expect("the answer is a schedule", c.run("check", "g.json", "s.json").returncode == 0)
    again = c.run("what-if", "g.json", "--schedule", "s.json", "--move", "T2=d0", "--json")
    c.expect(f"and can be asked again: {again.stderr}", again.returncode == 0 and json.loads(again.stdout)["second"]["makespan_us"] == 30)


# ---- the server ----

class Server:
    def __init__(self, c, *words):
        self.process = subprocess.Popen([c.gantry, "serve", *BASE, "-q", *words], cwd=c.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        assert self.address, self.process.stderr.read()
        parts = urllib.parse.urlsplit(self.address)
        self.host, self.port, self.token = parts.hostname, parts.port, parts.path.strip("/")

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=20)

    def send(self, data):
        """The status of the answer to these bytes, its head and its body; 0: there was none."""
        with self.connect() as s, contextlib.suppress(ConnectionResetError, BrokenPipeError):
            s.sendall(data)
            got = b""
            while more := s.recv(65536):
                got += more
            head, _, body = got.partition(b"\r\n\r\n")
            return int(head.split()[1]), head.decode(), body.decode()
        return 0, "", ""

    def ask(self, path="", method="GET", body=None, **fields):
        named = {"Host": f"127.0.0.1:{self.port}"} | ({"Content-Type": "application/json", "Content-Length": len(body)} if body is not None else {})
        named |= {name.replace("_", "-"): value for name, value in fields.items()}
        head = f"{method} /{self.token}/{path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in named.items() if v is not None) + "\r\n"
        return self.send(head.encode() + (body or b""))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


def check_answers(c, s):
    c.expect(f"address {s.address}", re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", s.address))
    status, head, body = s.ask()
    c.expect(f"the page: {status}", status == 200 and body.startswith("<!DOCTYPE html>") and 'id="data"' in body)
    for field in ("Cache-Control: no-store", "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer", "X-Frame-Options: DENY", "Connection: close"):
        c.expect(f"head of the page has {field}", field in head)
    status, _, body = s.ask("what-if", "POST", json.dumps({"move": ["T2=d1"]}).encode())
    c.expect(f"what if: {status}", status == 200 and 'id="data"' in body)
    status, _, body = s.ask("why", "POST", b'{"node": "T2"}')
    c.expect(f"why: {status} {body}", status == 200 and 'node "T2" on d0' in body and body == c.run("schedule", *BASE, "--explain", "T2").stdout)
    for path, text, told in (("what-if", b'{"move": ["T2=d9"]}', 'no device \\"d9\\"'), ("what-if", b'{"move": "T2"}', "arrays of texts"), ("what-if", b'{"route": [1]}', "arrays of texts"),
                             ("what-if", b"[]", "JSON object"), ("what-if", b"{", "JSON object"), ("what-if", b'{"a":1,"a":2}', "JSON object"), ("what-if", b"[" * 60000, "JSON object"),
                             ("what-if", b"\xff\x00", "JSON object"), ("why", b"{}", "node"), ("why", b'{"node": "x"}', 'no node \\"x\\"')):
        status, _, body = s.ask(path, "POST", text)
        c.expect(f"{path} {text[:40]}: {status} {body}", status == 400 and told in body and "message" in json.loads(body))


def check_hostile(c, s):
    own = f"127.0.0.1:{s.port}"
    first, good = f"GET /{s.token}/ HTTP/1.1\r\n", f"GET /{s.token}/ HTTP/1.1\r\nHost: {own}\r\n"
    for what, want, data in (
            ("another host", 403, first + "Host: evil.example\r\n\r\n"), ("another port", 403, first + "Host: 127.0.0.1:1\r\n\r\n"), ("no host", 403, first + "\r\n"),
            ("two hosts", 400, good + f"Host: {own}\r\n\r\n"), ("another origin", 403, good + "Origin: http://evil.example\r\n\r\n"), ("an opaque origin", 403, good + "Origin: null\r\n\r\n"),
            ("no token", 404, f"GET / HTTP/1.1\r\nHost: {own}\r\n\r\n"), ("another token", 404, f"GET /{'0' * 32}/ HTTP/1.1\r\nHost: {own}\r\n\r\n"),
            ("half a token", 404, f"GET /{s.token[:16]}/ HTTP/1.1\r\nHost: {own}\r\n\r\n"), ("a way up", 404, f"GET /{s.token}/../etc/passwd HTTP/1.1\r\nHost: {own}\r\n\r\n"),
            ("a method", 405, f"DELETE /{s.token}/ HTTP/1.1\r\nHost: {own}\r\n\r\n"), ("a version", 505, f"GET /{s.token}/ HTTP/3.0\r\nHost: {own}\r\n\r\n"),
            ("no version", 400, f"GET /{s.token}/\r\nHost: {own}\r\n\r\n"), ("a field without a name", 400, good + ": x\r\n\r\n"), ("a folded field", 400, good + " x: y\r\n\r\n"),
            ("a space before the colon", 400, good + "Origin : x\r\n\r\n"), ("a bare newline", 400, good + "A: b\nc: d\r\n\r\n"), ("a zero byte", 400, good + "A: \0\r\n\r\n"),
            ("nothing but ends of lines", 400, "\r\n\r\n"), ("a long head", 431, good + "A: " + "x" * 9000 + "\r\n\r\n"), ("an endless head", 431, "x" * 20000), ("many fields", 431, good + "a: b\r\n" * 100 + "\r\n")):
        status, _, _ = s.send(data.encode("latin-1"))
        c.expect(f"{what}: {status}, not {want}", status == want)
    for what, want, fields in (("a form", 415, {"Content_Type": "text/plain"}), ("no type", 415, {"Content_Type": None}), ("no length", 411, {"Content_Length": None}), ("a negative length", 400, {"Content_Length": "-1"}),
                               ("a length in hexadecimal", 400, {"Content_Length": "0x10"}), ("a huge length", 413, {"Content_Length": "9" * 30}), ("more than a body may have", 413, {"Content_Length": 65537}),
                               ("chunks", 501, {"Transfer_Encoding": "chunked"}), ("not found", 404, {})):
        status, _, _ = s.ask("nothing" if what == "not found" else "why", "POST", b'{"node": "T2"}', **fields)
        c.expect(f"{what}: {status}, not {want}", status == want)
    draw = random.Random(1)
    for _ in range(150):
        damaged = bytearray((good + "Origin: http://" + own + "\r\n\r\n").encode())
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(len(damaged) - 4)] = draw.randrange(256)
        status, _, _ = s.send(bytes(damaged))
        c.expect(f"{bytes(damaged)}: {status}", status in (200, 400, 403, 404, 405, 501, 505))


def check_silence(c, s):
    """Connections that say nothing, or only half, hold nobody up, and are closed."""
    idle = [s.connect() for _ in range(40)]
    half = s.connect()
    half.sendall(f"GET /{s.token}/ HTT".encode())
    begin = time.monotonic()
    c.expect("others wait in silence", s.ask()[0] == 200 and time.monotonic() - begin < 4)
    half.settimeout(20)
    c.expect("half a request is told that it is late", half.recv(100).startswith(b"HTTP/1.1 408"))
    for one in [*idle, half]:
        one.close()
    c.expect("and then it is as before", s.ask()[0] == 200)


def check_logic(c, s):
    """The page's own code asks the server: words, numbers of forms, answers, refusals."""
    script = pathlib.Path(__file__).with_name("ask.js")
    done = subprocess.run([NODE, script, c.source, s.address, "T2", "d1", "m0:m1"], capture_output=True, text=True, timeout=60)
    told = json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr}
    want = {"words": {"move": ["T2=d1"], "route": ["m0:m1=latency_us=1000"]}, "first": 30e6, "moved": [30e6, 34e6], "later": [30e6, 1034e6], "place": "d1", "pairs": [],
            "refused": 'graph "graph" has no node "no such node"; it has "T1", "T2"'}
    for key, value in want.items():
        c.expect(f"{key}: {told.get(key)}, not {value}", told.get(key) == value)
    rates = [r.get("rate") for r in told.get("rates", [])]
    c.expect(f"rates {rates}", rates == [None] * 4 + [{"gbs": 2, "latency": None}, {"gbs": None, "latency": 0}, {"gbs": 3.5, "latency": 2}])
    c.expect(f"why: {told.get('why')}", str(told.get("why")).startswith('node "T2" on d0'))


def check_panel(c, s):
    """What the panel's buttons do to the whole page."""
    done = subprocess.run([NODE, pathlib.Path(__file__).with_name("panel.js"), c.source, s.address, "T2", "d1"], capture_output=True, text=True, timeout=100)
    told = json.loads(done.stdout) if done.returncode == 0 and done.stdout else done.stderr
    want = ["makespan 30 \u00b5s", 'node "T2" on d0, from 10.000 us to 30.000 us; placed by heft', "first 30 \u00b5s \u00b7 second 34 \u00b5s", 'The rate must be a number of GB/s greater than 0, not "-1".',
            "first 30 \u00b5s \u00b7 second 1.034 ms", 2, None, "makespan 30 \u00b5s", '--move "T2=nowhere": machine "two" has no device "nowhere"; its first is "d0"', "makespan 30 \u00b5s"]
    c.expect(f"panel: {told}", len(told) == len(want) and all(w is None or (got == w if isinstance(w, int) else str(got).startswith(w)) for got, w in zip(told, want)))


def main(gantry, source):
    with tempfile.TemporaryDirectory(prefix="gantry-serve-") as folder:
        c = Check(gantry, source, folder)
        check_command(c)
        s = Server(c)
        try:
            check_answers(c, s)
            check_hostile(c, s)
            if NODE:
                check_logic(c, s)
                check_panel(c, s)
            check_silence(c, s)
            taken = c.run("serve", *BASE, "--port", str(s.port))
            c.expect(f"a port that is taken: {taken.returncode} {taken.stderr}", taken.returncode == 1 and f"port {s.port} of 127.0.0.1" in taken.stderr)
            with socket.socket() as outside:
                outside.bind(("127.0.0.2", 0))
                c.expect("no other address is listened on", outside.connect_ex(("127.0.0.2", s.port)) != 0)
        finally:
            code = s.end()
        c.expect(f"SIGTERM ends it: {code}", code == 143)
    print("\n".join(c.wrong[:40]) or "changes are answered as worked out by hand, and strangers get nothing")
    return 1 if c.wrong else 0


sys.exit(main(*sys.argv[1:]))
