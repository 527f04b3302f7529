"""The programs of a trial over a link: the files that they need on their hosts, their instructions, their
ends.

They get their part from the environment (`endpoints/contract/socket-mode.md`), as in the other testbed of
real time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from bentpipe.execution.jobs import LocalTrial
from bentpipe.remote.host import HostConnection
from bentpipe.remote.session import LinkSession
from bentpipe.stacks.model import ROLES, Variant
from bentpipe.workload import TESTCASES, milliseconds

FOLDER = "trial"  # on both hosts
CLIENT, SERVER = ROLES
CLOCK_EXCHANGES = 20
_CUT_S = 3.0  # what a client gets for its end when the time is over
_END_S = 5.0
_DRAIN_S = 2.0  # what is under way when the client has ended has arrived after that


@dataclass
class ProgramEnd:
    """The end of a program."""

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


class RemotePrograms:
    """The client and the server of a trial's one flow."""

    def __init__(self, session: LinkSession, trial: LocalTrial) -> None:
        self._session, self._trial = session, trial
        self._flow = trial.flows[0]
        self.ends: dict[str, ProgramEnd] = {role: ProgramEnd() for role in ROLES}

    @property
    def is_logged(self) -> bool:
        """Whether programs write qlogs: where nothing is captured, times are from these."""
        return self._trial.qlog or not self._session.can_capture

    def make_ready(self, role: str) -> None:
        """Copy the files that the program of `role` needs to its host."""
        variant = self._variant(role)
        self._session.bring(variant.stack, role)
        for file in sorted(self._trial.testbed.certificates().glob("*")):
            if file.suffix in (".pem", ".key"):
                self._session.put_once(role, f"certs/{file.name}", file)
        if role == sender(self._trial):
            for path in self._flow.requests:
                name = path.removeprefix("/")
                self._session.put_once(role, f"www/{name}", self._trial.www / name)
        if self.is_logged:
            self._session.on(role).ask("make", path=f"{FOLDER}/qlog")

    def run(self) -> tuple[int, int, bool]:
        """Run them: when the client was started and ended, by its host's clock, and whether it ended by
        itself.
        """
        client, server = (self._session.on(role) for role in ROLES)
        if not self._start(server, SERVER):
            at = self._now(client)
            return at, at, False
        self._session.ask_clocks(CLOCK_EXCHANGES)
        begun = self._start_program(client, CLIENT, None)
        ended = client.wait(CLIENT, ["ended"], self._end_timeout_s)
        is_done = ended is not None
        at_end = ended["at_unix_ns"] if ended else self._now(client)
        if ended is None:
            ended = client.end(CLIENT, "TERM", _CUT_S)
        self.ends[CLIENT].ended = ended
        time.sleep(_DRAIN_S)
        if early := server.wait(SERVER, ["ended"], 0.0):
            self.ends[SERVER] = ProgramEnd(f"ended by itself: {_how(early)}", early)
        else:
            self.ends[SERVER].ended = server.end(SERVER, "TERM", _END_S)
        return begun, at_end, is_done

    def _start(self, host: HostConnection, role: str) -> bool:
        """Start a server, and wait until it listens; whether it does."""
        self._start_program(host, role, "ready")
        event = host.wait(role, ["ready", "ended"], float(self._trial.silence_s))
        if event is not None and event["event"] == "ready":
            return True
        if event is None:
            ended = host.end(role, "KILL", _END_S)
            why = f"did not print a line `ready` within {self._trial.silence_s} s"
            self.ends[role] = ProgramEnd(why, ended)
        else:
            self.ends[role] = ProgramEnd(f"ended by itself: {_how(event)}", event)
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
        variables = {
            "ROLE": role,
            "TESTCASE": flow.testcase,
            "BENTPIPE_ALPN": flow.alpn,
            "BENTPIPE_OPTIONS": " ".join(f"{k}={v}" for k, v in self._variant(role).options.items()),
            "CERTS": f"{folder}/certs",
        }
        if role == CLIENT:
            address = session.address(self._trial.ip)
            variables["REQUESTS"] = " ".join(f"https://{address}:{port}{path}" for path in flow.requests)
            variables["SSLKEYLOGFILE"] = f"{folder}/{FOLDER}/client.keys"
        else:
            variables["BENTPIPE_LISTEN"] = f"{session.listening(self._trial.ip)}:{port}"
        if role == sender(self._trial):
            variables["WWW"] = f"{folder}/www"
        else:
            variables["DOWNLOADS"] = f"{folder}/{FOLDER}/downloads"
        if self.is_logged:
            variables["QLOGDIR"] = f"{folder}/{FOLDER}/qlog"
        return variables

    def _variant(self, role: str) -> Variant:
        return self._flow.client if role == CLIENT else self._flow.server

    @property
    def _end_timeout_s(self) -> float:
        return milliseconds(str(self._trial.scenario["timeout"]), "timeout") / 1000

    def _now(self, host: HostConnection) -> int:
        return int(host.ask("time")["sent_unix_ns"])


def sender(trial: LocalTrial) -> str:
    """The end that sends the files."""
    return TESTCASES[trial.flows[0].testcase].sender


def _how(ended: dict[str, Any]) -> str:
    if ended["signal"] is not None:
        return f"signal {ended['signal']}"
    return f"exit code {ended['code']}"
