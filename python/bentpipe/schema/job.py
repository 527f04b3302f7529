"""Job: generated from schemas/job.toml by `make schemas`."""

from __future__ import annotations

from typing import Any

import msgspec

FORMAT = 3


class JobFlow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A client and a server, and what is transferred between them."""

    # A test case of `endpoints/contract/test-cases.md`.
    testcase: str
    # The properties of the test case that measures depend on.
    testcase_facts: TestCaseFacts
    # The transport protocol: `quic` or `tcp`.
    transport: str = "quic"
    # The application protocol.
    alpn: str = "hq-interop"
    # Paths below `www`, each with a leading slash.
    requests: list[str]
    # The resources of the page, if it is one: one for each request.
    page: list[PageResource] = []
    # The live stream, if it is one: its requests are segments in their order, each at every rate; null it is
    # none.
    live: LiveStream | None = None
    # The stream of frames, if it is one: its requests are frames in their order; null it is none.
    frames: FrameStream | None = None
    # When it begins, ns.
    start_ns: int = 0
    # Its duration: it is cut then, and its file is made by the testbed, too large to be complete before; null
    # until its files have arrived, ns.
    duration_ns: int | None = None
    # Options of this flow's middleboxes, by name, in place of the same ones of `proxies`.
    middlebox: dict[str, str] = {}
    # The program that opens the connection.
    client: Program
    # The program that accepts it.
    server: Program


class TestCaseFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The properties of a test case that measures depend on."""

    # The side that has the files: `client` or `server`.
    sender: str
    # The number of connections: 1; or 2, where the first request has a separate one, and the second
    # connection is measured.
    connections: int
    # Round trips that an ideal sender needs beside the time that the files take on the link.
    round_trips: int
    # Round trips that options of both ends save, which are not among those, such as that of TLS where it is
    # left out.
    saved_round_trips: int


class PageResource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A resource of a page, in the order of the requests."""

    # Its type: a word of [pages](pages.md).
    type: str
    # The size of its body.
    bytes: int
    # The number of the resource that leads to it, from 0; null the page begins with it.
    initiator: int | None
    # Bytes of the initiator that must have arrived before it is found; null all, with their end.
    found_after_bytes: int | None
    # The time from then until it is requested.
    wait_ms: int
    # 0 to 7, the lowest first (RFC 9218, section 4.1).
    urgency: int
    # Whether it is of use before all of it is there (RFC 9218, section 4.2).
    incremental: bool


class JobProxy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A middlebox on the path."""

    # `terminal` or `gateway`.
    place: str
    # Its title, options included.
    name: str
    # The program and its arguments.
    command: list[str]
    # The options of its program, by name.
    options: dict[str, str] = {}
    # Its way of relaying connections: `split`, it terminates them, and clients address it; `transparent`, it
    # terminates them, and client and server use each other's addresses; `encapsulating`, it terminates none,
    # and packets go through inside others.
    relays: str = "split"
    # The form of its datagrams in virtual time: `udp`, UDP payloads, or `ip`, whole IP packets.
    carries: str = "udp"
    # The time by which it starts before the first client.
    lead_ms: int = 0
    # The largest IP packet that it takes; null it ends connections, or does not say.
    mtu_bytes: int | None = None


class Program(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program that is one end of a flow, with its options."""

    # The variant's title, options included.
    name: str
    # The program and its arguments.
    command: list[str]
    # The options of its `stack.toml`, by name.
    options: dict[str, str] = {}
    # The version of the stack, as it gave it when it was installed. In virtual time each program gives it
    # anew; null where it is not known.
    version: str | None = None
    # The form of its datagrams in virtual time: `udp`, UDP payloads, or `ip`, whole IP packets.
    carries: str = "udp"


class JobTunnel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tunnel."""

    # The kind of middlebox: one of its `kinds`, as `wireguard`.
    kind: str
    # Where it ends: `gateway` or `server`.
    to: str
    # The program of both its ends and its arguments.
    command: list[str]
    # The version of its program.
    version: str
    # The largest IP packet that it takes.
    mtu_bytes: int
    # The port of its far end.
    port: int
    # The transport of its own packets: `udp` or `tcp`.
    transport: str


class LiveStream(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A live stream, as a client knows it."""

    # The time that a segment plays.
    segment_ms: int
    # The number of segments that are made when the client begins.
    initial_segments: int
    # The rates of segments, at which they can be played as they arrive, the lowest first: each has
    # `segment_ms` times the rate, over 8000, bytes, rounded down.
    rates_bps: list[int]


class FrameStream(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stream of frames with deadlines, as both ends know it."""

    # The time from one frame to the next.
    interval_us: int
    # The time from when a frame is made, in which it must arrive to be of use.
    deadline_ms: int
    # The carrier of frames: `streams`, one for each, or `datagrams`, DATAGRAM frames (RFC 9221).
    over: str


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that a trial depends on, on this machine."""

    # The number of this job's format, as at the top of this page.
    format: int
    # The path, resolved, as `bentpipe-sim scenario` gives it.
    scenario: dict[str, Any]
    # The flows that share the path, 1 to 64. The first is the one that is measured.
    flows: list[JobFlow]
    # The middleboxes between the ends of every flow, from the client to the server; each flow has separate
    # programs.
    proxies: list[JobProxy] = []
    # The tunnel of all flows, from the client to another host; middleboxes see nothing but it. In emulation
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
    # Wall time after which a program that does not answer is given up.
    silence_s: int = 30
    # Offer programs memory for the bodies of messages in virtual time. The same packets come without.
    shared_memory: bool = True
