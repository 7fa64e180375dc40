# SPDX-License-Identifier: Apache-2.0
"""The build id of library and modules follows from the headers that they share: from their names and bytes, from nothing else."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def headers(root):
    found = [p.relative_to(root).as_posix() for top in ("include/gantry", "src") for p in (root / top).rglob("*.h")]
    return sorted(name for name in found if not re.match(r"src/backends/(blas|cuda)/", name))


def write(cmake, script, root, names, to):
    subprocess.run([cmake, f"-DROOT={root}", f"-DHEADERS={','.join(names)}", f"-DTO={to}", "-P", script], check=True)
    return re.search(r'GY_BUILD_ID "([0-9a-f]{16})"', to.read_text()).group(1)


def main(cmake, source, built):
    source = pathlib.Path(source)
    script = source / "tools/cmake/write_build_id.cmake"
    names = headers(source)
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "elsewhere"
        for name in names:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, copy / name)
        to = pathlib.Path(folder) / "id.h"
        here = write(cmake, script, source, names, to)
        before = to.stat().st_mtime_ns
        assert write(cmake, script, copy, names, to) == here, "the id depends on the folder"
        assert to.stat().st_mtime_ns == before, "a file that would not change was written"
        assert f'"{here}"' in pathlib.Path(built).read_text(), f"the build has another id than its headers, {here}"
        seen = {here}
        for name in ("include/gantry/kernel.h", "src/run/backend.h", "src/graph/graph.h", "src/base/arena.h"):
            text = (copy / name).read_bytes()
            (copy / name).write_bytes(text + b"\n")
            seen.add(write(cmake, script, copy, names, to))
            (copy / name).write_bytes(text)
        assert len(seen) == 5, "a header changed and the id did not"
        assert write(cmake, script, copy, names[1:], to) not in seen, "a header less and the same id"
    print(f"build id {here} of {len(names)} headers")


main(sys.argv[1], sys.argv[2], sys.argv[3])
