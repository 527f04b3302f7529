"""Checks of socket mode, over loopback."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bentpipe import workload
from bentpipe.contract.check import SIZE, UNKNOWN, Check, ContractBreach, attempt, partner_of, shown
from bentpipe.contract.testcases import CASES
from bentpipe.stacks import loopback
from bentpipe.stacks.model import Stack
from bentpipe.workload import TESTCASES
from bentpipe.workload.http import VERSIONS

_LOGS = {"keylog": "TLS secrets are written", "qlog": "qlog is written"}


def checks(stack: Stack, folder: Path) -> Iterator[Check]:
    if stack.is_of_the_runner:
        yield Check("sockets", None, "its server is at port 443 alone, as the interop runner has it")
        return
    for alpn in stack.alpn:
        if "transfer" not in stack.testcases or alpn not in TESTCASES["transfer"].protocols:
            continue
        place = folder / f"sockets-{alpn}"
        yield from _transfers(
            stack, loopback.Transfer(folder / "www", (f"/{SIZE}",), place, logs=True, alpn=alpn)
        )
    yield from _pages(stack, folder)
    if "virtual-time" not in stack.commands and {"live", "frames"} & {*stack.testcases}:
        yield Check("sockets: live, frames", None, "they are tested in virtual time only")
    yield from _refusals(stack, loopback.Transfer(folder / "www", (f"/{SIZE}",), folder / "refused"))
    if "virtual-time" not in stack.commands:
        yield attempt(
            "sockets: it gives its version",
            lambda: _discard(loopback.version(stack.command("sockets"))),
            "with --version behind the `sockets` command: one line, and exit code 0 "
            "(endpoints/contract/socket-mode.md)",
        )


def _transfers(stack: Stack, transfer: loopback.Transfer) -> Iterator[Check]:
    """A file and several, and the logs of it, in one application protocol."""
    title = f"sockets, {transfer.alpn}: {SIZE} bytes over loopback arrive whole"
    partner = partner_of(stack, "sockets", transfer.alpn)
    if partner is None:
        yield Check(title, None, "there is no stack for the other role")
        return
    client = stack if "client" in stack.roles else partner
    server = stack if "server" in stack.roles else partner
    moved = attempt(
        f"{title}, {client.name} → {server.name}",
        lambda: _discard(loopback.run(client, server, transfer)),
        "the server prints `ready`, the client exits with 0 when it has stored the file, "
        "SIGTERM ends the server with 0 (endpoints/contract/socket-mode.md)",
    )
    yield moved
    if not moved.passed:
        yield Check(f"sockets, {transfer.alpn}: everything else", None, "there was no transfer")
        return
    yield from _testcases(client, server, transfer)
    for role in stack.roles:
        for log in stack.logs:
            yield attempt(
                f"sockets, {transfer.alpn}, {role}: {_LOGS[log]} when asked for",
                _logged(transfer.folder, role, log),
                "see SSLKEYLOGFILE and QLOGDIR in endpoints/contract/socket-mode.md, and `logs` in "
                "endpoints/contract/stack-toml.md",
            )


def _pages(stack: Stack, folder: Path) -> Iterator[Check]:
    """A page over each version of HTTP; where there is virtual time, it is loaded there."""
    if "page" not in stack.testcases or "virtual-time" in stack.commands:
        return
    for version, alpn in VERSIONS.items():
        if alpn not in stack.alpn:
            continue
        title = f"sockets, {alpn}: every resource of a page arrives whole, and the client says when"
        partner = partner_of(stack, "sockets", alpn)
        if partner is None:
            yield Check(title, None, "there is no stack for the other role that speaks it")
            continue
        client = stack if "client" in stack.roles else partner
        server = stack if "server" in stack.roles else partner
        work = workload.parse(f"{CASES['page'].workloads[0]}:{version}", "page")
        workload.write_files(folder / "www", work)
        place = folder / f"sockets-page-{version}"
        visit = loopback.Transfer(
            folder / "www", work.requests, place, testcase="page", alpn=alpn, page=work.resources
        )
        yield attempt(
            f"{title}, {client.name} → {server.name}",
            lambda visit=visit, client=client, server=server: _visit(client, server, visit),  # type: ignore[misc]
            f"{CASES['page'].hint} ({CASES['page'].page}; a browser: endpoints/contract/browsers.md)",
        )


def _visit(client: Stack, server: Stack, visit: loopback.Transfer) -> None:
    loopback.run(client, server, visit)
    said = json.loads((visit.folder / loopback.REPORT).read_text())["requests"]
    for path, one in zip(visit.requests, said, strict=True):
        times = [one["asked_ns"], one["first_byte_ns"], one["last_byte_ns"]]
        if None in times or times != sorted(times):
            raise ContractBreach(
                f"of {path} the client says that it was asked for and came at {shown(times)}"
            )


def _refusals(stack: Stack, transfer: loopback.Transfer) -> Iterator[Check]:
    for role in stack.roles:
        unlisted = [case for case in TESTCASES if case not in stack.testcases]
        refused: list[tuple[str, dict[str, Any]]] = [
            *((f"a test case that is not listed, {case},", {"testcase": case}) for case in unlisted),
            ("an unknown test case", {"testcase": UNKNOWN}),
            ("an unknown option", {"options": {UNKNOWN: "1"}}),
        ]
        known = stack.testcases[0]
        protocol = next((one for one in TESTCASES[known].protocols if one in stack.alpn), stack.alpn[0])
        listed = dataclasses.replace(transfer, testcase=known, alpn=protocol)
        if len(stack.alpn) > 1:
            refused.append(("an unknown application protocol", {"alpn": UNKNOWN}))
        if "virtual-time" not in stack.commands:  # there it is checked
            refused += [
                (f"an unknown value of {name}", {"options": {name: UNKNOWN}}) for name in stack.options
            ]
        for what, changed in refused:
            yield attempt(
                f"sockets, {role}: {what} is refused with exit code 127",
                _refused(stack, role, dataclasses.replace(listed, **changed)),
                "exit with 127 before the first packet (endpoints/CONTRACT.md)",
            )


def _testcases(client: Stack, server: Stack, transfer: loopback.Transfer) -> Iterator[Check]:
    """Those of which the files alone tell; resumption and 0-RTT are on the wire, which nobody sees here."""
    for name in ("multiplexing", "upload"):
        if name not in client.testcases or name not in server.testcases:
            continue
        if transfer.alpn not in TESTCASES[name].protocols:
            continue
        work = workload.parse(CASES[name].workloads[0], name)
        workload.write_files(transfer.www, work)
        folder = transfer.folder.with_name(f"{transfer.folder.name}-{name}")
        case = dataclasses.replace(transfer, testcase=name, requests=work.requests, folder=folder)
        yield attempt(
            f"sockets, {transfer.alpn}: {name}: every file arrives, {client.name} → {server.name}",
            lambda case=case: _discard(loopback.run(client, server, case)),  # type: ignore[misc]
            f"{CASES[name].hint} ({CASES[name].page})",
        )


def _refused(stack: Stack, role: str, transfer: loopback.Transfer) -> Callable[[], None]:
    def body() -> None:
        why = loopback.refusal(stack, role, transfer)
        if why is not None:
            raise ContractBreach(why)

    return body


def _logged(folder: Path, role: str, log: str) -> Callable[[], None]:
    def body() -> None:
        keys = folder / f"keys-{role}.log"
        if log == "keylog" and (not keys.is_file() or keys.stat().st_size == 0):
            raise ContractBreach("SSLKEYLOGFILE is absent or empty")
        if log == "qlog" and not any((folder / f"qlog-{role}").iterdir()):
            raise ContractBreach("QLOGDIR is empty")

    return body


def _discard(_: object) -> None:
    """For the result of a call that is made to see whether it raises."""
