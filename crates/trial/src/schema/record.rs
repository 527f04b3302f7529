//! Records: generated from schemas/record.toml by `make schemas`.

#![allow(
    clippy::doc_markdown,
    clippy::struct_field_names,
    reason = "words and names are those of the reference page"
)]

use bentpipe_endpoint::contract::Statistics;
use bentpipe_link::HostName;
use serde::Serialize;

/// The way in which a trial, or a flow, ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every reply arrived and is the file served, by way of what the test case asks for.
    #[default]
    Ok,
    /// A program answered 127; of older versions also what is [not
    /// applicable](campaigns.md#what-cannot-be).
    Unsupported,
    /// The scenario's timeout passed, an idle timeout ended the connection, or neither side would
    /// ever wake, before the handshake was complete.
    HandshakeTimeout,
    /// The same, after it.
    TransferTimeout,
    /// The connection ended, but a reply is absent or short.
    MissingFile,
    /// The connection ended, but a reply differs from the file served.
    CorruptFile,
    /// A program died, did not answer a message within 30 s, was waited for too long in all (600
    /// s), or broke the contract; `client.frames` or `server.frames` in the trial's folder replays
    /// it alone: `bentpipe replay`.
    Crashed,
    /// A trace was wanted, or what proves `multiplexing`, `zerortt` or `upload` is encrypted, and
    /// the client wrote no TLS secrets for it, or too few.
    NoSecrets,
    /// Every file arrived, but the wire shows something else than the test case asks for, or cannot
    /// be read; `detail` says what was expected, and what was seen.
    Unproven,
    /// The trial says nothing about the stacks: the testbed failed, in real time its links did not
    /// keep to the model, over a real link the connection to a host broke in each of three tries,
    /// or a program does not keep the contract's rule on unknown test cases.
    Invalid,
    /// Reserved: an interrupted trial leaves no record and runs again on resume.
    Interrupted,
}

impl Outcome {
    /// The word, as it is in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unsupported => "unsupported",
            Self::HandshakeTimeout => "handshake_timeout",
            Self::TransferTimeout => "transfer_timeout",
            Self::MissingFile => "missing_file",
            Self::CorruptFile => "corrupt_file",
            Self::Crashed => "crashed",
            Self::NoSecrets => "no_secrets",
            Self::Unproven => "unproven",
            Self::Invalid => "invalid",
            Self::Interrupted => "interrupted",
        }
    }
}

