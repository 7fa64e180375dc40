# SPDX-License-Identifier: Apache-2.0
"""The library never prints, exits or aborts; planning has no clock and no random numbers; memory has one door."""
import pathlib
import re
import sys

RULES = [
    (("src", "scheduler", "kernels"), r"(?<![\w_])(printf|puts|putchar|perror|abort|exit|_exit)\s*\(", "prints or ends the process"),
    (("src", "scheduler", "kernels"), r"(?<![\w_])(stderr|stdout)(?![\w_])", "prints"),
    (("scheduler", "src/graph", "src/schedule", "src/sim"), r"(?<![\w_])(gy_now_ns|clock_gettime|gettimeofday|time|clock|rand|random|rand_r|getenv)\s*\(", "reads a clock, chance or the environment while planning"),
    (("src", "scheduler", "kernels"), r"(?<![\w_>.])(malloc|calloc|realloc|strdup|strndup|asprintf)\s*\(", "allocates past base/memory.h"),
]
ALLOWED = {("src/base/memory.c", "allocates past base/memory.h")}


def main(root):
    wrong = 0
    for tops, pattern, text in RULES:
        for top in tops:
            for file in sorted((root / top).rglob("*.[ch]")):
                path = str(file.relative_to(root))
                if (path, text) in ALLOWED:
                    continue
                code = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), file.read_text(), flags=re.S)
                code = re.sub(r'"(\\.|[^"\\\n])*"', '""', code)
                for number, line in enumerate(code.splitlines(), 1):
                    if re.search(pattern, line) and "__attribute__" not in line:
                        print(f"{path}:{number}: {text}: {line.strip()}")
                        wrong += 1
    return 1 if wrong else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
