"""The job of this process: the HELLO of virtual time, or the environment of socket mode.

Source: `endpoints/CONTRACT.md`, `endpoints/contract/socket-mode.md`.
"""

# Paths are plain strings in this endpoint.
# ruff: noqa: PTH123

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import NamedTuple

import dialect
import discovery
from failures import Failed, Unsupported
from options import Options, parse

ROLES = ("client", "server")
# Those in which a second connection begins with a ticket from the first.
RESUMPTION, ZERORTT = "resumption", "zerortt"
UPLOAD = "upload"
PAGE = "page"
MIGRATE = "migrate"  # the option that says when a client migrates
HQ, H3 = "hq-interop", "h3"  # application protocols
TESTCASES = ("transfer", "handshake", "longrtt", "multiplexing", RESUMPTION, ZERORTT, UPLOAD, PAGE)


class Path(NamedTuple):
    """One of several paths: the addresses of both ends on it."""

    local: tuple[str, int]
    remote: tuple[str, int]


class Job(NamedTuple):
    """One end of one trial."""

    role: str
    testcase: str
    requests: tuple[str, ...]  # paths, each beginning with "/"
    options: Options
    folder: str  # where the files are that are sent, or where those go that come: see `folder_name`
    certs: str
    keylog: str | None
    qlog: str | None
    alpn: str = HQ
    page: tuple[discovery.Resource, ...] = ()  # of a client, for each request
    report: str | None = None  # in socket mode the file for a page's BYE
    paths: tuple[Path, ...] = ()  # where there are several; in socket mode without ports

    @property
    def tickets(self) -> bool:
        """True if the test case is about session tickets."""
        return self.testcase in (RESUMPTION, ZERORTT)

    @property
    def migrates_ns(self) -> int | None:
        """When a client migrates to the second path; None: never."""
        at = self.options.get(MIGRATE)
        return None if at is None else int(at)

    @property
    def follows_paths(self) -> bool:
        """Whether datagrams take the paths of their addresses: those of a client that migrates, and of a
        server, which answers to wherever the client is.
        """
        return len(self.paths) > 1 and (self.role == "server" or MIGRATE in self.options)

    @property
    def upload(self) -> bool:
        """True if the client sends the files."""
        return self.testcase == UPLOAD


def folder_name(role: str, testcase: str) -> str:
    """The one folder that this end reads from or writes to."""
    return "www" if (role == "server") != (testcase == UPLOAD) else "downloads"


def from_hello(hello: Mapping[str, object]) -> Job:
    """The job that a HELLO describes."""
    if hello["contract"] != 1:
        raise Unsupported(f"HELLO: contract {hello['contract']!r}: this endpoint knows version 1")
    options, requests = hello["options"], hello["requests"]
    assert isinstance(options, dict)
    assert isinstance(requests, list)
    role, testcase = str(hello["role"]), str(hello["testcase"])
    _check(role, testcase)
    alpn = _alpn(hello.get("alpn"), testcase)
    name = folder_name(role, testcase)
    folder = hello.get(name)
    if not isinstance(folder, str):
        raise Failed(f'HELLO: "{name}" is missing, but a {role} needs it')
    given = hello.get("paths") or []
    assert isinstance(given, list)
    paths = tuple(Path(address_of(str(one["local"])), address_of(str(one["remote"]))) for one in given)
    return Job(
        role=role,
        testcase=testcase,
        requests=tuple(path_of(url) for url in requests),
        options=_options(options, role, paths),
        paths=paths,
        folder=folder,
        certs=str(hello["certs"]),
        keylog=_text(hello.get("keylog")),
        qlog=_text(hello.get("qlog")),
        alpn=alpn,
        page=_page(hello.get("page"), role, testcase, len(requests)),
    )


def from_environment() -> Job:
    """The job that the variables of socket mode describe."""
    role, testcase = os.environ.get("ROLE", ""), os.environ.get("TESTCASE", "")
    _check(role, testcase)
    alpn = _alpn(os.environ.get("BENTPIPE_ALPN"), testcase)
    options: dict[str, str] = {}
    for pair in os.environ.get("BENTPIPE_OPTIONS", "").split():
        name, _, value = pair.partition("=")
        options[name] = value
    requests = tuple(path_of(url) for url in os.environ.get("REQUESTS", "").split())
    clients = (word.partition("=")[2] for word in os.environ.get("BENTPIPE_PATHS", "").split())
    paths = tuple(Path((client, 0), ("", 0)) for client in clients)
    return Job(
        role=role,
        testcase=testcase,
        requests=requests,
        options=_options(options, role, paths),
        paths=paths,
        folder=os.environ.get(folder_name(role, testcase).upper(), ""),
        certs=os.environ.get("CERTS", ""),
        keylog=os.environ.get("SSLKEYLOGFILE") or None,
        qlog=os.environ.get("QLOGDIR") or None,
        alpn=alpn,
        page=_page(_page_file(os.environ.get("PAGE")), role, testcase, len(requests)),
        report=os.environ.get("REPORT") or None,
    )


def _options(given: Mapping[str, str], role: str, paths: tuple[Path, ...]) -> Options:
    """The values of options; of a client that is to migrate there must be a path to go to."""
    options = parse(given, dialect.OPTIONS)
    if MIGRATE in options and role == "server":
        raise Unsupported(f"option {MIGRATE}: it is of a client")
    if MIGRATE in options and len(paths) < 2:
        raise Unsupported(
            f"option {MIGRATE}: there is one path; choose a scenario with several, such as terrestrial-leo"
        )
    return options


def address_of(text: str) -> tuple[str, int]:
    """Host and port of `192.0.2.1:443` or `[2001:db8::1]:443`."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def authority_of(url: str) -> str:
    """`host:port` of `https://host:port/path`."""
    return url.partition("://")[2].partition("/")[0]


def path_of(url: str) -> str:
    """`/path` of `https://host:port/path`."""
    return "/" + url.partition("://")[2].partition("/")[2]


def _check(role: str, testcase: str) -> None:
    if role not in ROLES:
        raise Unsupported(f"role {role!r}: unknown; known are {', '.join(ROLES)}")
    if testcase not in TESTCASES:
        raise Unsupported(f"test case {testcase!r}: not supported; known are {', '.join(TESTCASES)}")


def _alpn(given: object, testcase: str) -> str:
    alpn = str(given or HQ)
    if alpn not in dialect.ALPN:
        raise Unsupported(f"application protocol {alpn!r}: unknown; known are {', '.join(dialect.ALPN)}")
    if alpn == (HQ if testcase == PAGE else H3) and testcase in (RESUMPTION, ZERORTT, UPLOAD, PAGE):
        raise Unsupported(f"test case {testcase!r}: not supported in {alpn}")
    return alpn


def _page_file(name: str | None) -> object:
    """The contents of the file of a page; None: there is none."""
    if not name:
        return None
    try:
        with open(name, "rb") as file:
            return json.load(file)
    except ValueError as error:
        raise Failed(f"PAGE: {name}: {error}") from error


def _page(given: object, role: str, testcase: str, requests: int) -> tuple[discovery.Resource, ...]:
    """The resources of a client's page."""
    page = () if given is None else discovery.resources(given)
    if testcase != PAGE and page:
        raise Failed(f'page "{len(page)} resources": there is none in test case "{testcase}"')
    if testcase == PAGE and role == "client":
        discovery.check(page, requests)
    return page


def _text(value: object) -> str | None:
    return None if value is None else str(value)
