"""Checks of socket mode, over loopback."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bentpipe import workload
from bentpipe.conformance.check import SIZE, UNKNOWN, Check, Wrong, attempt, partner_of
from bentpipe.conformance.testcases import CASES
from bentpipe.stacks import Stack
from bentpipe.testbeds import loopback
from bentpipe.workload import TESTCASES


def checks(stack: Stack, folder: Path) -> Iterator[Check]:
    transfer = loopback.Transfer(folder / "www", (f"/{SIZE}",), folder / "sockets", logs=True)
    partner = partner_of(stack)
    if partner is None or partner.missing("sockets"):
        yield Check(f"sockets: {SIZE} bytes arrive whole", None, "there is no stack for the other role")
        return
    client = stack if "client" in stack.roles else partner
    server = stack if "server" in stack.roles else partner
    moved = attempt(
        f"sockets: {SIZE} bytes over loopback arrive whole, {client.name} → {server.name}",
        lambda: _discard(loopback.run(client, server, transfer)),
        "the server prints `ready`, the client exits with 0 when it has stored the file, "
        "SIGTERM ends the server with 0 (section 3)",
    )
    yield moved
    if not moved.passed:
        yield Check("sockets: everything else", None, "there was no transfer")
        return
    yield from _testcases(client, server, transfer)
    for role in stack.roles:
        yield attempt(
            f"sockets, {role}: TLS secrets and qlog are written when asked for",
            _logged(transfer.folder, role),
            "see SSLKEYLOGFILE and QLOGDIR in section 3",
        )
        unlisted = [case for case in TESTCASES if case not in stack.testcases]
        refused: list[tuple[str, dict[str, Any]]] = [
            *((f"a test case that is not listed, {case},", {"testcase": case}) for case in unlisted),
            ("an unknown test case", {"testcase": UNKNOWN}),
            ("an unknown option", {"options": {UNKNOWN: "1"}}),
        ]
        for what, changed in refused:
            yield attempt(
                f"sockets, {role}: {what} is refused with exit code 127",
                _refused(stack, role, dataclasses.replace(transfer, **changed)),
                "exit with 127 before the first packet (section 2)",
            )


def _testcases(client: Stack, server: Stack, transfer: loopback.Transfer) -> Iterator[Check]:
    """Those of which the files alone tell; resumption and 0-RTT are on the wire, which nobody sees here."""
    for name in ("multiplexing", "upload"):
        if name not in client.testcases or name not in server.testcases:
            continue
        work = workload.parse(CASES[name].workload, name)
        workload.write_files(transfer.www, work)
        folder = transfer.folder.with_name(f"sockets-{name}")
        case = dataclasses.replace(transfer, testcase=name, requests=work.requests, folder=folder)
        yield attempt(
            f"sockets: {name}: every file arrives, {client.name} → {server.name}",
            lambda case=case: _discard(loopback.run(client, server, case)),  # type: ignore[misc]
            f"{CASES[name].hint} (section 2)",
        )


def _refused(stack: Stack, role: str, transfer: loopback.Transfer) -> Callable[[], None]:
    def body() -> None:
        why = loopback.refusal(stack, role, transfer)
        if why is not None:
            raise Wrong(why)

    return body


def _logged(folder: Path, role: str) -> Callable[[], None]:
    def body() -> None:
        keys = folder / f"keys-{role}.log"
        if not keys.is_file() or keys.stat().st_size == 0:
            raise Wrong("SSLKEYLOGFILE is absent or empty")
        if not any((folder / f"qlog-{role}").iterdir()):
            raise Wrong("QLOGDIR is empty")

    return body


def _discard(_: object) -> None:
    """For the result of a call that is made to see whether it raises."""
