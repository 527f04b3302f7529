"""Records: generated from schemas/record.toml by `make schemas`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

FORMAT = 3

# The way in which a trial, or a flow, ended.
Outcome = Literal[
    "ok",
    "unsupported",
    "handshake_timeout",
    "transfer_timeout",
    "missing_file",
    "corrupt_file",
    "crashed",
    "no_secrets",
    "unproven",
    "invalid",
    "interrupted",
]
OUTCOMES: tuple[Outcome, ...] = (
    "ok",
    "unsupported",
    "handshake_timeout",
    "transfer_timeout",
    "missing_file",
    "corrupt_file",
    "crashed",
    "no_secrets",
    "unproven",
    "invalid",
    "interrupted",
)


class FlowResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of several flows of a trial. Times count from the start of the trial."""

    # The stack of its client, with its options.
    client: str
    # The stack of its server, with its options.
    server: str
    # When it began.
    start_s: float
    # When its last byte arrived, if its files are complete; else until when it was there.
    end_s: float
    # How it ended.
    outcome: Outcome
    # Why, in words.
    detail: str
    # 8 · new stream bytes that arrived while all flows were there, from the last `start_s` to the first
    # `end_s`, over the length of that interval; null where a flow crashed or cannot be decrypted, where flows
    # go different ways (`upload` and not), and where they were never there at once.
    goodput_bps: float | None
    # IP packets that it sent towards its client. The sums over flows are the trial's, here and below.
    forward_packets: int
    # Those towards its client that a queue dropped, packets.
    forward_queue_drops: int
    # Those towards its client that the link lost, packets.
    forward_losses: int
    # IP packets that it sent towards its server.
    return_packets: int
    # Those towards its server that a queue dropped, packets.
    return_queue_drops: int
    # Those towards its server that the link lost, packets.
    return_losses: int
    # The median over packets towards the client.
    forward_queueing_median_ms: float | None = None
    # The 99th percentile over packets towards the client.
    forward_queueing_p99_ms: float | None = None
    # The median over packets towards the server.
    return_queueing_median_ms: float | None = None
    # The 99th percentile over packets towards the server.
    return_queueing_p99_ms: float | None = None
    # By the steps of the trial's own curve.
    received_bytes: list[int]


class ProxyResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A middlebox of the flow that is measured: a proxy, or one that encapsulates packets."""

    # Where it stood: `terminal` or `gateway`.
    place: str
    # Its title, with its options.
    name: str
    # The version of its program.
    version: str
    # How it batches arrivals and polls its stack.
    driver: str
    # The largest IP packet that it takes, by its `middlebox.toml`; null it ends connections, or does not say.
    mtu_bytes: int | None = None
    # CPU time of its program.
    cpu_s: float
    # The most that its program had in RAM at once.
    memory_bytes: int
    # Statistics that it reports at the end. In `records.parquet` as JSON: each program has other names.
    statistics: dict[str, Any]


class PathResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of several paths: what of the packets of all flows took it."""

    # Its name in the scenario.
    name: str
    # Packets sent over it towards the client, packets.
    forward_packets: int
    # Bytes of these IP packets.
    forward_bytes: int
    # Their share of the bytes that were sent towards the client over all paths; null where none was, share.
    forward_share: float | None
    # Those that a queue dropped, packets.
    forward_queue_drops: int
    # Those that the link lost, packets.
    forward_losses: int
    # Packets sent over it towards the server, packets.
    return_packets: int
    # Bytes of these IP packets.
    return_bytes: int
    # Their share of the bytes that were sent towards the server over all paths; null where none was, share.
    return_share: float | None
    # Those that a queue dropped, packets.
    return_queue_drops: int
    # Those that the link lost, packets.
    return_losses: int
    # When bytes of the files that were new to their receiver first arrived over it, of the flow that is
    # measured; from the start, as other times. After a migration, the second path's less the first path's
    # `data_last_s` is the time to recover; null where none did, or that is not known.
    data_first_s: float | None
    # When they last did; null as above.
    data_last_s: float | None


class HopResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A hop, between two neighbours of client, middleboxes and server: the counts of its links for the
    packets of all flows, and the measures of the flow that is measured, as far as it could be decoded.
    """

    # The neighbour on the client's side.
    from_: str = msgspec.field(name="from")
    # The neighbour on the server's side.
    to: str
    # IP packets sent towards the client, drops and losses included.
    forward_packets: int | None
    # Bytes of the IP packets sent towards the client.
    forward_bytes: int | None
    # Packets towards the client that a queue dropped; null also over a real link, where what a queue drops is
    # one of the losses, packets.
    forward_queue_drops: int | None
    # Packets marked with Congestion Experienced by a queue (RFC 3168), on the way towards the client; they
    # were delivered; null also over a real link, packets.
    forward_marked: int | None = None
    # Packets that arrived at the client behind a packet of their flow that was sent later (RFC 4737, section
    # 3). Their share of the packets that arrived is the reordered ratio, packets.
    forward_reordered: int | None = None
    # The largest extent of a reordered packet towards the client: how many arrived from the first one that
    # was sent later until it came itself (RFC 4737, section 4.2); 0 if none was reordered, packets.
    forward_reorder_extent: int | None = None
    # The mean extent of the reordered packets towards the client (RFC 4737, section 4.2); null none was
    # reordered, packets.
    forward_reorder_extent_mean: float | None = None
    # Further arrivals at the client of packets that had arrived (RFC 5560): a link made copies of them. They
    # count as no packets of their own, and none of them as lost; null also over a real link, where a capture
    # may show a packet twice that arrived once, packets.
    forward_duplicated: int | None = None
    # Packets towards the client that the link lost; over a real link, whoever dropped them, packets.
    forward_losses: int | None
    # Packets that sources of cross traffic sent towards the client, on all links of the hop; null the links
    # have no sources, or their packets were not seen.
    forward_source_packets: int | None = None
    # Bytes of the IP packets that sources sent towards the client; null the links have no sources, or their
    # packets were not seen.
    forward_source_bytes: int | None = None
    # Bytes of the packets of sources that came out where their link ends, towards the client; null the links
    # have no sources, or their packets were not seen.
    forward_source_delivered_bytes: int | None = None
    # Packets of sources towards the client that a queue dropped or the link lost; null the links have no
    # sources, or their packets were not seen, packets.
    forward_source_lost: int | None = None
    # IP packets sent towards the server, drops and losses included.
    return_packets: int | None
    # Bytes of the IP packets sent towards the server.
    return_bytes: int | None
    # Packets towards the server that a queue dropped, packets.
    return_queue_drops: int | None
    # Packets marked with Congestion Experienced on the way towards the server; null also over a real link,
    # packets.
    return_marked: int | None = None
    # Packets that arrived at the server behind a packet of their flow that was sent later (RFC 4737, section
    # 3). Their share of the packets that arrived is the reordered ratio, packets.
    return_reordered: int | None = None
    # The largest extent of a reordered packet towards the server: how many arrived from the first one that
    # was sent later until it came itself (RFC 4737, section 4.2); 0 if none was reordered, packets.
    return_reorder_extent: int | None = None
    # The mean extent of the reordered packets towards the server (RFC 4737, section 4.2); null none was
    # reordered, packets.
    return_reorder_extent_mean: float | None = None
    # Further arrivals at the server of packets that had arrived (RFC 5560): a link made copies of them. They
    # count as no packets of their own, and none of them as lost; null also over a real link, where a capture
    # may show a packet twice that arrived once, packets.
    return_duplicated: int | None = None
    # Packets towards the server that the link lost; over a real link, whoever dropped them, packets.
    return_losses: int | None
    # Packets that sources of cross traffic sent towards the server, on all links of the hop; null the links
    # have no sources, or their packets were not seen.
    return_source_packets: int | None = None
    # Bytes of the IP packets that sources sent towards the server; null the links have no sources, or their
    # packets were not seen.
    return_source_bytes: int | None = None
    # Bytes of the packets of sources that came out where their link ends, towards the server; null the links
    # have no sources, or their packets were not seen.
    return_source_delivered_bytes: int | None = None
    # Packets of sources towards the server that a queue dropped or the link lost; null the links have no
    # sources, or their packets were not seen, packets.
    return_source_lost: int | None = None
    # Requests for capacity that the terminal sent; null no return link of the hop is a carrier of DVB-RCS2,
    # or requests were not counted, requests.
    return_capacity_requests: int | None = None
    # Those of them that were lost; null no return link of the hop is a carrier of DVB-RCS2, or requests were
    # not counted, requests.
    return_capacity_requests_lost: int | None = None
    # Those that were denied; null no return link of the hop is a carrier of DVB-RCS2, or requests were not
    # counted, requests.
    return_capacity_requests_denied: int | None = None
    # Those that collided with another terminal's; null no return link of the hop is a carrier of DVB-RCS2, or
    # requests were not counted, requests.
    return_capacity_requests_collided: int | None = None
    # The mean time from a request to the superframe in which capacity was assigned for it, over those that
    # were received; null nothing was assigned for any.
    return_grant_wait_mean_ms: float | None = None
    # The longest such time; null nothing was assigned for any.
    return_grant_wait_max_ms: float | None = None
    # Connections that completed a handshake on this hop.
    connections: int | None
    # The smallest RTT sample of the hop's own sender.
    rtt_min_ms: float | None
    # The median RTT sample of the hop's own sender.
    rtt_median_ms: float | None
    # Of the stream bytes that this sender sent, share.
    retransmitted_share: float | None
    # The rules that found something wrong on this hop.
    findings: list[str]


class TunnelResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tunnel: what went through it, counted where it enters and leaves, and what that took on the link of
    the satellite (`forward_bytes` and `return_bytes` of the record). Both count from the moment at which
    all flows may begin: what set it up is not in them.
    """

    # `wireguard`, `openvpn-udp` or `openvpn-tcp`.
    kind: str
    # Where it ended, from the client: `gateway` or `server`.
    to: str
    # The version of its program.
    version: str
    # The largest IP packet that it took.
    mtu_bytes: int
    # The congestion control of its own connection, of a tunnel over TCP; else empty.
    congestion_control: str
    # From the start of its programs until a packet had gone through and another one back.
    setup_s: float
    # IP packets of the flows towards the client, as they were given to the tunnel, or to the path behind it.
    forward_packets: int
    # Their bytes.
    forward_bytes: int
    # The same towards the server.
    return_packets: int
    # Their bytes.
    return_bytes: int
    # Packets of these, both ways, that did not come out at the other end: dropped or lost by the link, or
    # dropped by the tunnel's own programs and devices.
    lost_packets: int
    # Bytes on the link that were not those of packets inside: headers, padding, and the tunnel's own messages
    # and retransmissions. Negative where it dropped more than that before the link.
    overhead_bytes: int
    # The same as a share of all bytes on the link; null where there were none, share.
    overhead_share: float | None
    # CPU time of its program on the client.
    cpu_client_s: float
    # CPU time of its program at the other end.
    cpu_far_s: float


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One trial: which it was, how it ended, what was measured."""

    # The number of this record's format, as at the top of this page. Absent in the first format.
    format: int = FORMAT
    # The name of its folder under `trials/`.
    trial: str
    # The label of its scenario: the name, with what `--set` changed.
    scenario: str
    # The workload: a test case and its files, as in `transfer:10485760`.
    workload: str
    # Of all files of the workload together, also where measures are of a second connection's alone.
    size_bytes: int
    # The client's stack, with its options, as in `quinn:cc=bbr:iw=100`.
    client: str
    # The server's stack, with its options.
    server: str
    # The treatment: `direct`, or middleboxes, as in `quic-pep terminal,gateway`.
    treatment: str
    # `sim`, virtual time, `emu`, real time, or `remote`, a real link; `runner` of what was imported from the
    # QUIC interop runner.
    testbed: str
    # The version of IP that the programs spoke: 4 or 6. Runs of the first format all spoke 4.
    ip: int = 4
    # From 1.
    iteration: int
    # 64 bits in hexadecimal: all that is random in the trial comes from it.
    seed: str
    # In one word.
    outcome: Outcome
    # Why, in words; empty where there is nothing to say.
    detail: str = ""
    # The transport protocol: `quic` or `tcp`; empty where nothing was started, and in runs of the first
    # format.
    transport: str = ""
    # The application protocol: `hq-interop` or `h3`, over TCP `http/0.9`, of pages `http/1.1` or `h2`; empty
    # where nothing was started. HTTP/3 adds what hq-interop has not, so where results stand side by side
    # those of `h3` are marked.
    alpn: str = ""
    # The source of times and rates: `wire`, or `client`, its own report, where the wire could not be decoded,
    # or so little of it that the rest would mislead: then `undecoded_packets` says how much, and `detail`.
    # Over a real link of which nothing could be captured: `qlog`, the client's, or without that `exit`, the
    # start and the end of its program.
    measured_from: str = ""
    # 1-RTT packets that could not be decoded though the secrets are known: an extension that is not known
    # here changes them, say. Above one in a hundred of an end's, `measured_from` is `client` and `findings`
    # is empty; null over TCP, and where the secrets are not known.
    undecoded_packets: int | None = None
    # Until the client sends the end of its handshake, its Finished.
    handshake_s: float | None = None
    # Until the first packet with data of the reply arrives; null also of frames over DATAGRAM frames, which
    # are on no stream.
    ttfb_s: float | None = None
    # Until no byte of the reply is missing; of a page `plt_s`; of a live stream until its last segment is
    # there; null of frames.
    completion_s: float | None = None
    # From that first packet to that last byte; null also of pages, whose resources wait for one another.
    transfer_s: float | None = None
    # From the first to the last 1-RTT packet that the client received, whatever they carry: 8 · size / this
    # is the goodput of the QUIC interop runner (`get_1rtt_sniff_times` of its `trace.py`), and that of Endres
    # (2022, equation 4.1). The first may be the end of the handshake, up to a round trip before the reply's,
    # the last the end of the connection. Of an upload the server received them. Headers tell these packets:
    # no secrets are needed; null over TCP, of pages, streams, frames and durations, and where not all came.
    runner_transfer_s: float | None = None
    # Until the first 1, 2, 5, 10, 20, 50, 100, 200, 500 and 1000 million bytes of the reply were there, none
    # of them missing, as far as the trial came, even where it failed in the end; of an upload where they
    # arrive. Empty with several files or connections, over a proxy in an upload, of pages and streams, and
    # where `measured_from` is `client`.
    first_mb_s: list[float] = []
    # 8 · size / `transfer_s`, the definition of the papers; null also where it would exceed the forward rate:
    # a file that fits into one flight.
    goodput_bps: float | None = None
    # Goodput / forward rate; where a rate changes, its mean during the transfer, with capacity on demand at
    # its full rate; null as `goodput_bps`, share.
    efficiency: float | None = None
    # The completion time of an ideal sender on this path, a real link as it is nominally: a round trip for
    # the handshake, over TCP two, one for the request, and then the files at the forward rate with 5 % for
    # headers; in `zerortt` and `page-zerortt` without the round trip for the handshake. Where a rate changes,
    # it integrates, from the moment at which the request reaches the sender, the rate that the slowest link
    # had in this trial when the bytes were there; of an access that assigns capacity on demand it asks for
    # all with the first byte. Delays count with their smallest values; frames and jitter do not count.
    # Middleboxes do not change it; null also over a real link whose rates are not known, as `share_of_limit`
    # and `efficiency`.
    limit_s: float | None = None
    # Round trips that options of both ends save before the first byte, so that `limit_s` does not count them:
    # those that `saves` of the `stack.toml` names, as of `linux` that of TLS with `tls=off` and that of TCP
    # with `fastopen=on`.
    saved_round_trips: int = 0
    # `limit_s` / `completion_s`. With proxies it may exceed 1, share.
    share_of_limit: float | None = None
    # Response start (RS): until the response to the request for the document begins; null where no page was
    # loaded.
    rs_s: float | None = None
    # First contentful paint (FCP): until the document has begun to come, and all of what blocks rendering is
    # there: the stylesheets and scripts that its first tenth leads to. Of a browser, its own; null where no
    # page was loaded.
    fcp_s: float | None = None
    # Largest contentful paint (LCP), of a browser; null where no browser loaded a page.
    lcp_s: float | None = None
    # Speed Index, of a browser that reports pictures of the page: the mean time at which parts were drawn,
    # each with the share that it has of all; null where no browser reported it.
    speed_index_s: float | None = None
    # DOM content loaded (DCL): until the document, and the stylesheets and scripts that it leads to, are
    # there. Of a browser, its own; null where no page was loaded.
    dcl_s: float | None = None
    # Page load time (PLT): until every resource is there; null where no page was loaded.
    plt_s: float | None = None
    # The most requests that were under way at one time; null where no page was loaded.
    requests_at_once: int | None = None
    # Until the first segment is there, and playing begins; null where no live stream was played.
    startup_s: float | None = None
    # How many times the next segment was not there when it was due; null where no live stream was played.
    stalls: int | None = None
    # The time in which nothing was played because of that, in all; null where no live stream was played.
    stalled_s: float | None = None
    # The mean of the rates of the segments that were played; null where no live stream was played.
    media_rate_bps: float | None = None
    # How many segments had another rate than the one before; null where no live stream was played.
    rate_changes: int | None = None
    # The age, at the end, of the segment that was shown then: the time since it had been made; null where no
    # live stream was played.
    latency_s: float | None = None
    # How many frames were to be made; null where there was no stream of frames.
    frames: int | None = None
    # How many of them came whole, later than their deadline; null where there was no stream of frames.
    late_frames: int | None = None
    # How many of them never came whole; null where there was no stream of frames.
    lost_frames: int | None = None
    # The share of them that came whole by their deadline; null where there was no stream of frames.
    in_time_share: float | None = None
    # The age that half of the frames did not exceed when they came, from when they were made to their last
    # byte. One that never came whole counts as older than any; null where more were lost.
    frame_age_median_s: float | None = None
    # The age that 95 % of the frames did not exceed, where one that never came whole counts as older than
    # any; null where more than 5 % were lost.
    frame_age_p95_s: float | None = None
    # The age that 99 % of the frames did not exceed, where one that never came whole counts as older than
    # any; null where more than 1 % were lost.
    frame_age_p99_s: float | None = None
    # The highest age of a frame that came whole; null where none came.
    frame_age_max_s: float | None = None
    # Connections that completed a handshake, with that of an earlier visit; over TCP there is one for each
    # request, except over HTTP; null where none could be made out.
    connections: int | None = None
    # Whether the server took the ticket, by its ServerHello; null where there was no second connection.
    resumed: bool | None = None
    # The client's stream data in 0-RTT packets of the connection that is measured, over TCP in TLS's early
    # data, accepted or not; null where these could not be decrypted.
    zero_rtt_bytes: int | None = None
    # How long the trial took: in virtual time its time at the end of the last epoch, so up to one lookahead
    # after both sides were done. It includes the drain.
    virtual_s: float = 0.0
    # Its duration in wall time.
    wall_s: float = 0.0
    # CPU time of the client's program.
    cpu_client_s: float = 0.0
    # CPU time of the server's.
    cpu_server_s: float = 0.0
    # CPU time of the testbed's own process, in real time with the forwarding of packets.
    cpu_sim_s: float = 0.0
    # The most memory that the client's program, or one that it started, had in RAM at once.
    memory_client_bytes: int = 0
    # The most memory that the server's program, or one that it started, had in RAM at once.
    memory_server_bytes: int = 0
    # Rounds of the coordinator of virtual time; 0 in real time.
    epochs: int = 0
    # IP packets sent towards the client, drops and losses included.
    forward_packets: int | None = None
    # Bytes of the IP packets sent towards the client.
    forward_bytes: int | None = None
    # Packets towards the client that a queue dropped; null also over a real link, where what a queue drops is
    # one of the losses, packets.
    forward_queue_drops: int | None = None
    # Packets marked with Congestion Experienced by a queue (RFC 3168), on the way towards the client; they
    # were delivered; null also over a real link, packets.
    forward_marked: int | None = None
    # Packets that arrived at the client behind a packet of their flow that was sent later (RFC 4737, section
    # 3). Their share of the packets that arrived is the reordered ratio, packets.
    forward_reordered: int | None = None
    # The largest extent of a reordered packet towards the client: how many arrived from the first one that
    # was sent later until it came itself (RFC 4737, section 4.2); 0 if none was reordered, packets.
    forward_reorder_extent: int | None = None
    # The mean extent of the reordered packets towards the client (RFC 4737, section 4.2); null none was
    # reordered, packets.
    forward_reorder_extent_mean: float | None = None
    # Further arrivals at the client of packets that had arrived (RFC 5560): a link made copies of them. They
    # count as no packets of their own, and none of them as lost; null also over a real link, where a capture
    # may show a packet twice that arrived once, packets.
    forward_duplicated: int | None = None
    # Packets towards the client that the link lost; over a real link, whoever dropped them, packets.
    forward_losses: int | None = None
    # Packets that sources of cross traffic sent towards the client, on all links of the hop; null the links
    # have no sources, or their packets were not seen.
    forward_source_packets: int | None = None
    # Bytes of the IP packets that sources sent towards the client; null the links have no sources, or their
    # packets were not seen.
    forward_source_bytes: int | None = None
    # Bytes of the packets of sources that came out where their link ends, towards the client; null the links
    # have no sources, or their packets were not seen.
    forward_source_delivered_bytes: int | None = None
    # Packets of sources towards the client that a queue dropped or the link lost; null the links have no
    # sources, or their packets were not seen, packets.
    forward_source_lost: int | None = None
    # IP packets sent towards the server, drops and losses included.
    return_packets: int | None = None
    # Bytes of the IP packets sent towards the server.
    return_bytes: int | None = None
    # Packets towards the server that a queue dropped, packets.
    return_queue_drops: int | None = None
    # Packets marked with Congestion Experienced on the way towards the server; null also over a real link,
    # packets.
    return_marked: int | None = None
    # Packets that arrived at the server behind a packet of their flow that was sent later (RFC 4737, section
    # 3). Their share of the packets that arrived is the reordered ratio, packets.
    return_reordered: int | None = None
    # The largest extent of a reordered packet towards the server: how many arrived from the first one that
    # was sent later until it came itself (RFC 4737, section 4.2); 0 if none was reordered, packets.
    return_reorder_extent: int | None = None
    # The mean extent of the reordered packets towards the server (RFC 4737, section 4.2); null none was
    # reordered, packets.
    return_reorder_extent_mean: float | None = None
    # Further arrivals at the server of packets that had arrived (RFC 5560): a link made copies of them. They
    # count as no packets of their own, and none of them as lost; null also over a real link, where a capture
    # may show a packet twice that arrived once, packets.
    return_duplicated: int | None = None
    # Packets towards the server that the link lost; over a real link, whoever dropped them, packets.
    return_losses: int | None = None
    # Packets that sources of cross traffic sent towards the server, on all links of the hop; null the links
    # have no sources, or their packets were not seen.
    return_source_packets: int | None = None
    # Bytes of the IP packets that sources sent towards the server; null the links have no sources, or their
    # packets were not seen.
    return_source_bytes: int | None = None
    # Bytes of the packets of sources that came out where their link ends, towards the server; null the links
    # have no sources, or their packets were not seen.
    return_source_delivered_bytes: int | None = None
    # Packets of sources towards the server that a queue dropped or the link lost; null the links have no
    # sources, or their packets were not seen, packets.
    return_source_lost: int | None = None
    # Requests for capacity that the terminal sent; null no return link of the hop is a carrier of DVB-RCS2,
    # or requests were not counted, requests.
    return_capacity_requests: int | None = None
    # Those of them that were lost; null no return link of the hop is a carrier of DVB-RCS2, or requests were
    # not counted, requests.
    return_capacity_requests_lost: int | None = None
    # Those that were denied; null no return link of the hop is a carrier of DVB-RCS2, or requests were not
    # counted, requests.
    return_capacity_requests_denied: int | None = None
    # Those that collided with another terminal's; null no return link of the hop is a carrier of DVB-RCS2, or
    # requests were not counted, requests.
    return_capacity_requests_collided: int | None = None
    # The mean time from a request to the superframe in which capacity was assigned for it, over those that
    # were received; null nothing was assigned for any.
    return_grant_wait_mean_ms: float | None = None
    # The longest such time; null nothing was assigned for any.
    return_grant_wait_max_ms: float | None = None
    # The median over packets towards the client.
    forward_queueing_median_ms: float | None = None
    # The 99th percentile over packets towards the client.
    forward_queueing_p99_ms: float | None = None
    # The median over packets towards the server.
    return_queueing_median_ms: float | None = None
    # The 99th percentile over packets towards the server.
    return_queueing_p99_ms: float | None = None
    # Of the stream bytes that the server sent: those that it had sent before; null as all up to
    # `in_flight_max_bytes`, unless measured on the wire, share.
    retransmitted_share: float | None = None
    # Packets with an ACK from the client per packet with data from the server.
    acks_per_data_packet: float | None = None
    # The mean size of the server's IP packets.
    mean_packet_bytes: float | None = None
    # The size of the largest of the server's IP packets.
    largest_packet_bytes: int | None = None
    # The client's IP bytes during the transfer, as a rate.
    return_rate_bps: float | None = None
    # The least of the server's samples of the round-trip time.
    rtt_min_ms: float | None = None
    # Their median.
    rtt_median_ms: float | None = None
    # The largest.
    rtt_max_ms: float | None = None
    # The most that the server had in flight at one time, over all connections that are measured.
    in_flight_max_bytes: int | None = None
    # The rules that found something wrong ([findings](findings.md)), of several connections with that of most
    # packets; empty also where nothing was decoded.
    findings: list[str] = []
    # The codepoint that most of the server's packets with one had, `ECT(0)` or `ECT(1)` (RFC 3168 section 5);
    # `none` if no packet had one. Packets of the handshake do not count; null unless measured on the wire.
    forward_ect: str | None = None
    # The share of the server's packets with stream data that had ECT(0) or ECT(1); null unless measured on
    # the wire, and also without such packets.
    forward_ect_share: float | None = None
    # Marks that the client reported to the server. QUIC: the largest CE count in its ACK frames, summed over
    # packet number spaces (RFC 9000 section 19.3.2). TCP: the episodes in which it set ECN-Echo, each from a
    # mark to the server's CWR (RFC 3168 section 6.1.3); null unless measured on the wire, and also with
    # accurate ECN of TCP (RFC 9768), whose counters are not read, marks.
    forward_ce_echoed: int | None = None
    # Round trips in which the server received reports of marks, each until a packet sent after the first
    # report of one was acknowledged (RFC 9002 section 7.3.2); without those in which new data ended; null
    # unless measured on the wire, and as `forward_ce_echoed`, round trips.
    forward_ce_rounds: int | None = None
    # Those in which the server slowed down. TCP says so by CWR (RFC 3168 section 6.1.2). Of QUIC, the most
    # bytes in flight in the second half of the round trip were at least a full-sized packet below the most in
    # as long a time before it: a smaller reduction is not seen, and one for another reason, such as a loss,
    # counts; null unless measured on the wire, and as `forward_ce_echoed`, round trips.
    forward_ce_answered: int | None = None
    # As `forward_ect`, of the client's packets; null unless measured on the wire.
    return_ect: str | None = None
    # As `forward_ect_share`, of the client's packets; null unless measured on the wire, and also without such
    # packets.
    return_ect_share: float | None = None
    # As `forward_ce_echoed`: marks on the client's packets that the server reported; null unless measured on
    # the wire, and as `forward_ce_echoed`, marks.
    return_ce_echoed: int | None = None
    # As `forward_ce_rounds`, of the client; null unless measured on the wire, and as `forward_ce_echoed`,
    # round trips.
    return_ce_rounds: int | None = None
    # As `forward_ce_answered`, of the client; null unless measured on the wire, and as `forward_ce_echoed`,
    # round trips.
    return_ce_answered: int | None = None
    # The version of the client's stack.
    client_version: str = ""
    # The version of the server's stack.
    server_version: str = ""
    # How the client's program batches arrivals and polls its stack.
    client_driver: str = ""
    # How the server's program batches arrivals and polls its stack.
    server_driver: str = ""
    # Statistics that the client reports at the end (contract, BYE), by name: numbers, texts or null; of the
    # second connection where there are two. In `records.parquet` a column for every name that occurs, as in
    # `server_statistics.slow_start_left_s`, of numbers or, where any of its values is one, of texts.
    client_statistics: dict[str, Any] = {}
    # Statistics that the server reports at the end (contract, BYE), in the form of `client_statistics`.
    server_statistics: dict[str, Any] = {}
    # The step of `received_bytes`.
    received_step_s: float = 0.0
    # `received_bytes[k]`: UDP payload that had reached the files' receiver `(k + 1) · received_step_s` after
    # the client's first packet. Empty where no packets were seen.
    received_bytes: list[int] = []
    # `in_order_bytes[k]`: bytes of the files that the receiver could read `(k + 1) · received_step_s` after
    # the client's first packet: no byte before them in their stream was missing. Empty where `measured_from`
    # is `client`, and of an upload past a proxy.
    in_order_bytes: list[int] = []
    # Jain's index of the goodputs x of n flows, (Σx)² / (n · Σx²) (Jain, Chiu and Hawe 1984): from 1/n, where
    # one has all, to 1; null where there is one flow, and as the flows' `goodput_bps`.
    jain_index: float | None = None
    # All flows, the one that is measured first; empty where that is the only one.
    flows: list[FlowResult] = []
    # The middleboxes of the flow that is measured, from client to server; empty without.
    proxies: list[ProxyResult] = []
    # The hops between client, middleboxes, a tunnel's end at the gateway, and server; empty where nothing
    # stands between client and server. In a trial with a tunnel only the counts of its links are known.
    hops: list[HopResult] = []
    # The paths between client and server ([several paths](../design/multipath.md)), by number; empty where
    # there is one. Counts of the links are of all paths together, `forward_rate_bps` and what is measured by
    # it too; `findings` are empty where packets took several, since rules are about one.
    paths: list[PathResult] = []
    # The tunnel that all flows went through ([what measures mean then](../design/vpn.md)); null without one.
    tunnel: TunnelResult | None = None
    # The hash of flow, direction, times, fate, ECN bits and bytes of every packet, behind the name of its
    # function, `xxh3:` for XXH3 with 128 bits: the same seed gives the same hash. With middleboxes it is over
    # the hashes of the hops of links; null where no packets were seen, and in older runs.
    packet_log_hash: str | None = None
    # The same in runs up to format 2, with SHA-256. It tells such runs apart, and none from a newer one; null
    # since format 3.
    packet_log_sha256: str | None = None
    # The time by which packets left the emulated links later than the model says: the median; null in virtual
    # time.
    release_error_p50_ms: float | None = None
    # The 99th percentile; null in virtual time.
    release_error_p99_ms: float | None = None
    # The 99.9th percentile; null in virtual time.
    release_error_p999_ms: float | None = None
    # The largest; null in virtual time.
    release_error_max_ms: float | None = None
    # The limit of the 99.9th percentile for a trial to be trusted; null in virtual time.
    release_error_limit_ms: float | None = None
    # Packets that the kernel dropped on the way to the emulator or from it; null in virtual time, packets.
    kernel_drops: int | None = None
    # Packets of TCP and UDP on the links that are of no flow: programs sent them to others than their peers;
    # null in virtual time, and through a tunnel, packets.
    stray_packets: int | None = None
    # The share of time in which some task of this machine waited for a processor; null in virtual time, and
    # with `--awake`, share.
    cpu_pressure: float | None = None
    # When the trial began, as in `2026-04-01T12:00:00Z`; null in the other testbeds, UTC.
    began: str | None = None
    # How many times it was begun: once more for each connection to a host that broke; null in the other
    # testbeds.
    tries: int | None = None
    # The time by which the clock of the server's host was ahead of that of the client's; its times are
    # corrected by that; null in the other testbeds.
    clock_offset_ms: float | None = None
    # The largest error of that, and with it of one-way delays: half of the round trip of the fastest
    # exchanges, less what is known of their asymmetry, with a tenth of that (`control_asymmetry_ms`); null in
    # the other testbeds.
    clock_error_ms: float | None = None
    # The time by which the fastest packet towards the client took longer than the fastest towards the server.
    # Over a link whose directions take equally long, half of it is the error of `clock_offset_ms`, which is
    # too large by that; null in the other testbeds, and where nothing could be captured, and where no packet
    # was seen once at each end in both directions.
    one_way_difference_ms: float | None = None
    # The median round trip of the small regular flow beside the trial; null in the other testbeds, and where
    # there was none, or none of its packets came back.
    probe_rtt_ms: float | None = None
    # The share of its packets that did not come back; null in the other testbeds, and where there was none,
    # share.
    probe_loss_share: float | None = None
    # The output of the user's command about the link behind the trial, by name, where that is JSON; null in
    # the other testbeds.
    link_statistics: dict[str, Any] = {}
    # The output of the user's command about the weather, by name, where that is JSON; null in the other
    # testbeds.
    weather: dict[str, Any] = {}


# Those that the testbed's program says.
MEASURED = frozenset(
    (
        "outcome",
        "detail",
        "transport",
        "alpn",
        "measured_from",
        "undecoded_packets",
        "handshake_s",
        "ttfb_s",
        "completion_s",
        "transfer_s",
        "runner_transfer_s",
        "first_mb_s",
        "goodput_bps",
        "efficiency",
        "limit_s",
        "saved_round_trips",
        "share_of_limit",
        "rs_s",
        "fcp_s",
        "lcp_s",
        "speed_index_s",
        "dcl_s",
        "plt_s",
        "requests_at_once",
        "startup_s",
        "stalls",
        "stalled_s",
        "media_rate_bps",
        "rate_changes",
        "latency_s",
        "frames",
        "late_frames",
        "lost_frames",
        "in_time_share",
        "frame_age_median_s",
        "frame_age_p95_s",
        "frame_age_p99_s",
        "frame_age_max_s",
        "connections",
        "resumed",
        "zero_rtt_bytes",
        "virtual_s",
        "wall_s",
        "cpu_client_s",
        "cpu_server_s",
        "cpu_sim_s",
        "memory_client_bytes",
        "memory_server_bytes",
        "epochs",
        "forward_packets",
        "forward_bytes",
        "forward_queue_drops",
        "forward_marked",
        "forward_reordered",
        "forward_reorder_extent",
        "forward_reorder_extent_mean",
        "forward_duplicated",
        "forward_losses",
        "forward_source_packets",
        "forward_source_bytes",
        "forward_source_delivered_bytes",
        "forward_source_lost",
        "return_packets",
        "return_bytes",
        "return_queue_drops",
        "return_marked",
        "return_reordered",
        "return_reorder_extent",
        "return_reorder_extent_mean",
        "return_duplicated",
        "return_losses",
        "return_source_packets",
        "return_source_bytes",
        "return_source_delivered_bytes",
        "return_source_lost",
        "return_capacity_requests",
        "return_capacity_requests_lost",
        "return_capacity_requests_denied",
        "return_capacity_requests_collided",
        "return_grant_wait_mean_ms",
        "return_grant_wait_max_ms",
        "forward_queueing_median_ms",
        "forward_queueing_p99_ms",
        "return_queueing_median_ms",
        "return_queueing_p99_ms",
        "retransmitted_share",
        "acks_per_data_packet",
        "mean_packet_bytes",
        "largest_packet_bytes",
        "return_rate_bps",
        "rtt_min_ms",
        "rtt_median_ms",
        "rtt_max_ms",
        "in_flight_max_bytes",
        "findings",
        "forward_ect",
        "forward_ect_share",
        "forward_ce_echoed",
        "forward_ce_rounds",
        "forward_ce_answered",
        "return_ect",
        "return_ect_share",
        "return_ce_echoed",
        "return_ce_rounds",
        "return_ce_answered",
        "client_version",
        "server_version",
        "client_driver",
        "server_driver",
        "client_statistics",
        "server_statistics",
        "received_step_s",
        "received_bytes",
        "in_order_bytes",
        "jain_index",
        "flows",
        "proxies",
        "hops",
        "paths",
        "tunnel",
        "packet_log_hash",
        "packet_log_sha256",
        "release_error_p50_ms",
        "release_error_p99_ms",
        "release_error_p999_ms",
        "release_error_max_ms",
        "release_error_limit_ms",
        "kernel_drops",
        "stray_packets",
        "cpu_pressure",
        "began",
        "tries",
        "clock_offset_ms",
        "clock_error_ms",
        "one_way_difference_ms",
        "probe_rtt_ms",
        "probe_loss_share",
        "link_statistics",
        "weather",
    )
)

# Those that the page of a cell shows, iteration by iteration.
SHOWN = (
    "trial",
    "iteration",
    "seed",
    "outcome",
    "detail",
    "transport",
    "handshake_s",
    "ttfb_s",
    "completion_s",
    "transfer_s",
    "goodput_bps",
    "efficiency",
    "share_of_limit",
    "rs_s",
    "fcp_s",
    "lcp_s",
    "speed_index_s",
    "dcl_s",
    "plt_s",
    "requests_at_once",
    "startup_s",
    "stalls",
    "stalled_s",
    "media_rate_bps",
    "rate_changes",
    "latency_s",
    "frames",
    "late_frames",
    "lost_frames",
    "in_time_share",
    "frame_age_median_s",
    "frame_age_p95_s",
    "frame_age_p99_s",
    "frame_age_max_s",
    "virtual_s",
    "wall_s",
    "cpu_client_s",
    "cpu_server_s",
    "forward_packets",
    "forward_bytes",
    "forward_queue_drops",
    "forward_marked",
    "forward_reordered",
    "forward_reorder_extent",
    "forward_duplicated",
    "forward_losses",
    "return_packets",
    "return_bytes",
    "return_queue_drops",
    "return_marked",
    "return_reordered",
    "return_reorder_extent",
    "return_duplicated",
    "return_losses",
    "forward_queueing_median_ms",
    "forward_queueing_p99_ms",
    "return_queueing_median_ms",
    "return_queueing_p99_ms",
    "forward_ect",
    "forward_ce_echoed",
    "forward_ce_answered",
    "received_step_s",
    "received_bytes",
    "jain_index",
    "packet_log_hash",
    "began",
    "tries",
    "clock_offset_ms",
    "clock_error_ms",
    "one_way_difference_ms",
    "probe_rtt_ms",
    "probe_loss_share",
)

# Those that every file has.
REQUIRED = frozenset(
    (
        "trial",
        "scenario",
        "workload",
        "size_bytes",
        "client",
        "server",
        "treatment",
        "testbed",
        "iteration",
        "seed",
        "outcome",
        "detail",
        "alpn",
        "measured_from",
        "handshake_s",
        "ttfb_s",
        "completion_s",
        "transfer_s",
        "goodput_bps",
        "efficiency",
        "limit_s",
        "share_of_limit",
        "connections",
        "resumed",
        "zero_rtt_bytes",
        "virtual_s",
        "wall_s",
        "cpu_client_s",
        "cpu_server_s",
        "cpu_sim_s",
        "memory_client_bytes",
        "memory_server_bytes",
        "epochs",
        "forward_packets",
        "forward_bytes",
        "forward_queue_drops",
        "forward_losses",
        "return_packets",
        "return_bytes",
        "return_queue_drops",
        "return_losses",
        "retransmitted_share",
        "acks_per_data_packet",
        "mean_packet_bytes",
        "largest_packet_bytes",
        "return_rate_bps",
        "rtt_min_ms",
        "rtt_median_ms",
        "rtt_max_ms",
        "in_flight_max_bytes",
        "findings",
        "client_version",
        "server_version",
        "client_driver",
        "server_driver",
        "client_statistics",
        "server_statistics",
        "received_step_s",
        "received_bytes",
        "jain_index",
        "flows",
        "proxies",
        "hops",
        "packet_log_sha256",
        "release_error_p50_ms",
        "release_error_p99_ms",
        "release_error_p999_ms",
        "release_error_max_ms",
        "release_error_limit_ms",
        "kernel_drops",
        "cpu_pressure",
    )
)

# The columns of each type, with the types that their definition gives them.
TYPES: dict[str, dict[str, str]] = {
    "Record": {
        "format": "integer",
        "trial": "text",
        "scenario": "text",
        "workload": "text",
        "size_bytes": "integer",
        "client": "text",
        "server": "text",
        "treatment": "text",
        "testbed": "text",
        "ip": "integer",
        "iteration": "integer",
        "seed": "text",
        "outcome": "Outcome",
        "detail": "text",
        "transport": "text",
        "alpn": "text",
        "measured_from": "text",
        "undecoded_packets": "integer?",
        "handshake_s": "number?",
        "ttfb_s": "number?",
        "completion_s": "number?",
        "transfer_s": "number?",
        "runner_transfer_s": "number?",
        "first_mb_s": "[number]",
        "goodput_bps": "number?",
        "efficiency": "number?",
        "limit_s": "number?",
        "saved_round_trips": "integer",
        "share_of_limit": "number?",
        "rs_s": "number?",
        "fcp_s": "number?",
        "lcp_s": "number?",
        "speed_index_s": "number?",
        "dcl_s": "number?",
        "plt_s": "number?",
        "requests_at_once": "integer?",
        "startup_s": "number?",
        "stalls": "integer?",
        "stalled_s": "number?",
        "media_rate_bps": "number?",
        "rate_changes": "integer?",
        "latency_s": "number?",
        "frames": "integer?",
        "late_frames": "integer?",
        "lost_frames": "integer?",
        "in_time_share": "number?",
        "frame_age_median_s": "number?",
        "frame_age_p95_s": "number?",
        "frame_age_p99_s": "number?",
        "frame_age_max_s": "number?",
        "connections": "integer?",
        "resumed": "boolean?",
        "zero_rtt_bytes": "integer?",
        "virtual_s": "number",
        "wall_s": "number",
        "cpu_client_s": "number",
        "cpu_server_s": "number",
        "cpu_sim_s": "number",
        "memory_client_bytes": "integer",
        "memory_server_bytes": "integer",
        "epochs": "integer",
        "forward_packets": "integer?",
        "forward_bytes": "integer?",
        "forward_queue_drops": "integer?",
        "forward_marked": "integer?",
        "forward_reordered": "integer?",
        "forward_reorder_extent": "integer?",
        "forward_reorder_extent_mean": "number?",
        "forward_duplicated": "integer?",
        "forward_losses": "integer?",
        "forward_source_packets": "integer?",
        "forward_source_bytes": "integer?",
        "forward_source_delivered_bytes": "integer?",
        "forward_source_lost": "integer?",
        "return_packets": "integer?",
        "return_bytes": "integer?",
        "return_queue_drops": "integer?",
        "return_marked": "integer?",
        "return_reordered": "integer?",
        "return_reorder_extent": "integer?",
        "return_reorder_extent_mean": "number?",
        "return_duplicated": "integer?",
        "return_losses": "integer?",
        "return_source_packets": "integer?",
        "return_source_bytes": "integer?",
        "return_source_delivered_bytes": "integer?",
        "return_source_lost": "integer?",
        "return_capacity_requests": "integer?",
        "return_capacity_requests_lost": "integer?",
        "return_capacity_requests_denied": "integer?",
        "return_capacity_requests_collided": "integer?",
        "return_grant_wait_mean_ms": "number?",
        "return_grant_wait_max_ms": "number?",
        "forward_queueing_median_ms": "number?",
        "forward_queueing_p99_ms": "number?",
        "return_queueing_median_ms": "number?",
        "return_queueing_p99_ms": "number?",
        "retransmitted_share": "number?",
        "acks_per_data_packet": "number?",
        "mean_packet_bytes": "number?",
        "largest_packet_bytes": "integer?",
        "return_rate_bps": "number?",
        "rtt_min_ms": "number?",
        "rtt_median_ms": "number?",
        "rtt_max_ms": "number?",
        "in_flight_max_bytes": "integer?",
        "findings": "[text]",
        "forward_ect": "text?",
        "forward_ect_share": "number?",
        "forward_ce_echoed": "integer?",
        "forward_ce_rounds": "integer?",
        "forward_ce_answered": "integer?",
        "return_ect": "text?",
        "return_ect_share": "number?",
        "return_ce_echoed": "integer?",
        "return_ce_rounds": "integer?",
        "return_ce_answered": "integer?",
        "client_version": "text",
        "server_version": "text",
        "client_driver": "text",
        "server_driver": "text",
        "client_statistics": "object",
        "server_statistics": "object",
        "received_step_s": "number",
        "received_bytes": "[integer]",
        "in_order_bytes": "[integer]",
        "jain_index": "number?",
        "flows": "[FlowResult]",
        "proxies": "[ProxyResult]",
        "hops": "[HopResult]",
        "paths": "[PathResult]",
        "tunnel": "TunnelResult?",
        "packet_log_hash": "text?",
        "packet_log_sha256": "text?",
        "release_error_p50_ms": "number?",
        "release_error_p99_ms": "number?",
        "release_error_p999_ms": "number?",
        "release_error_max_ms": "number?",
        "release_error_limit_ms": "number?",
        "kernel_drops": "integer?",
        "stray_packets": "integer?",
        "cpu_pressure": "number?",
        "began": "text?",
        "tries": "integer?",
        "clock_offset_ms": "number?",
        "clock_error_ms": "number?",
        "one_way_difference_ms": "number?",
        "probe_rtt_ms": "number?",
        "probe_loss_share": "number?",
        "link_statistics": "object",
        "weather": "object",
    },
    "FlowResult": {
        "client": "text",
        "server": "text",
        "start_s": "number",
        "end_s": "number",
        "outcome": "Outcome",
        "detail": "text",
        "goodput_bps": "number?",
        "forward_packets": "integer",
        "forward_queue_drops": "integer",
        "forward_losses": "integer",
        "return_packets": "integer",
        "return_queue_drops": "integer",
        "return_losses": "integer",
        "forward_queueing_median_ms": "number?",
        "forward_queueing_p99_ms": "number?",
        "return_queueing_median_ms": "number?",
        "return_queueing_p99_ms": "number?",
        "received_bytes": "[integer]",
    },
    "ProxyResult": {
        "place": "text",
        "name": "text",
        "version": "text",
        "driver": "text",
        "mtu_bytes": "integer?",
        "cpu_s": "number",
        "memory_bytes": "integer",
        "statistics": "object",
    },
    "PathResult": {
        "name": "text",
        "forward_packets": "integer",
        "forward_bytes": "integer",
        "forward_share": "number?",
        "forward_queue_drops": "integer",
        "forward_losses": "integer",
        "return_packets": "integer",
        "return_bytes": "integer",
        "return_share": "number?",
        "return_queue_drops": "integer",
        "return_losses": "integer",
        "data_first_s": "number?",
        "data_last_s": "number?",
    },
    "HopResult": {
        "from": "text",
        "to": "text",
        "forward_packets": "integer?",
        "forward_bytes": "integer?",
        "forward_queue_drops": "integer?",
        "forward_marked": "integer?",
        "forward_reordered": "integer?",
        "forward_reorder_extent": "integer?",
        "forward_reorder_extent_mean": "number?",
        "forward_duplicated": "integer?",
        "forward_losses": "integer?",
        "forward_source_packets": "integer?",
        "forward_source_bytes": "integer?",
        "forward_source_delivered_bytes": "integer?",
        "forward_source_lost": "integer?",
        "return_packets": "integer?",
        "return_bytes": "integer?",
        "return_queue_drops": "integer?",
        "return_marked": "integer?",
        "return_reordered": "integer?",
        "return_reorder_extent": "integer?",
        "return_reorder_extent_mean": "number?",
        "return_duplicated": "integer?",
        "return_losses": "integer?",
        "return_source_packets": "integer?",
        "return_source_bytes": "integer?",
        "return_source_delivered_bytes": "integer?",
        "return_source_lost": "integer?",
        "return_capacity_requests": "integer?",
        "return_capacity_requests_lost": "integer?",
        "return_capacity_requests_denied": "integer?",
        "return_capacity_requests_collided": "integer?",
        "return_grant_wait_mean_ms": "number?",
        "return_grant_wait_max_ms": "number?",
        "connections": "integer?",
        "rtt_min_ms": "number?",
        "rtt_median_ms": "number?",
        "retransmitted_share": "number?",
        "findings": "[text]",
    },
    "TunnelResult": {
        "kind": "text",
        "to": "text",
        "version": "text",
        "mtu_bytes": "integer",
        "congestion_control": "text",
        "setup_s": "number",
        "forward_packets": "integer",
        "forward_bytes": "integer",
        "return_packets": "integer",
        "return_bytes": "integer",
        "lost_packets": "integer",
        "overhead_bytes": "integer",
        "overhead_share": "number?",
        "cpu_client_s": "number",
        "cpu_far_s": "number",
    },
}