/// One trial: which it was, how it ended, what was measured.
#[derive(Debug, Default, Serialize)]
pub struct TrialResult {
    /// In one word.
    pub outcome: Outcome,
    /// Why, in words; empty where there is nothing to say.
    pub detail: String,
    /// The transport protocol: `quic` or `tcp`; empty where nothing was started, and in runs of the
    /// first format.
    pub transport: String,
    /// The application protocol: `hq-interop` or `h3`, over TCP `http/0.9`, of pages `http/1.1` or
    /// `h2`; empty where nothing was started. HTTP/3 adds what hq-interop has not, so where results
    /// stand side by side those of `h3` are marked.
    pub alpn: String,
    /// The source of times and rates: `wire`, or `client`, its own report, where the wire could not
    /// be decoded, or so little of it that the rest would mislead: then `undecoded_packets` says
    /// how much, and `detail`. Over a real link of which nothing could be captured: `qlog`, the
    /// client's, or without that `exit`, the start and the end of its program.
    pub measured_from: &'static str,
    /// 1-RTT packets that could not be decoded though the secrets are known: an extension that is
    /// not known here changes them, say. Above one in a hundred of an end's, `measured_from` is
    /// `client` and `findings` is empty. Null: over TCP, and where the secrets are not known.
    pub undecoded_packets: Option<u64>,
    /// Until the client sends the end of its handshake, its Finished.
    pub handshake_s: Option<f64>,
    /// Until the first packet with data of the reply arrives. Null: also of frames over DATAGRAM
    /// frames, which are on no stream.
    pub ttfb_s: Option<f64>,
    /// Until no byte of the reply is missing; of a page `plt_s`; of a live stream until its last
    /// segment is there. Null: of frames.
    pub completion_s: Option<f64>,
    /// From that first packet to that last byte. Null: also of pages, whose resources wait for one
    /// another.
    pub transfer_s: Option<f64>,
    /// From the first to the last 1-RTT packet that the client received, whatever they carry: 8 ·
    /// size / this is the goodput of the QUIC interop runner (`get_1rtt_sniff_times` of its
    /// `trace.py`), and that of Endres (2022, equation 4.1). The first may be the end of the
    /// handshake, up to a round trip before the reply's, the last the end of the connection. Of an
    /// upload the server received them. Headers tell these packets: no secrets are needed. Null:
    /// over TCP, of pages, streams, frames and durations, and where not all came.
    pub runner_transfer_s: Option<f64>,
    /// Until the first 1, 2, 5, 10, 20, 50, 100, 200, 500 and 1000 million bytes of the reply were
    /// there, none of them missing, as far as the trial came, even where it failed in the end; of
    /// an upload where they arrive. Empty with several files or connections, over a proxy in an
    /// upload, of pages and streams, and where `measured_from` is `client`.
    pub first_mb_s: Vec<f64>,
    /// 8 · size / `transfer_s`, the definition of the papers. Null: also where it would exceed the
    /// forward rate: a file that fits into one flight.
    pub goodput_bps: Option<f64>,
    /// Goodput / forward rate; where a rate changes, its mean during the transfer, with capacity on
    /// demand at its full rate. Null: as `goodput_bps`.
    pub efficiency: Option<f64>,
    /// The completion time of an ideal sender on this path, a real link as it is nominally: a round
    /// trip for the handshake, over TCP two, one for the request, and then the files at the forward
    /// rate with 5 % for headers; in `zerortt` and `page-zerortt` without the round trip for the
    /// handshake. Where a rate changes, it integrates, from the moment at which the request reaches
    /// the sender, the rate that the slowest link had in this trial when the bytes were there; of
    /// an access that assigns capacity on demand it asks for all with the first byte. Delays count
    /// with their smallest values; frames and jitter do not count. Middleboxes do not change it.
    /// Null: also over a real link whose rates are not known, as `share_of_limit` and `efficiency`.
    pub limit_s: Option<f64>,
    /// Round trips that options of both ends save before the first byte, so that `limit_s` does not
    /// count them: those that `saves` of the `stack.toml` names, as of `linux` that of TLS with
    /// `tls=off` and that of TCP with `fastopen=on`.
    pub saved_round_trips: u64,
    /// `limit_s` / `completion_s`. With proxies it may exceed 1.
    pub share_of_limit: Option<f64>,
    /// Response start (RS): until the response to the request for the document begins. Null: where
    /// no page was loaded.
    pub rs_s: Option<f64>,
    /// First contentful paint (FCP): until the document has begun to come, and all of what blocks
    /// rendering is there: the stylesheets and scripts that its first tenth leads to. Of a browser,
    /// its own. Null: where no page was loaded.
    pub fcp_s: Option<f64>,
    /// Largest contentful paint (LCP), of a browser. Null: where no browser loaded a page.
    pub lcp_s: Option<f64>,
    /// Speed Index, of a browser that reports pictures of the page: the mean time at which parts
    /// were drawn, each with the share that it has of all. Null: where no browser reported it.
    pub speed_index_s: Option<f64>,
    /// DOM content loaded (DCL): until the document, and the stylesheets and scripts that it leads
    /// to, are there. Of a browser, its own. Null: where no page was loaded.
    pub dcl_s: Option<f64>,
    /// Page load time (PLT): until every resource is there. Null: where no page was loaded.
    pub plt_s: Option<f64>,
    /// The most requests that were under way at one time. Null: where no page was loaded.
    pub requests_at_once: Option<u64>,
    /// Until the first segment is there, and playing begins. Null: where no live stream was played.
    pub startup_s: Option<f64>,
    /// How many times the next segment was not there when it was due. Null: where no live stream
    /// was played.
    pub stalls: Option<u64>,
    /// The time in which nothing was played because of that, in all. Null: where no live stream was
    /// played.
    pub stalled_s: Option<f64>,
    /// The mean of the rates of the segments that were played. Null: where no live stream was
    /// played.
    pub media_rate_bps: Option<f64>,
    /// How many segments had another rate than the one before. Null: where no live stream was
    /// played.
    pub rate_changes: Option<u64>,
    /// The age, at the end, of the segment that was shown then: the time since it had been made.
    /// Null: where no live stream was played.
    pub latency_s: Option<f64>,
    /// How many frames were to be made. Null: where there was no stream of frames.
    pub frames: Option<u64>,
    /// How many of them came whole, later than their deadline. Null: where there was no stream of
    /// frames.
    pub late_frames: Option<u64>,
    /// How many of them never came whole. Null: where there was no stream of frames.
    pub lost_frames: Option<u64>,
    /// The share of them that came whole by their deadline. Null: where there was no stream of
    /// frames.
    pub in_time_share: Option<f64>,
    /// The age that half of the frames did not exceed when they came, from when they were made to
    /// their last byte. One that never came whole counts as older than any. Null: where more were
    /// lost.
    pub frame_age_median_s: Option<f64>,
    /// The age that 95 % of the frames did not exceed, where one that never came whole counts as
    /// older than any. Null: where more than 5 % were lost.
    pub frame_age_p95_s: Option<f64>,
    /// The age that 99 % of the frames did not exceed, where one that never came whole counts as
    /// older than any. Null: where more than 1 % were lost.
    pub frame_age_p99_s: Option<f64>,
    /// The highest age of a frame that came whole. Null: where none came.
    pub frame_age_max_s: Option<f64>,
    /// Connections that completed a handshake, with that of an earlier visit; over TCP there is one
    /// for each request, except over HTTP. Null: where none could be made out.
    pub connections: Option<u64>,
    /// Whether the server took the ticket, by its ServerHello. Null: where there was no second
    /// connection.
    pub resumed: Option<bool>,
    /// The client's stream data in 0-RTT packets of the connection that is measured, over TCP in
    /// TLS's early data, accepted or not. Null: where these could not be decrypted.
    pub zero_rtt_bytes: Option<u64>,
    /// How long the trial took: in virtual time its time at the end of the last epoch, so up to one
    /// lookahead after both sides were done. It includes the drain.
    pub virtual_s: f64,
    /// Its duration in wall time.
    pub wall_s: f64,
    /// CPU time of the client's program.
    pub cpu_client_s: f64,
    /// CPU time of the server's.
    pub cpu_server_s: f64,
    /// CPU time of the testbed's own process, in real time with the forwarding of packets.
    pub cpu_sim_s: f64,
    /// The most memory that the client's program, or one that it started, had in RAM at once.
    pub memory_client_bytes: u64,
    /// The most memory that the server's program, or one that it started, had in RAM at once.
    pub memory_server_bytes: u64,
    /// Rounds of the coordinator of virtual time; 0 in real time.
    pub epochs: u64,
    /// To the packets of all flows; with middleboxes on the hop that has the satellite, where
    /// `hops` has them all.
    #[serde(flatten)]
    pub links: LinkCounts,
    /// Of the packets of all flows, on the same hop.
    #[serde(flatten)]
    pub queueing: Queueing,
    /// Of the stream bytes that the server sent: those that it had sent before. Null: as all up to
    /// `in_flight_max_bytes`, unless measured on the wire.
    pub retransmitted_share: Option<f64>,
    /// Packets with an ACK from the client per packet with data from the server.
    pub acks_per_data_packet: Option<f64>,
    /// The mean size of the server's IP packets.
    pub mean_packet_bytes: Option<f64>,
    /// The size of the largest of the server's IP packets.
    pub largest_packet_bytes: Option<u32>,
    /// The client's IP bytes during the transfer, as a rate.
    pub return_rate_bps: Option<f64>,
    /// The least of the server's samples of the round-trip time.
    pub rtt_min_ms: Option<f64>,
    /// Their median.
    pub rtt_median_ms: Option<f64>,
    /// The largest.
    pub rtt_max_ms: Option<f64>,
    /// The most that the server had in flight at one time, over all connections that are measured.
    pub in_flight_max_bytes: Option<u64>,
    /// The rules that found something wrong ([findings](findings.md)), of several connections with
    /// that of most packets; empty also where nothing was decoded.
    pub findings: Vec<&'static str>,
    /// The use of ECN in both directions; with proxies on the client's hop, over all connections
    /// that are measured. [Traces](traces.md#ecn) say how it is read off the packets. Null: unless
    /// measured on the wire.
    #[serde(flatten)]
    pub ecn: EcnResult,
    /// The version of the client's stack.
    pub client_version: String,
    /// The version of the server's stack.
    pub server_version: String,
    /// How the client's program batches arrivals and polls its stack.
    pub client_driver: String,
    /// How the server's program batches arrivals and polls its stack.
    pub server_driver: String,
    /// Statistics that the client reports at the end (contract, BYE), by name: numbers, texts or
    /// null; of the second connection where there are two. In `records.parquet` a column for every
    /// name that occurs, as in `server_statistics.slow_start_left_s`, of numbers or, where any of
    /// its values is one, of texts.
    pub client_statistics: Statistics,
    /// Statistics that the server reports at the end (contract, BYE), in the form of
    /// `client_statistics`.
    pub server_statistics: Statistics,
    /// The step of `received_bytes`.
    pub received_step_s: f64,
    /// `received_bytes[k]`: UDP payload that had reached the files' receiver `(k + 1) ·
    /// received_step_s` after the client's first packet. Empty where no packets were seen.
    pub received_bytes: Vec<u64>,
    /// `in_order_bytes[k]`: bytes of the files that the receiver could read `(k + 1) ·
    /// received_step_s` after the client's first packet: no byte before them in their stream was
    /// missing. Empty where `measured_from` is `client`, and of an upload past a proxy.
    pub in_order_bytes: Vec<u64>,
    /// Jain's index of the goodputs x of n flows, (Σx)² / (n · Σx²) (Jain, Chiu and Hawe 1984):
    /// from 1/n, where one has all, to 1. Null: where there is one flow, and as the flows'
    /// `goodput_bps`.
    pub jain_index: Option<f64>,
    /// All flows, the one that is measured first; empty where that is the only one.
    pub flows: Vec<FlowResult>,
    /// The middleboxes of the flow that is measured, from client to server; empty without.
    pub proxies: Vec<ProxyResult>,
    /// The hops between client, middleboxes, a tunnel's end at the gateway, and server; empty where
    /// nothing stands between client and server. In a trial with a tunnel only the counts of its
    /// links are known.
    pub hops: Vec<HopResult>,
    /// The paths between client and server ([several paths](../design/multipath.md)), by number;
    /// empty where there is one. Counts of the links are of all paths together, `forward_rate_bps`
    /// and what is measured by it too; `findings` are empty where packets took several, since rules
    /// are about one.
    pub paths: Vec<PathResult>,
    /// The tunnel that all flows went through ([what measures mean then](../design/vpn.md)). Null:
    /// without one.
    pub tunnel: Option<TunnelResult>,
    /// The hash of flow, direction, times, fate, ECN bits and bytes of every packet, behind the
    /// name of its function, `xxh3:` for XXH3 with 128 bits: the same seed gives the same hash.
    /// With middleboxes it is over the hashes of the hops of links. Null: where no packets were
    /// seen, and in older runs.
    pub packet_log_hash: Option<String>,
    /// The same in runs up to format 2, with SHA-256. It tells such runs apart, and none from a
    /// newer one. Null: since format 3.
    pub packet_log_sha256: Option<String>,
    /// How well the links kept to the model. Null: in virtual time.
    #[serde(flatten)]
    pub fidelity: Fidelity,
    /// The conditions of a real link during the trial. Null: in the other testbeds.
    #[serde(flatten)]
    pub conditions: LinkConditions,
}

