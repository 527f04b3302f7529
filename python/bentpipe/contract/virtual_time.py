"""Checks of virtual time with one program alone on its pipes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bentpipe.contract.check import UNKNOWN, Check, ContractBreach, attempt, hello, shown
from bentpipe.stacks import pipe
from bentpipe.stacks.model import Stack
from bentpipe.workload import TESTCASES

PLAIN = "{role}: a plain transfer is supported"  # the check whose failure makes all others pointless
_MS = 1_000_000


def checks(stack: Stack, role: str, folder: Path) -> Iterator[Check]:
    """The checks whether it greets, refuses what it must refuse, runs and ends. The first one decides on the
    others.
    """
    command = stack.command("virtual-time")
    if pipe.refusal(command, hello(stack, role, folder)) is None:
        yield Check(
            PLAIN.format(role=role),
            False,
            "it refuses even a plain transfer without options: it exited with 127",
            "127 is for what is not in stack.toml; why does the program take this HELLO for unsupported?",
        )
        return
    yield attempt(
        f"{role}: READY is sane",
        lambda: _ready(stack, role, folder),
        'READY is JSON with the texts "stack", "version" and "driver", and "next_wake": a time in ns or null',
    )
    yield from _refusals(stack, role, folder)
    yield attempt(
        f"{role}: an empty RUN is answered by a sane RAN",
        lambda: _empty_run(stack, role, folder),
        "departures lie in [now, until) in order of time, next_wake is at least until, done is 0 or 1",
    )
    yield attempt(
        f"{role}: FINISH is answered by BYE and exit code 0",
        lambda: _finish(stack, role, folder),
        'BYE is JSON with "handshake_ns", "requests" and "error"; FINISH may come at any time',
    )
    yield attempt(
        f"{role}: it exits when its coordinator goes away",
        lambda: _goes_away(stack, role, folder),
        "end of file on descriptor 3 means: exit",
    )


def _refusals(stack: Stack, role: str, folder: Path) -> Iterator[Check]:
    command, good = stack.command("virtual-time"), hello(stack, role, folder)
    unlisted = [case for case in TESTCASES if case not in stack.testcases]
    cases = [
        (f"test case that is not listed, {case},", hello(stack, role, folder, case)) for case in unlisted
    ]
    cases += [
        ("unknown test case", good | {"testcase": UNKNOWN}),
        ("unknown role", good | {"role": UNKNOWN}),
        ("unknown option", good | {"options": {UNKNOWN: "1"}}),
    ]
    cases += [
        (f"unknown value of {option}", good | {"options": {option: UNKNOWN}}) for option in stack.options
    ]
    for what, greeting in cases:
        why = pipe.refusal(command, greeting)
        yield Check(
            f"{role}: {'an' if what.startswith('un') else 'a'} {what} is refused with exit code 127",
            why is None,
            why or "",
            "exit with 127 instead of READY; nothing in HELLO may be ignored (endpoints/CONTRACT.md)",
        )


def _ready(stack: Stack, role: str, folder: Path) -> None:
    with pipe.PipeProgram(stack.command("virtual-time")) as program:
        ready = program.ready(hello(stack, role, folder))
    if not isinstance(ready, dict):
        raise ContractBreach(f"it is {shown(ready)}")
    for key in ("stack", "version", "driver"):
        if key not in ready:
            raise ContractBreach(f'"{key}" is missing')
        if not isinstance(ready[key], str) or not ready[key]:
            raise ContractBreach(f'"{key}" is {shown(ready[key])}, which is no text')
    if "next_wake" not in ready:
        raise ContractBreach('"next_wake" is missing')
    wake = ready["next_wake"]
    if wake is not None and (isinstance(wake, bool) or not isinstance(wake, int) or not 0 <= wake < 2**64):
        raise ContractBreach(f'"next_wake" is {shown(wake)}, which is neither a time in ns nor null')
    if role == "client" and wake != 0:
        raise ContractBreach(f'"next_wake" is {shown(wake)}, but a client wants to start at 0')


def _empty_run(stack: Stack, role: str, folder: Path) -> None:
    with pipe.PipeProgram(stack.command("virtual-time")) as program:
        program.ready(hello(stack, role, folder))
        now = 0
        for until in (_MS, 2 * _MS):
            ran = program.run(until)
            times = [at for at, _ in ran.departures]
            if times != sorted(times):
                raise ContractBreach(f"departures are out of order: at {', '.join(map(str, times[:10]))} ns")
            if times and not now <= times[0] <= times[-1] < until:
                raise ContractBreach(
                    f"departures at {times[0]} … {times[-1]} ns are not within [{now}, {until})"
                )
            if ran.next_wake < until:
                raise ContractBreach(f"next_wake {ran.next_wake} is before the end of the run at {until}")
            if ran.done:
                raise ContractBreach(f"done is {ran.done}, but nothing has happened yet")
            if role == "client" and now == 0 and not times:
                raise ContractBreach("the client sent nothing in its first millisecond")
            if role == "server" and times:
                raise ContractBreach("the server sent something, but nobody has spoken to it")
            now = until


def _finish(stack: Stack, role: str, folder: Path) -> None:
    with pipe.PipeProgram(stack.command("virtual-time")) as program:
        program.ready(hello(stack, role, folder))
        bye = program.finish()
        code = program.exit_code()
    if not isinstance(bye, dict):
        raise ContractBreach(f"BYE is {shown(bye)}")
    missing = [key for key in ("handshake_ns", "requests", "error") if key not in bye]
    if missing:
        raise ContractBreach(f"BYE lacks {', '.join(missing)}: {shown(bye)}")
    if bye["handshake_ns"] is not None:
        raise ContractBreach(f'"handshake_ns" is {shown(bye["handshake_ns"])}, but there was no handshake')
    if not isinstance(bye["requests"], list) or len(bye["requests"]) != (1 if role == "client" else 0):
        raise ContractBreach(f'"requests" is {shown(bye["requests"])}')
    if code != 0:
        raise ContractBreach(
            "it did not exit after BYE" if code is None else f"it exited with {code} after BYE"
        )


def _goes_away(stack: Stack, role: str, folder: Path) -> None:
    with pipe.PipeProgram(stack.command("virtual-time")) as program:
        program.ready(hello(stack, role, folder))
        program.hang_up()
        if program.exit_code() is None:
            raise ContractBreach(f"it still runs after {program.timeout_s:g} s")
