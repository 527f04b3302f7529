"""What this process is asked to do: the HELLO of virtual time, or the environment of socket mode.

Source: `endpoints/CONTRACT.md`, sections 2 to 4. Whatever this endpoint does not know raises `Unsupported`,
which ends the program with exit code 127 before the first packet.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

UNSUPPORTED_EXIT = 127
CONGESTION_CONTROLS = ("reno", "cubic")
# A flow control limit travels as a QUIC variable-length integer (RFC 9000 section 16).
LARGEST_WINDOW = 2**62 - 1
# The connection works with integers of any size; this keeps a typing error from being a memory problem.
LARGEST_INITIAL_WINDOW = 1_000_000


class Unsupported(Exception):
    """The role, test case, option or option value is not supported."""


@dataclass(frozen=True)
class Options:
    """Options of the stack; None leaves aioquic's own default."""

    cc: str | None = None
    iw: int | None = None  # packets
    window: int | None = None  # bytes


@dataclass(frozen=True)
class Job:
    """One end of one trial."""

    role: str  # "client" or "server"
    requests: tuple[str, ...]  # paths, each beginning with "/"
    options: Options
    www: str | None
    downloads: str | None
    certs: str
    keylog: str | None
    qlog: str | None


def from_hello(hello: Mapping[str, object]) -> Job:
    """The job that a HELLO describes."""
    if hello["contract"] != 1:
        raise Unsupported(f"HELLO: contract {hello['contract']!r}: this endpoint knows version 1")
    options, requests = hello["options"], hello["requests"]
    assert isinstance(options, dict)
    assert isinstance(requests, list)
    _check(str(hello["role"]), str(hello["testcase"]))
    return Job(
        role=str(hello["role"]),
        requests=tuple(path_of(url) for url in requests),
        options=parse_options(options),
        www=_text(hello.get("www")),
        downloads=_text(hello.get("downloads")),
        certs=str(hello["certs"]),
        keylog=_text(hello.get("keylog")),
        qlog=_text(hello.get("qlog")),
    )


def from_environment() -> Job:
    """The job that the variables of socket mode describe."""
    role = os.environ.get("ROLE", "")
    _check(role, os.environ.get("TESTCASE", ""))
    options: dict[str, str] = {}
    for pair in os.environ.get("BENTPIPE_OPTIONS", "").split():
        name, _, value = pair.partition("=")
        options[name] = value
    return Job(
        role=role,
        requests=tuple(path_of(url) for url in os.environ.get("REQUESTS", "").split()),
        options=parse_options(options),
        www=os.environ.get("WWW"),
        downloads=os.environ.get("DOWNLOADS"),
        certs=os.environ.get("CERTS", ""),
        keylog=os.environ.get("SSLKEYLOGFILE") or None,
        qlog=os.environ.get("QLOGDIR") or None,
    )


def parse_options(options: Mapping[str, str]) -> Options:
    """The options by name; Unsupported for an unknown name or value."""
    unknown = sorted(set(options) - {"cc", "iw", "window"})
    if unknown:
        raise Unsupported(f"option {unknown[0]}: unknown; known are cc, iw, window")
    cc = options.get("cc")
    if cc is not None and cc not in CONGESTION_CONTROLS:
        raise Unsupported(f"option cc={cc}: unknown; known are {', '.join(CONGESTION_CONTROLS)}")
    return Options(
        cc=cc,
        iw=_number(options, "iw", "packets", LARGEST_INITIAL_WINDOW),
        window=_number(options, "window", "bytes", LARGEST_WINDOW),
    )


def authority_of(url: str) -> str:
    """`host:port` of `https://host:port/path`."""
    return url.partition("://")[2].partition("/")[0]


def path_of(url: str) -> str:
    """`/path` of `https://host:port/path`."""
    return "/" + url.partition("://")[2].partition("/")[2]


def _check(role: str, testcase: str) -> None:
    if role not in ("client", "server"):
        raise Unsupported(f"role {role!r}: unknown; known are client, server")
    if testcase != "transfer":
        raise Unsupported(f"test case {testcase!r}: not supported; this endpoint does transfer")


def _number(options: Mapping[str, str], name: str, unit: str, largest: int) -> int | None:
    value = options.get(name)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and 1 <= int(value[:20]) <= largest and len(value) <= 20):
        raise Unsupported(f"option {name}={value}: write a whole number of {unit} from 1 to {largest}")
    return int(value)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
