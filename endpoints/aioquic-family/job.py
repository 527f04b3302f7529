"""What this process is asked to do: the HELLO of virtual time, or the environment of socket mode.

Source: `endpoints/CONTRACT.md`, sections 2 to 4.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

import dialect
from failures import Failed, Unsupported
from options import Options, parse

ROLES = ("client", "server")
# Those in which a second connection begins with a ticket from the first.
RESUMPTION, ZERORTT = "resumption", "zerortt"
UPLOAD = "upload"
HQ, H3 = "hq-interop", "h3"  # application protocols; virtual time has the first alone
TESTCASES = ("transfer", "handshake", "longrtt", "multiplexing", RESUMPTION, ZERORTT, UPLOAD)


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

    @property
    def tickets(self) -> bool:
        """True if the test case is about session tickets."""
        return self.testcase in (RESUMPTION, ZERORTT)

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
    name = folder_name(role, testcase)
    folder = hello.get(name)
    if not isinstance(folder, str):
        raise Failed(f'HELLO: "{name}" is missing, but a {role} needs it')
    return Job(
        role=role,
        testcase=testcase,
        requests=tuple(path_of(url) for url in requests),
        options=parse(options, dialect.OPTIONS),
        folder=folder,
        certs=str(hello["certs"]),
        keylog=_text(hello.get("keylog")),
        qlog=_text(hello.get("qlog")),
    )


def from_environment() -> Job:
    """The job that the variables of socket mode describe."""
    role, testcase = os.environ.get("ROLE", ""), os.environ.get("TESTCASE", "")
    _check(role, testcase)
    options: dict[str, str] = {}
    for pair in os.environ.get("BENTPIPE_OPTIONS", "").split():
        name, _, value = pair.partition("=")
        options[name] = value
    return Job(
        role=role,
        testcase=testcase,
        requests=tuple(path_of(url) for url in os.environ.get("REQUESTS", "").split()),
        options=parse(options, dialect.OPTIONS),
        folder=os.environ.get(folder_name(role, testcase).upper(), ""),
        certs=os.environ.get("CERTS", ""),
        keylog=os.environ.get("SSLKEYLOGFILE") or None,
        qlog=os.environ.get("QLOGDIR") or None,
        alpn=_alpn(testcase),
    )


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


def _alpn(testcase: str) -> str:
    alpn = os.environ.get("BENTPIPE_ALPN") or HQ
    if alpn not in dialect.ALPN:
        raise Unsupported(f"application protocol {alpn!r}: unknown; known are {', '.join(dialect.ALPN)}")
    if alpn == H3 and testcase in (RESUMPTION, ZERORTT, UPLOAD):
        raise Unsupported(f"test case {testcase!r}: not supported in h3")
    return alpn


def _text(value: object) -> str | None:
    return None if value is None else str(value)
