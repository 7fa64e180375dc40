# SPDX-License-Identifier: Apache-2.0
"""A browser without a screen, spoken to by the DevTools protocol over two pipes (--remote-debugging-pipe): messages are JSON, each
ended by a zero byte. chromedevtools.github.io/devtools-protocol."""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    return next(filter(None, map(shutil.which, BROWSERS)), None)


class Browser:
    """One tab. `told` are the page's errors and warnings, in the console or not caught."""

    def __init__(self, path, width=1400, height=860):
        self.folder = tempfile.TemporaryDirectory(prefix="gantry-browser-", ignore_cleanup_errors=True)
        to_read, self.to = os.pipe()
        self.out, to_write = os.pipe()
        words = [path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
                 "--disable-background-networking", "--hide-scrollbars", f"--window-size={width},{height}", f"--user-data-dir={self.folder.name}/profile",
                 "--remote-debugging-pipe", "about:blank"]
        # The browser reads from descriptor 3 and writes to 4.
        shell = ["/bin/sh", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "sh", *words]
        self.process = subprocess.Popen(shell, pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "HOME": self.folder.name})
        os.close(to_read)
        os.close(to_write)
        self.number, self.rest, self.events, self.told, self.session = 0, b"", [], [], None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        self.call("Runtime.enable")
        self.call("Log.enable")
        self.call("Page.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.to)
        os.close(self.out)
        self.process.terminate()
        self.process.wait(30)
        self.folder.cleanup()

    def message(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.rest:
            if not select.select([self.out], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser says nothing")
            some = os.read(self.out, 1 << 20)
            if not some:
                raise EOFError("the browser has ended")
            self.rest += some
        first, _, self.rest = self.rest.partition(b"\0")
        return json.loads(first)

    def note(self, event):
        """What the page says about itself."""
        p = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.told.append(p["exceptionDetails"].get("exception", {}).get("description") or p["exceptionDetails"]["text"])
        elif event.get("method") == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
            self.told.append(" ".join(str(a.get("value", a.get("description"))) for a in p["args"]))
        elif event.get("method") == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            self.told.append(p["entry"]["text"])

    def call(self, method, seconds=240, **params):
        self.number += 1
        text = {"id": self.number, "method": method, "params": params}
        if self.session:
            text["sessionId"] = self.session
        data = json.dumps(text).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        while True:
            m = self.message(seconds)
            if m.get("id") == self.number:
                if "error" in m:
                    raise RuntimeError(f"{method}: {m['error']}")
                return m["result"]
            self.events.append(m.get("method"))
            self.note(m)

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while "Page.loadEventFired" not in self.events:
            m = self.message(240)
            self.events.append(m.get("method"))
            self.note(m)

    def run(self, script):
        """The value of an expression in the page; a promise is waited for."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(f"{script}: {done['exceptionDetails'].get('exception', {}).get('description')}")
        return done["result"].get("value")

    def key(self, key, shift=False):
        named = len(key) > 1
        more = {"windowsVirtualKeyCode": {"Enter": 13, "Escape": 27}.get(key, 0)} if named else {"text": key}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=8 if shift else 0, **(more if kind == "keyDown" or named else {}))

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", buttons=0, clickCount=1)

    def drag(self, x, y, to_x, to_y):
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseMoved", (x + to_x) / 2, (y + to_y) / 2, button="left", buttons=1)
        self.mouse("mouseMoved", to_x, to_y, button="left", buttons=1)
        self.mouse("mouseReleased", to_x, to_y, button="left", buttons=0)

    def frame(self):
        """Waits until what was asked for has been drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def picture(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
