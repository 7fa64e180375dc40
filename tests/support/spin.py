# SPDX-License-Identifier: Apache-2.0
"""All states of a model in Promela, by Spin."""
import re
import shutil
import subprocess
import tempfile


def there():
    return bool(shutil.which("spin") and shutil.which("gcc"))


def verify(model, defines=()):
    """Whether one of its states is wrong, and how many were looked at: all, or it raises."""
    with tempfile.TemporaryDirectory() as folder:
        def call(*words):
            return subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200).stdout
        call("spin", *(f"-D{name}" for name in defines), "-a", str(model))
        call("gcc", "-O1", "-w", "-DSAFETY", "-o", "pan", "pan.c")
        said = call("./pan", "-m100000")
    errors = re.search(r"errors: (\d+)", said)
    states = re.search(r"(\d+) states, stored", said)
    if not errors or not states or "truncated" in said or "max search depth too small" in said:
        raise RuntimeError(said)
    return int(errors[1]) > 0, int(states[1])
