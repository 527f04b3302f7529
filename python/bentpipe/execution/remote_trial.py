"""One trial over a link, from its first program to what was observed of it.

Programs are told their part by the environment (`endpoints/CONTRACT.md`, section 3), as in the other testbed
of real time. The order is: captures, monitor, server, clocks, client; and back.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bentpipe.errors import BentpipeError
from bentpipe.execution.jobs import LocalTrial
from bentpipe.remote.clock import Offset
from bentpipe.remote.host import HostConnection
from bentpipe.remote.session import LinkSession
from bentpipe.runs.trial_files import within
from bentpipe.stacks.model import ROLES, TRANSPORTS, Variant
from bentpipe.workload import TESTCASES, milliseconds

FOLDER = "trial"  # on both hosts
CLIENT, SERVER = ROLES
_CLOCK_EXCHANGES = 20
_CUT_S = 3.0  # what a client gets for its end when the time is over
_END_S = 5.0
_DRAIN_S = 2.0  # what is under way when the client has ended has arrived after that
_WHOLE = 10**9


@dataclass(frozen=True)
class Probes:
    """What the small flow beside a trial saw."""

    samples: Sequence[dict[str, Any]] = ()

    @property
    def median_ms(self) -> float | None:
        came = [one["rtt_ms"] for one in self.samples if one["rtt_ms"] is not None]
        return statistics.median(came) if came else None

    @property
    def loss_share(self) -> float | None:
        if not self.samples:
            return None
        return sum(one["rtt_ms"] is None for one in self.samples) / len(self.samples)


@dataclass
class _End:
    """What became of a program."""

    failure: str | None = None
    ended: dict[str, Any] | None = None

    def as_observed(self) -> dict[str, Any]:
        ended = self.ended or {}
        return {
            "failure": self.failure,
            "code": ended.get("code"),
            "signal": ended.get("signal"),
            "said": ended.get("said", ""),
            "cpu_s": ended.get("cpu_s", 0.0),
            "memory_bytes": ended.get("memory_bytes", 0),
        }


class RemoteTrial:
    """A trial of one flow."""

    def __init__(self, session: LinkSession, trial: LocalTrial, scratch: Path) -> None:
        """What hosts leave is put into `scratch`, where `bentpipe-remote record` looks for it."""
        self._session, self._trial, self._scratch = session, trial, scratch
        self._flow = trial.flows[0]
        self._ends: dict[str, _End] = {role: _End() for role in ROLES}
        self.probes = Probes()
        self.details: list[str] = []  # what is to be said beside the verdict
        self.clock = Offset(0.0, 0.0, 0, 0.0)
        self.notes: dict[str, Any] = {}

    def run(self) -> dict[str, Any]:
        """Run it; what was observed, for `bentpipe-remote record`. HostGone if a connection breaks."""
        session = self._session
        session.forget_clock()
        for role in ROLES:
            session.on(role).ask("remove", path=FOLDER)
            session.on(role).ask("make", path=f"{FOLDER}/downloads")
        for role in ROLES:
            self._make_ready(role)
        captures = self._start_captures()
        is_watched = session.start_monitor(self._trial.ip)
        begun, ended, is_done = self._run_programs()
        if is_watched:
            self.probes = Probes(json.loads(session.end_monitor()))
        if captures:
            self._end_captures()
        session.ask_clocks(_CLOCK_EXCHANGES)
        self.clock = session.clock()
        self._fetch(captures)
        self._take_notes()
        for role in ROLES:
            session.on(role).ask("remove", path=FOLDER)
        return self._observed(captures, begun, ended, is_done)

    def _make_ready(self, role: str) -> None:
        """Put what the program of `role` needs on its host."""
        variant = self._variant(role)
        self._session.bring(variant.stack, role)
        for file in sorted(self._trial.testbed.certificates().glob("*")):
            if file.suffix in (".pem", ".key"):
                self._session.put_once(role, f"certs/{file.name}", file)
        if role == self._sender:
            for path in self._flow.requests:
                name = path.removeprefix("/")
                self._session.put_once(role, f"www/{name}", self._trial.www / name)
        if self._is_logged:
            self._session.on(role).ask("make", path=f"{FOLDER}/qlog")

    def _start_captures(self) -> bool:
        """Begin to capture at both ends; whether that is so."""
        if not self._session.can_capture:
            return False
        protocol = "tcp" if TRANSPORTS[self._flow.alpn] == "tcp" else "udp"
        what = f"{protocol} port {self._session.link.server.udp_port}"
        for role in ROLES:
            if why := self._session.start_capture(role, FOLDER, what):
                raise BentpipeError(f"{self._session.on(role).where}: {why}")
        return True

    def _end_captures(self) -> None:
        for role in ROLES:
            ended = self._session.end_capture(role)
            if ended["code"] != 0:
                self.details.append(f"the capture at the {role} ended with {ended['code']}")

    def _run_programs(self) -> tuple[int, int, bool]:
        """When the client was started and ended, by its host's clock, and whether it did that by itself."""
        client, server = (self._session.on(role) for role in ROLES)
        if not self._start(server, SERVER):
            at = self._now(client)
            return at, at, False
        self._session.ask_clocks(_CLOCK_EXCHANGES)
        begun = self._start_program(client, CLIENT, None)
        ended = client.wait(CLIENT, ["ended"], self._patience_s)
        is_done = ended is not None
        at_end = ended["at_unix_ns"] if ended else self._now(client)
        if ended is None:
            ended = client.end(CLIENT, "TERM", _CUT_S)
        self._ends[CLIENT].ended = ended
        time.sleep(_DRAIN_S)
        if early := server.wait(SERVER, ["ended"], 0.0):
            self._ends[SERVER] = _End(f"ended by itself: {_how(early)}", early)
        else:
            self._ends[SERVER].ended = server.end(SERVER, "TERM", _END_S)
        return begun, at_end, is_done

    def _start(self, host: HostConnection, role: str) -> bool:
        """Start a server, and wait until it listens; whether it does."""
        self._start_program(host, role, "ready")
        event = host.wait(role, ["ready", "ended"], float(self._trial.silence_s))
        if event is not None and event["event"] == "ready":
            return True
        if event is None:
            ended = host.end(role, "KILL", _END_S)
            self._ends[role] = _End(f"did not print a line `ready` within {self._trial.silence_s} s", ended)
        else:
            self._ends[role] = _End(f"ended by itself: {_how(event)}", event)
        return False

    def _start_program(self, host: HostConnection, role: str, ready: str | None) -> int:
        stack = self._variant(role).stack
        brought = self._session.bring(stack, role)
        words = [word.replace("{bin}", brought.folder) for word in stack.commands["sockets"]]
        return host.start(role, words, self._environment(role), ready, brought.hashes[words[0]])

    def _environment(self, role: str) -> dict[str, str]:
        flow, session = self._flow, self._session
        folder = session.places[role].folder
        port = session.link.server.udp_port
        told = {
            "ROLE": role,
            "TESTCASE": flow.testcase,
            "BENTPIPE_ALPN": flow.alpn,
            "BENTPIPE_OPTIONS": " ".join(f"{k}={v}" for k, v in self._variant(role).options.items()),
            "CERTS": f"{folder}/certs",
        }
        if role == CLIENT:
            address = session.address(self._trial.ip)
            told["REQUESTS"] = " ".join(f"https://{address}:{port}{path}" for path in flow.requests)
            told["SSLKEYLOGFILE"] = f"{folder}/{FOLDER}/client.keys"
        else:
            told["BENTPIPE_LISTEN"] = f"{session.listening(self._trial.ip)}:{port}"
        if role == self._sender:
            told["WWW"] = f"{folder}/www"
        else:
            told["DOWNLOADS"] = f"{folder}/{FOLDER}/downloads"
        if self._is_logged:
            told["QLOGDIR"] = f"{folder}/{FOLDER}/qlog"
        return told

    def _fetch(self, captures: bool) -> None:
        """Bring home what was left. A file that is the one served is not sent once more."""
        receiver = SERVER if self._sender == CLIENT else CLIENT
        served = {}
        for path in self._flow.requests:
            file = self._trial.www / path.removeprefix("/")
            served[hashlib.sha256(file.read_bytes()).hexdigest()] = file
        host = self._session.on(receiver)
        downloads = self._scratch / "0" / "downloads"
        downloads.mkdir(parents=True)
        for found in host.ask("list", path=f"{FOLDER}/downloads")["files"]:
            to = within(downloads, found["path"])
            to.parent.mkdir(parents=True, exist_ok=True)
            if found["sha256"] in served:
                to.write_bytes(served[found["sha256"]].read_bytes())
            else:
                to.write_bytes(host.get(f"{FOLDER}/downloads/{found['path']}"))
        for role in ROLES:
            listed = self._session.on(role).ask("list", path=FOLDER)
            here = {one["path"] for one in listed["files"]}
            if odd := listed["unreadable"]:
                names = ", ".join(sorted(odd))
                self.details.append(f"files of the {role} were left there, whose names are no text: {names}")
            if role == CLIENT and "client.keys" in here:
                keys = self._session.on(role).get(f"{FOLDER}/client.keys")
                (self._scratch / "0" / "client.keys").write_bytes(keys)
            if captures:
                content = self._session.on(role).get(f"{FOLDER}/capture")
                (self._scratch / f"{role}.capture").write_bytes(content)
            for name in sorted(one for one in here if one.startswith("qlog/")):
                to = within(self._trial.folder / "qlog" / role, name.removeprefix("qlog/"))
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(self._session.on(role).get(f"{FOLDER}/{name}"))

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

    def _observed(self, captures: bool, begun: int, ended: int, is_done: bool) -> dict[str, Any]:
        link, clock = self._session.link, self.clock
        ahead = [host.clock_ahead_ms * 10**6 for host in (link.client, link.server)]
        files = [str(self._scratch / f"{role}.capture") for role in ROLES]
        client = self._session.on(CLIENT)
        # Offsets are told by this machine's clock; the record wants them by the server's.
        at = clock.at_ns + round(self._session.clock_of(SERVER).offset_ns)
        return {
            "job": msgspec.to_builtins(self._trial.job()) | {"qlog": self._is_logged},
            "scratch": str(self._scratch),
            "port": link.server.udp_port,
            "captures": files if captures else None,
            "stamps_ns": ahead,
            "server_clock": {
                "offset_ns": round(clock.offset_ns),
                "drift_ppb": round(clock.drift * _WHOLE),
                "at_unix_ns": at,
            },
            "begun_unix_ns": begun,
            "ended_unix_ns": max(ended, begun),
            "is_done": is_done and not client.is_gone,
            "programs": [self._ends[role].as_observed() for role in ROLES],
        }

    def _variant(self, role: str) -> Variant:
        return self._flow.client if role == CLIENT else self._flow.server

    @property
    def _is_logged(self) -> bool:
        """Whether programs write qlogs: where nothing is captured, times are theirs."""
        return self._trial.qlog or not self._session.can_capture

    @property
    def _sender(self) -> str:
        return TESTCASES[self._flow.testcase].sender

    @property
    def _patience_s(self) -> float:
        return milliseconds(str(self._trial.scenario["timeout"]), "timeout") / 1000

    def _now(self, host: HostConnection) -> int:
        return int(host.ask("time")["sent_unix_ns"])


def _how(ended: dict[str, Any]) -> str:
    if ended["signal"] is not None:
        return f"signal {ended['signal']}"
    return f"exit code {ended['code']}"
