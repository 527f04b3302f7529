"""A pair of endpoints in socket mode over this machine's loopback (`endpoints/contract/socket-mode.md`).

No link is emulated: this proves that socket mode works and gives the CPU time of the same stack without a
simulator.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from bentpipe import paths
from bentpipe.schema.bundle import BundleResource
from bentpipe.stacks.model import Stack
from bentpipe.stacks.time_limits import SOCKETS_S

# Variables that this sets, and that a program must not inherit.
_VARIABLES = (
    *("ROLE", "TESTCASE", "REQUESTS", "BENTPIPE_LISTEN", "BENTPIPE_ALPN", "BENTPIPE_OPTIONS"),
    "BENTPIPE_OWN_NAMESPACE",
    *("WWW", "DOWNLOADS", "CERTS", "SSLKEYLOGFILE", "QLOGDIR", "PAGE", "REPORT", "PICTURE"),
)
_PAGE = "page.json"
REPORT = "report.json"  # in the transfer's folder, of a page's client


class LoopbackError(Exception):
    """A failure of an endpoint to do what socket mode requires."""


@dataclass(frozen=True)
class Transfer:
    """A transfer: its files, and the folders for them."""

    www: Path
    requests: tuple[str, ...]  # paths: `/10485760`
    folder: Path  # downloads, keylog and qlog are made in here
    testcase: str = "transfer"
    options: Mapping[str, str] = field(default_factory=dict)
    logs: bool = False  # whether TLS secrets and qlog shall be written
    alpn: str = "hq-interop"
    page: tuple[BundleResource, ...] = ()  # what leads to each of the requests, if they are a page's


@dataclass(frozen=True)
class ProcessEnd:
    """The end of a process: its exit code, and the CPU time of it and its children, user and system."""

    code: int
    cpu_s: float


class SocketProcess:
    """The process of an endpoint in socket mode. Leaving the `with` block kills it if it still runs, and
    reaps it.
    """

    def __init__(self, stack: Stack, environment: Mapping[str, str]) -> None:
        self.name = stack.name
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 -- closed in __exit__
        self._ending: ProcessEnd | None = None
        self._process = subprocess.Popen(
            stack.command("sockets"),
            env={**_users(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )

    def __enter__(self) -> SocketProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self._ending is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self.wait(SOCKETS_S)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def wait_ready(self, timeout_s: float) -> None:
        """Wait for the server's line `ready`."""
        out = self._process.stdout
        assert out is not None  # it was asked for
        deadline, seen = time.monotonic() + timeout_s, b""
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            while b"ready\n" not in seen:
                if not selector.select(max(deadline - time.monotonic(), 0.0)):
                    raise LoopbackError(f"the server did not print a line `ready` within {timeout_s:g} s")
                chunk = os.read(out.fileno(), 4096)
                if not chunk:
                    raise LoopbackError(f"the server exited before it was ready{self.said()}")
                seen += chunk

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGTERM)

    def wait(self, timeout_s: float) -> ProcessEnd:
        """Wait for the process to end; LoopbackError if it does not in time."""
        deadline = time.monotonic() + timeout_s
        while self._ending is None:
            pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self._process.returncode = code  # it is reaped: keep subprocess from trying to
                self._ending = ProcessEnd(code, usage.ru_utime + usage.ru_stime)
            elif time.monotonic() >= deadline:
                raise LoopbackError(f"it did not exit within {timeout_s:g} s{self.said()}")
            else:
                time.sleep(0.002)
        return self._ending

    def said(self) -> str:
        self._log.seek(0)
        text = self._log.read().decode(errors="replace").strip()[-600:]
        return f"; it wrote: {text}" if text else ""


def _users() -> dict[str, str]:
    """The user's environment, without what would mean something else to an endpoint."""
    return {name: value for name, value in os.environ.items() if name not in _VARIABLES}


def environment(role: str, transfer: Transfer, port: int) -> dict[str, str]:
    """The variables of socket mode."""
    values = {
        "ROLE": role,
        "TESTCASE": transfer.testcase,
        "BENTPIPE_ALPN": transfer.alpn,
        "BENTPIPE_OPTIONS": " ".join(f"{name}={value}" for name, value in transfer.options.items()),
        "WWW": str(transfer.www),
        "DOWNLOADS": str(transfer.folder / "downloads"),
        "CERTS": str(paths.socket_certs()),
    }
    if role == "server":
        values["BENTPIPE_LISTEN"] = f"127.0.0.1:{port}"
    else:
        values["REQUESTS"] = " ".join(f"https://127.0.0.1:{port}{path}" for path in transfer.requests)
        if transfer.page:
            values["PAGE"] = str(transfer.folder / _PAGE)
            values["REPORT"] = str(transfer.folder / REPORT)
    if transfer.logs:
        values["SSLKEYLOGFILE"] = str(transfer.folder / f"keys-{role}.log")
        values["QLOGDIR"] = str(transfer.folder / f"qlog-{role}")
    return values


