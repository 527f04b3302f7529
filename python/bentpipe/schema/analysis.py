"""Analysis: generated from schemas/analysis.toml by `make schemas`."""

from __future__ import annotations

from typing import Literal

import msgspec

FORMAT = 1

# Where packets were captured.
Sides = Literal[
    "both",
    "client",
    "server",
    "unknown",
]
SIDES: tuple[Sides, ...] = (
    "both",
    "client",
    "server",
    "unknown",
)

# A transport protocol.
Protocol = Literal[
    "quic",
    "tcp",
]
PROTOCOLS: tuple[Protocol, ...] = (
    "quic",
    "tcp",
)

# Whether a flaw is there.
Verdict = Literal[
    "yes",
    "no",
    "not_sure",
]
VERDICTS: tuple[Verdict, ...] = (
    "yes",
    "no",
    "not_sure",
)

# The behaviour of the spin bit in 1-RTT packets (RFC 9000 section 17.4).
SpinBit = Literal[
    "absent",
    "constant",
    "random",
    "spins",
]
SPINBITS: tuple[SpinBit, ...] = (
    "absent",
    "constant",
    "random",
    "spins",
)

# A kind of plot, as `bentpipe plot --kind` names it.
PlotKind = Literal[
    "offset",
    "number",
    "size",
    "rate",
    "in_flight",
    "rtt",
    "acks",
    "delay",
]
PLOTKINDS: tuple[PlotKind, ...] = (
    "offset",
    "number",
    "size",
    "rate",
    "in_flight",
    "rtt",
    "acks",
    "delay",
)


