"""Trials as jobs: a process for each, `bentpipe-sim trial` in virtual time and `bentpipe-emu trial` in real
time, started with the same JSON.

It answers with one JSON object for every outcome that has a name. If it fails itself, or answers
nonsense, that is a failure of the harness, not of a stack.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bentpipe import paths
from bentpipe.execution.process_watchdog import GRACE_S, GroupWatchdog
from bentpipe.plan.treatments import Treatment
from bentpipe.schema.bundle import BundleFrameStream, BundleLiveStream, BundleResource
from bentpipe.schema.job import (
    FORMAT,
    FrameStream,
    Job,
    JobFlow,
    JobProxy,
    JobTunnel,
    LiveStream,
    PageResource,
)
from bentpipe.stacks import middleboxes
from bentpipe.stacks.model import PROTOCOLS, TRANSPORTS, Variant
from bentpipe.testbed import SIM, Testbed
from bentpipe.workload import TESTCASES


@dataclass(frozen=True)
class Answer:
    """The answer to a job: `values` from the testbed's program, or its `failure` in words."""

    values: dict[str, Any] | None
    failure: str = ""
    killed: bool = False
    disk_full: bool = False


@dataclass(frozen=True)
class LocalFlow:
    """A flow of a trial on this machine: a client and a server, and what is transferred between them."""

    testcase: str
    requests: tuple[str, ...]  # paths
    client: Variant
    server: Variant
    start_ns: int = 0
    duration_ns: int | None = None
    alpn: str = PROTOCOLS[0]
    page: tuple[BundleResource, ...] = ()  # for each request of a page, what leads to it
    live: BundleLiveStream | None = None  # the live stream that the requests are of
    frames: BundleFrameStream | None = None  # the stream of frames that they are of
    middlebox: Mapping[str, str] = field(default_factory=dict)  # options of its own middleboxes
    versions: tuple[str | None, str | None] = (None, None)  # of client and server, as far as they are known

    def of_job(self, mode: str) -> JobFlow:
        """The flow's entry in a job, where programs are started in `mode`."""
        client, server = self.versions
        return JobFlow(
            testcase=self.testcase,
            testcase_facts=TESTCASES[self.testcase].facts(
                TRANSPORTS[self.alpn], self.client.saved_round_trips(self.server)
            ),
            transport=TRANSPORTS[self.alpn],
            alpn=self.alpn,
            requests=list(self.requests),
            page=[PageResource(**msgspec.structs.asdict(one)) for one in self.page],
            live=None if self.live is None else LiveStream(**msgspec.structs.asdict(self.live)),
            frames=None if self.frames is None else FrameStream(**msgspec.structs.asdict(self.frames)),
            start_ns=self.start_ns,
            duration_ns=self.duration_ns,
            middlebox=dict(self.middlebox),
            client=self.client.program(mode, client),
            server=self.server.program(mode, server),
        )