/// The use of ECN: who set codepoints, reported marks, and answered them.
#[derive(Debug, Default, Serialize)]
pub struct EcnResult {
    /// The codepoint that most of the server's packets with one had, `ECT(0)` or `ECT(1)` (RFC 3168
    /// section 5); `none` if no packet had one. Packets of the handshake do not count.
    pub forward_ect: Option<&'static str>,
    /// The share of the server's packets with stream data that had ECT(0) or ECT(1). Null: also
    /// without such packets.
    pub forward_ect_share: Option<f64>,
    /// Marks that the client reported to the server. QUIC: the largest CE count in its ACK frames,
    /// summed over packet number spaces (RFC 9000 section 19.3.2). TCP: the episodes in which it
    /// set ECN-Echo, each from a mark to the server's CWR (RFC 3168 section 6.1.3). Null: also with
    /// accurate ECN of TCP (RFC 9768), whose counters are not read.
    pub forward_ce_echoed: Option<u64>,
    /// Round trips in which the server received reports of marks, each until a packet sent after
    /// the first report of one was acknowledged (RFC 9002 section 7.3.2); without those in which
    /// new data ended. Null: as `forward_ce_echoed`.
    pub forward_ce_rounds: Option<u64>,
    /// Those in which the server slowed down. TCP says so by CWR (RFC 3168 section 6.1.2). Of QUIC,
    /// the most bytes in flight in the second half of the round trip were at least a full-sized
    /// packet below the most in as long a time before it: a smaller reduction is not seen, and one
    /// for another reason, such as a loss, counts. Null: as `forward_ce_echoed`.
    pub forward_ce_answered: Option<u64>,
    /// As `forward_ect`, of the client's packets.
    pub return_ect: Option<&'static str>,
    /// As `forward_ect_share`, of the client's packets. Null: also without such packets.
    pub return_ect_share: Option<f64>,
    /// As `forward_ce_echoed`: marks on the client's packets that the server reported. Null: as
    /// `forward_ce_echoed`.
    pub return_ce_echoed: Option<u64>,
    /// As `forward_ce_rounds`, of the client. Null: as `forward_ce_echoed`.
    pub return_ce_rounds: Option<u64>,
    /// As `forward_ce_answered`, of the client. Null: as `forward_ce_echoed`.
    pub return_ce_answered: Option<u64>,
}

