"""Analyses of captures: found where they are, made by `bentpipe-trace analyze` where they are not.

An analysis is two files, `packets.parquet` with a row per packet and `analysis.json` with metrics and
findings. In a run they stand in `trials/<id>/` beside `trace.pcapng`; they are made when first needed, and
anew when the trace, a qlog or the program is newer. With `trace = "analysis"` a run keeps them alone. Where
that folder cannot be written, they live in a temporary place until the process ends. Nothing here takes a
packet apart.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bentpipe import paths
from bentpipe.analysis import hop_logs, link_facts
from bentpipe.analysis.link_facts import LinkFacts
from bentpipe.errors import BentpipeError, UsageError
from bentpipe.runs import manifest
from bentpipe.runs.records import Record, read_jsonl
from bentpipe.runs.trial_files import (
    HOP_TRACES,
    LINK_EVENTS,
    PACKETS,
    SUMMARY,
    TRACE,
    UNFINISHED,
    TracePlace,
    has_capture,
    is_traced,
)
from bentpipe.schema import reading
from bentpipe.schema.analysis import FORMAT, Connection, Summary, WindowSeries
from bentpipe.schema.manifest import ScenarioState

if TYPE_CHECKING:
    import pyarrow as pa

    from bentpipe.analysis.plots.table import Side

PROGRAM = "bentpipe-trace"
# Where the client of a trial's first flow is, which is the one that is measured: over IPv4, over IPv6.
_FIRST_FLOW = ("192.0.2.1:", "[2001:db8:1::1]:")

# Told how far an analysis has come: what it does, and how much of how much is done.
watcher: ContextVar[Callable[[str, int, int], None] | None] = ContextVar("watcher", default=None)

ANALYSIS_ALONE = "in virtual time it can be made again: the page of its cell in the report has the command"
_VISIBLE = 0.05  # of a transfer: a shorter span is hardly seen in a figure
_SHORTEST_S = 0.1  # the same where neither transfer nor RTT are known


@dataclass(frozen=True)
class TracedRun:
    """A run whose trials have traces, with what is known of them."""

    folder: Path
    scenarios: dict[str, ScenarioState]  # of the manifest, by their labels
    records: Mapping[str, Record]  # by trial

    @classmethod
    def read(cls, folder: Path) -> TracedRun:
        """Read the manifest and the records of the run in `folder`. BentpipeError if that is no run."""
        found = manifest.read(folder)
        try:
            records = {record.trial: record for record in read_jsonl(folder / "records.jsonl")}
        except (OSError, ValueError, TypeError) as error:
            hint = "the run may be of another version of Bentpipe; repeat it"
            raise BentpipeError(f"{folder / 'records.jsonl'}: cannot be read: {error}", hint) from error
        return cls(folder, found.scenarios, records)

    def link(self, trial: str) -> LinkFacts | None:
        """The facts about a trial's path; None if the run has no record of the trial."""
        record = self.records.get(trial)
        return link_facts.of_trial(self.scenarios[record.scenario].summary, record) if record else None


