"""Chromium without a window, driven over its debugging pipe with nothing but the standard library."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
TIMEOUT_S = 60


def find_browser():
    """The program, or nothing. FZ_CHROMIUM names one that is not on the path."""
    named = os.environ.get("FZ_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One process; pages are opened one after the other in one tab."""

    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="fz_chromium_")
        to_read, self.to_write = os.pipe()
        self.to_read, to_write = os.pipe()

        def place_pipes():
            # The browser reads commands from 3 and answers on 4. High numbers first, so that neither
            # end is overwritten while the other is placed.
            high_read, high_write = os.dup2(to_read, 100), os.dup2(to_write, 101)
            os.dup2(high_read, 3)
            os.dup2(high_write, 4)

        words = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
            "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--disable-default-apps",
            # Whatever a page might ask for goes to a closed port.
            "--proxy-server=127.0.0.1:9", f"--user-data-dir={self.profile}", "about:blank",
        ]
        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=place_pipes,
        )
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.next_id = 0
        self.events = []
        self.session = None
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to_write)
        os.close(self.to_read)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, deadline):
        """The next message, whatever it is."""
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.to_read], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.to_read, 1 << 16)
            if not data:
                raise EOFError("the browser has ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_write, data) :]
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.next_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        """Loads a file; gives the addresses that were asked for and what the browser complained of."""
        self.events = []
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        deadline = time.monotonic() + TIMEOUT_S
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.receive(deadline))
        self.evaluate("new Promise(done => setTimeout(done, 50))")
        requests = [
            e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"
        ]
        complaints = [e["params"]["entry"]["text"] for e in self.events if e.get("method") == "Log.entryAdded"]
        return requests, complaints

    def show(self, width, dark):
        """Lays the page out anew."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="screen", features=[scheme])

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def screenshot(self):
        """The whole page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def pdf(self):
        self.call("Emulation.setEmulatedMedia", media="", features=[])
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])
