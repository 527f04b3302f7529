"""Trials of two stacks in the simulator, for checks: the path, the files that they leave, and what they mean
in words.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bentpipe.contract.check import SIZE, Check
from bentpipe.execution.jobs import LocalFlow, LocalTrial, TrialProcesses
from bentpipe.plan import scenarios
from bentpipe.schema.bundle import BundleFrameStream, BundleLiveStream, BundleResource
from bentpipe.schema.job import Program
from bentpipe.stacks import protocol
from bentpipe.stacks.model import PROTOCOLS, Stack, Variant
from bentpipe.stacks.time_limits import silence_s

SCENARIO = "goodput"
PATH = "10/10 Mbit/s, 30 ms RTT, 25-packet queue"
_LAST_LINES = 10
# Where packets could not be decoded, nothing else that a check found can be relied on.
_GAP_HINT = (
    "the secrets are not those of the packets, or both ends agreed on an extension that changes packets in a "
    "way that is not known here: leave it off"
)
_HINTS = {
    "corrupt_file": "the reply is the file below www, byte by byte; nothing before or after it",
    "missing_file": "store the reply to /path as downloads/path, whole, before done",
    "transfer_timeout": "is done sent when every reply has ended, does next_wake cover every timer, and is "
    "the stack polled after each arrival? An idle timeout says above who was silent",
    "handshake_timeout": "do the first datagrams leave at once, and is an arrival handled at its time?",
    "crashed": "the command above runs it alone, on the same bytes, in a debugger if need be",
}


@dataclass(frozen=True)
class TrialRequest:
    """The request for a trial, by its purpose."""

    label: str  # its folder's name
    seed: int = 1
    scenario: str = SCENARIO
    settings: tuple[str, ...] = ()  # of the scenario
    testcase: str = "transfer"
    requests: tuple[str, ...] = (f"/{SIZE}",)
    alpn: str | None = None  # the application protocol; None: the first that both ends have
    page: tuple[BundleResource, ...] = ()  # for each request of a page, what leads to it
    live: BundleLiveStream | None = None  # the live stream that the requests are of
    frames: BundleFrameStream | None = None  # the stream of frames that they are of
    client_options: Mapping[str, str] = field(default_factory=dict)
    logs: bool = False
    shared_memory: bool = True  # False: all messages go through the pipes
    aside: Path | None = None  # a file that is not there while the server runs


@dataclass(frozen=True)
class _Shimmed(Variant):
    """A variant whose program is started by another command."""

    command: tuple[str, ...] = ()

    def program(self, mode: str, version: str | None = None) -> Program:
        return msgspec.structs.replace(super().program(mode, version), command=list(self.command))


# The coordinator looks for every file that is asked for before and after the programs run. This takes one
# away in between, so that a client asks for a file which the server does not have. In Python, which is there
# where no `mv` is.
_ASIDE = """\
import os, subprocess, sys
file, *command = sys.argv[1:]
os.rename(file, file + ".aside")
code = subprocess.run(command, close_fds=False).returncode  # messages come by descriptors of their own
os.rename(file + ".aside", file)
raise SystemExit(code if code >= 0 else 128 - code)
"""


@dataclass(frozen=True)
class StackPair:
    """A pair of stacks, over the scenario goodput unless another is asked for."""

    client: Stack
    server: Stack
    folder: Path

    @property
    def title(self) -> str:
        return f"{self.client.name} → {self.server.name}"

    def left(self, request: TrialRequest) -> Path:
        """The folder of the files that the trial of `request` leaves."""
        return self.folder / "trials" / request.label

    def culprit(self, request: TrialRequest) -> str | None:
        """The role of the program that failed in the trial of `request`, whose messages are kept; or None."""
        roles = (role for role in ("client", "server") if (self.left(request) / f"{role}.frames").is_file())
        return next(roles, None)

    def trial(self, request: TrialRequest) -> Mapping[str, Any]:
        """The coordinator's result."""
        server = Variant(self.server.name, self.server, {})
        if request.aside is not None:
            own = self.server.command("virtual-time")
            command = (sys.executable, "-I", "-S", "-c", _ASIDE, str(request.aside), *own)
            server = _Shimmed(server.label, server.stack, {}, command)
        client = Variant(self.client.name, self.client, request.client_options)
        common = protocol.common(self.client, self.server, request.testcase)
        trial = LocalTrial(
            scenario=scenarios.resolve(request.scenario, request.settings).scenario,
            flows=(
                LocalFlow(
                    request.testcase,
                    request.requests,
                    client,
                    server,
                    alpn=request.alpn or common or PROTOCOLS[0],
                    page=request.page,
                    live=request.live,
                    frames=request.frames,
                ),
            ),
            www=self.folder / "www",
            seed=f"{request.seed:016x}",
            folder=self.left(request),
            trace=request.logs,
            qlog=request.logs,
            silence_s=silence_s(),
            shared_memory=request.shared_memory,
        )
        answer = TrialProcesses(self.folder).run(trial)
        return answer.values or {"outcome": "invalid", "detail": answer.failure}

    def check(self, name: str, request: TrialRequest, result: Mapping[str, Any]) -> Check:
        """The check `name`, which passes if the trial ends well."""
        outcome = str(result["outcome"])
        if outcome == "ok":
            return Check(name, True)
        return self.failed(name, request, result, _HINTS.get(outcome, "see endpoints/CONTRACT.md"))

    def failed(self, name: str, request: TrialRequest, result: Mapping[str, Any], hint: str) -> Check:
        """The failed check `name`, with everything that helps to find the cause."""
        folder, role = self.left(request), self.culprit(request)
        if misses_packets(result):
            hint = _GAP_HINT
        detail = f"{result['outcome']}: {result['detail']}{_packets(result)}"
        if role is None:
            return Check(name, False, detail, hint, folder=folder if folder.is_dir() else None)
        stack = self.client if role == "client" else self.server
        messages = str(folder / f"{role}.frames")
        program, *arguments = stack.command("virtual-time")
        # In full, so that it can be typed anywhere; a program that cannot be started left no messages.
        command = [shutil.which(program) or program, *arguments]
        replay = shlex.join(["bentpipe", "replay", messages, "--", *command])
        return Check(name, False, detail, hint, _last_lines(folder / f"{role}.log"), folder, replay)


def misses_packets(result: Mapping[str, Any]) -> bool:
    """Whether too many packets could not be decoded for the capture to prove anything; the detail says so."""
    return result.get("measured_from") == "client" and bool(result.get("undecoded_packets"))


def _packets(result: Mapping[str, Any]) -> str:
    """For a trial that ran out of time: what became of the packets, in both directions."""
    if not str(result["outcome"]).endswith("_timeout"):
        return ""
    parts = []
    for direction, towards in (("forward", "to the client"), ("return", "to the server")):
        sent, drops, losses = (result[f"{direction}_{what}"] for what in ("packets", "queue_drops", "losses"))
        parts.append(f"{sent} packets sent {towards}, {drops} of them dropped by the queue, {losses} lost")
    return f" ({'; '.join(parts)})"


def _last_lines(log: Path) -> tuple[str, ...]:
    if not log.is_file():
        return ()
    lines = [line.rstrip() for line in log.read_text(errors="replace").splitlines()]
    return tuple([line for line in lines if line][-_LAST_LINES:])