@dataclass(frozen=True)
class Analysis:
    """An analysis in a folder; packets are read when needed."""

    folder: Path
    summary: Summary
    link: LinkFacts = field(default_factory=LinkFacts)
    run: TracedRun | None = None
    trial: str | None = None  # its name, if it is a trial of `run`

    @cached_property
    def packets(self) -> pa.Table:
        """All packets of all connections."""
        return self.read_packets()

    def read_packets(self, columns: list[str] | None = None, connection: int | None = None) -> pa.Table:
        """Some columns of the packets of all connections, or of one, if no more is wanted."""
        import pyarrow.compute as pc
        import pyarrow.parquet as pq  # takes long

        # Of a relative path pyarrow takes what stands before a colon for the scheme of a URL.
        file = (self.folder / PACKETS).absolute()
        filters = None if connection is None else pc.field("connection") == connection
        return pq.read_table(file, columns=columns, filters=filters)

    def connection(self, number: int | None = None) -> Connection:
        """A connection by its number; without one, that with the most packets, of a trial's first flow."""
        known = self.summary.connections
        if not known:
            raise BentpipeError(*with_hint("; ".join(self.summary.errors)))
        if number is None:
            own = self.of_first_flow() if self.trial is not None else known
            return max(own or known, key=lambda one: (one.packets, -one.connection))
        for one in known:
            if one.connection == number:
                return one
        last = max(one.connection for one in known)
        raise UsageError(f"--connection: there is no connection {number}", f"give a number from 0 to {last}")

    def of_first_flow(self) -> list[Connection]:
        """The connections of a trial's first flow."""
        return [one for one in self.summary.connections if one.client.startswith(_FIRST_FLOW)]

    @property
    def other_hops(self) -> list[Path]:
        """Traces of the trial's other hops, where proxies split its path."""
        if self.run is None or self.trial is None:
            return []
        return sorted((self.run.folder / "trials" / self.trial).glob(HOP_TRACES))

    def is_sealed(self) -> bool:
        """Whether there are connections, and nothing of their data could be decrypted."""
        known = self.summary.connections
        return bool(known) and all(one.sealed for one in known)

    def window(self, connection: Connection, from_s: float, to_s: float) -> tuple[float, float]:
        """A span of time in which what happened from `from_s` to `to_s` can be seen: at least an RTT and 5 %
        of the transfer.
        """
        metrics = connection.metrics
        rtt_ms = self.link.rtt_ms or metrics.rtt_min_ms or 0.0
        transfer_s = metrics.transfer_s or metrics.completion_s or 0.0
        least = max(rtt_ms / 1e3, _VISIBLE * transfer_s) or _SHORTEST_S
        if to_s - from_s >= least:
            return from_s, to_s
        begin = max((from_s + to_s - least) / 2, min(from_s, 0.0))
        return begin, max(begin + least, to_s)


def analyse(
    files: Sequence[Path],
    out: Path,
    keylog: Path | None = None,
    qlogs: Sequence[Path] = (),
    link: LinkFacts | None = None,
    events: Path | None = None,
) -> Analysis:
    """Analyse captures of the same connections into the folder `out`, which is made if need be. `events`: the
    file with what the links did.

    UsageError if a file is no capture or is not there; BentpipeError if the program is not built or fails.
    A file that cannot be read to its end, or has no connection, is no error: `summary.errors` says so.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=out) as partial:
        command = [str(paths.program(PROGRAM)), "analyze", *map(argument, files)]
        command += ["--keylog", argument(keylog)] if keylog else []
        command += [word for qlog in qlogs for word in ("--qlog", argument(qlog))]
        if facts := _facts(link, events):
            # There may be more of them than an argument can hold.
            (known := Path(partial) / "link.json").write_text(json.dumps(facts))
            command += ["--link", str(known)]
        _execute([*command, "-o", partial])
        for name in (PACKETS, SUMMARY):
            (Path(partial) / name).replace(out / name)
    return Analysis(out, _read(out), link or LinkFacts())


def _facts(link: LinkFacts | None, events: Path | None) -> dict[str, Any]:
    """Facts that are not in captures, as --link takes them."""
    facts = link.known() if link else {}
    if events is not None:
        try:
            facts["events"] = json.loads(events.read_bytes())
        except (OSError, ValueError) as error:
            hint = "remove it, or run the trial again"
            raise BentpipeError(f"{events}: cannot be read: {error}", hint) from error
    return facts


def logged_window(connection: Connection, end: Side) -> WindowSeries | None:
    """The congestion window that an end of a connection logged; None if it did not."""
    logs = connection.qlog
    logged = logs and (logs.client if end == "client" else logs.server)
    return logged.cwnd if logged else None


def argument(file: Path) -> str:
    """A file's name as an argument of a program, which must not take it for an option."""
    return f"./{file}" if str(file).startswith("-") else str(file)


def with_hint(error: str) -> tuple[str, str]:
    """An error of `analysis.json` and the hint in it, if it has one."""
    text, _, hint = error.partition(" (hint: ")
    return text, hint.removesuffix(")")


def of_folder(folder: Path, link: LinkFacts | None = None) -> Analysis:
    """The analysis that `bentpipe trace -o` left in a folder."""
    return Analysis(folder, _read(folder), link or LinkFacts())