class Undecoded(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Packets that were left out for the same reason."""

    # Their number.
    count: int
    # Their kind, and the reason.
    what: str
    # The frame of the first of them, counted from 1 within its file.
    first_frame: int


class Connection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A connection of QUIC or TCP."""

    # Its number, from 0, which its packets have in `packets.parquet`.
    connection: int
    # Its transport protocol.
    protocol: Protocol
    # The version of QUIC: `1`, `2`, or a draft, as `draft-29`; null of TCP, or the handshake was not
    # captured.
    version: str | None
    # Address and port of the end that opened it.
    client: str
    # Address and port of the other end.
    server: str
    # Where it was captured.
    vantage: Sides
    # When its first packet was seen, with nanoseconds, which a JSON number would not hold.
    start_unix_s: str
    # The correction that was subtracted from times of the server's side, where clocks are certain to differ;
    # else 0.
    server_clock_ahead_s: float
    # The number of its packets.
    packets: int
    # The flow control limits in each end's transport parameters. Absent where none were seen.
    transport_parameters: InitialCredits | None = None
    # How it was established. Absent of TCP without TLS, and of QUIC where nothing of it was captured.
    establishment: Establishment | None = None
    # Its measures.
    metrics: Metrics
    # Measures that need no secrets. Absent from analyses of Bentpipe 0.2 and before.
    passive: Passive | None = None
    # Whether it has 1-RTT packets, none of which could be decrypted. Absent from analyses of Bentpipe 0.2 and
    # before.
    sealed: bool | None = None
    # Events that happen once.
    events: list[Event]
    # The verdict of each rule.
    findings: list[Finding]
    # Values that endpoints logged. Absent if none logged its congestion window.
    qlog: LoggedWindows | None = None


class InitialCredits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The initial flow-control limits of both ends."""

    # The limits that the client gave; null not seen.
    client: InitialCredit | None
    # The limits that the server gave; null not seen.
    server: InitialCredit | None


class InitialCredit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits for the peer of the end that gives them (RFC 9000 section 18.2). Those that are not given are
    0.
    """

    # Over all streams, bytes.
    initial_max_data: int
    # On a bidirectional stream that the giving end opened, bytes.
    initial_max_stream_data_bidi_local: int
    # On one that its peer opened, bytes.
    initial_max_stream_data_bidi_remote: int
    # On a unidirectional stream of its peer, bytes.
    initial_max_stream_data_uni: int


class Establishment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The beginning of a QUIC connection."""

    # Whether the client completed the handshake.
    complete: bool
    # Whether the server sent a Retry.
    retry: bool
    # How often the ClientHello was sent: the most times that any byte of it was sent; 0 if it was not seen.
    client_hellos: int
    # Whether the server accepted a ticket of the client: `pre_shared_key` in its ServerHello, which needs no
    # secrets; null not seen.
    resumed: bool | None
    # Whether the server sent a Certificate; null not seen, or not decrypted.
    certificate: bool | None
    # Bytes of stream data in 0-RTT packets of the client, retransmissions included; over TCP in TLS's early
    # data, without these; null some of these could not be decrypted.
    zero_rtt_bytes: int | None
    # Whether the server acknowledged one of these packets, or its EncryptedExtensions have `early_data`; over
    # TCP the latter; null there are no such packets, or they could not be decrypted.
    zero_rtt_accepted: bool | None


class Metrics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The measures of a connection, for the reply. Only if `--link` says `"sender": "client"`, as it does
    for a trial of `upload`, they are of the client's data. Times are read at the client, or of a capture
    of the server's side alone there: they then lack the ways between.
    """

    # From the client's first packet until it sends its Finished.
    handshake_s: float | None
    # Until the first packet with data of the reply arrives; null also of an upload, whose answer has no data.
    ttfb_s: float | None
    # Until no byte of the reply is missing; of an upload, until the end of the last answer.
    completion_s: float | None
    # From the first packet with data of the files to their last byte, where they arrive.
    transfer_s: float | None
    # From the client's first packet until the first 1, 2, 5, 10, 20, 50, 100, 200, 500 and 1000 million bytes
    # of the reply, or of an upload, were there, none of them missing, as far as they were. Empty with several
    # streams or connections.
    first_mb_s: list[float] = []
    # 8 · `stream_bytes`, of an upload bytes of the files, / `transfer_s`; null also above the link's rate:
    # the files fit into a flight.
    goodput_bps: float | None
    # Distinct bytes of the server's streams that arrived; null they could not be decrypted.
    stream_bytes: int | None
    # Distinct bytes of the client's streams that were sent and not lost; null they could not be decrypted.
    upload_bytes: int | None
    # From the server to the client.
    forward: OneWay
    # From the client to the server.
    return_: OneWay = msgspec.field(name="return")
    # The shortest RTT sample (RFC 9002) of the `sender` of `--link`, else of the end that sent more data.
    rtt_min_ms: float | None
    # The median.
    rtt_median_ms: float | None
    # The longest.
    rtt_max_ms: float | None
    # The most that this end had in flight.
    in_flight_max_bytes: int | None


class OneWay(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Packets and bytes in one direction."""

    # QUIC packets (TCP segments).
    packets: int
    # The datagrams that carried them.
    datagrams: int
    # Bytes of IP packets.
    ip_bytes: int
    # Bytes of stream data, retransmissions included; null not decrypted.
    stream_bytes: int | None
    # Bytes of stream data that its sender had sent before; null captured at the receiver's side alone, where
    # what was lost does not pass.
    retransmitted_bytes: int | None
    # `retransmitted_bytes` / `stream_bytes`, share.
    retransmitted_share: float | None
    # Those that left the sender's side and did not reach the receiver's; null not captured at both sides.
    lost_packets: int | None
    # `lost_packets` / `packets`, share.
    lost_share: float | None
    # Those that arrived after one of their packet number space with a larger number; where numbers could not
    # be decrypted, after one that had been sent later; null not captured at the receiver's side.
    reordered_packets: int | None
    # Packets that passed the same place once more; they count nowhere else.
    duplicates: int
    # The shortest time from the sender's side to the receiver's, as exact as the two clocks; null not
    # captured at both sides.
    one_way_delay_min_ms: float | None
    # The median.
    one_way_delay_median_ms: float | None
    # The longest.
    one_way_delay_max_ms: float | None
    # The mean size of the IP packets.
    mean_datagram_bytes: float | None
    # The size of the largest IP packet.
    largest_datagram_bytes: int | None
    # Packets with an ACK frame that went this way.
    acks_sent: int
    # `acks_sent` of the other direction / packets with stream data of this.
    acks_per_data_packet: float | None
    # IP bytes at the side of the files' receiver during the transfer, after its first packet. Where the
    # transfer does not end within the capture, until it ends; without secrets, from the first 1-RTT packet of
    # the end that sent more bytes to its last.
    mean_rate_bps: float | None
    # The use of Explicit Congestion Notification.
    ecn: EcnUse


class EcnUse(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The use of ECN by the sender and the receiver of one direction: the codepoints that were set, the
    marks that arrived, those that were reported, and the sender's answer.
    """

    # The codepoint that most of the sender's packets with one had, `ECT(0)` or `ECT(1)` (RFC 3168 section 5);
    # `none` if no packet had one. Packets of the handshake do not count; null not captured at the sender's
    # side.
    codepoint: str | None
    # The share of the sender's packets with stream data that had ECT(0) or ECT(1); null also without such
    # packets, share.
    capable_share: float | None
    # Packets that arrived with Congestion Experienced; of QUIC, those of one datagram count each; null not
    # captured at the receiver's side, packets.
    ce_arrived: int | None
    # Marks that the receiver reported. QUIC: the largest CE count in its ACK frames, summed over packet
    # number spaces (RFC 9000 section 19.3.2). TCP: the episodes in which it set ECN-Echo, each from a mark to
    # the sender's CWR (RFC 3168 section 6.1.3); null accurate ECN of TCP (RFC 9768), whose counters are not
    # read, marks.
    ce_echoed: int | None
    # Round trips in which the sender received reports of marks, each until a packet sent after the first
    # report of one was acknowledged (RFC 9002 section 7.3.2); without those in which new data ended; null not
    # captured at the sender's side; accurate ECN of TCP, round trips.
    ce_rounds: int | None
    # Those in which the sender slowed down. TCP says so by CWR (RFC 3168 section 6.1.2). Of QUIC, the most
    # bytes in flight in the second half of the round trip were at least a full-sized packet below the most in
    # as long a time before it; null as `ce_rounds`, round trips.
    ce_answered: int | None


class Passive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Measures that need no secrets (RFC 9312): from the times and sizes of datagrams, the Initial packets,
    which anybody can read, and the bits of short headers that are not encrypted.
    """

    # The server name (SNI) in the client's ClientHello; null not seen, or it named none.
    server_name: str | None
    # The application protocols that the client offered there, the best first.
    alpn: list[str]
    # The connection IDs that became known, of QUIC. Those that ends issue later are encrypted.
    connection_ids: ConnectionIds
    # Addresses that ends used after their first.
    later_addresses: list[AddressChange]
    # The round trip of the handshake, the time that both ends took to answer included: from an Initial packet
    # to the one that acknowledges it; of TCP from a segment to the first that gives an RTT sample of it; null
    # not captured where that can be seen.
    handshake_rtt_ms: float | None
    # The behaviour of the spin bit; null of TCP.
    spin_bit: SpinBit | None
    # RTT by the spin bit, delays of both ends included.
    spin_rtt: RttSpread
    # RTT samples by the spin bit that were left out, since no end had anything to send meanwhile.
    spin_rejected: int
    # RTT by matching packets that passed both sides: of a packet of the end that sent more bytes and the next
    # one back, the times on the way, without the delay of the far end. Without samples where one side was
    # captured.
    matched_rtt: RttSpread
    # Losses by the loss bits (RFC 9506) in the packets of each end.
    loss_bits: LossBitsOfEnds
    # Bursts of the datagrams of each end.
    bursts: BurstsOfEnds
    # IP bytes of the server / IP bytes of the client; null the client sent none.
    bytes_ratio: float | None
    # Datagrams of the server / datagrams of the client; null the client sent none.
    datagrams_ratio: float | None


class ConnectionIds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Connection IDs, in hexadecimal."""

    # Those in packets to the client. One without bytes is an empty text.
    client: list[str]
    # Those in packets to the server; the first is the one that the client chose.
    server: list[str]


class AddressChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An end migrated, or a NAT gave it another address."""

    # `client` or `server`.
    end: str
    # Address and port.
    address: str
    # When a packet from it was first seen.
    at_s: float


class RttSpread(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """RTT samples."""

    # Their number.
    samples: int
    # The shortest; null there are none.
    min_ms: float | None
    # The median; null there are none.
    median_ms: float | None
    # The longest; null there are none.
    max_ms: float | None


class LossBitsOfEnds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Loss bits of both ends."""

    # Those in packets of the client; null they show none.
    client: LossBits | None
    # Those in packets of the server; null they show none.
    server: LossBits | None


class LossBits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Losses by the square bit and the loss event bit of an end's short headers."""

    # Packets of complete periods of the square bit.
    square_packets: int
    # Packets of these periods that did not arrive: lost between their sender and the place of capture.
    upstream_lost_packets: int
    # `upstream_lost_packets` / packets of these periods, share.
    upstream_lost_share: float
    # Packets with the loss event bit: one for each packet that the sender declared lost, on the whole path.
    reported_lost_packets: int
    # `reported_lost_packets` / packets with a short header, share.
    reported_lost_share: float


class BurstsOfEnds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bursts of both ends."""

    # Bursts of the client's datagrams.
    client: Bursts
    # Bursts of the server's datagrams.
    server: Bursts


class Bursts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Datagrams (TCP: segments) less than 1 ms apart, at the first place of capture: at their sender's side,
    or behind a bottleneck, which changes them.
    """

    # Their number, those of one datagram included.
    bursts: int
    # Datagrams of the longest burst.
    longest_datagrams: int
    # Bytes of the longest burst's IP packets.
    longest_bytes: int
    # When the longest burst began; null there is none.
    longest_at_s: float | None
    # Bytes in bursts of more than 10 datagrams / all bytes, share.
    long_share: float


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An event that happens once."""

    # `handshake_complete`, `first_byte`, `slow_start_end` or `last_byte`.
    name: str
    # Its time.
    at_s: float


class Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The verdict of a rule on a connection."""

    # The name of the rule, as in [the list of rules](findings.md).
    rule: str
    # Whether the flaw is there.
    verdict: Verdict
    # The name of the flaw, for people.
    title: str
    # One plain sentence.
    text: str
    # The numbers that it rests on.
    evidence: list[Evidence]
    # The plot that shows it; null nowhere.
    plot: PlotPlace | None


class Evidence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number that a finding rests on."""

    # The meaning of the number.
    what: str
    # The time to which it applies, or from which on.
    at_s: float
    # The end of that time, of something that lasted; null it took none.
    until_s: float | None
    # The number.
    value: float
    # Its unit.
    unit: str


class PlotPlace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a plot."""

    # The kind of plot.
    kind: PlotKind
    # Its beginning.
    from_s: float
    # Its end.
    to_s: float


class LoggedWindows(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Values that the ends of a connection logged."""

    # Absent if the client logged no congestion window.
    client: Logged | None = None
    # Absent if the server logged none.
    server: Logged | None = None


class Logged(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Values that an end logged."""

    # Its congestion window.
    cwnd: WindowSeries


class WindowSeries(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value from each of these times on, thinned out."""

    # When it changed.
    time_s: list[float]
    # The new value, bytes.
    bytes: list[int]


class Summary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of captures."""

    # The number of this file's format, as at the top of this page.
    format: int
    # The names of the captures, without folders.
    files: list[str]
    # Where the connection with the most packets was captured.
    sides: Sides
    # Packets that were left out, by reason.
    undecoded: list[Undecoded]
    # Errors that kept captures from being read to their ends.
    errors: list[str]
    # The connections, in the order of their first packets.
    connections: list[Connection]