/// One of several flows of a trial. Times count from the start of the trial.
#[derive(Debug, Serialize)]
pub struct FlowResult {
    /// The stack of its client, with its options.
    pub client: String,
    /// The stack of its server, with its options.
    pub server: String,
    /// When it began.
    pub start_s: f64,
    /// When its last byte arrived, if its files are complete; else until when it was there.
    pub end_s: f64,
    /// How it ended.
    pub outcome: Outcome,
    /// Why, in words.
    pub detail: String,
    /// 8 · new stream bytes that arrived while all flows were there, from the last `start_s` to the
    /// first `end_s`, over the length of that interval. Null: where a flow crashed or cannot be
    /// decrypted, where flows go different ways (`upload` and not), and where they were never there
    /// at once.
    pub goodput_bps: Option<f64>,
    /// IP packets that it sent towards its client. The sums over flows are the trial's, here and
    /// below.
    pub forward_packets: u64,
    /// Those towards its client that a queue dropped.
    pub forward_queue_drops: u64,
    /// Those towards its client that the link lost.
    pub forward_losses: u64,
    /// IP packets that it sent towards its server.
    pub return_packets: u64,
    /// Those towards its server that a queue dropped.
    pub return_queue_drops: u64,
    /// Those towards its server that the link lost.
    pub return_losses: u64,
    /// Of its own packets.
    #[serde(flatten)]
    pub queueing: Queueing,
    /// By the steps of the trial's own curve.
    pub received_bytes: Vec<u64>,
}

