"""A page in Firefox: what WebDriver BiDi says of each request, what the page itself says of paints."""

from __future__ import annotations

import base64
import contextlib
from pathlib import Path
from typing import Any

import firefox_profile
from bidi import Bidi
from browser_endpoint import environment
from browser_process import BrowserFailure
from page_job import Job
from page_load import PageLoad
from visit import MOMENTS, OBSERVE

_EVENTS = (
    "network.beforeRequestSent", "network.responseStarted", "network.responseCompleted", "network.fetchError",
    "browsingContext.load", "browsingContext.contextDestroyed",
)  # fmt: skip
# A promise that is kept when the process of a page has crashed, of which BiDi says nothing.
_CRASH = "new Promise(said=>addEventListener('oop-browser-crashed',()=>said(true)))"


class Firefox:
    """Firefox, and the page that it loads."""

    def __init__(self, program: str, job: Job, profile: Path) -> None:
        firefox_profile.write(job, profile)
        command = [program, "--headless", "--no-remote", "--profile", str(profile)]
        self._browser = Bidi(
            [*command, "--remote-debugging-port", "0", "--remote-allow-system-access"],
            {**environment(profile), **firefox_profile.ENVIRONMENT},
        )
        self._job = job
        self.page = PageLoad(job)
        self._context = ""
        self._crash = 0  # the number of the command that is answered when a page has crashed
        self._window = ""  # the context of Firefox's own window
        self._document = ""  # the URL that it goes to

    def open(self) -> None:
        """Make it ready for visits."""
        self._browser.open()
        self._context = self._browser.ask("browsingContext.getTree")["contexts"][0]["context"]
        scope: dict[str, Any] = {"moz:scope": "chrome"}
        own = self._browser.ask("browsingContext.getTree", **scope)
        self._window = own["contexts"][0]["context"]
        self._browser.ask("session.subscribe", events=list(_EVENTS), contexts=[self._context])
        self._browser.ask(
            "network.addDataCollector",
            dataTypes=["response"],
            maxEncodedDataSize=firefox_profile.BODY_BYTES,
        )
        self._browser.ask("script.addPreloadScript", functionDeclaration=f"()=>{{{OBSERVE}}}")
        self._crash = self._browser.begin("script.evaluate", **self._in_window(_CRASH), awaitPromise=True)
        if self._job.alpn == "h3":
            self._learn_alternatives()

    def fetch_bodies(self) -> None:
        """Take what has come out of the browser."""
        for name, one in self.page.came():
            found = self._browser.ask("network.getData", dataType="response", request=name)["bytes"]
            value = found["value"]
            one.body = base64.b64decode(value) if found["type"] == "base64" else value.encode()

    def take_moments(self) -> None:
        """Take from the page when it was drawn."""
        said = self._browser.ask(
            "script.evaluate", expression=MOMENTS, target={"context": self._context}, awaitPromise=True
        )
        self.page.visit.take_moments(said["result"]["value"])

    def picture(self, within_s: float) -> bytes:
        """A screenshot of it, as a PNG."""
        said = self._browser.ask(
            "browsingContext.captureScreenshot", within_s=within_s, context=self._context
        )
        return base64.b64decode(said["data"])

    def close(self) -> None:
        """Ask it to end, if it does not kill it."""
        try:
            self._browser.ask("browser.close", within_s=5)
            self._browser.process.wait(5)
        except BrowserFailure:
            pass  # it has ended, or does not
        self.kill()

    def kill(self) -> None:
        """End it at once."""
        self._browser.process.kill()

    def end_connections(self) -> None:
        """End all connections, and keep tickets."""
        end = "Services.obs.notifyObservers(null, 'net:cancel-all-connections')"
        said = self._browser.ask("script.evaluate", **self._in_window(end), awaitPromise=False)
        if said["type"] != "success":
            raise BrowserFailure(f"connections could not be ended: {said['exceptionDetails']['text']}")

    def _in_window(self, expression: str) -> dict[str, Any]:
        """A command that evaluates that among Firefox's own code."""
        return {"expression": expression, "target": {"context": self._window}}

    def _learn_alternatives(self) -> None:
        """Have Firefox read what it knows of servers' alternatives, HTTP/3 among them. It begins to when it
        is first asked for anything, and does without until it has.
        """
        with contextlib.suppress(BrowserFailure):
            self._navigate("https://127.0.0.1:60001/")

    def visit(self, numbers: range) -> None:
        """Go to a document, to the end of all that it leads to."""
        self.page.turn_to(numbers)
        self._document = self._job.url(numbers[0])
        self._navigate(self._document)
        while event := self._browser.event(self.page.patience_s()):
            self._take(event)

    def _navigate(self, url: str) -> None:
        said = {"context": self._context, "url": url, "wait": "none"}
        self._browser.ask("browsingContext.navigate", within_s=600, **said)

    def _take(self, event: dict[str, Any]) -> None:
        if event.get("id") == self._crash:
            raise BrowserFailure("the page crashed")
        said = event.get("params", {})
        match event.get("method"):
            case "network.beforeRequestSent":
                self.page.begin(said["request"]["request"], said["request"]["url"])
            case "network.responseStarted":
                self._respond(said)
            case "network.responseCompleted":
                self._finish(said["request"], said["response"])
            case "network.fetchError":
                self.page.fail(said["request"]["request"], said["errorText"])
            case "browsingContext.load" if said["url"] == self._document:
                self.page.loaded()
            case "browsingContext.contextDestroyed" if said["context"] == self._context:
                raise BrowserFailure("the page crashed")

    def _respond(self, said: dict[str, Any]) -> None:
        """Over TLS and HTTP/1.1, Firefox's own time of the first byte was 8 µs behind the request on a new
        connection, over a path of 580 ms. So there it is that of the event, in whole milliseconds.
        """
        one = self.page.of(said["request"]["request"])
        if one is not None and (self._job.alpn, self._job.scheme) == ("http/1.1", "https"):
            one.first_byte_ns = said["timestamp"] * 1_000_000

    def _finish(self, request: dict[str, Any], response: dict[str, Any]) -> None:
        name, timing = request["request"], request["timings"]
        one = self.page.of(name)
        if one is None:
            return
        if response["status"] != 200:
            one.error = f"status {response['status']}"
        one.protocol = response.get("protocol")
        one.asked_ns, first, last = (
            # Firefox says 0 of what it does not know.
            round((timing["timeOrigin"] + timing[moment]) * 1e6) if timing[moment] else None
            for moment in ("requestStart", "responseStart", "responseEnd")
        )
        if one.first_byte_ns is None:
            one.first_byte_ns = first
        elif last is not None:
            one.first_byte_ns = min(one.first_byte_ns, last)
        self.page.finish(name, last)