@dataclass(frozen=True)
class LocalTrial:
    """A trial that can be started on this machine: its stacks and files are here."""

    scenario: Mapping[str, Any]  # resolved
    flows: tuple[LocalFlow, ...]  # the first is the one that is measured
    www: Path
    seed: str  # 64 bits in hexadecimal
    folder: Path  # where the trial leaves its files, if it has any
    trace: bool = False
    qlog: bool = False
    silence_s: int = 30
    shared_memory: bool = True
    testbed: Testbed = SIM
    ip: int = 4  # the version that its programs speak
    treatment: Treatment = field(default_factory=Treatment)

    def job(self) -> Job:
        """The job that the testbed's program is started with. BentpipeError if the program of a proxy or a
        tunnel is missing.
        """
        return Job(
            format=FORMAT,
            scenario=dict(self.scenario),
            flows=[flow.of_job(self.testbed.mode) for flow in self.flows],
            proxies=self._proxies(),
            tunnel=self._tunnel(),
            ip=self.ip,
            www=str(self.www),
            certs=str(self.testbed.certificates()),
            seed=self.seed,
            folder=str(self.folder),
            trace=self.trace,
            qlog=self.qlog,
            silence_s=self.silence_s,
            shared_memory=self.shared_memory,
        )

    def _tunnel(self) -> JobTunnel | None:
        asked = self.treatment.tunnel
        if asked is None:
            return None
        program = middleboxes.tunnels()[asked.kind]
        return JobTunnel(
            kind=asked.kind,
            to=asked.to,
            command=program.command(self.testbed.mode),
            version=program.version,
            mtu_bytes=asked.mtu_bytes or program.tunnel_mtu_bytes,
            port=program.kinds[asked.kind].port,
            transport=program.kinds[asked.kind].transport,
        )

    def _proxies(self) -> list[JobProxy]:
        if not self.treatment.proxies:
            return []
        kind = middleboxes.chains()[self.treatment.kind]
        return [
            JobProxy(
                place=one.place,
                name=str(one),
                command=kind.command(self.testbed.mode),
                options=dict(one.options),
                relays=kind.relays,
                carries=kind.carries,
                lead_ms=round(kind.lead(one.options) * 1000),
                mtu_bytes=kind.mtu_bytes,
            )
            for one in self.treatment.proxies
        ]


class TrialProcesses:
    """The processes of trials, each in its own process group, started from any number of threads; `kill` ends
    all of them.
    """

    def __init__(self, scratch: Path, watchdog: GroupWatchdog | None = None) -> None:
        """Files that trials need go to `scratch`, which the caller removes. A `watchdog` ends the processes
        where this one is killed.
        """
        self._watchdog = watchdog
        self._environment = {**os.environ, "TMPDIR": str(scratch)}
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._killed = False

    def run(self, trial: LocalTrial) -> Answer:
        """Run one trial to its end."""
        job = json.dumps(msgspec.to_builtins(trial.job()))
        with self._lock:
            if self._killed:
                return Answer(None, killed=True)
            process = subprocess.Popen(
                [str(paths.program(trial.testbed.program)), "trial"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                # Not in its own session: the kernel shares out processor time by session first, and what runs
                # in another at a lower priority (`bentpipe.execution.awake`) would not give way at once.
                process_group=0,
                env=self._environment,
            )
            self._running.add(process)
        try:
            if self._watchdog:  # before it has its job: until then it ends when this process does
                self._watchdog.watch(process.pid)
            out, err = process.communicate(job)
        finally:
            with self._lock:
                self._running.discard(process)
            # An endpoint program may have left children behind, in this group.
            _signal(process, signal.SIGKILL)
            if self._watchdog:
                self._watchdog.release(process.pid)
        if self._killed:
            return Answer(None, killed=True)
        return _answer(trial.testbed.program, process.returncode, out, err)

    def kill(self) -> None:
        """End all processes; they answer `killed`. Trials started later answer so at once."""
        with self._lock:
            self._killed = True
            running = list(self._running)
        for process in running:
            _signal(process, signal.SIGTERM)
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
            # Children of a program that is gone already are still in its group.
            _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _answer(program: str, code: int, out: str, err: str) -> Answer:
    if code != 0 and _tells_of_full_disk(err):
        return Answer(None, err.strip().removeprefix("error: "), disk_full=True)
    if code != 0:
        return Answer(None, f"{program} ended with {code}: {err.strip() or 'no message'}")
    try:
        values = json.loads(out)
    except json.JSONDecodeError as error:
        return Answer(None, f"{program} answered no JSON ({error}): {out[:200]!r}")
    if not isinstance(values, dict):
        return Answer(None, f"{program} answered no object: {out[:200]!r}")
    # A program that cannot write what it received has not crashed: the disk is full.
    detail = str(values.get("detail"))
    if values.get("outcome") != "ok" and _tells_of_full_disk(detail):
        return Answer(None, detail, disk_full=True)
    return Answer(values)


def _tells_of_full_disk(text: str) -> bool:
    said = text.casefold()  # Go writes it in small letters
    return any(os.strerror(number).casefold() in said for number in (errno.ENOSPC, errno.EDQUOT))
