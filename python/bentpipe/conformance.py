"""`bentpipe stacks test`: a stack against the endpoint contract, check by check, in words that help its
author.

Checks come in the order in which an author meets the questions: does it start, does it refuse what it must
refuse, does it greet, does it move a file, does it repeat. A check that needs something that failed before is
skipped.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe import paths, scenarios, stacks
from bentpipe.run import www_file
from bentpipe.stacks import Stack
from bentpipe.testbeds import loopback, pipe
from bentpipe.testbeds.sim import Sim

SIZE = 100_000  # bytes of the file that is moved
PARTNERS = ("quinn", "noq", "aioquic")  # for stacks with one role only
_UNKNOWN = "bentpipe-unknown"
_MS = 1_000_000


@dataclass(frozen=True)
class Check:
    """One check: passed, failed, or skipped (None)."""

    name: str
    passed: bool | None
    detail: str = ""
    hint: str = ""

    def to_mapping(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def version(stack: Stack) -> str | None:
    """The version that the stack gives when it is greeted; None if it cannot be started or is not sane."""
    if stack.missing("virtual-time"):
        return None
    try:
        with tempfile.TemporaryDirectory() as folder, pipe.Program(stack.command("virtual-time")) as program:
            ready = program.ready(_hello(stack.roles[0], Path(folder)))
            return str(ready["version"])
    except (OSError, pipe.PipeError, LookupError, TypeError):
        return None


def checks(stack: Stack) -> Iterator[Check]:
    """All checks of a stack, as they are made."""
    yield Check("stack.toml is as the contract says", True)
    for mode in stack.commands:
        why = stack.missing(mode)
        hint = f"`bentpipe stacks build {stack.name}`, or correct [commands] in {stack.folder / 'stack.toml'}"
        yield Check(f"{mode}: the program is there", why is None, why or "", hint)
    with tempfile.TemporaryDirectory(prefix="bentpipe-") as name:
        folder = Path(name)
        www_file(folder / "www", SIZE)
        www_file(folder / "www", 1000)
        if stack.missing("virtual-time") is None:
            yield from _virtual_time(stack, folder)
        if stack.missing("sockets") is None:
            yield from _sockets(stack, folder)


def _virtual_time(stack: Stack, folder: Path) -> Iterator[Check]:
    for role in stack.roles:
        yield from _refusals(stack, role, folder)
        yield from _greeting(stack, role, folder)
    yield from _transfers(stack, folder)


def _refusals(stack: Stack, role: str, folder: Path) -> Iterator[Check]:
    command, good = stack.command("virtual-time"), _hello(role, folder)
    cases = [
        ("test case", good | {"testcase": _UNKNOWN}),
        ("role", good | {"role": _UNKNOWN}),
        ("option", good | {"options": {_UNKNOWN: "1"}}),
    ]
    cases += [(f"value of {option}", good | {"options": {option: _UNKNOWN}}) for option in stack.options]
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
    yield _check(
        f"{role}: READY is sane",
        lambda: _ready(command, role, folder),
        'READY is JSON with the texts "stack", "version" and "driver", and "next_wake": a time in ns or null',
    )
    yield _check(
        f"{role}: an empty RUN is answered by a sane RAN",
        lambda: _empty_run(command, role, folder),
        "departures lie in [now, until) in order of time, next_wake is at least until, done is 0 or 1",
    )
    yield _check(
        f"{role}: FINISH is answered by BYE and exit code 0",
        lambda: _finish(command, role, folder),
        'BYE is JSON with "handshake_ns", "requests" and "error"; FINISH may come at any time',
    )
    yield _check(
        f"{role}: it exits when its coordinator goes away",
        lambda: _goes_away(command, role, folder),
        "end of file on descriptor 3 means: exit",
    )


class _Wrong(Exception):
    """What a check found, in words."""


def _check(name: str, body: Callable[[], None], hint: str) -> Check:
    try:
        body()
    except (_Wrong, pipe.PipeError, loopback.LoopbackError, OSError) as error:
        return Check(name, False, str(error), hint)
    return Check(name, True)


def _ready(command: list[str], role: str, folder: Path) -> None:
    with pipe.Program(command) as program:
        ready = program.ready(_hello(role, folder))
    if not isinstance(ready, dict):
        raise _Wrong(f"it is {ready!r}")
    for key in ("stack", "version", "driver"):
        if not isinstance(ready.get(key), str) or not ready[key]:
            raise _Wrong(f'"{key}" is {ready.get(key)!r}')
    wake = ready.get("next_wake", "missing")
    if wake is not None and (isinstance(wake, bool) or not isinstance(wake, int) or not 0 <= wake < 2**64):
        raise _Wrong(f'"next_wake" is {wake!r}')
    if role == "client" and wake != 0:
        raise _Wrong(f'"next_wake" is {wake!r}, but a client wants to start at 0')


def _empty_run(command: list[str], role: str, folder: Path) -> None:
    with pipe.Program(command) as program:
        program.ready(_hello(role, folder))
        now = 0
        for until in (_MS, 2 * _MS):
            ran = program.run(until)
            times = [at for at, _ in ran.departures]
            if times != sorted(times):
                raise _Wrong(f"departures are out of order: {times[:10]}")
            if times and not now <= times[0] <= times[-1] < until:
                raise _Wrong(f"departures at {times[0]} … {times[-1]} ns are not within [{now}, {until})")
            if ran.next_wake < until:
                raise _Wrong(f"next_wake {ran.next_wake} is before the end of the run at {until}")
            if ran.done:
                raise _Wrong(f"done is {ran.done}, but nothing has happened yet")
            if role == "client" and now == 0 and not times:
                raise _Wrong("the client sent nothing in its first millisecond")
            if role == "server" and times:
                raise _Wrong("the server sent something, but nobody has spoken to it")
            now = until


def _finish(command: list[str], role: str, folder: Path) -> None:
    with pipe.Program(command) as program:
        program.ready(_hello(role, folder))
        bye = program.finish()
        code = program.exit_code(5.0)
    missing = [
        key for key in ("handshake_ns", "requests", "error") if not isinstance(bye, dict) or key not in bye
    ]
    if missing:
        raise _Wrong(f"BYE lacks {', '.join(missing)}: {str(bye)[:200]}")
    if bye["handshake_ns"] is not None:
        raise _Wrong(f'"handshake_ns" is {bye["handshake_ns"]!r}, but there was no handshake')
    if len(bye["requests"]) != (1 if role == "client" else 0):
        raise _Wrong(f'"requests" has {len(bye["requests"])} entries')
    if code != 0:
        raise _Wrong("it did not exit after BYE" if code is None else f"it exited with {code} after BYE")


def _goes_away(command: list[str], role: str, folder: Path) -> None:
    with pipe.Program(command) as program:
        program.ready(_hello(role, folder))
        program.hang_up()
        if program.exit_code(5.0) is None:
            raise _Wrong("it still runs after 5 s")


def _transfers(stack: Stack, folder: Path) -> Iterator[Check]:
    partner = _partner(stack)
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
        answer = Sim(self.folder).trial(
            {
                "scenario": scenarios.resolve("goodput").scenario,
                "testcase": "transfer",
                "requests": [f"/{SIZE}"],
                "www": str(self.folder / "www"),
                "certs": str(paths.certs()),
                "seed": f"{seed:016x}",
                "folder": str(self.left),
                "trace": trace,
                "silence_s": 10,
                "client": stacks.Variant(self.client.name, self.client, {}).endpoint(),
                "server": stacks.Variant(self.server.name, self.server, {}).endpoint(),
            }
        )
        return answer.values or {"outcome": "invalid", "detail": answer.failure}


def _sockets(stack: Stack, folder: Path) -> Iterator[Check]:
    transfer = loopback.Transfer(folder / "www", f"/{SIZE}", folder / "sockets", logs=True)
    for role in stack.roles:
        for what, changed in (
            ("test case", dataclasses.replace(transfer, testcase=_UNKNOWN)),
            ("option", dataclasses.replace(transfer, options={_UNKNOWN: "1"})),
        ):
            yield _check(
                f"sockets, {role}: an unknown {what} is refused with exit code 127",
                _refused(stack, role, changed),
                "exit with 127 before the first packet (section 2)",
            )
    partner = _partner(stack)
    if partner is None or partner.missing("sockets"):
        yield Check(f"sockets: {SIZE} bytes arrive whole", None, "there is no stack for the other role")
        return
    client = stack if "client" in stack.roles else partner
    server = stack if "server" in stack.roles else partner
    yield _check(
        f"sockets: {SIZE} bytes over loopback arrive whole ({client.name} → {server.name})",
        lambda: _discard(loopback.run(client, server, transfer)),
        "the server prints `ready`, the client exits with 0 when it has stored the file, SIGTERM ends the server "
        "with 0 (section 3)",
    )
    for role in stack.roles:
        yield _check(
            f"sockets, {role}: TLS secrets and qlog are written when asked for",
            _logged(transfer.folder, role),
            "see SSLKEYLOGFILE and QLOGDIR in section 3",
        )


def _refused(stack: Stack, role: str, transfer: loopback.Transfer) -> Callable[[], None]:
    def body() -> None:
        why = loopback.refusal(stack, role, transfer)
        if why is not None:
            raise _Wrong(why)

    return body


def _logged(folder: Path, role: str) -> Callable[[], None]:
    def body() -> None:
        keys = folder / f"keys-{role}.log"
        if not keys.is_file() or keys.stat().st_size == 0:
            raise _Wrong("SSLKEYLOGFILE is absent or empty")
        if not any((folder / f"qlog-{role}").iterdir()):
            raise _Wrong("QLOGDIR is empty")

    return body


def _discard(_: object) -> None:
    """For the result of a call that is made to see whether it raises."""


def _partner(stack: Stack) -> Stack | None:
    """The stack itself if it has both roles, else one that comes with Bentpipe and is built."""
    if set(stack.roles) == set(stacks.ROLES):
        return stack
    known = stacks.discover()
    ready = (known[name] for name in PARTNERS if name in known and not known[name].missing("virtual-time"))
    return next(ready, None)


def _hello(role: str, folder: Path) -> dict[str, Any]:
    for name in ("www", "downloads"):
        (folder / name).mkdir(exist_ok=True)
    return pipe.hello(role, "transfer", {}, folder)


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
