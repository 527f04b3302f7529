"""The files that a trial leaves in its folder."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from bentpipe.errors import BentpipeError

TRACE = "trace.pcapng"  # with proxies, of the hop at the client
HOP_TRACES = "trace-*.pcapng"  # with proxies, of the other hops: trace-terminal-gateway.pcapng
PACKETS = "packets.parquet"
REQUESTS = "requests.json"  # of a page that its client reports on
LINK_EVENTS = "link-events.json"  # what the links of the client's hop did
PICTURE = "page.png"  # what a browser shows of a page that did not arrive completely
SUMMARY = "analysis.json"
QLOGS = "qlog"  # the folder of the endpoints' logs
ELSEWHERE = "elsewhere.json"  # of a trial whose trace stays on the host that ran it: where it is
UNFINISHED = ".analysis-"  # how the folder begins that an analysis is made in
_HOST = re.compile("[A-Za-z0-9][A-Za-z0-9._-]*")


def is_traced(folder: Path) -> bool:
    """Whether a trial left a trace: a capture, or with `trace = "analysis"` the capture's analysis."""
    return has_capture(folder) or (folder / SUMMARY).is_file()


def is_of_trace(name: str) -> bool:
    """Whether a file, by its path in the trial's folder, is a capture or a qlog."""
    return name == TRACE or fnmatch(name, HOP_TRACES) or name.startswith(f"{QLOGS}/")


@dataclass(frozen=True)
class TracePlace:
    """The place of a trial's trace and qlogs that stay on the host that ran it."""

    host: str
    folder: str  # there
    files: Mapping[str, int]  # by their paths in that folder: bytes

    def write(self, trial: Path) -> None:
        """Write the place to the trial's folder."""
        (trial / ELSEWHERE).write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def of(cls, trial: Path) -> TracePlace | None:
        """The place that a trial's folder names; None if nothing of it is elsewhere, or everything has been
        brought here. BentpipeError if it is not valid: a worker wrote it.
        """
        file = trial / ELSEWHERE
        if not file.is_file():
            return None
        try:
            found = cls(**json.loads(file.read_text()))
            found._check(trial)
        except (OSError, ValueError, TypeError, BentpipeError) as error:
            raise BentpipeError(f"{file}: cannot be read: {error}", "run the trial again") from error
        return None if found._is_brought(trial) else found

    def _check(self, trial: Path) -> None:
        """ValueError, or BentpipeError, if it names what no place can be. It becomes part of a command."""
        if not isinstance(self.host, str) or not _HOST.fullmatch(self.host):
            raise ValueError(f"host: {self.host!r} is no name of a host")
        folder = self.folder
        if not isinstance(folder, str) or not folder.startswith("/") or not folder.isprintable():
            raise ValueError(f"folder: {folder!r} is no absolute path")
        if not isinstance(self.files, dict) or any(type(size) is not int for size in self.files.values()):
            raise ValueError("files: no table of names and whole numbers")
        for name in self.files:
            within(trial, name)

    def _is_brought(self, trial: Path) -> bool:
        places = {trial / name: size for name, size in self.files.items()}
        return all(place.is_file() and place.stat().st_size == size for place, size in places.items())

    def how_to_bring(self, trial: Path) -> str:
        """The command that brings it to the trial's folder."""
        return shlex.join(["scp", "-r", "--", f"{self.host}:{self.folder}/.", f"{trial}/"])


def within(folder: Path, name: str) -> Path:
    """A file that another machine names, below `folder`; BentpipeError if it is outside of that."""
    parts = PurePosixPath(name).parts
    if not parts or parts[0].startswith("/") or ".." in parts or "\0" in name:
        raise BentpipeError(f"a file is called {name!r}, which leads out of its folder")
    return folder / name


def has_capture(folder: Path) -> bool:
    return (folder / TRACE).is_file()
