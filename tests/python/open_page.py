"""A page in a real browser that stays open: it can be asked, clicked at, resized and photographed.

Over the protocol of Chromium's developer tools.
"""

from __future__ import annotations

import base64
import itertools
import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import browser
import children
from websockets.sync.client import ClientConnection, connect

_PATIENCE_S = 60.0


class NavigatedError(Exception):
    """The page that was asked went away meanwhile."""


class OpenPage:
    """A tab of the browser."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._numbers = socket, itertools.count(1)

    def call(self, method: str, **parameters: Any) -> Any:
        """The result of a command of the protocol."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=_PATIENCE_S))
            if answer.get("id") == number:
                if "navigated" in answer.get("error", {}).get("message", ""):
                    raise NavigatedError
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got["exceptionDetails"]
        return got["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        """The value of an expression once it is true."""
        values: list[Any] = []

        def has_come() -> bool:
            try:
                values.append(self.ask(expression))
            except NavigatedError:  # the next page is asked
                return False
            return bool(values[-1])

        children.wait_for(expression, has_come)
        return values[-1]

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)

    def resize(self, width: int, height: int, dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def photograph(self, file: Path, whole: bool = False) -> None:
        got = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(got["data"]))


@contextmanager
def opened(profile: Path, *options: str) -> Iterator[OpenPage]:
    """A browser with an empty page; `profile` is a folder for this call alone."""
    command = [str(browser.CHROMIUM), *browser.OPTIONS, f"--user-data-dir={profile}"]
    command += ["--remote-debugging-port=0", *options, "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port = _port(profile / "DevToolsActivePort")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            (page,) = [one for one in json.load(answer) if one["type"] == "page"]
        with connect(page["webSocketDebuggerUrl"], max_size=None) as socket:
            made = OpenPage(socket)
            made.call("Page.enable")
            yield made
    finally:
        process.terminate()
        process.wait()


def _port(file: Path) -> int:
    children.wait_for("the browser", lambda: file.is_file() and file.read_text().splitlines())
    return int(file.read_text().splitlines()[0])