/// A middlebox of the flow that is measured: a proxy, or one that encapsulates packets.
#[derive(Debug, Serialize)]
pub struct ProxyResult {
    /// Where it stood: `terminal` or `gateway`.
    pub place: HostName,
    /// Its title, with its options.
    pub name: String,
    /// The version of its program.
    pub version: String,
    /// How it batches arrivals and polls its stack.
    pub driver: String,
    /// The largest IP packet that it takes, by its `middlebox.toml`. Null: it ends connections, or
    /// does not say.
    pub mtu_bytes: Option<u64>,
    /// CPU time of its program.
    pub cpu_s: f64,
    /// The most that its program had in RAM at once.
    pub memory_bytes: u64,
    /// Statistics that it reports at the end. In `records.parquet` as JSON: each program has other
    /// names.
    pub statistics: Statistics,
}

/// One of several paths: what of the packets of all flows took it.
#[derive(Debug, Serialize)]
pub struct PathResult {
    /// Its name in the scenario.
    pub name: String,
    /// Packets sent over it towards the client.
    pub forward_packets: u64,
    /// Bytes of these IP packets.
    pub forward_bytes: u64,
    /// Their share of the bytes that were sent towards the client over all paths. Null: where none
    /// was.
    pub forward_share: Option<f64>,
    /// Those that a queue dropped.
    pub forward_queue_drops: u64,
    /// Those that the link lost.
    pub forward_losses: u64,
    /// Packets sent over it towards the server.
    pub return_packets: u64,
    /// Bytes of these IP packets.
    pub return_bytes: u64,
    /// Their share of the bytes that were sent towards the server over all paths. Null: where none
    /// was.
    pub return_share: Option<f64>,
    /// Those that a queue dropped.
    pub return_queue_drops: u64,
    /// Those that the link lost.
    pub return_losses: u64,
    /// When bytes of the files that were new to their receiver first arrived over it, of the flow
    /// that is measured; from the start, as other times. After a migration, the second path's less
    /// the first path's `data_last_s` is the time to recover. Null: where none did, or that is not
    /// known.
    pub data_first_s: Option<f64>,
    /// When they last did. Null: as above.
    pub data_last_s: Option<f64>,
}

