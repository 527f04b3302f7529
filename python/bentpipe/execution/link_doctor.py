"""The checks of a link: both hosts, their programs and clocks, and the path between them."""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Iterator
from typing import Any

from bentpipe.errors import BentpipeError
from bentpipe.execution.doctor import BUFFER_BYTES, MachineCheck
from bentpipe.remote.channel import Refused
from bentpipe.remote.links import Links
from bentpipe.remote.session import LinkSession
from bentpipe.remote.ssh import HostGone
from bentpipe.remote.traffic import TrafficCount
from bentpipe.stacks.model import ROLES

_PROBES_S = 2.0
_CLOCK_BOUND_MS = 5.0


def checks(links: Links, name: str) -> Iterator[MachineCheck]:
    """The checks of a link: connect to both hosts, and see what is there."""
    begin = time.monotonic()
    try:
        session = LinkSession(links, name)
    except HostGone as gone:
        yield MachineCheck(f"{name}: hosts", "fail", str(gone), gone.hint)
        return
    try:
        yield MachineCheck(f"{name}: hosts", "ok", f"both reached in {time.monotonic() - begin:.1f} s")
        for role in ROLES:
            yield from _host(session, role)
        session.find_captures()
        for role in ROLES:
            yield _capture(session, role)
        yield _clock(session)
        for ip in (4, 6):
            if (session.link.server.ipv4 if ip == 4 else session.link.server.ipv6) is not None:
                yield _path(session, ip)
        yield _allowance(links, name)
    except (HostGone, Refused) as gone:
        yield MachineCheck(f"{name}: hosts", "fail", str(gone), gone.hint)
    finally:
        session.close()


def clean(links: Links, name: str) -> Iterator[MachineCheck]:
    """Remove the programs that were brought to the hosts of a link."""
    session = LinkSession(links, name)
    try:
        for role, count in session.cleaned_bytes().items():
            yield MachineCheck(f"{name}: {role}", "ok", f"{count / 1e6:.1f} MB removed")
    finally:
        session.close()


def _host(session: LinkSession, role: str) -> Iterator[MachineCheck]:
    facts, name = session.on(role).facts, f"{session.name}: {role}"
    found = (
        f"{facts['name']}, Linux {facts['kernel']}, {facts['machine']}, {facts['cores']} processors, "
        f"{facts['cache_bytes'] / 1e6:.0f} MB of programs in {facts['cache']}"
    )
    if facts["machine"] != platform.machine():
        hint = f"programs of this machine are for {platform.machine()}: use hosts of that kind"
        yield MachineCheck(name, "fail", found, hint)
    else:
        yield MachineCheck(name, "ok", found)
    small = [
        f"{limit} {facts[key]} bytes"
        for limit, key in (("rmem_max", "receive_buffer_bytes"), ("wmem_max", "send_buffer_bytes"))
        if facts[key] is not None and facts[key] < BUFFER_BYTES
    ]
    if small:
        hint = f"UDP may lose packets at high rates: sysctl net.core.rmem_max={BUFFER_BYTES}"
        yield MachineCheck(f"{name} buffers", "warn", ", ".join(small), hint)


def _capture(session: LinkSession, role: str) -> MachineCheck:
    place = session.places[role]
    name = f"{session.name}: {role} capture"
    if place.capture is None:
        hint = "without captures at both ends records have the client's own times alone"
        return MachineCheck(name, "warn", place.why_no_capture, hint)
    return MachineCheck(name, "ok", place.capture)


def _clock(session: LinkSession) -> MachineCheck:
    name = f"{session.name}: clocks"
    session.ask_clocks(20)
    try:
        found = session.clock()
    except HostGone:
        raise
    except BentpipeError as error:
        return MachineCheck(name, "fail", str(error), error.hint)
    said = f"the server's is {found.offset_ns / 1e6:+.3f} ms, within {found.error_ns / 1e6:.3f} ms"
    if found.error_ns / 1e6 > _CLOCK_BOUND_MS:
        hint = "is the control connection on the satellite link? one-way delays are no better than that; "
        hint += "if its way there takes longer than its way back, say so: control_asymmetry_ms"
        return MachineCheck(name, "warn", said, hint)
    return MachineCheck(name, "ok", said)


def _path(session: LinkSession, ip: int) -> MachineCheck:
    name = f"{session.name}: path over IPv{ip}"
    if not session.start_monitor(ip):
        return MachineCheck(name, "warn", "no monitor is wanted, or none could be started")
    time.sleep(_PROBES_S)
    samples: list[dict[str, Any]] = json.loads(session.end_monitor())
    rtts_ms = [one["rtt_ms"] for one in samples if one["rtt_ms"] is not None]
    port = session.link.server.udp_port
    if not rtts_ms:
        hint = f"are the UDP ports {port} and {port + 1} of the server open, and is its address right?"
        return MachineCheck(name, "fail", f"none of {len(samples)} packets came back", hint)
    found = (
        f"{statistics.median(rtts_ms):.1f} ms to and fro, {len(rtts_ms)} of {len(samples)} packets came back"
    )
    return MachineCheck(name, "ok", found)


def _allowance(links: Links, name: str) -> MachineCheck:
    allowed = links.allowance_bytes(name)
    used = TrafficCount(links, name).used_bytes
    title = f"{name}: traffic"
    if allowed is None:
        return MachineCheck(title, "ok", f"{used / 1e6:.1f} MB so far, without an allowance")
    said = f"{used / 1e6:.1f} of {allowed / 1e6:.0f} MB"
    if used >= allowed:
        return MachineCheck(title, "warn", said, "runs stop until the next period")
    return MachineCheck(title, "ok", said)
