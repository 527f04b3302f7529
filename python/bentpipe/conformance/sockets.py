"""Checks of socket mode, over loopback."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

from bentpipe.conformance.check import SIZE, UNKNOWN, Check, Wrong, attempt, partner_of
from bentpipe.stacks import Stack
from bentpipe.testbeds import loopback


def checks(stack: Stack, folder: Path) -> Iterator[Check]:
    transfer = loopback.Transfer(folder / "www", f"/{SIZE}", folder / "sockets", logs=True)
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
    for role in stack.roles:
        yield attempt(
            f"sockets, {role}: TLS secrets and qlog are written when asked for",
            _logged(transfer.folder, role),
            "see SSLKEYLOGFILE and QLOGDIR in section 3",
        )
        for what, changed in (
            ("test case", dataclasses.replace(transfer, testcase=UNKNOWN)),
            ("option", dataclasses.replace(transfer, options={UNKNOWN: "1"})),
        ):
            yield attempt(
                f"sockets, {role}: an unknown {what} is refused with exit code 127",
                _refused(stack, role, changed),
                "exit with 127 before the first packet (section 2)",
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
