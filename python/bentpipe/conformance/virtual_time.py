"""Checks of virtual time: first of one program alone on its pipes, then of trials in the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe import scenarios
from bentpipe.conformance.check import PARTNERS, SIZE, UNKNOWN, Check, Wrong, attempt, hello, partner_of
from bentpipe.stacks import Stack, Variant
from bentpipe.testbeds import pipe
from bentpipe.testbeds.sim import Job, Sim

_MS = 1_000_000


def checks(stack: Stack, folder: Path) -> Iterator[Check]:
    for role in stack.roles:
        yield from _refusals(stack, role, folder)
        yield from _greeting(stack, role, folder)
    yield from _transfers(stack, folder)


def _refusals(stack: Stack, role: str, folder: Path) -> Iterator[Check]:
    command, good = stack.command("virtual-time"), hello(role, folder)
    cases = [
        ("test case", good | {"testcase": UNKNOWN}),
        ("role", good | {"role": UNKNOWN}),
        ("option", good | {"options": {UNKNOWN: "1"}}),
    ]
    cases += [(f"value of {option}", good | {"options": {option: UNKNOWN}}) for option in stack.options]
    for what, greeting in cases:
        why = pipe.refusal(command, greeting, 10.0)
        yield Check(
            f"{role}: an unknown {what} is refused with exit code 127",
            why is None,
            why or "",
            "exit with 127 instead of READY; nothing that is asked for may be ignored (sections 2 and 4)",
        )


def _greeting(stack: Stack, role: str, folder: Path) -> Iterator[Check]:
    command = stack.command("virtual-time")
    yield attempt(
        f"{role}: READY is sane",
        lambda: _ready(command, role, folder),
        'READY is JSON with the texts "stack", "version" and "driver", and "next_wake": a time in ns or null',
    )
    yield attempt(
        f"{role}: an empty RUN is answered by a sane RAN",
        lambda: _empty_run(command, role, folder),
        "departures lie in [now, until) in order of time, next_wake is at least until, done is 0 or 1",
    )
    yield attempt(
        f"{role}: FINISH is answered by BYE and exit code 0",
        lambda: _finish(command, role, folder),
        'BYE is JSON with "handshake_ns", "requests" and "error"; FINISH may come at any time',
    )
    yield attempt(
        f"{role}: it exits when its coordinator goes away",
        lambda: _goes_away(command, role, folder),
        "end of file on descriptor 3 means: exit",
    )


def _ready(command: list[str], role: str, folder: Path) -> None:
    with pipe.Program(command) as program:
        ready = program.ready(hello(role, folder))
    if not isinstance(ready, dict):
        raise Wrong(f"it is {ready!r}")
    for key in ("stack", "version", "driver"):
        if not isinstance(ready.get(key), str) or not ready[key]:
            raise Wrong(f'"{key}" is {ready.get(key)!r}')
    wake = ready.get("next_wake", "missing")
    if wake is not None and (isinstance(wake, bool) or not isinstance(wake, int) or not 0 <= wake < 2**64):
        raise Wrong(f'"next_wake" is {wake!r}')
    if role == "client" and wake != 0:
        raise Wrong(f'"next_wake" is {wake!r}, but a client wants to start at 0')


def _empty_run(command: list[str], role: str, folder: Path) -> None:
    with pipe.Program(command) as program:
        program.ready(hello(role, folder))
        now = 0
        for until in (_MS, 2 * _MS):
            ran = program.run(until)
            times = [at for at, _ in ran.departures]
            if times != sorted(times):
                raise Wrong(f"departures are out of order: {times[:10]}")
            if times and not now <= times[0] <= times[-1] < until:
                raise Wrong(f"departures at {times[0]} … {times[-1]} ns are not within [{now}, {until})")
            if ran.next_wake < until:
                raise Wrong(f"next_wake {ran.next_wake} is before the end of the run at {until}")
            if ran.done:
                raise Wrong(f"done is {ran.done}, but nothing has happened yet")
            if role == "client" and now == 0 and not times:
                raise Wrong("the client sent nothing in its first millisecond")
            if role == "server" and times:
                raise Wrong("the server sent something, but nobody has spoken to it")
            now = until


def _finish(command: list[str], role: str, folder: Path) -> None:
    with pipe.Program(command) as program:
        program.ready(hello(role, folder))
        bye = program.finish()
        code = program.exit_code(5.0)
    missing = [
        key for key in ("handshake_ns", "requests", "error") if not isinstance(bye, dict) or key not in bye
    ]
    if missing:
        raise Wrong(f"BYE lacks {', '.join(missing)}: {str(bye)[:200]}")
    if bye["handshake_ns"] is not None:
        raise Wrong(f'"handshake_ns" is {bye["handshake_ns"]!r}, but there was no handshake')
    if len(bye["requests"]) != (1 if role == "client" else 0):
        raise Wrong(f'"requests" has {len(bye["requests"])} entries')
    if code != 0:
        raise Wrong("it did not exit after BYE" if code is None else f"it exited with {code} after BYE")


def _goes_away(command: list[str], role: str, folder: Path) -> None:
    with pipe.Program(command) as program:
        program.ready(hello(role, folder))
        program.hang_up()
        if program.exit_code(5.0) is None:
            raise Wrong("it still runs after 5 s")


def _transfers(stack: Stack, folder: Path) -> Iterator[Check]:
    partner = partner_of(stack)
    name = f"{SIZE} bytes over goodput arrive whole"
    if partner is None:
        yield Check(name, None, f"{stack.name} has one role, and none of {', '.join(PARTNERS)} is built")
        return
    client = stack if "client" in stack.roles else partner
    server = stack if "server" in stack.roles else partner
    bench = _Bench(client, server, folder)
    first = bench.trial(1)
    pair = f"{client.name} → {server.name}"
    yield Check(f"{name} ({pair})", first.get("outcome") == "ok", _said(first), _hint(first))
    if first.get("outcome") != "ok":
        yield Check("the same seed gives the same packets", None, "there was no transfer")
        return
    yield from _repetition(bench, first)
    yield from _logs(bench)


def _repetition(bench: _Bench, first: dict[str, Any]) -> Iterator[Check]:
    name = "the same seed gives the same packets, another seed others"
    if not (bench.client.deterministic and bench.server.deterministic):
        yield Check(name, None, "stack.toml says deterministic = false")
        return
    again, other = bench.trial(1), bench.trial(2)
    hashes = [result.get("packet_log_sha256") for result in (first, again, other)]
    same, differ = hashes[0] == hashes[1], hashes[0] != hashes[2]
    detail = "" if same and differ else "two runs differ" if not same else "the seed changes nothing"
    yield Check(
        name,
        same and differ,
        detail,
        "draw all randomness from HELLO's seed: connection IDs, TLS randoms and key shares, reset keys, "
        "hash maps (last section of the contract)",
    )


def _logs(bench: _Bench) -> Iterator[Check]:
    result = bench.trial(1, trace=True)
    found = sorted(file.name for file in bench.left.rglob("*") if file.is_file())
    wrong = result.get("outcome") != "ok"
    yield Check(
        "TLS secrets are written when they are asked for",
        not wrong,
        _said(result) if wrong else "",
        "write the NSS key log to HELLO's `keylog` before BYE; a trace is decrypted with it",
    )
    qlog = [name for name in found if "qlog" in name]
    yield Check(
        "qlog is written when it is asked for",
        bool(qlog),
        "" if qlog else f"found only: {found}",
        "write qlog files into the folder HELLO's `qlog` before BYE",
    )


@dataclass(frozen=True)
class _Bench:
    """Two stacks over the scenario goodput."""

    client: Stack
    server: Stack
    folder: Path

    @property
    def left(self) -> Path:
        return self.folder / "trial"

    def trial(self, seed: int, trace: bool = False) -> dict[str, Any]:
        job = Job(
            scenario=scenarios.resolve("goodput").scenario,
            size_bytes=SIZE,
            www=self.folder / "www",
            seed=f"{seed:016x}",
            folder=self.left,
            client=Variant(self.client.name, self.client, {}),
            server=Variant(self.server.name, self.server, {}),
            trace=trace,
            qlog=trace,
            silence_s=10,
        )
        answer = Sim(self.folder).trial(job)
        return answer.values or {"outcome": "invalid", "detail": answer.failure}


def _said(result: dict[str, Any]) -> str:
    return "" if result.get("outcome") == "ok" else f"{result.get('outcome')}: {result.get('detail')}"


def _hint(result: dict[str, Any]) -> str:
    return {
        "corrupt_file": "the reply is the file below www, byte by byte; nothing before or after it",
        "missing_file": "store the reply to /path as downloads/path, whole, before done",
        "transfer_timeout": "is done sent when every reply has ended, and does next_wake cover every timer?",
        "handshake_timeout": "do the first datagrams leave at once, and is an arrival handled at its time?",
        "crashed": "run it alone: bentpipe-sim replay, with the frames that a failed trial leaves",
    }.get(str(result.get("outcome")), "see endpoints/CONTRACT.md, section 4")
