"""The abilities of this machine for real time, and what is missing: kernel, privileges, tools, buffers,
timers.

What only the emulator can try, such as making namespaces, `bentpipe-emu probe` tries and reports. Each check
ends as `ok`; as `warn` where other things work without it; or as `fail` where real time cannot work at all.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from bentpipe import paths
from bentpipe.errors import BentpipeError
from bentpipe.stacks import catalogue
from bentpipe.stacks.model import Stack

Status = Literal["ok", "warn", "fail"]

# The programs that tests and examples use, and the Debian package of each.
TOOLS = {
    "ping": "iputils-ping",
    "iperf3": "iperf3",
    "tshark": "tshark",
    "curl": "curl",
}
# Fast stacks ask for sockets' buffers of this size; the kernel gives no more than its limits.
BUFFER_BYTES = 2 * 1024 * 1024
LATE_MS = 1.0  # a trial whose packets are released later than that is invalid, if its round trip is short
BUSY = 0.10  # the share of time in which something waited for a processor
PROBE_TIMEOUT_S = 60


@dataclass(frozen=True)
class MachineCheck:
    """The check of one property of the machine."""

    name: str
    status: Status
    found: str
    hint: str = ""

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


def checks() -> Iterator[MachineCheck]:
    """The checks, one by one."""
    yield _kernel()
    yield _privileges()
    yield from _emulator()
    yield _processors()
    yield _pressure()
    yield from _buffers()
    yield from _tools()
    known = list(catalogue.discover().values())
    yield from _browsers(known)
    yield _stacks([one for one in known if not one.browser])


def _kernel() -> MachineCheck:
    found = f"{platform.system()} {platform.release()}"
    if platform.system() != "Linux":
        return MachineCheck(
            "kernel", "fail", found, "network namespaces are Linux's; virtual time works here"
        )
    return MachineCheck("kernel", "ok", found)


def _privileges() -> MachineCheck:
    if os.geteuid() == 0:
        return MachineCheck("privileges", "ok", "root")
    return MachineCheck("privileges", "ok", "an ordinary user, who needs user namespaces")


def _emulator() -> Iterator[MachineCheck]:
    """The results of `bentpipe-emu probe`."""
    try:
        program = paths.program("bentpipe-emu")
    except BentpipeError as error:
        yield MachineCheck("emulator", "fail", str(error), error.hint)
        return
    try:
        done = subprocess.run(
            [str(program), "probe"], capture_output=True, text=True, check=False, timeout=PROBE_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        yield MachineCheck("emulator", "fail", f"{program} probe: no answer within {PROBE_TIMEOUT_S} s")
        return
    if done.returncode != 0:
        message, _, hint = done.stderr.strip().removeprefix("error: ").partition("\nhint: ")
        yield MachineCheck("namespaces", "fail", message or f"exit code {done.returncode}", hint)
        return
    answer = json.loads(done.stdout)
    for check in answer["checks"]:
        message, _, hint = (check["error"] or "can be made").partition("\nhint: ")
        yield MachineCheck(check["name"], "fail" if check["error"] else "ok", message, hint)
    yield _timer(answer["timer"])


_QUANTILES = {"p50": "p50_ms", "p99": "p99_ms", "p99.9": "p999_ms", "most": "max_ms"}


def _timer(timer: dict[str, Any]) -> MachineCheck:
    """The delay with which the machine wakes a program that sleeps until an instant."""
    found = ", ".join(f"{name} {timer[key]:.3g} ms" for name, key in _QUANTILES.items())
    if timer["p999_ms"] > LATE_MS:
        return MachineCheck(
            "timer noise",
            "warn",
            found,
            f"trials are invalid beyond {LATE_MS:g} ms, or 0.5 % of the round trip, at p99.9: let the "
            "machine do less, or use --awake",
        )
    return MachineCheck("timer noise", "ok", found)


def _processors() -> MachineCheck:
    count = os.cpu_count() or 1
    if count < 2:
        return MachineCheck(
            "processors", "warn", "1", "the emulator and the endpoints take turns: expect invalid trials"
        )
    return MachineCheck("processors", "ok", str(count))


def _pressure() -> MachineCheck:
    """The share of the last ten seconds in which something waited for a processor."""
    try:
        text = Path("/proc/pressure/cpu").read_text()
    except OSError as error:
        return MachineCheck(
            "CPU pressure",
            "warn",
            f"the kernel does not say ({error.strerror})",
            "start it with psi=1, or trials are judged by the release error alone",
        )
    found = re.search(r"^some avg10=([\d.]+)", text, re.MULTILINE)
    share = float(found[1]) / 100 if found else 0.0
    said = f"{share:.0%} of the last ten seconds"
    if share > BUSY:
        return MachineCheck("CPU pressure", "warn", said, "something else is busy: trials may be invalid")
    return MachineCheck("CPU pressure", "ok", said)


def _buffers() -> Iterator[MachineCheck]:
    """The bytes that a UDP socket may buffer for its program."""
    for name in ("rmem_max", "wmem_max"):
        try:
            limit = int(Path(f"/proc/sys/net/core/{name}").read_text())
        except OSError as error:
            yield MachineCheck(name, "warn", f"cannot be read: {error.strerror}")
            continue
        if limit < BUFFER_BYTES:
            yield MachineCheck(
                name,
                "warn",
                f"{limit} bytes",
                f"UDP may lose packets at high rates: sysctl net.core.{name}={BUFFER_BYTES}",
            )
        else:
            yield MachineCheck(name, "ok", f"{limit} bytes")


def _tools() -> Iterator[MachineCheck]:
    """Programs that tests and examples use; all else works without them."""
    for tool, package in TOOLS.items():
        path = shutil.which(tool)
        if path is None:
            yield MachineCheck(tool, "warn", "not on the PATH", f"apt install {package}")
        else:
            yield MachineCheck(tool, "ok", path)


def _browsers(known: Iterable[Stack]) -> Iterator[MachineCheck]:
    """The browsers that load pages, and that tests look at reports with."""
    for stack in known:
        if stack.browser:
            path = stack.browser_path()
            if path is None:
                yield MachineCheck(stack.name, "warn", "not on the PATH", stack.how_to_get_browser)
            else:
                yield MachineCheck(stack.name, "ok", path)


def _stacks(known: Sequence[Stack]) -> MachineCheck:
    """The stacks that are built."""
    absent = [stack.name for stack in known if stack.not_installed() is not None]
    found = f"{len(known) - len(absent)} of {len(known)} installed"
    if absent:
        said = f"{found}; absent: {', '.join(absent)}"
        return MachineCheck("stacks", "warn", said, "bentpipe stacks install NAME, or --all")
    return MachineCheck("stacks", "ok", found)