/// A hop, between two neighbours of client, middleboxes and server: the counts of its links for the
/// packets of all flows, and the measures of the flow that is measured, as far as it could be
/// decoded.
#[derive(Debug, Serialize)]
pub struct HopResult {
    /// The neighbour on the client's side.
    pub from: HostName,
    /// The neighbour on the server's side.
    pub to: HostName,
    /// The counts of its links.
    #[serde(flatten)]
    pub links: LinkCounts,
    /// Connections that completed a handshake on this hop.
    pub connections: Option<u64>,
    /// The smallest RTT sample of the hop's own sender.
    pub rtt_min_ms: Option<f64>,
    /// The median RTT sample of the hop's own sender.
    pub rtt_median_ms: Option<f64>,
    /// Of the stream bytes that this sender sent.
    pub retransmitted_share: Option<f64>,
    /// The rules that found something wrong on this hop.
    pub findings: Vec<&'static str>,
}

/// A tunnel: what went through it, counted where it enters and leaves, and what that took on the
/// link of the satellite (`forward_bytes` and `return_bytes` of the record). Both count from the
/// moment at which all flows may begin: what set it up is not in them.
#[derive(Debug, Serialize)]
pub struct TunnelResult {
    /// `wireguard`, `openvpn-udp` or `openvpn-tcp`.
    pub kind: String,
    /// Where it ended, from the client: `gateway` or `server`.
    pub to: HostName,
    /// The version of its program.
    pub version: String,
    /// The largest IP packet that it took.
    pub mtu_bytes: u64,
    /// The congestion control of its own connection, of a tunnel over TCP; else empty.
    pub congestion_control: String,
    /// From the start of its programs until a packet had gone through and another one back.
    pub setup_s: f64,
    /// IP packets of the flows towards the client, as they were given to the tunnel, or to the path
    /// behind it.
    pub forward_packets: u64,
    /// Their bytes.
    pub forward_bytes: u64,
    /// The same towards the server.
    pub return_packets: u64,
    /// Their bytes.
    pub return_bytes: u64,
    /// Packets of these, both ways, that did not come out at the other end: dropped or lost by the
    /// link, or dropped by the tunnel's own programs and devices.
    pub lost_packets: u64,
    /// Bytes on the link that were not those of packets inside: headers, padding, and the tunnel's
    /// own messages and retransmissions. Negative where it dropped more than that before the link.
    pub overhead_bytes: i64,
    /// The same as a share of all bytes on the link. Null: where there were none.
    pub overhead_share: Option<f64>,
    /// CPU time of its program on the client.
    pub cpu_client_s: f64,
    /// CPU time of its program at the other end.
    pub cpu_far_s: f64,
}

/// The time that packets waited on a hop: their time on the way beyond the least delay of its
/// links. Their transmission and jitter count. Null where no packet arrived, and over a real link.
#[derive(Debug, Default, Serialize)]
pub struct Queueing {
    /// The median over packets towards the client.
    pub forward_queueing_median_ms: Option<f64>,
    /// The 99th percentile over packets towards the client.
    pub forward_queueing_p99_ms: Option<f64>,
    /// The median over packets towards the server.
    pub return_queueing_median_ms: Option<f64>,
    /// The 99th percentile over packets towards the server.
    pub return_queueing_p99_ms: Option<f64>,
}

