"""A headless Chromium, driven by its DevTools protocol through a pair of pipes."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
SECONDS = 60


class Browser:
    """One tab. ``console`` holds every message, exception and request but those for the page itself."""

    def __init__(self, folder):
        commands, self._commands = os.pipe()
        self._replies, replies = os.pipe()
        pipes = {3: commands, 4: replies}
        script = f'exec "$@" 3<&{commands} 4>&{replies}'
        command = [CHROMIUM, *OPTIONS, f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", script, "chromium", *command],
            pass_fds=tuple(pipes.values()),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"HOME": str(folder)},
        )
        for pipe in pipes.values():
            os.close(pipe)
        self._last, self._rest, self._session, self.console = 0, b"", None, []
        (tab,) = (each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        attach = {"targetId": tab["targetId"], "flatten": True}
        self._session = self.call("Target.attachToTarget", **attach)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Call a method, and return its result."""
        self._last += 1
        session = {"sessionId": self._session} if self._session else {}
        content = {"id": self._last, "method": method, "params": parameters, **session}
        os.write(self._commands, json.dumps(content).encode() + b"\0")
        while (message := self._next()).get("id") != self._last:
            self._note(message)
        assert "error" not in message, message["error"]
        return message["result"]

    def open(self, file, width, *, dark=False):
        """Open a file in a window of some width, and forget the console of the last one."""
        self.console.clear()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url=file.absolute().as_uri())
        while (message := self._next()).get("method") != "Page.loadEventFired":
            self._note(message)

    def evaluate(self, expression):
        """Return the value of an expression of JavaScript."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def screenshot(self):
        """Return the whole page as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def close(self):
        """End the browser."""
        os.close(self._commands)
        os.close(self._replies)
        self._process.terminate()
        self._process.wait(SECONDS)

    def _next(self):
        until = time.monotonic() + SECONDS
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._replies], [], [], until - time.monotonic())
            assert ready, "the browser does not answer"
            data = os.read(self._replies, 1 << 20)
            assert data, "the browser ended"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _note(self, message):
        method, content = message.get("method"), message.get("params", {})
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.console.append(content)
        if method == "Network.requestWillBeSent" and content["type"] != "Document":
            url = content["request"]["url"]
            if not url.startswith("data:"):
                self.console.append(url)
