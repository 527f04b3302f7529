"""The files that a trial leaves in its folder."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from bentpipe.errors import BentpipeError

TRACE = "trace.pcapng"  # with proxies, of the hop at the client
HOP_TRACES = "trace-*.pcapng"  # with proxies, of the other hops: trace-terminal-gateway.pcapng
PACKETS = "packets.parquet"
REQUESTS = "requests.json"  # of a page that its client reports on
PICTURE = "page.png"  # what a browser shows of a page that did not come whole
SUMMARY = "analysis.json"
UNFINISHED = ".analysis-"  # how the folder begins that an analysis is made in


def is_traced(folder: Path) -> bool:
    """Whether a trial left a trace: a capture, or with `trace = "analysis"` what was made of it."""
    return has_capture(folder) or (folder / SUMMARY).is_file()


def within(folder: Path, name: str) -> Path:
    """A file that another machine names, below `folder`; BentpipeError if that leads out of it."""
    parts = PurePosixPath(name).parts
    if not parts or parts[0].startswith("/") or ".." in parts or "\0" in name:
        raise BentpipeError(f"a file is called {name!r}, which leads out of its folder")
    return folder / name


def has_capture(folder: Path) -> bool:
    return (folder / TRACE).is_file()
