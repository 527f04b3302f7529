"""What this process is asked to do: the HELLO of virtual time, or the environment of socket mode.

Source: `endpoints/CONTRACT.md`, sections 2 to 4. Whatever this endpoint does not know raises `Unsupported`,
which ends the program with exit code 127 before the first packet.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

UNSUPPORTED_EXIT = 127
CONGESTION_CONTROLS = ("cubic",)  # the native core has no other
# A flow control limit travels as a QUIC variable-length integer (RFC 9000 section 16).
LARGEST_WINDOW = 2**62 - 1
# RFC 9000 section 14.1, and what an IPv4 packet of 1500 bytes carries, where qh3's own discovery ends.
SMALLEST_MTU, LARGEST_MTU = 1200, 1472


class Unsupported(Exception):
    """The role, test case, option or option value is not supported."""


@dataclass(frozen=True)
class Options:
    """Options of the stack; None leaves qh3's own default."""

    cc: str | None = None
    mtu: int | None = None  # bytes of UDP payload
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
    unknown = sorted(set(options) - {"cc", "mtu", "window"})
    if unknown:
        raise Unsupported(f"option {unknown[0]}: unknown; known are cc, mtu, window")
    cc = options.get("cc")
    if cc is not None and cc not in CONGESTION_CONTROLS:
        raise Unsupported(f"option cc={cc}: unknown; known are {', '.join(CONGESTION_CONTROLS)}")
    return Options(
        cc=cc,
        mtu=_number(options, "mtu", SMALLEST_MTU, LARGEST_MTU),
        window=_number(options, "window", 1, LARGEST_WINDOW),
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


def _number(options: Mapping[str, str], name: str, smallest: int, largest: int) -> int | None:
    value = options.get(name)
    if value is None:
        return None
    number = int(value) if value.isascii() and value.isdigit() and len(value) <= 20 else -1
    if not smallest <= number <= largest:
        raise Unsupported(f"option {name}={value}: write whole bytes from {smallest} to {largest}")
    return number


def _text(value: object) -> str | None:
    return None if value is None else str(value)
