"""Checks of the contract's test cases, in the simulator: that the files arrive, that the wire shows what the
test case asks for (the coordinator's outcome is `ok` only then), and that it repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bentpipe import workload
from bentpipe.contract.check import Check, partner_of
from bentpipe.contract.stack_pair import StackPair, TrialRequest
from bentpipe.stacks.model import TRANSPORTS, Stack
from bentpipe.workload import TESTCASES, Workload
from bentpipe.workload.frames import FrameViewing
from bentpipe.workload.http import UPGRADE, VERSIONS, HttpWorkload

_PAGES = "endpoints/contract/pages.md"
_MEDIA = "endpoints/contract/media.md"


@dataclass(frozen=True)
class CaseCheck:
    """The check of a test case: its transfers, one after the other, its path, and what a stack that fails may
    lack.
    """

    workloads: tuple[str, ...]
    shown: str  # by the wire
    hint: str
    settings: tuple[str, ...] = ()
    shown_by_tcp: str | None = None  # where that is something else
    page: str = "endpoints/contract/test-cases.md"  # of the contract, which has its rules

    def shown_by(self, transport: str) -> str:
        """The evidence in the capture."""
        return self.shown_by_tcp or self.shown if transport == "tcp" else self.shown


CASES = {
    "handshake": CaseCheck(
        ("handshake:1000",),
        "one handshake without Retry",
        "the server must not ask for a Retry in this test case",
    ),
    "longrtt": CaseCheck(
        ("longrtt:30000",),
        "a second ClientHello on a round trip of 1.5 s",
        "the first PTO is 999 ms (RFC 9002 section 6.2.2): the client sends its ClientHello again after it",
        ("forward.delay=750 ms", "return.delay=750 ms"),
        "a second SYN on a round trip of 1.5 s",
    ),
    "multiplexing": CaseCheck(
        ("multiplexing:500x32",),
        "one connection that carries 500 requests",
        "the client opens further streams as MAX_STREAMS allows; the server raises the limit as they end",
        shown_by_tcp="500 connections, one for each request",
    ),
    "resumption": CaseCheck(
        ("resumption:2x30000",),
        "a second connection with the server's ticket and without a Certificate",
        "the client waits for the session ticket before it closes the first connection, and offers it then",
    ),
    "zerortt": CaseCheck(
        ("zerortt:2x30000",),
        "0-RTT packets with stream data that the server accepts",
        "the ticket allows early data, the client remembers the server's transport parameters and sends the "
        "requests before the handshake is complete, and the server accepts them",
        shown_by_tcp="early data that the server accepts",
    ),
    "upload": CaseCheck(
        ("upload:100000",),
        "data that go from client to server",
        "the client sends PUT /path, the bytes of www/path and FIN; the server answers with FIN at the end",
    ),
    "page": CaseCheck(
        ("page:kosek",),
        "as many connections as its version of HTTP has",
        "resources are asked for as they are found, over one connection, or up to six of HTTP/1.1",
        page=_PAGES,
    ),
    "page-resumption": CaseCheck(
        ("page:kosek:resumed",),
        "a page on a second connection, with the server's ticket and without a Certificate",
        "the client waits for the session ticket of the first visit before it closes that, and offers it",
        page=_PAGES,
    ),
    "page-zerortt": CaseCheck(
        ("page:kosek:early",),
        "0-RTT packets with a request that the server accepts",
        "the ticket allows early data, and the page's document is asked for before the handshake is complete",
        page=_PAGES,
    ),
    "live": CaseCheck(
        ("live:8s",),
        "replies on as many connections as its version of HTTP has",
        "segments are asked for one after the other, each when it is there and at one rate",
        page=_MEDIA,
    ),
    "frames": CaseCheck(
        ("frames:2s:streams", "frames:2s:datagrams"),
        "one connection, with nothing but what is to carry frames, from the first one to the last deadline",
        "the server makes a frame in every interval, sends it at once, and gives it up at its deadline; the "
        "client stores what came whole, and says when",
        page=_MEDIA,
    ),
}


def checks(stack: Stack, folder: Path) -> Iterator[Check]:
    """A trial of every test case that the stack lists beside `transfer`, twice."""
    for name, case in CASES.items():
        if name in stack.testcases:
            for work in _workloads(stack, name, case):
                yield from _case(stack, folder, work, case)


def _workloads(stack: Stack, name: str, case: CaseCheck) -> list[Workload]:
    """The transfers of the check; those over HTTP once for each version of it that the stack speaks."""
    found: list[Workload] = []
    for moved in (workload.parse(text, name) for text in case.workloads):
        if isinstance(moved, HttpWorkload):
            # Browsers alone know what an upgrade is, and they are not of virtual time.
            spoken = set(stack.alpn) & set(TESTCASES[name].protocols) - {UPGRADE}
            found += [moved.over(version) for version, alpn in VERSIONS.items() if alpn in spoken]
        else:
            found.append(moved)
    return found


def _name(work: Workload) -> str:
    """The name of a check, by the test case and its protocol."""
    over = work.over if isinstance(work, FrameViewing) else work.alpn
    return f"{work.testcase} over {over}" if over else work.testcase


def _case(stack: Stack, folder: Path, work: Workload, case: CaseCheck) -> Iterator[Check]:
    name = _name(work)
    alpn = work.alpn or stack.file_protocol
    partner, shown = partner_of(stack, "virtual-time", alpn), case.shown_by(TRANSPORTS[alpn])
    if partner is None or work.testcase not in partner.testcases:
        yield Check(f"{name}: {shown}", None, "there is no stack for the other role that knows it")
        return
    client = stack if "client" in stack.roles else partner
    server = stack if "server" in stack.roles else partner
    pair = StackPair(client, server, folder)
    workload.write_files(folder / "www", work)
    label = name.replace("/", "-")
    request = TrialRequest(
        label, settings=case.settings, testcase=work.testcase, requests=work.requests,
        alpn=work.alpn, page=work.resources, live=work.live,
        frames=work.frames,
    )  # fmt: skip
    result = pair.trial(request)
    title = f"{name}: every file arrives, and the wire shows {shown}, {pair.title}"
    if result["outcome"] != "ok":
        yield pair.failed(title, request, result, f"{case.hint} ({case.page})")
        return
    yield Check(title, True)
    if work.frames is not None:
        missed = f"{result['late_frames']} of {result['frames']} came late, {result['lost_frames']} never"
        yield Check(
            f"{name}: on a path with room for them all frames come in time", result["in_time_share"] == 1,
            "" if result["in_time_share"] == 1 else missed, f"{case.hint} ({case.page})",
        )  # fmt: skip
    if client.deterministic and server.deterministic:
        again = pair.trial(replace(request, label=f"{label}-again"))
        same = again.get("packet_log_hash") == result.get("packet_log_hash")
        yield Check(
            f"{name}: the same seed gives the same packets",
            same,
            "" if same else "two runs differ",
            "draw all randomness from HELLO's seed, in every connection: tickets and their keys too",
        )
