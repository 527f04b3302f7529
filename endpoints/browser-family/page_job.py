"""The job of a browser: the environment of socket mode (`endpoints/contract/socket-mode.md`)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

UNSUPPORTED = 127
FIRST_VISIT, LATER_VISIT, EARLY_VISIT = TESTCASES = ("page", "page-resumption", "page-zerortt")
UPGRADE = "h2-h3"  # it begins over HTTP/2, and learns there that the server has HTTP/3
PROTOCOLS = ("http/1.1", "h2", "h3", UPGRADE)
HOST = "server"  # what the certificate is for
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Options and their values.
OPTIONS = {"tls": ("on", "off")}


class Refusal(Exception):
    """An unsupported part of the job: a role, a test case, a protocol, an option or its value."""


@dataclass(frozen=True)
class Job:
    """A page to load."""

    address: str  # of the server
    port: int
    testcase: str
    paths: list[str]  # of what is asked for: on a later visit that of an earlier one, then the page's own
    alpn: str
    options: Mapping[str, str]
    downloads: Path
    certificates: Path
    longest_wait_s: float  # of the page's resources, until a script asks for one
    report: Path | None
    picture: Path | None  # the file for what is to be seen of a page that does not come whole

    @property
    def scheme(self) -> str:
        return "http" if self.options.get("tls") == "off" else "https"

    @property
    def origin(self) -> str:
        """The server as URLs name it."""
        is_default = self.port == _DEFAULT_PORTS[self.scheme]
        return f"{self.scheme}://{HOST}" + ("" if is_default else f":{self.port}")

    @property
    def visits(self) -> list[range]:
        """The numbers of the resources of each visit, its document first."""
        return visits_of(self.testcase, len(self.paths))

    def url(self, number: int) -> str:
        """That of a resource."""
        return self.origin + self.paths[number]

    def number_of(self, url: str) -> int | None:
        """The number of the resource that a URL names; None: it is none of the page."""
        found = urlsplit(url)
        port = found.port or _DEFAULT_PORTS.get(found.scheme)
        if (found.hostname, port) != (HOST, self.port) or found.path not in self.paths:
            return None
        return self.paths.index(found.path)


def visits_of(testcase: str, requests: int) -> list[range]:
    """The numbers of the requests of each visit: a later one has one of one request before it."""
    earlier = 0 if testcase == FIRST_VISIT else 1
    return [visit for visit in (range(earlier), range(earlier, requests)) if visit]


def read() -> Job:
    """The job in the environment; Refusal for parts that are not supported."""
    said = os.environ
    if said.get("ROLE") != "client":
        raise Refusal(f"ROLE={said.get('ROLE', '')}: a browser is a client")
    testcase = said.get("TESTCASE", "")
    if testcase not in TESTCASES:
        raise Refusal(f"TESTCASE={testcase}: a browser loads pages alone: {', '.join(TESTCASES)}")
    alpn = said.get("BENTPIPE_ALPN", "")
    if alpn not in PROTOCOLS:
        raise Refusal(f"BENTPIPE_ALPN={alpn}: want one of {', '.join(PROTOCOLS)}")
    options = _options(said.get("BENTPIPE_OPTIONS", ""))
    if options.get("tls") == "off" and alpn != "http/1.1":
        raise Refusal(f"tls=off: there is {alpn} over TLS alone in browsers")
    if testcase == EARLY_VISIT and alpn != "h3":
        raise Refusal(f"{testcase}: browsers have early data over h3 alone, not over {alpn}")
    if testcase != FIRST_VISIT and alpn == UPGRADE:
        raise Refusal(f"{testcase}: {alpn} is of first visits alone")
    if testcase != FIRST_VISIT and options.get("tls") == "off":
        raise Refusal(f"{testcase}: there are no tickets without TLS")
    for name in ("REQUESTS", "DOWNLOADS", "CERTS"):
        if not said.get(name):
            raise Refusal(f"{name} is not set")
    urls = [urlsplit(url) for url in said["REQUESTS"].split()]
    return Job(
        address=urls[0].hostname or "",
        port=urls[0].port or 443,
        testcase=testcase,
        paths=[url.path for url in urls],
        alpn=alpn,
        options=options,
        downloads=Path(said["DOWNLOADS"]),
        certificates=Path(said["CERTS"]),
        longest_wait_s=_longest_wait_s(),
        report=_file("REPORT"),
        picture=_file("PICTURE"),
    )


def _longest_wait_s() -> float:
    file = _file("PAGE")
    page = json.loads(file.read_text()) if file is not None else []
    return max((one["wait_ms"] for one in page), default=0) / 1e3


def _file(name: str) -> Path | None:
    named = os.environ.get(name)
    return Path(named) if named else None


def _options(text: str) -> dict[str, str]:
    found = {}
    for setting in text.split():
        name, _, value = setting.partition("=")
        if value not in OPTIONS.get(name, ()):
            options = ", ".join(f"{one}={'|'.join(values)}" for one, values in OPTIONS.items())
            raise Refusal(f"option {setting}: want {options}")
        found[name] = value
    return found
