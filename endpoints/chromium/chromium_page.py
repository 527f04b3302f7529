"""A page in Chromium: what its network domain says of each request, what the page itself says of paints."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

from browser_endpoint import environment
from browser_process import BrowserFailure
from chromium_flags import flags
from connected_sockets import connected_sockets
from devtools import Devtools
from film import FilmFrame
from page_job import Job
from page_load import PageLoad
from visit import MOMENTS, OBSERVE

_BUFFER = 1 << 30  # bytes of replies that the browser keeps until they are asked for
# Of the film: JPEG quality, and the longer side of a picture in pixels.
_QUALITY = 60
_WIDTH = 390
_FIRST_PICTURE_S = 5
_LAST_EVENTS = 100
_CLOSE_WITHIN_S = 30
_LAST_PICTURE_S = 0.1  # what has come is drawn within a few frames, of 16 ms each
# It is there when its page is.
_CLOSE_IDLE = """(async()=>{for(let tries=0;!window.chrome?.send&&tries<200;tries++)
await new Promise(then=>setTimeout(then,50));chrome.send('flushSocketPools')})()"""


def _predict_nothing(profile: Path) -> None:
    """Have it open connections when it needs them, and none ahead of need. Of two connections of a later
    visit one has the ticket, and which of them carries the document would be chance.
    """
    folder = profile / "Default"
    folder.mkdir()
    (folder / "Preferences").write_text(json.dumps({"net": {"network_prediction_options": 2}}))


class Chromium:
    """Chromium, and the page that it loads."""

    def __init__(self, program: str, job: Job, profile: Path) -> None:
        if len(job.visits) > 1:
            _predict_nothing(profile)
        self._browser = Devtools([program, *flags(job, profile)], environment(profile))
        self._job = job
        self.page = PageLoad(job)
        self._zero_s = 0.0  # seconds since 1970 when the browser's clock was 0
        self._session = ""

    def open(self) -> None:
        """Make it ready for visits."""
        target = self._browser.ask("Target.createTarget", url="about:blank")["targetId"]
        said = self._browser.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = said["sessionId"]
        for domain in ("Page", "Inspector"):
            self._ask(f"{domain}.enable")
        self._ask("Network.enable", maxTotalBufferSize=_BUFFER, maxResourceBufferSize=_BUFFER)
        self._ask("Page.addScriptToEvaluateOnNewDocument", source=OBSERVE)

    def fetch_bodies(self) -> None:
        """Take what has come out of the browser."""
        for name, one in self.page.came():
            said = self._ask("Network.getResponseBody", requestId=name)
            one.body = base64.b64decode(said["body"]) if said["base64Encoded"] else said["body"].encode()

    def take_moments(self) -> None:
        """Take from the page when it was drawn."""
        said = self._ask("Runtime.evaluate", expression=MOMENTS, awaitPromise=True)
        self.page.visit.take_moments(said["result"]["value"])
        for _ in range(_LAST_EVENTS):
            if (event := self._browser.event(_LAST_PICTURE_S)) is None:
                break
            self._take(event)

    def picture(self, within_s: float) -> bytes:
        """A screenshot of it, as a PNG."""
        said = self._ask("Page.captureScreenshot", within_s=within_s, format="png")
        return base64.b64decode(said["data"])

    def close(self) -> None:
        """Ask it to end, if it does not kill it."""
        try:
            self._browser.ask("Browser.close", within_s=5)
            self._browser.process.wait(5)
        except BrowserFailure:
            pass  # it has ended, or does not
        self.kill()

    def kill(self) -> None:
        """End it at once."""
        self._browser.process.kill()

    def _ask(self, method: str, within_s: float = 30, **parameters: Any) -> dict[str, Any]:
        return self._browser.ask(method, self._session or None, within_s=within_s, **parameters)

    def _begin_film(self) -> None:
        """Have what is to be seen told whenever it changes, and what is there now at once."""
        film = self.page.visit.film
        self._ask("Page.startScreencast", format="jpeg", quality=_QUALITY, maxWidth=_WIDTH, maxHeight=_WIDTH)
        while not film.frames and (event := self._browser.event(_FIRST_PICTURE_S)):
            self._take(event)
        film.has_beginning = bool(film.frames)

    def visit(self, numbers: range) -> None:
        """Go to a document, to the end of all that it leads to."""
        if numbers == self._job.visits[-1]:
            self._begin_film()
        self.page.turn_to(numbers)
        said = self._ask("Page.navigate", url=self._job.url(numbers[0]), within_s=600)
        if said.get("errorText"):
            self.page.refuse(said["errorText"])
        while event := self._browser.event(self.page.patience_s()):
            self._take(event)

    def end_connections(self) -> None:
        """End all connections, and keep tickets: what the page of Chromium's sockets has a button for."""
        page = "chrome://net-internals/#sockets"
        target = self._browser.ask("Target.createTarget", url=page, background=True)["targetId"]
        session = self._browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        since_s = time.monotonic()
        # It closes idle sockets alone: one whose reply is only just over, or that is still being opened,
        # would stay, and carry the later visit; so would one of QUIC, whose end the answer does not wait for.
        while True:
            said = self._browser.ask("Runtime.evaluate", session, expression=_CLOSE_IDLE, awaitPromise=True)
            if "exceptionDetails" in said:
                raise BrowserFailure(f"connections could not be ended: {said['result'].get('description')}")
            if not (left := connected_sockets(self._job.address, self._job.port)):
                break
            if time.monotonic() - since_s > _CLOSE_WITHIN_S:
                raise BrowserFailure(f"{left} of its connections did not end within {_CLOSE_WITHIN_S} s")
            time.sleep(0.02)
        self._browser.ask("Target.closeTarget", targetId=target)

    def _take(self, event: dict[str, Any]) -> None:
        said = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                if self.page.begin(said["requestId"], said["request"]["url"]) and not self._zero_s:
                    self._zero_s = said["wallTime"] - said["timestamp"]
            case "Network.responseReceived":
                self._respond(said["requestId"], said["response"])
            case "Network.loadingFinished":
                self.page.finish(said["requestId"], self._ns(said["timestamp"]))
            case "Network.loadingFailed":
                self.page.fail(said["requestId"], said["errorText"])
            case "Page.loadEventFired":
                self.page.loaded()
            case "Page.screencastFrame":
                self._browser.begin("Page.screencastFrameAck", self._session, sessionId=said["sessionId"])
                at_ns = round(said["metadata"]["timestamp"] * 1e9)
                self.page.visit.film.frames.append(FilmFrame(at_ns, base64.b64decode(said["data"])))
            case "Inspector.targetCrashed":
                raise BrowserFailure("the page crashed")

    def _respond(self, name: str, answer: dict[str, Any]) -> None:
        one = self.page.of(name)
        if one is None:
            return
        if answer["status"] != 200:
            one.error = f"status {answer['status']}"
        one.protocol = answer.get("protocol")
        if (timing := answer.get("timing")) is not None:
            begun = timing["requestTime"]
            one.asked_ns = self._ns(begun + timing["sendStart"] / 1e3)
            first_ms = timing.get("receiveHeadersStart", 0)
            one.first_byte_ns = self._ns(
                begun + (first_ms if first_ms > 0 else timing["receiveHeadersEnd"]) / 1e3
            )

    def _ns(self, clock_s: float) -> int:
        return round((self._zero_s + clock_s) * 1e9)
