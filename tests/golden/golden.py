# SPDX-License-Identifier: Apache-2.0
"""The golden table: graph x machine x policy -> makespan, gap, bytes moved, highest peak, by prediction.

golden.py GANTRY ROOT            compares with tests/golden/results.csv; a difference is printed and fails
golden.py GANTRY ROOT --update   writes the table anew: commit it with the reason for every change
"""
import csv
import io
import json
import pathlib
import subprocess
import sys

HEAD = ["graph", "machine", "policy", "makespan_us", "gap", "bytes_moved", "peak_bytes"]
MACHINES = ["hgx-h200-8", "dgx1-v100", "a100-pcie-4", "rtx-mixed-3", "sirocco", "host-4"]


def compare(command, graph, *arguments):
    done = subprocess.run([command, "compare", graph, "--json", "--effort", "0", *arguments], capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"gantry compare {graph} {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["policies"]


def rows(command, root):
    pairs = [(path, machine) for path in sorted((root / "graphs").glob("*.json")) for machine in MACHINES]
    pairs += [(path, None) for path in sorted((root / "graphs/reference").glob("*.json"))]
    for path, machine in pairs:
        where = ["--machine", root / "graphs/machines" / f"{machine}.json"] if machine else []
        for row in compare(command, path, *where):
            figures = [f"{row[key]:.6g}" if row.get(key) is not None else "-" for key in HEAD[3:]]
            yield [path.stem, machine or "own", row["policy"], *figures]


def main(command, root, update=False):
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(HEAD)
    table.writerows(rows(command, pathlib.Path(root)))
    golden = pathlib.Path(root) / "tests/golden/results.csv"
    if update:
        golden.write_text(text.getvalue())
        return 0
    old, new = golden.read_text().splitlines(), text.getvalue().splitlines()
    for line in sorted(set(old) - set(new)):
        print("-", line)
    for line in sorted(set(new) - set(old)):
        print("+", line)
    print(f"{len(new) - 1} rows, {len(set(new) - set(old))} changed; if that is meant: golden.py GANTRY ROOT --update")
    return 0 if old == new else 1


sys.exit(main(sys.argv[1], sys.argv[2], "--update" in sys.argv))