def of_trial(folder: Path, run: TracedRun | None = None, out: Path | None = None) -> Analysis:
    """The analysis of the trial in RUN/trials/<id>; `run` saves reading RUN again. With `out` it is made
    there, anew. UsageError if the trial has no trace; otherwise errors are those of `analyse`.
    """
    root = folder.resolve().parent.parent
    if run is None and (root / manifest.FILE).is_file():
        run = TracedRun.read(root)
    brought_in_part = has_capture(folder) and TracePlace.of(folder) is not None
    if brought_in_part or not is_traced(folder):
        raise no_trace(folder)
    link = run.link(folder.name) if run else None
    if not has_capture(folder) and out is not None:
        raise UsageError(
            f"{folder}: only the analysis of this trial was kept, not its capture",
            ANALYSIS_ALONE,
        )
    if not has_capture(folder) or (out is None and _is_fresh(folder)):
        return Analysis(folder, _read(folder), link or LinkFacts(), run, folder.name)
    qlogs = hop_logs.of_client(folder)
    place = out or (folder if _writable(folder) else temporary())
    events = folder / LINK_EVENTS
    made = analyse(
        [folder / TRACE], place, qlogs=qlogs, link=link, events=events if events.is_file() else None
    )
    return Analysis(made.folder, made.summary, made.link, run, folder.name)


def reduce_to_analysis(folder: Path, run: TracedRun) -> None:
    """Make the analysis of the trial in RUN/trials/<id>, and remove its capture. Errors are those of
    `of_trial`, and BentpipeError if not all of the capture could be read; it is then kept, as are those of
    other hops, which are not analysed.
    """
    if errors := of_trial(folder, run).summary.errors:
        raise BentpipeError(*with_hint(errors[0]))
    (folder / TRACE).unlink()


def no_trace(folder: Path) -> UsageError:
    """The error for a trial without a trace, or whose trace is elsewhere."""
    if (place := TracePlace.of(folder)) is not None:
        return UsageError(
            f"{folder}: the trace of this trial stays on {place.host}, in {place.folder}",
            f"bring it here: {place.how_to_bring(folder)}",
        )
    return UsageError(
        f"{folder}: this trial has no trace",
        "runs keep the trace of each cell's median trial; to keep all: bentpipe run … --trace all",
    )


def temporary() -> Path:
    """A new folder that is removed when the process ends."""
    return Path(tempfile.mkdtemp(dir=_scratch()))


@cache
def _scratch() -> Path:
    place = Path(tempfile.mkdtemp(prefix="bentpipe-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK) and not os.statvfs(folder).f_flag & os.ST_RDONLY


def _logged(folder: Path) -> list[Path]:
    """The logs of endpoints in a trial: the files, and their folders."""
    place = folder / "qlog"
    return [place, *sorted(place.rglob("*"))] if place.is_dir() else []


def _is_fresh(folder: Path) -> bool:
    """Whether a trial's folder has an analysis that is not older than trace, qlogs and program."""
    program = paths.bin_folder() / PROGRAM
    beside = [path for path in (program, folder / LINK_EVENTS) if path.exists()]
    origins = [folder / TRACE, *_logged(folder), *beside]
    try:
        made = min((folder / name).stat().st_mtime_ns for name in (PACKETS, SUMMARY))
        return (
            made >= max(origin.stat().st_mtime_ns for origin in origins) and _load(folder)["format"] == FORMAT
        )
    except (OSError, ValueError, KeyError):
        return False


def _load(folder: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((folder / SUMMARY).read_text())
    return values


def _read(folder: Path) -> Summary:
    path, again = folder / SUMMARY, "make it again: bentpipe trace FILE -o DIR"
    try:
        return reading.convert(_load(folder), Summary, FORMAT, numbered=True)
    except reading.FormatError as error:
        alone = (folder.resolve().parent.parent / manifest.FILE).is_file() and not has_capture(folder)
        raise BentpipeError(f"{path}: {error}", ANALYSIS_ALONE if alone else again) from error
    except (OSError, ValueError) as error:
        raise BentpipeError(f"{path}: cannot be read: {error}", again) from error


def _execute(command: list[str]) -> None:
    """Run the program. What it says of captures that it could read in part stands in `analysis.json` too."""
    watch = watcher.get()
    command = [*command, "--progress"] if watch else command
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as done:
            for line in done.stdout or ():
                what, count, total = line.split()
                if watch:
                    watch(what, int(count), int(total))
        errors.seek(0)
        said = errors.read()
    if done.returncode in (0, 1):
        return
    text, _, hint = said.strip().removeprefix("error: ").partition("\nhint: ")
    if done.returncode == 2:
        raise UsageError(text, hint)
    raise BentpipeError(f"{PROGRAM} ended with {done.returncode}: {text}", hint)
