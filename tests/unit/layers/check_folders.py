# SPDX-License-Identifier: Apache-2.0
"""No folder holds more sources than a reader can overlook: one that has more than MOST becomes several rooms."""
import collections
import pathlib
import sys

MOST = 35


def main(root):
    count = collections.Counter()
    for top in ("src", "scheduler", "kernels", "tools", "tests"):
        for file in (root / top).rglob("*.c"):
            count[str(file.parent.relative_to(root))] += 1
    crowded = {folder: sources for folder, sources in count.items() if sources > MOST}
    for folder, sources in sorted(crowded.items()):
        print(f"{folder} has {sources} sources, the most is {MOST}: give it rooms")
    print(f"{len(count)} folders, the largest has {max(count.values())} sources")
    return 1 if crowded or len(count) < 30 else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