/// Counts of the packets on the links of a hop. They are null where nobody saw these: over a real
/// link of which nothing could be captured, and where nothing was started.
#[derive(Debug, Default, Serialize)]
pub struct LinkCounts {
    /// IP packets sent towards the client, drops and losses included.
    pub forward_packets: Option<u64>,
    /// Bytes of the IP packets sent towards the client.
    pub forward_bytes: Option<u64>,
    /// Packets towards the client that a queue dropped. Null: also over a real link, where what a
    /// queue drops is one of the losses.
    pub forward_queue_drops: Option<u64>,
    /// Packets marked with Congestion Experienced by a queue (RFC 3168), on the way towards the
    /// client; they were delivered. Null: also over a real link.
    pub forward_marked: Option<u64>,
    /// Packets that arrived at the client behind a packet of their flow that was sent later (RFC
    /// 4737, section 3). Their share of the packets that arrived is the reordered ratio.
    pub forward_reordered: Option<u64>,
    /// The largest extent of a reordered packet towards the client: how many arrived from the first
    /// one that was sent later until it came itself (RFC 4737, section 4.2); 0 if none was
    /// reordered.
    pub forward_reorder_extent: Option<u64>,
    /// The mean extent of the reordered packets towards the client (RFC 4737, section 4.2). Null:
    /// none was reordered.
    pub forward_reorder_extent_mean: Option<f64>,
    /// Further arrivals at the client of packets that had arrived (RFC 5560): a link made copies of
    /// them. They count as no packets of their own, and none of them as lost. Null: also over a
    /// real link, where a capture may show a packet twice that arrived once.
    pub forward_duplicated: Option<u64>,
    /// Packets towards the client that the link lost; over a real link, whoever dropped them.
    pub forward_losses: Option<u64>,
    /// Packets that sources of cross traffic sent towards the client, on all links of the hop.
    /// Null: the links have no sources, or their packets were not seen.
    pub forward_source_packets: Option<u64>,
    /// Bytes of the IP packets that sources sent towards the client. Null: the links have no
    /// sources, or their packets were not seen.
    pub forward_source_bytes: Option<u64>,
    /// Bytes of the packets of sources that came out where their link ends, towards the client.
    /// Null: the links have no sources, or their packets were not seen.
    pub forward_source_delivered_bytes: Option<u64>,
    /// Packets of sources towards the client that a queue dropped or the link lost. Null: the links
    /// have no sources, or their packets were not seen.
    pub forward_source_lost: Option<u64>,
    /// IP packets sent towards the server, drops and losses included.
    pub return_packets: Option<u64>,
    /// Bytes of the IP packets sent towards the server.
    pub return_bytes: Option<u64>,
    /// Packets towards the server that a queue dropped.
    pub return_queue_drops: Option<u64>,
    /// Packets marked with Congestion Experienced on the way towards the server. Null: also over a
    /// real link.
    pub return_marked: Option<u64>,
    /// Packets that arrived at the server behind a packet of their flow that was sent later (RFC
    /// 4737, section 3). Their share of the packets that arrived is the reordered ratio.
    pub return_reordered: Option<u64>,
    /// The largest extent of a reordered packet towards the server: how many arrived from the first
    /// one that was sent later until it came itself (RFC 4737, section 4.2); 0 if none was
    /// reordered.
    pub return_reorder_extent: Option<u64>,
    /// The mean extent of the reordered packets towards the server (RFC 4737, section 4.2). Null:
    /// none was reordered.
    pub return_reorder_extent_mean: Option<f64>,
    /// Further arrivals at the server of packets that had arrived (RFC 5560): a link made copies of
    /// them. They count as no packets of their own, and none of them as lost. Null: also over a
    /// real link, where a capture may show a packet twice that arrived once.
    pub return_duplicated: Option<u64>,
    /// Packets towards the server that the link lost; over a real link, whoever dropped them.
    pub return_losses: Option<u64>,
    /// Packets that sources of cross traffic sent towards the server, on all links of the hop.
    /// Null: the links have no sources, or their packets were not seen.
    pub return_source_packets: Option<u64>,
    /// Bytes of the IP packets that sources sent towards the server. Null: the links have no
    /// sources, or their packets were not seen.
    pub return_source_bytes: Option<u64>,
    /// Bytes of the packets of sources that came out where their link ends, towards the server.
    /// Null: the links have no sources, or their packets were not seen.
    pub return_source_delivered_bytes: Option<u64>,
    /// Packets of sources towards the server that a queue dropped or the link lost. Null: the links
    /// have no sources, or their packets were not seen.
    pub return_source_lost: Option<u64>,
    /// Requests for capacity that the terminal sent. Null: no return link of the hop is a carrier
    /// of DVB-RCS2, or requests were not counted.
    pub return_capacity_requests: Option<u64>,
    /// Those of them that were lost. Null: no return link of the hop is a carrier of DVB-RCS2, or
    /// requests were not counted.
    pub return_capacity_requests_lost: Option<u64>,
    /// Those that were denied. Null: no return link of the hop is a carrier of DVB-RCS2, or
    /// requests were not counted.
    pub return_capacity_requests_denied: Option<u64>,
    /// Those that collided with another terminal's. Null: no return link of the hop is a carrier of
    /// DVB-RCS2, or requests were not counted.
    pub return_capacity_requests_collided: Option<u64>,
    /// The mean time from a request to the superframe in which capacity was assigned for it, over
    /// those that were received. Null: nothing was assigned for any.
    pub return_grant_wait_mean_ms: Option<f64>,
    /// The longest such time. Null: nothing was assigned for any.
    pub return_grant_wait_max_ms: Option<f64>,
}