@contextlib.contextmanager
def free_port() -> Iterator[int]:
    """A free UDP port of the loopback addresses, reserved until the process ends."""
    for port in _candidates():
        # In the kernel's table of names, which is of the same network namespace as its ports are, and forgets
        # a name with whoever has it, however that ends.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as name:
            try:
                name.bind(f"\0bentpipe UDP port {port}")
                _probe(port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                yield port
                return
    raise LoopbackError("no UDP port is free")


def _candidates() -> Iterable[int]:
    """Ports that the kernel gives to nobody who has not asked for just this one, as far as there are any; in
    another order for each process, and another one each time, so that late packets find nobody.
    """
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    ports = [*range(10_000, low), *range(high + 1, 65_536)] or list(range(10_000, 65_536))
    first = (os.getpid() * 97 + next(_asked)) % len(ports)
    return ports[first:] + ports[:first]


_asked = itertools.count()


def _probe(port: int) -> None:
    """OSError with EADDRINUSE if somebody has the port."""
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.bind((address, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise  # anything else: there is no such address here, so nobody has it


def refusal(stack: Stack, role: str, transfer: Transfer, timeout_s: float = SOCKETS_S) -> str | None:
    """None if the program answers with exit code 127; otherwise what it did instead, in words."""
    _folders(transfer)
    with free_port() as port, SocketProcess(stack, environment(role, transfer, port)) as process:
        try:
            code = process.wait(timeout_s).code
        except LoopbackError as error:
            return str(error)
        return None if code == 127 else f"it exited with {code}{process.said()}"


def version(command: Sequence[str], timeout_s: float = SOCKETS_S) -> str:
    """The version that a program in socket mode reports when it is started with `--version`; LoopbackError or
    OSError if it reports none.
    """
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise LoopbackError(f"with --version it did not exit within {timeout_s:g} s") from None
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or len(lines) != 1:
        said = f"; it wrote: {done.stderr.strip()[-600:]}" if done.stderr.strip() else ""
        raise LoopbackError(
            f"with --version it printed {len(lines)} lines and exited with {done.returncode}{said}"
        )
    return lines[0]


def run(
    client: Stack, server: Stack, transfer: Transfer, timeout_s: float = SOCKETS_S
) -> tuple[ProcessEnd, ProcessEnd]:
    """Transfer the files once; how client and server ended. LoopbackError if any step fails."""
    _folders(transfer)
    with free_port() as port, SocketProcess(server, environment("server", transfer, port)) as serving:
        serving.wait_ready(timeout_s)
        with SocketProcess(client, environment("client", transfer, port)) as fetching:
            fetched = fetching.wait(timeout_s)
            if fetched.code != 0:
                raise LoopbackError(f"the client exited with {fetched.code}{fetching.said()}{serving.said()}")
        serving.terminate()
        served = serving.wait(timeout_s)
        if served.code != 0:
            raise LoopbackError(f"the server exited with {served.code} after SIGTERM{serving.said()}")
    for path in transfer.requests:
        got = transfer.folder / "downloads" / path.lstrip("/")
        if not got.is_file():
            raise LoopbackError(f"the client exited with 0, but there is no downloads{path}")
        if got.read_bytes() != (transfer.www / path.lstrip("/")).read_bytes():
            raise LoopbackError(f"downloads{path} is not the file that was sent")
    return fetched, served


def _folders(transfer: Transfer) -> None:
    names = ["downloads"] + (["qlog-client", "qlog-server"] if transfer.logs else [])
    for name in names:
        (transfer.folder / name).mkdir(parents=True, exist_ok=True)
    if transfer.page:
        fields = ("initiator", "found_after_bytes", "wait_ms", "urgency", "incremental")
        page = [{name: getattr(one, name) for name in fields} for one in transfer.page]
        (transfer.folder / _PAGE).write_text(json.dumps(page))
