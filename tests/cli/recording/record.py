# SPDX-License-Identifier: Apache-2.0
"""docs/first-ten-minutes.md is a recording: its `console` blocks are screens of a terminal of 100 columns (tmux) in which its commands were typed, with
the Debian packages unpacked and nothing else of Gantry. A mark before a block, <!-- exit 3 -->, says how its last command ends; <!-- while it runs --> that
the screen is of a command that goes on; <!-- Ctrl-C, exit 130 --> that this key was pressed then.

record.py BUILD CPACK DOC            types the commands: they end as they should, and what was shown without a number is shown again
record.py BUILD CPACK DOC --update   writes the screens into the page

Exit code 77: there is no tmux, or there are no packages.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

BLOCK = re.compile(r"(?:<!-- (.*?) -->\n)?```console\n(.*?)^```$", re.S | re.M)
COLUMNS, LINES, PATIENCE = 100, 50, 150


class Terminal:
    """A shell in a tmux of its own. Each prompt appends the exit code of the command before it to a file."""

    def __init__(self, folder, root):
        self.socket, self.codes, home = folder / "tmux", folder / "codes", folder / "home"
        home.mkdir()
        self.codes.touch()
        variables = {"PATH": f"{root}/usr/bin:/usr/bin:/bin", "HOME": home, "LC_ALL": "C.UTF-8", "TERM": "screen", "PS1": "$ ", "PS2": "> ", "PROMPT_COMMAND": f"echo $? >> {self.codes}",
                     "PYTHONPATH": f"{root}/usr/lib/python3/dist-packages", "LD_LIBRARY_PATH": f"{root}/usr/lib"}
        shell = "env -i " + " ".join(f"{name}={shlex.quote(str(value))}" for name, value in variables.items()) + " bash --noprofile --norc"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", COLUMNS, "-y", LINES, "-c", home, shell)
        self.wait_for(1)

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", str(self.socket), *map(str, words)], check=True, capture_output=True, text=True, timeout=20).stdout

    def ended(self):
        return self.codes.read_text().split()

    def wait_for(self, count):
        """The exit code of the last command, once so many have ended and the prompt is there."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if len(self.ended()) >= count and self.screen()[-1:] == ["$"]:
                return int(self.ended()[-1])
            time.sleep(0.05)
        raise TimeoutError("\n".join(self.screen()))

    def type(self, lines):
        for line in lines:
            self.tmux("send-keys", "-l", line)
            self.tmux("send-keys", "Enter")

    def run(self, lines):
        count = len(self.ended()) + 1
        self.type(lines)
        return self.wait_for(count)

    def screen(self):
        lines = [line.rstrip() for line in self.tmux("capture-pane", "-p", "-J", "-S", "-").splitlines()]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def clear(self):
        self.run(["clear"])
        self.tmux("clear-history")

    def shown(self):
        """What a command that runs shows, a second after it began to."""
        end = time.monotonic() + PATIENCE
        while len(self.screen()) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(1)
        return self.screen()

    def end(self):
        self.tmux("kill-server")


def steps(block):
    """Commands, each with the lines that follow behind "> "."""
    found, typing = [], False
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append([line[2:]])
        elif typing and line.startswith("> "):
            found[-1].append(line[2:])
        typing = line.startswith(("$ ", "> "))
    return found


def record(terminal, mark, block):
    """The screen, and what is wrong."""
    wanted = re.search(r"exit (\d+)", mark or "")
    if mark and mark.startswith("Ctrl-C"):
        count = len(terminal.ended()) + 1
        terminal.tmux("send-keys", "C-c")
        code = terminal.wait_for(count)
    else:
        terminal.clear()
        *before, last = steps(block)
        for lines in before:
            code = terminal.run(lines)
            if code:
                return terminal.screen(), f"{lines[0]}: exit {code}"
        if mark == "while it runs":
            terminal.type(last)
            return terminal.shown(), None
        code = terminal.run(last)
    screen = terminal.screen()[:-1]
    return screen, None if code == int(wanted.group(1) if wanted else 0) else f"exit {code}, not {wanted.group(1) if wanted else 0}:\n" + "\n".join(screen)


def missing(block, screen):
    """Lines without a number that were shown and are no longer."""
    return [line for line in block.splitlines() if line and not re.search(r"\d", line) and line not in screen]


def main(build, cpack, doc, update=False):
    if not (shutil.which("tmux") and shutil.which("dpkg-deb") and os.path.exists(cpack)):
        print("skipped: no tmux, dpkg-deb or cpack")
        return 77
    page, wrong, count = pathlib.Path(doc), [], 0
    text = page.read_text()
    with tempfile.TemporaryDirectory(prefix="gantry-recording-") as name:
        folder = pathlib.Path(name)
        subprocess.run([cpack, "-G", "DEB", "--config", f"{build}/CPackConfig.cmake", "-B", folder / "packages"], check=True, capture_output=True, timeout=300)
        for package in (folder / "packages").rglob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, folder / "root"], check=True)
        terminal = Terminal(folder, folder / "root")
        try:
            new, at = "", 0
            for match in BLOCK.finditer(text):
                screen, failed = record(terminal, match.group(1), match.group(2))
                count += 1
                wrong += [failed] if failed else [f"no longer shown: {line}" for line in missing(match.group(2), screen) if not update]
                new += text[at:match.start(2)] + "\n".join(screen).replace(f"{name}/root", "").replace(name, "") + "\n"
                at = match.end(2)
            new += text[at:]
        finally:
            terminal.end()
    if update and not wrong:
        page.write_text(new)
    if count < 8:
        wrong.append(f"{doc} shows {count} screens")
    print("\n".join(wrong) or f"{count} screens are as recorded")
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:4], update="--update" in sys.argv))
