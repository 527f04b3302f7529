"""Job: generated from schemas/job.toml by `make schemas`."""

from __future__ import annotations

from typing import Any

import msgspec

FORMAT = 3


class JobFlow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A client and a server, and what is transferred between them."""

    # A test case of `endpoints/contract/test-cases.md`.
    testcase: str
    # What of the test case measures depend on.
    testcase_facts: TestCaseFacts
    # The transport protocol: `quic` or `tcp`.
    transport: str = "quic"
    # The application protocol.
    alpn: str = "hq-interop"
    # Paths below `www`, each with a leading slash.
    requests: list[str]
    # What the page consists of, if it is one: a resource for each request.
    page: list[PageResource] = []
    # The live stream, if it is one: its requests are segments in their order, each at every rate; null it is
    # none.
    live: LiveStream | None = None
    # The stream of frames, if it is one: its requests are frames in their order; null it is none.
    frames: FrameStream | None = None
    # When it begins, ns.
    start_ns: int = 0
    # How long it lasts: it is cut then, and its file is made by the testbed, too large to go through before;
    # null until its files have arrived, ns.
    duration_ns: int | None = None
    # What opens the connection.
    client: Program
    # What accepts it.
    server: Program


class TestCaseFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A test case, as far as measures depend on it."""

    # The side that has the files: `client` or `server`.
    sender: str
    # 1; or 2: then the first request has a connection of its own, and the second one is measured.
    connections: int
    # Round trips that an ideal sender needs beside the time that the files take on the link.
    round_trips: int
    # Those that options of both ends save, which are not among them, as that of TLS where it is left out.
    saved_round_trips: int


class PageResource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A resource of a page, in the order of the requests."""

    # What it is: a word of [pages](pages.md).
    type: str
    # Of its body.
    bytes: int
    # The number of the resource that leads to it, from 0; null the page begins with it.
    initiator: int | None
    # Bytes of the initiator that must have come before it is found; null all, with their end.
    found_after_bytes: int | None
    # From then until it is asked for.
    wait_ms: int
    # 0 to 7, the lowest first (RFC 9218, section 4.1).
    urgency: int
    # Whether it is of use before all of it is there (RFC 9218, section 4.2).
    incremental: bool


class JobProxy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A middlebox on the path."""

    # `terminal` or `gateway`.
    place: str
    # What people call it, options included.
    name: str
    # The program and its arguments.
    command: list[str]
    # Those of its program, by name.
    options: dict[str, str] = {}
    # How it carries connections on: `split`, it ends them, and clients address it; `transparent`, it ends
    # them, and client and server speak to each other's addresses; `encapsulating`, it ends none, and packets
    # go through inside others.
    relays: str = "split"
    # What its datagrams are in virtual time: `udp`, UDP payloads, or `ip`, whole IP packets.
    carries: str = "udp"
    # For how long it is there before the first client.
    lead_ms: int = 0
    # The largest IP packet that it takes; null it ends connections, or does not say.
    mtu_bytes: int | None = None


class Program(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program that is one end of a flow, with what it is told."""

    # What people call it, options included.
    name: str
    # The program and its arguments.
    command: list[str]
    # Those of its `stack.toml`, by name.
    options: dict[str, str] = {}
    # Of the stack, as it gave it when it was installed. In virtual time each program gives it anew; null
    # where it is not known.
    version: str | None = None
    # What its datagrams are in virtual time: `udp`, UDP payloads, or `ip`, whole IP packets.
    carries: str = "udp"


class JobTunnel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tunnel."""

    # Of the middlebox: one of its `kinds`, as `wireguard`.
    kind: str
    # Where it ends: `gateway` or `server`.
    to: str
    # The program of both its ends and its arguments.
    command: list[str]
    # Of the program.
    version: str
    # The largest IP packet that it takes.
    mtu_bytes: int
    # Where its far end listens.
    port: int
    # `udp` or `tcp`: over which its own packets go.
    transport: str


class LiveStream(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A live stream, as far as a client has to know of it."""

    # For how long a segment plays.
    segment_ms: int
    # So many segments are made when the client begins.
    initial_segments: int
    # What segments take to be played as they come, the lowest first: each has `segment_ms` times the rate,
    # over 8000, bytes, rounded down.
    rates_bps: list[int]


class FrameStream(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stream of frames with deadlines, as both ends are told of it."""

    # From one frame to the next.
    interval_us: int
    # For how long after it was made a frame is of use.
    deadline_ms: int
    # What carries the frames: `streams`, one for each, or `datagrams`, DATAGRAM frames (RFC 9221).
    over: str


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that a trial depends on, on this machine."""

    # Of what format this job is: the number at the top of this page.
    format: int
    # The path, resolved, as `bentpipe-sim scenario` gives it.
    scenario: dict[str, Any]
    # Those that share the path, 1 to 64. The first is the one that is measured.
    flows: list[JobFlow]
    # What stands between the ends of every flow, from the client to the server; each flow has programs of its
    # own.
    proxies: list[JobProxy] = []
    # What all flows go through, from the client to another host; middleboxes see nothing but it. In emulation
    # only; null nothing.
    tunnel: JobTunnel | None = None
    # The version of IP that the programs speak: 4 or 6. Addresses, headers and sizes are of that.
    ip: int = 4
    # The folder with the files that are served.
    www: str
    # The folder of the contract's certificates.
    certs: str
    # 64 bits in hexadecimal: all that is random in the trial comes from it.
    seed: str
    # Where the trial leaves its files, if it has any; made only then.
    folder: str
    # Leave `trace.pcapng` there, with the TLS secrets inside, [`link-events.json`](link-events.md) except
    # over real links, and of a page [`requests.json`](requests.md).
    trace: bool
    # Leave `qlog/client/` and `qlog/server/` there. Writing them costs some stacks half as much again.
    qlog: bool
    # Wall time after which a silent program is given up.
    silence_s: int = 30
