"""A trial over a link, from its first program to the observations.

The order is: captures, monitor, server, clocks, client; and back.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bentpipe.errors import BentpipeError
from bentpipe.execution.jobs import LocalTrial
from bentpipe.execution.remote_programs import CLIENT, CLOCK_EXCHANGES, FOLDER, SERVER, RemotePrograms
from bentpipe.execution.remote_results import LeftFiles
from bentpipe.remote.clock import Offset
from bentpipe.remote.session import LinkSession
from bentpipe.stacks.model import ROLES, TRANSPORTS, Role

_WHOLE = 10**9


@dataclass(frozen=True)
class Probes:
    """The measurements of the monitor beside a trial."""

    samples: Sequence[dict[str, Any]] = ()

    @property
    def median_ms(self) -> float | None:
        rtts_ms = [one["rtt_ms"] for one in self.samples if one["rtt_ms"] is not None]
        return statistics.median(rtts_ms) if rtts_ms else None

    @property
    def loss_share(self) -> float | None:
        if not self.samples:
            return None
        return sum(one["rtt_ms"] is None for one in self.samples) / len(self.samples)


class RemoteTrial:
    """A trial of one flow."""

    def __init__(self, session: LinkSession, trial: LocalTrial, scratch: Path) -> None:
        """Files that hosts leave are put into `scratch`, where `bentpipe-remote record` looks for it."""
        self._session, self._trial, self._scratch = session, trial, scratch
        self._programs = RemotePrograms(session, trial)
        self.probes = Probes()
        self.details: list[str] = []  # what is to be said beside the verdict
        self.clock = Offset(0.0, 0.0, 0, 0.0)
        self.notes: dict[str, Any] = {}

    def run(self) -> dict[str, Any]:
        """Run it; the observations, for `bentpipe-remote record`. HostGone if a connection breaks."""
        session = self._session
        session.forget_clock()
        for role in ROLES:
            session.on(role).ask("remove", path=FOLDER)
            session.on(role).ask("make", path=f"{FOLDER}/downloads")
        for role in ROLES:
            self._programs.make_ready(role)
        captures = self._start_captures()
        is_watched = session.start_monitor(self._trial.ip)
        begun, ended, is_done = self._programs.run()
        if is_watched:
            self.probes = Probes(json.loads(session.end_monitor()))
        codes = {role: session.end_capture(role)["code"] for role in ROLES} if captures else {}
        session.ask_clocks(CLOCK_EXCHANGES)
        self.clock = session.clock()
        left = LeftFiles(session, self._trial, self._scratch)
        left.fetch(captures)
        self.details += left.details
        self._take_notes()
        for role in ROLES:
            session.on(role).ask("remove", path=FOLDER)
        return self._observed(codes, begun, ended, is_done)

    def _start_captures(self) -> bool:
        """Begin to capture at both ends; whether that is so."""
        if not self._session.can_capture:
            return False
        protocol = "tcp" if TRANSPORTS[self._trial.flows[0].alpn] == "tcp" else "udp"
        what = f"{protocol} port {self._session.link.server.udp_port}"
        for role in ROLES:
            if why := self._session.start_capture(role, FOLDER, what):
                raise BentpipeError(f"{self._session.on(role).where}: {why}")
        return True

    def _take_notes(self) -> None:
        keep = ("name", "kernel", "machine", "cores")
        self.notes = {
            "hosts": {role: {key: self._session.on(role).facts[key] for key in keep} for role in ROLES},
            "clock": {
                "offset_ns": self.clock.offset_ns,
                "drift_ppm": self.clock.drift * 1e6,
                "error_ns": self.clock.error_ns,
                "exchanges": {role: len(self._session.on(role).exchanges) for role in ROLES},
            },
            "probes": list(self.probes.samples),
        }

    def _observed(
        self, codes: Mapping[Role, int | None], begun: int, ended: int, is_done: bool
    ) -> dict[str, Any]:
        """`codes` are those that captures ended with; without any, nothing was captured."""
        link, clock = self._session.link, self.clock
        ahead = [host.clock_ahead_ms * 10**6 for host in (link.client, link.server)]
        captures = [
            {"file": str(self._scratch / f"{role}.capture"), "code": code} for role, code in codes.items()
        ]
        client = self._session.on(CLIENT)
        # Offsets are relative to this machine's clock; the record wants them by the server's.
        at = clock.at_ns + round(self._session.clock_of(SERVER).offset_ns)
        return {
            "job": msgspec.to_builtins(self._trial.job()) | {"qlog": self._programs.is_logged},
            "scratch": str(self._scratch),
            "port": link.server.udp_port,
            "captures": captures or None,
            "stamps_ns": ahead,
            "server_clock": {
                "offset_ns": round(clock.offset_ns),
                "drift_ppb": round(clock.drift * _WHOLE),
                "at_unix_ns": at,
            },
            "begun_unix_ns": begun,
            "ended_unix_ns": max(ended, begun),
            "is_done": is_done and not client.is_gone,
            "programs": [self._programs.ends[role].as_observed() for role in ROLES],
        }
