"""Workloads over a version of HTTP: pages and live streams."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from bentpipe.errors import UsageError, one_of
from bentpipe.workload.model import Workload

# Versions of HTTP as users call them, and their ALPN. In an upgrade a page begins over HTTP/2, whose
# responses name HTTP/3 as an alternative (Alt-Svc, RFC 7838), and a browser takes that up as it likes.
UPGRADE = "h2-h3"
VERSIONS = {"h1": "http/1.1", "h2": "h2", "h3": "h3", UPGRADE: UPGRADE}
DEFAULT_VERSION = "h3"
# As they are written.
TITLES = {"h1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3", UPGRADE: "HTTP/2→3"}


@dataclass(frozen=True)
class HttpWorkload(Workload, abc.ABC):
    """A workload over a version of HTTP, a key of VERSIONS."""

    http: str

    @property
    def alpn(self) -> str:
        return VERSIONS[self.http]

    def over(self, http: str) -> Self:
        """The same over another version."""
        return dataclasses.replace(self, http=http)


def check(http: str, where: str) -> None:
    """UsageError, naming `where` it was given, if there is no such version."""
    if http not in VERSIONS:
        raise UsageError(f'{where}: unknown version of HTTP "{http}"', one_of(http, VERSIONS, "versions"))


def over(workloads: Sequence[Workload], versions: Sequence[str], where: str) -> list[Workload]:
    """Workloads in which each one of HTTP is requested over these versions. UsageError, naming `where` they
    were given, for an unknown version, and where no workload is of HTTP.
    """
    for http in versions:
        check(http, where)
    if not any(isinstance(one, HttpWorkload) for one in workloads):
        raise UsageError(
            f"{where}: no workload is a page or a live stream", "add --workload page:kosek or live:60s"
        )
    return [
        other
        for one in workloads
        for other in ([one.over(http) for http in versions] if isinstance(one, HttpWorkload) else [one])
    ]