/// The fidelity of a testbed in real time: how well its links kept to the model. Nothing of it is
/// there in virtual time, which keeps to it exactly.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Fidelity {
    /// The time by which packets left the emulated links later than the model says: the median.
    pub release_error_p50_ms: Option<f64>,
    /// The 99th percentile.
    pub release_error_p99_ms: Option<f64>,
    /// The 99.9th percentile.
    pub release_error_p999_ms: Option<f64>,
    /// The largest.
    pub release_error_max_ms: Option<f64>,
    /// The limit of the 99.9th percentile for a trial to be trusted.
    pub release_error_limit_ms: Option<f64>,
    /// Packets that the kernel dropped on the way to the emulator or from it.
    pub kernel_drops: Option<u64>,
    /// Packets of TCP and UDP on the links that are of no flow: programs sent them to others than
    /// their peers. Null: through a tunnel.
    pub stray_packets: Option<u64>,
    /// The share of time in which some task of this machine waited for a processor. Null: with
    /// `--awake`.
    pub cpu_pressure: Option<f64>,
}

/// The conditions of a trial over a real link. Nothing of it is there in the other testbeds.
/// `link.json` in the trial's folder has all that the columns are made of.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LinkConditions {
    /// When the trial began, as in `2026-04-01T12:00:00Z`.
    pub began: Option<String>,
    /// How many times it was begun: once more for each connection to a host that broke.
    pub tries: Option<u64>,
    /// The time by which the clock of the server's host was ahead of that of the client's; its
    /// times are corrected by that.
    pub clock_offset_ms: Option<f64>,
    /// The largest error of that, and with it of one-way delays: half of the round trip of the
    /// fastest exchanges, less what is known of their asymmetry, with a tenth of that
    /// (`control_asymmetry_ms`).
    pub clock_error_ms: Option<f64>,
    /// The time by which the fastest packet towards the client took longer than the fastest towards
    /// the server. Over a link whose directions take equally long, half of it is the error of
    /// `clock_offset_ms`, which is too large by that. Null: where nothing could be captured, and
    /// where no packet was seen once at each end in both directions.
    pub one_way_difference_ms: Option<f64>,
    /// The median round trip of the small regular flow beside the trial. Null: where there was
    /// none, or none of its packets came back.
    pub probe_rtt_ms: Option<f64>,
    /// The share of its packets that did not come back. Null: where there was none.
    pub probe_loss_share: Option<f64>,
    /// The output of the user's command about the link behind the trial, by name, where that is
    /// JSON.
    pub link_statistics: Statistics,
    /// The output of the user's command about the weather, by name, where that is JSON.
    pub weather: Statistics,
}
