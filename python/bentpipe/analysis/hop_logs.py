"""The qlogs of a trial that are of its client's hop, whose capture is analysed.

A trial has a folder of logs for each host, `qlog/terminal`. Where proxies split the path, each has a log of
either side: that of the far end of the client's hop is the first proxy's as a server. Proxies that
encapsulate have logs of their tunnel alone, and the hop is from client to server.
"""

from __future__ import annotations

import re
from pathlib import Path

from bentpipe.runs.trial_files import HOP_TRACES, QLOGS

_HEAD_BYTES = 4096  # what a log says of itself comes first
_SERVER = re.compile(rb'"vantage_point"\s*:\s*\{[^}]*"type"\s*:\s*"server"')


def of_client(folder: Path) -> list[Path]:
    """The logs of both ends of the client's hop of the trial in `folder`."""
    client = _files(folder / QLOGS / "client")
    hops = [path.stem.split("-")[1:] for path in folder.glob(HOP_TRACES)]
    if not hops:
        return [*client, *_files(folder / QLOGS / "server")]
    (first,) = {near for near, _ in hops} - {far for _, far in hops}
    return [*client, *filter(_is_of_server, _files(folder / QLOGS / first))]


def _files(place: Path) -> list[Path]:
    return [path for path in sorted(place.rglob("*")) if path.is_file()] if place.is_dir() else []


def _is_of_server(log: Path) -> bool:
    with log.open("rb") as file:
        return _SERVER.search(file.read(_HEAD_BYTES)) is not None
