"""The executor of real links: trials between two hosts, over connections that stay.

A trial that a connection breaks under is begun again; where a host stays away, the run ends and can be
resumed. What is on hosts is started, and ended, by `bentpipe.remote`; the result of the trial is computed by
`bentpipe-remote record`, as a testbed's program says it.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bentpipe import paths
from bentpipe.errors import BentpipeError
from bentpipe.execution import bundle as bundles
from bentpipe.execution.executor import LostExecutor
from bentpipe.execution.jobs import Answer, LocalTrial
from bentpipe.execution.remote_trial import RemoteTrial
from bentpipe.remote.link_notes import LinkNotes
from bentpipe.remote.links import Links
from bentpipe.remote.session import LinkSession, connected
from bentpipe.remote.ssh import HostGone
from bentpipe.remote.traffic import TrafficCount
from bentpipe.schema.bundle import Bundle
from bentpipe.stacks.model import Stack
from bentpipe.workload import www_file

TRIES = 3  # of a trial whose connection breaks
_SHARE = 1.15  # what goes over the link, of the files: headers, acknowledgements, what is sent again
NOTES = "link.json"


class RemoteExecutor:
    """The executor of the links in a file: one bundle at a time."""

    window = 1

    def __init__(
        self,
        trials: RemoteTrials,
        known: Mapping[str, Stack],
        scratch: Path,
        pool: ThreadPoolExecutor,
        stopped: Callable[[], bool],
    ) -> None:
        """`known` are the stacks that there are; `scratch` is for what trials need, and the caller's to
        remove. Once `stopped` says so, no more is written.
        """
        self._trials, self._known, self._pool, self._stopped = trials, known, pool, stopped
        self._www = scratch / "www"

    def prepare(self, files: Mapping[str, int], contents: Mapping[str, bytes]) -> None:
        self._www.mkdir(exist_ok=True)
        for name, size in files.items():
            www_file(self._www, size, self._stopped, name, contents.get(name))

    def submit(self, bundle: Bundle, folder: Path) -> Future[Answer]:
        return self._pool.submit(self._run, bundle, folder)

    def kill(self) -> None:
        self._trials.kill()

    def _run(self, bundle: Bundle, folder: Path) -> Answer:
        if self._stopped():
            return Answer(None, killed=True)
        try:
            trial = bundles.resolve(bundle, self._known, self._www, folder)
        except BentpipeError as error:
            return Answer(None, f"{error}; {error.hint}" if error.hint else str(error))
        return self._trials.run(trial)


@contextlib.contextmanager
def remote_executor(
    links: Links,
    known: Mapping[str, Stack],
    scratch: Path,
    pool: ThreadPoolExecutor,
    stopped: Callable[[], bool],
    note: Callable[[str], None],
) -> Iterator[RemoteExecutor]:
    """The executor of the links in a file, which disconnects from their hosts at the end; `note` reports on
    them.
    """
    trials = RemoteTrials(links, scratch, note)
    try:
        yield RemoteExecutor(trials, known, scratch, pool, stopped)
    finally:
        trials.kill()


class RemoteTrials:
    """The trials of links, one after the other."""

    def __init__(self, links: Links, scratch: Path, note: Callable[[str], None]) -> None:
        """`scratch` is the caller's to remove; `note` is called with events of connections."""
        self._links, self._scratch, self._note = links, scratch, note
        self._sessions: dict[str, LinkSession] = {}
        self._notes: dict[str, LinkNotes] = {}
        self._killed = threading.Event()

    def run(self, trial: LocalTrial) -> Answer:
        """Run one trial to its end, again if a connection breaks."""
        name = str(trial.scenario["name"])
        traffic = TrafficCount(self._links, name)
        estimate = _estimate(trial)
        if traffic.lacks(estimate):
            allowed = (traffic.allowed_bytes or 0) / 1e6
            raise LostExecutor(
                f"the traffic allowance of {name} is used up: {traffic.used_bytes / 1e6:.1f} of "
                f"{allowed:.1f} MB, and a trial takes some {estimate / 1e6:.1f} MB"
            )
        why = ""
        for number in range(1, TRIES + 1):
            session = self._session(name)
            try:
                values = self._try(session, trial, number)
            except HostGone as gone:
                if self._killed.is_set():
                    return Answer(None, killed=True)
                self._drop(name)
                traffic.add(estimate)  # nobody counted what went over
                why = str(gone)
                self._note(f"{name}: {why}: {'the trial runs again' if number < TRIES else 'enough'}")
                continue
            except BentpipeError as error:  # hosts are left: something may still run there
                self._drop(name)
                traffic.add(estimate)
                return Answer(None, f"{error}; {error.hint}" if error.hint else str(error))
            except (KeyError, TypeError, ValueError) as error:
                self._drop(name)
                traffic.add(estimate)
                return Answer(None, f"a host of {name} answers nonsense: {error!r}")
            traffic.add(_moved_bytes(values) or estimate)
            return Answer(values)
        return Answer(None, f"the connection broke {TRIES} times; at last: {why}")

    def kill(self) -> None:
        """End the running trial, and leave all hosts."""
        self._killed.set()
        for session in list(self._sessions.values()):
            session.close()

    def _try(self, session: LinkSession, trial: LocalTrial, number: int) -> dict[str, Any]:
        began = datetime.now(UTC)
        with tempfile.TemporaryDirectory(prefix="bentpipe-", dir=self._scratch) as folder:
            running = RemoteTrial(session, trial, Path(folder))
            observed = running.run()
            values = _record(observed)
        link = self._notes[session.name].behind(session)
        probes = running.probes
        clock = running.clock
        values |= {
            "began": began.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "tries": number,
            "clock_offset_ms": clock.offset_ns / 1e6,
            "clock_error_ms": clock.error_ns / 1e6,
            "probe_rtt_ms": probes.median_ms,
            "probe_loss_share": probes.loss_share,
            "link_statistics": link.statistics_by_name,
            "weather": link.weather_by_name,
        }
        values["detail"] = "; ".join(filter(None, (values["detail"], *running.details)))
        trial.folder.mkdir(parents=True, exist_ok=True)
        notes = {
            **running.notes,
            "route": link.route,
            "statistics": link.statistics,
            "weather": link.weather,
        }
        (trial.folder / NOTES).write_text(json.dumps(notes, indent=1) + "\n")
        return values

    def _session(self, name: str) -> LinkSession:
        """A session on a link. LostExecutor if a host cannot be reached: at first at once, later if it stays
        away for longer than it may.
        """
        session = self._sessions.get(name)
        if session is not None and not session.is_gone:
            return session
        self._drop(name)
        is_first = name not in self._notes
        try:
            connect = LinkSession if is_first else self._reconnected
            session = self._sessions[name] = connect(self._links, name)
            session.find_captures()
        except BentpipeError as error:
            hint = f" ({error.hint})" if error.hint else ""
            raise LostExecutor(f"{error}{hint if is_first else '; it did not come back'}") from error
        if self._killed.is_set():
            session.close()
        if is_first:
            self._notes[name] = LinkNotes(self._links, name)
            for role, place in session.places.items():
                if place.capture is None:
                    self._note(f"{name}: nothing is captured at the {role}: {place.why_no_capture}")
        return session

    def _reconnected(self, links: Links, name: str) -> LinkSession:
        return connected(links, name, self._killed.is_set)

    def _drop(self, name: str) -> None:
        if (session := self._sessions.pop(name, None)) is not None:
            session.close()


def _estimate(trial: LocalTrial) -> int:
    """About how much a trial takes over the link."""
    flow = trial.flows[0]
    size = sum((trial.www / path.removeprefix("/")).stat().st_size for path in flow.requests)
    return int(size * _SHARE)


def _moved_bytes(values: dict[str, Any]) -> int:
    """The bytes that crossed the link, both ways; 0 where nobody counted them."""
    both = values["forward_bytes"], values["return_bytes"]
    return sum(one or 0 for one in both)


def _record(observed: dict[str, Any]) -> dict[str, Any]:
    """The record that `bentpipe-remote record` makes of it."""
    done = subprocess.run(
        [str(paths.program("bentpipe-remote")), "record"],
        input=json.dumps(observed),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BentpipeError(f"bentpipe-remote record: {done.stderr.strip()}")
    values: dict[str, Any] = json.loads(done.stdout)
    return values
