"""Trial bundle: generated from schemas/bundle.toml by `make schemas`."""

from __future__ import annotations

from typing import Any

import msgspec

FORMAT = 2


class BundleFlow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A client and a server, and what is transferred between them."""

    # A test case of `endpoints/contract/test-cases.md`.
    testcase: str
    # The application protocol.
    alpn: str
    # Paths of files, each with a leading slash.
    requests: list[str]
    # The resources of the page, if it is one: one for each request.
    page: list[BundleResource] = []
    # The live stream, if it is one: its requests are segments in their order, each at every rate; null it is
    # none.
    live: BundleLiveStream | None = None
    # The stream of frames, if it is one: its requests are frames in their order; null it is none.
    frames: BundleFrameStream | None = None
    # When it begins, ns.
    start_ns: int
    # Its duration; null until its files have arrived, ns.
    duration_ns: int | None
    # Options of this flow's middleboxes, by name, in place of the same ones of `proxies`.
    middlebox: dict[str, str] = {}
    # The stack that opens the connection.
    client: BundleStack
    # The stack that accepts it.
    server: BundleStack


class BundleResource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class BundleStack(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stack with its options."""

    # The variant's title, options included.
    name: str
    # The stack's name.
    stack: str
    # The options of its `stack.toml`, by name.
    options: dict[str, str]
    # As the stack gave it when it was installed; in virtual time each program gives it anew; null where it is
    # not known.
    version: str | None
    # The hash of the sources that it was built from: who runs the bundle must have the same; null where
    # nothing was built.
    inputs_sha256: str | None
    # The Python packages of Bentpipe's environment that it runs with, and their versions: who runs the bundle
    # must have the same.
    packages: dict[str, str] = {}


class BundleProxy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A middlebox on the path."""

    # The kind of middlebox, by its `middlebox.toml`; the same of all on a path.
    kind: str
    # `terminal` or `gateway`.
    place: str
    # Its title, options included.
    name: str
    # The options of its program, by name.
    options: dict[str, str]


class BundleTunnel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tunnel."""

    # `wireguard`, `openvpn-udp` or `openvpn-tcp`.
    kind: str
    # Where it ends: `gateway` or `server`.
    to: str
    # The largest IP packet that it takes.
    mtu_bytes: int


class BundleAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of a bundle."""

    # The name of the bundle's trial.
    trial: str
    # The bundle's: two answers with the same seed must agree.
    seed: str
    # The testbed's results: the columns of the trial's record that are not the plan's; null it failed.
    values: dict[str, Any] | None
    # Why, if it failed; else empty.
    failure: str


class BundleLiveStream(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A live stream, as a client knows it."""

    # The time that a segment plays.
    segment_ms: int
    # The number of segments that are made when the client begins.
    initial_segments: int
    # The rates of segments, at which they can be played as they arrive, the lowest first: each has
    # `segment_ms` times the rate, over 8000, bytes, rounded down.
    rates_bps: list[int]


class BundleFrameStream(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stream of frames with deadlines, as both ends know it."""

    # The time from one frame to the next.
    interval_us: int
    # The time from when a frame is made, in which it must arrive to be of use.
    deadline_ms: int
    # The carrier of frames: `streams`, one for each, or `datagrams`, DATAGRAM frames (RFC 9221).
    over: str


class Bundle(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A trial to be executed."""

    # The number of this file's format, as at the top of this page.
    format: int
    # The version of Bentpipe that wrote it: who runs the bundle must have the same, and with it the same
    # testbeds and middleboxes.
    bentpipe: str = ""
    # The trial's name, as in its record.
    trial: str
    # `sim` or `emu`.
    testbed: str
    # The version of IP that the programs speak: 4 or 6.
    ip: int = 4
    # The path, resolved.
    scenario: dict[str, Any]
    # The flows that share the path. The first is the one that is measured.
    flows: list[BundleFlow]
    # The middleboxes between the ends of every flow, from the client to the server.
    proxies: list[BundleProxy]
    # The tunnel of all flows, from the client to another host; null nothing.
    tunnel: BundleTunnel | None = None
    # The files that are served, by their names, with their sizes in bytes.
    files: dict[str, int]
    # 64 bits in hexadecimal: all that is random in the trial comes from it.
    seed: str
    # Leave `trace.pcapng`, [`link-events.json`](link-events.md) except over real links, and of a page
    # [`requests.json`](requests.md).
    trace: bool
    # Leave the endpoints' qlogs.
    qlog: bool
    # Wall time after which a program that does not answer is given up.
    silence_s: int
