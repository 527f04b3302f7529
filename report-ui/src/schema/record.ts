// Records: generated from schemas/record.toml by `make schemas`.

import type { Json } from "../model";

/** The way in which a trial, or a flow, ended. */
export type Outcome =
  | "ok"
  | "unsupported"
  | "handshake_timeout"
  | "transfer_timeout"
  | "missing_file"
  | "corrupt_file"
  | "crashed"
  | "no_secrets"
  | "unproven"
  | "invalid"
  | "interrupted";

/** One trial: which it was, how it ended, what was measured. */
export type TrialRecord = {
  /** The number of this record's format, as at the top of this page. Absent in the first format. */
  format: number;
  /** The name of its folder under `trials/`. */
  trial: string;
  /** The label of its scenario: the name, with what `--set` changed. */
  scenario: string;
  /** The workload: a test case and its files, as in `transfer:10485760`. */
  workload: string;
  /** Of all files of the workload together, also where measures are of a second connection's alone. */
  size_bytes: number;
  /** The client's stack, with its options, as in `quinn:cc=bbr:iw=100`. */
  client: string;
  /** The server's stack, with its options. */
  server: string;
  /** The treatment: `direct`, or middleboxes, as in `quic-pep terminal,gateway`. */
  treatment: string;
  /** `sim`, virtual time, `emu`, real time, or `remote`, a real link; `runner` of what was imported from the QUIC interop runner. */
  testbed: string;
  /** The version of IP that the programs spoke: 4 or 6. Runs of the first format all spoke 4. */
  ip: number;
  /** From 1. */
  iteration: number;
  /** 64 bits in hexadecimal: all that is random in the trial comes from it. */
  seed: string;
  /** In one word. */
  outcome: Outcome;
  /** Why, in words; empty where there is nothing to say. */
  detail: string;
  /** The transport protocol: `quic` or `tcp`; empty where nothing was started, and in runs of the first format. */
  transport: string;
  /** The application protocol: `hq-interop` or `h3`, over TCP `http/0.9`, of pages `http/1.1` or `h2`; empty where nothing was started. HTTP/3 adds what hq-interop has not, so where results stand side by side those of `h3` are marked. */
  alpn: string;
  /** The source of times and rates: `wire`, or `client`, its own report, where the wire could not be decoded, or so little of it that the rest would mislead: then `undecoded_packets` says how much, and `detail`. Over a real link of which nothing could be captured: `qlog`, the client's, or without that `exit`, the start and the end of its program. */
  measured_from: string;
  /** 1-RTT packets that could not be decoded though the secrets are known: an extension that is not known here changes them, say. Above one in a hundred of an end's, `measured_from` is `client` and `findings` is empty. Null over TCP, and where the secrets are not known. */
  undecoded_packets: number | null;
  /** Until the client sends the end of its handshake, its Finished. */
  handshake_s: number | null;
  /** Until the first packet with data of the reply arrives. Null also of frames over DATAGRAM frames, which are on no stream. */
  ttfb_s: number | null;
  /** Until no byte of the reply is missing; of a page `plt_s`; of a live stream until its last segment is there. Null of frames. */
  completion_s: number | null;
  /** From that first packet to that last byte. Null also of pages, whose resources wait for one another. */
  transfer_s: number | null;
  /** From the first to the last 1-RTT packet that the client received, whatever they carry: 8 · size / this is the goodput of the QUIC interop runner (`get_1rtt_sniff_times` of its `trace.py`), and that of Endres (2022, equation 4.1). The first may be the end of the handshake, up to a round trip before the reply's, the last the end of the connection. Of an upload the server received them. Headers tell these packets: no secrets are needed. Null over TCP, of pages, streams, frames and durations, and where not all came. */
  runner_transfer_s: number | null;
  /** Until the first 1, 2, 5, 10, 20, 50, 100, 200, 500 and 1000 million bytes of the reply were there, none of them missing, as far as the trial came, even where it failed in the end; of an upload where they arrive. Empty with several files or connections, over a proxy in an upload, of pages and streams, and where `measured_from` is `client`. */
  first_mb_s: number[];
  /** 8 · size / `transfer_s`, the definition of the papers. Null also where it would exceed the forward rate: a file that fits into one flight. */
  goodput_bps: number | null;
  /** Goodput / forward rate; where a rate changes, its mean during the transfer, with capacity on demand at its full rate. Null as `goodput_bps`. */
  efficiency: number | null;
  /** The completion time of an ideal sender on this path, a real link as it is nominally: a round trip for the handshake, over TCP two, one for the request, and then the files at the forward rate with 5 % for headers; in `zerortt` and `page-zerortt` without the round trip for the handshake. Where a rate changes, it integrates, from the moment at which the request reaches the sender, the rate that the slowest link had in this trial when the bytes were there; of an access that assigns capacity on demand it asks for all with the first byte. Delays count with their smallest values; frames and jitter do not count. Middleboxes do not change it. Null also over a real link whose rates are not known, as `share_of_limit` and `efficiency`. */
  limit_s: number | null;
  /** Round trips that options of both ends save before the first byte, so that `limit_s` does not count them: those that `saves` of the `stack.toml` names, as of `linux` that of TLS with `tls=off` and that of TCP with `fastopen=on`. */
  saved_round_trips: number;
  /** `limit_s` / `completion_s`. With proxies it may exceed 1. */
  share_of_limit: number | null;
  /** Response start (RS): until the response to the request for the document begins. Null where no page was loaded. */
  rs_s: number | null;
  /** First contentful paint (FCP): until the document has begun to come, and all of what blocks rendering is there: the stylesheets and scripts that its first tenth leads to. Of a browser, its own. Null where no page was loaded. */
  fcp_s: number | null;
  /** Largest contentful paint (LCP), of a browser. Null where no browser loaded a page. */
  lcp_s: number | null;
  /** Speed Index, of a browser that reports pictures of the page: the mean time at which parts were drawn, each with the share that it has of all. Null where no browser reported it. */
  speed_index_s: number | null;
  /** DOM content loaded (DCL): until the document, and the stylesheets and scripts that it leads to, are there. Of a browser, its own. Null where no page was loaded. */
  dcl_s: number | null;
  /** Page load time (PLT): until every resource is there. Null where no page was loaded. */
  plt_s: number | null;
  /** The most requests that were under way at one time. Null where no page was loaded. */
  requests_at_once: number | null;
  /** Until the first segment is there, and playing begins. Null where no live stream was played. */
  startup_s: number | null;
  /** How many times the next segment was not there when it was due. Null where no live stream was played. */
  stalls: number | null;
  /** The time in which nothing was played because of that, in all. Null where no live stream was played. */
  stalled_s: number | null;
  /** The mean of the rates of the segments that were played. Null where no live stream was played. */
  media_rate_bps: number | null;
  /** How many segments had another rate than the one before. Null where no live stream was played. */
  rate_changes: number | null;
  /** The age, at the end, of the segment that was shown then: the time since it had been made. Null where no live stream was played. */
  latency_s: number | null;
  /** How many frames were to be made. Null where there was no stream of frames. */
  frames: number | null;
  /** How many of them came whole, later than their deadline. Null where there was no stream of frames. */
  late_frames: number | null;
  /** How many of them never came whole. Null where there was no stream of frames. */
  lost_frames: number | null;
  /** The share of them that came whole by their deadline. Null where there was no stream of frames. */
  in_time_share: number | null;
  /** The age that half of the frames did not exceed when they came, from when they were made to their last byte. One that never came whole counts as older than any. Null where more were lost. */
  frame_age_median_s: number | null;
  /** The age that 95 % of the frames did not exceed, where one that never came whole counts as older than any. Null where more than 5 % were lost. */
  frame_age_p95_s: number | null;
  /** The age that 99 % of the frames did not exceed, where one that never came whole counts as older than any. Null where more than 1 % were lost. */
  frame_age_p99_s: number | null;
  /** The highest age of a frame that came whole. Null where none came. */
  frame_age_max_s: number | null;
  /** Connections that completed a handshake, with that of an earlier visit; over TCP there is one for each request, except over HTTP. Null where none could be made out. */
  connections: number | null;
  /** Whether the server took the ticket, by its ServerHello. Null where there was no second connection. */
  resumed: boolean | null;
  /** The client's stream data in 0-RTT packets of the connection that is measured, over TCP in TLS's early data, accepted or not. Null where these could not be decrypted. */
  zero_rtt_bytes: number | null;
  /** How long the trial took: in virtual time its time at the end of the last epoch, so up to one lookahead after both sides were done. It includes the drain. */
  virtual_s: number;
  /** Its duration in wall time. */
  wall_s: number;
  /** CPU time of the client's program. */
  cpu_client_s: number;
  /** CPU time of the server's. */
  cpu_server_s: number;
  /** CPU time of the testbed's own process, in real time with the forwarding of packets. */
  cpu_sim_s: number;
  /** The most memory that the client's program, or one that it started, had in RAM at once. */
  memory_client_bytes: number;
  /** The most memory that the server's program, or one that it started, had in RAM at once. */
  memory_server_bytes: number;
  /** Rounds of the coordinator of virtual time; 0 in real time. */
  epochs: number;
  /** IP packets sent towards the client, drops and losses included. */
  forward_packets: number | null;
  /** Bytes of the IP packets sent towards the client. */
  forward_bytes: number | null;
  /** Packets towards the client that a queue dropped. Null also over a real link, where what a queue drops is one of the losses. */
  forward_queue_drops: number | null;
  /** Packets marked with Congestion Experienced by a queue (RFC 3168), on the way towards the client; they were delivered. Null also over a real link. */
  forward_marked: number | null;
  /** Packets that arrived at the client behind a packet of their flow that was sent later (RFC 4737, section 3). Their share of the packets that arrived is the reordered ratio. */
  forward_reordered: number | null;
  /** The largest extent of a reordered packet towards the client: how many arrived from the first one that was sent later until it came itself (RFC 4737, section 4.2); 0 if none was reordered. */
  forward_reorder_extent: number | null;
  /** The mean extent of the reordered packets towards the client (RFC 4737, section 4.2). Null none was reordered. */
  forward_reorder_extent_mean: number | null;
  /** Further arrivals at the client of packets that had arrived (RFC 5560): a link made copies of them. They count as no packets of their own, and none of them as lost. Null also over a real link, where a capture may show a packet twice that arrived once. */
  forward_duplicated: number | null;
  /** Packets towards the client that the link lost; over a real link, whoever dropped them. */
  forward_losses: number | null;
  /** Packets that sources of cross traffic sent towards the client, on all links of the hop. Null the links have no sources, or their packets were not seen. */
  forward_source_packets: number | null;
  /** Bytes of the IP packets that sources sent towards the client. Null the links have no sources, or their packets were not seen. */
  forward_source_bytes: number | null;
  /** Bytes of the packets of sources that came out where their link ends, towards the client. Null the links have no sources, or their packets were not seen. */
  forward_source_delivered_bytes: number | null;
  /** Packets of sources towards the client that a queue dropped or the link lost. Null the links have no sources, or their packets were not seen. */
  forward_source_lost: number | null;
  /** IP packets sent towards the server, drops and losses included. */
  return_packets: number | null;
  /** Bytes of the IP packets sent towards the server. */
  return_bytes: number | null;
  /** Packets towards the server that a queue dropped. */
  return_queue_drops: number | null;
  /** Packets marked with Congestion Experienced on the way towards the server. Null also over a real link. */
  return_marked: number | null;
  /** Packets that arrived at the server behind a packet of their flow that was sent later (RFC 4737, section 3). Their share of the packets that arrived is the reordered ratio. */
  return_reordered: number | null;
  /** The largest extent of a reordered packet towards the server: how many arrived from the first one that was sent later until it came itself (RFC 4737, section 4.2); 0 if none was reordered. */
  return_reorder_extent: number | null;
  /** The mean extent of the reordered packets towards the server (RFC 4737, section 4.2). Null none was reordered. */
  return_reorder_extent_mean: number | null;
  /** Further arrivals at the server of packets that had arrived (RFC 5560): a link made copies of them. They count as no packets of their own, and none of them as lost. Null also over a real link, where a capture may show a packet twice that arrived once. */
  return_duplicated: number | null;
  /** Packets towards the server that the link lost; over a real link, whoever dropped them. */
  return_losses: number | null;
  /** Packets that sources of cross traffic sent towards the server, on all links of the hop. Null the links have no sources, or their packets were not seen. */
  return_source_packets: number | null;
  /** Bytes of the IP packets that sources sent towards the server. Null the links have no sources, or their packets were not seen. */
  return_source_bytes: number | null;
  /** Bytes of the packets of sources that came out where their link ends, towards the server. Null the links have no sources, or their packets were not seen. */
  return_source_delivered_bytes: number | null;
  /** Packets of sources towards the server that a queue dropped or the link lost. Null the links have no sources, or their packets were not seen. */
  return_source_lost: number | null;
  /** Requests for capacity that the terminal sent. Null no return link of the hop is a carrier of DVB-RCS2, or requests were not counted. */
  return_capacity_requests: number | null;
  /** Those of them that were lost. Null no return link of the hop is a carrier of DVB-RCS2, or requests were not counted. */
  return_capacity_requests_lost: number | null;
  /** Those that were denied. Null no return link of the hop is a carrier of DVB-RCS2, or requests were not counted. */
  return_capacity_requests_denied: number | null;
  /** Those that collided with another terminal's. Null no return link of the hop is a carrier of DVB-RCS2, or requests were not counted. */
  return_capacity_requests_collided: number | null;
  /** The mean time from a request to the superframe in which capacity was assigned for it, over those that were received. Null nothing was assigned for any. */
  return_grant_wait_mean_ms: number | null;
  /** The longest such time. Null nothing was assigned for any. */
  return_grant_wait_max_ms: number | null;
  /** The median over packets towards the client. */
  forward_queueing_median_ms: number | null;
  /** The 99th percentile over packets towards the client. */
  forward_queueing_p99_ms: number | null;
  /** The median over packets towards the server. */
  return_queueing_median_ms: number | null;
  /** The 99th percentile over packets towards the server. */
  return_queueing_p99_ms: number | null;
  /** Of the stream bytes that the server sent: those that it had sent before. Null as all up to `in_flight_max_bytes`, unless measured on the wire. */
  retransmitted_share: number | null;
  /** Packets with an ACK from the client per packet with data from the server. */
  acks_per_data_packet: number | null;
  /** The mean size of the server's IP packets. */
  mean_packet_bytes: number | null;
  /** The size of the largest of the server's IP packets. */
  largest_packet_bytes: number | null;
  /** The client's IP bytes during the transfer, as a rate. */
  return_rate_bps: number | null;
  /** The least of the server's samples of the round-trip time. */
  rtt_min_ms: number | null;
  /** Their median. */
  rtt_median_ms: number | null;
  /** The largest. */
  rtt_max_ms: number | null;
  /** The most that the server had in flight at one time, over all connections that are measured. */
  in_flight_max_bytes: number | null;
  /** The rules that found something wrong ([findings](findings.md)), of several connections with that of most packets; empty also where nothing was decoded. */
  findings: string[];
  /** The codepoint that most of the server's packets with one had, `ECT(0)` or `ECT(1)` (RFC 3168 section 5); `none` if no packet had one. Packets of the handshake do not count. Null unless measured on the wire. */
  forward_ect: string | null;
  /** The share of the server's packets with stream data that had ECT(0) or ECT(1). Null unless measured on the wire, and also without such packets. */
  forward_ect_share: number | null;
  /** Marks that the client reported to the server. QUIC: the largest CE count in its ACK frames, summed over packet number spaces (RFC 9000 section 19.3.2). TCP: the episodes in which it set ECN-Echo, each from a mark to the server's CWR (RFC 3168 section 6.1.3). Null unless measured on the wire, and also with accurate ECN of TCP (RFC 9768), whose counters are not read. */
  forward_ce_echoed: number | null;
  /** Round trips in which the server received reports of marks, each until a packet sent after the first report of one was acknowledged (RFC 9002 section 7.3.2); without those in which new data ended. Null unless measured on the wire, and as `forward_ce_echoed`. */
  forward_ce_rounds: number | null;
  /** Those in which the server slowed down. TCP says so by CWR (RFC 3168 section 6.1.2). Of QUIC, the most bytes in flight in the second half of the round trip were at least a full-sized packet below the most in as long a time before it: a smaller reduction is not seen, and one for another reason, such as a loss, counts. Null unless measured on the wire, and as `forward_ce_echoed`. */
  forward_ce_answered: number | null;
  /** As `forward_ect`, of the client's packets. Null unless measured on the wire. */
  return_ect: string | null;
  /** As `forward_ect_share`, of the client's packets. Null unless measured on the wire, and also without such packets. */
  return_ect_share: number | null;
  /** As `forward_ce_echoed`: marks on the client's packets that the server reported. Null unless measured on the wire, and as `forward_ce_echoed`. */
  return_ce_echoed: number | null;
  /** As `forward_ce_rounds`, of the client. Null unless measured on the wire, and as `forward_ce_echoed`. */
  return_ce_rounds: number | null;
  /** As `forward_ce_answered`, of the client. Null unless measured on the wire, and as `forward_ce_echoed`. */
  return_ce_answered: number | null;
  /** The version of the client's stack. */
  client_version: string;
  /** The version of the server's stack. */
  server_version: string;
  /** How the client's program batches arrivals and polls its stack. */
  client_driver: string;
  /** How the server's program batches arrivals and polls its stack. */
  server_driver: string;
  /** Statistics that the client reports at the end (contract, BYE), by name: numbers, texts or null; of the second connection where there are two. In `records.parquet` a column for every name that occurs, as in `server_statistics.slow_start_left_s`, of numbers or, where any of its values is one, of texts. */
  client_statistics: { [key: string]: Json };
  /** Statistics that the server reports at the end (contract, BYE), in the form of `client_statistics`. */
  server_statistics: { [key: string]: Json };
  /** The step of `received_bytes`. */
  received_step_s: number;
  /** `received_bytes[k]`: UDP payload that had reached the files' receiver `(k + 1) · received_step_s` after the client's first packet. Empty where no packets were seen. */
  received_bytes: number[];
  /** `in_order_bytes[k]`: bytes of the files that the receiver could read `(k + 1) · received_step_s` after the client's first packet: no byte before them in their stream was missing. Empty where `measured_from` is `client`, and of an upload past a proxy. */
  in_order_bytes: number[];
  /** Jain's index of the goodputs x of n flows, (Σx)² / (n · Σx²) (Jain, Chiu and Hawe 1984): from 1/n, where one has all, to 1. Null where there is one flow, and as the flows' `goodput_bps`. */
  jain_index: number | null;
  /** All flows, the one that is measured first; empty where that is the only one. */
  flows: FlowResult[];
  /** The middleboxes of the flow that is measured, from client to server; empty without. */
  proxies: ProxyResult[];
  /** The hops between client, middleboxes, a tunnel's end at the gateway, and server; empty where nothing stands between client and server. In a trial with a tunnel only the counts of its links are known. */
  hops: HopResult[];
  /** The paths between client and server ([several paths](../design/multipath.md)), by number; empty where there is one. Counts of the links are of all paths together, `forward_rate_bps` and what is measured by it too; `findings` are empty where packets took several, since rules are about one. */
  paths: PathResult[];
  /** The tunnel that all flows went through ([what measures mean then](../design/vpn.md)). Null without one. */
  tunnel: TunnelResult | null;
  /** The hash of flow, direction, times, fate, ECN bits and bytes of every packet, behind the name of its function, `xxh3:` for XXH3 with 128 bits: the same seed gives the same hash. With middleboxes it is over the hashes of the hops of links. Null where no packets were seen, and in older runs. */
  packet_log_hash: string | null;
  /** The same in runs up to format 2, with SHA-256. It tells such runs apart, and none from a newer one. Null since format 3. */
  packet_log_sha256: string | null;
  /** The time by which packets left the emulated links later than the model says: the median. Null in virtual time. */
  release_error_p50_ms: number | null;
  /** The 99th percentile. Null in virtual time. */
  release_error_p99_ms: number | null;
  /** The 99.9th percentile. Null in virtual time. */
  release_error_p999_ms: number | null;
  /** The largest. Null in virtual time. */
  release_error_max_ms: number | null;
  /** The limit of the 99.9th percentile for a trial to be trusted. Null in virtual time. */
  release_error_limit_ms: number | null;
  /** Packets that the kernel dropped on the way to the emulator or from it. Null in virtual time. */
  kernel_drops: number | null;
  /** Packets of TCP and UDP on the links that are of no flow: programs sent them to others than their peers. Null in virtual time, and through a tunnel. */
  stray_packets: number | null;
  /** The share of time in which some task of this machine waited for a processor. Null in virtual time, and with `--awake`. */
  cpu_pressure: number | null;
  /** When the trial began, as in `2026-04-01T12:00:00Z`. Null in the other testbeds. */
  began: string | null;
  /** How many times it was begun: once more for each connection to a host that broke. Null in the other testbeds. */
  tries: number | null;
  /** The time by which the clock of the server's host was ahead of that of the client's; its times are corrected by that. Null in the other testbeds. */
  clock_offset_ms: number | null;
  /** The largest error of that, and with it of one-way delays: half of the round trip of the fastest exchanges, less what is known of their asymmetry, with a tenth of that (`control_asymmetry_ms`). Null in the other testbeds. */
  clock_error_ms: number | null;
  /** The time by which the fastest packet towards the client took longer than the fastest towards the server. Over a link whose directions take equally long, half of it is the error of `clock_offset_ms`, which is too large by that. Null in the other testbeds, and where nothing could be captured, and where no packet was seen once at each end in both directions. */
  one_way_difference_ms: number | null;
  /** The median round trip of the small regular flow beside the trial. Null in the other testbeds, and where there was none, or none of its packets came back. */
  probe_rtt_ms: number | null;
  /** The share of its packets that did not come back. Null in the other testbeds, and where there was none. */
  probe_loss_share: number | null;
  /** The output of the user's command about the link behind the trial, by name, where that is JSON. Null in the other testbeds. */
  link_statistics: { [key: string]: Json };
  /** The output of the user's command about the weather, by name, where that is JSON. Null in the other testbeds. */
  weather: { [key: string]: Json };
};

/** One of several flows of a trial. Times count from the start of the trial. */
export type FlowResult = {
  /** The stack of its client, with its options. */
  client: string;
  /** The stack of its server, with its options. */
  server: string;
  /** When it began. */
  start_s: number;
  /** When its last byte arrived, if its files are complete; else until when it was there. */
  end_s: number;
  /** How it ended. */
  outcome: Outcome;
  /** Why, in words. */
  detail: string;
  /** 8 · new stream bytes that arrived while all flows were there, from the last `start_s` to the first `end_s`, over the length of that interval. Null where a flow crashed or cannot be decrypted, where flows go different ways (`upload` and not), and where they were never there at once. */
  goodput_bps: number | null;
  /** IP packets that it sent towards its client. The sums over flows are the trial's, here and below. */
  forward_packets: number;
  /** Those towards its client that a queue dropped. */
  forward_queue_drops: number;
  /** Those towards its client that the link lost. */
  forward_losses: number;
  /** IP packets that it sent towards its server. */
  return_packets: number;
  /** Those towards its server that a queue dropped. */
  return_queue_drops: number;
  /** Those towards its server that the link lost. */
  return_losses: number;
  /** The median over packets towards the client. */
  forward_queueing_median_ms: number | null;
  /** The 99th percentile over packets towards the client. */
  forward_queueing_p99_ms: number | null;
  /** The median over packets towards the server. */
  return_queueing_median_ms: number | null;
  /** The 99th percentile over packets towards the server. */
  return_queueing_p99_ms: number | null;
  /** By the steps of the trial's own curve. */
  received_bytes: number[];
};

/** A middlebox of the flow that is measured: a proxy, or one that encapsulates packets. */
export type ProxyResult = {
  /** Where it stood: `terminal` or `gateway`. */
  place: string;
  /** Its title, with its options. */
  name: string;
  /** The version of its program. */
  version: string;
  /** How it batches arrivals and polls its stack. */
  driver: string;
  /** The largest IP packet that it takes, by its `middlebox.toml`. Null it ends connections, or does not say. */
  mtu_bytes: number | null;
  /** CPU time of its program. */
  cpu_s: number;
  /** The most that its program had in RAM at once. */
  memory_bytes: number;
  /** Statistics that it reports at the end. In `records.parquet` as JSON: each program has other names. */
  statistics: { [key: string]: Json };
};

/** One of several paths: what of the packets of all flows took it. */
export type PathResult = {
  /** Its name in the scenario. */
  name: string;
  /** Packets sent over it towards the client. */
  forward_packets: number;
  /** Bytes of these IP packets. */
  forward_bytes: number;
  /** Their share of the bytes that were sent towards the client over all paths. Null where none was. */
  forward_share: number | null;
  /** Those that a queue dropped. */
  forward_queue_drops: number;
  /** Those that the link lost. */
  forward_losses: number;
  /** Packets sent over it towards the server. */
  return_packets: number;
  /** Bytes of these IP packets. */
  return_bytes: number;
  /** Their share of the bytes that were sent towards the server over all paths. Null where none was. */
  return_share: number | null;
  /** Those that a queue dropped. */
  return_queue_drops: number;
  /** Those that the link lost. */
  return_losses: number;
  /** When bytes of the files that were new to their receiver first arrived over it, of the flow that is measured; from the start, as other times. After a migration, the second path's less the first path's `data_last_s` is the time to recover. Null where none did, or that is not known. */
  data_first_s: number | null;
  /** When they last did. Null as above. */
  data_last_s: number | null;
};

/** A hop, between two neighbours of client, middleboxes and server: the counts of its links for the packets of all flows, and the measures of the flow that is measured, as far as it could be decoded. */
export type HopResult = {
  /** The neighbour on the client's side. */
  from: string;
  /** The neighbour on the server's side. */
  to: string;
  /** IP packets sent towards the client, drops and losses included. */
  forward_packets: number | null;
  /** Bytes of the IP packets sent towards the client. */
  forward_bytes: number | null;
  /** Packets towards the client that a queue dropped. Null also over a real link, where what a queue drops is one of the losses. */
  forward_queue_drops: number | null;
  /** Packets marked with Congestion Experienced by a queue (RFC 3168), on the way towards the client; they were delivered. Null also over a real link. */
  forward_marked: number | null;
  /** Packets that arrived at the client behind a packet of their flow that was sent later (RFC 4737, section 3). Their share of the packets that arrived is the reordered ratio. */
  forward_reordered: number | null;
  /** The largest extent of a reordered packet towards the client: how many arrived from the first one that was sent later until it came itself (RFC 4737, section 4.2); 0 if none was reordered. */
  forward_reorder_extent: number | null;
  /** The mean extent of the reordered packets towards the client (RFC 4737, section 4.2). Null none was reordered. */
  forward_reorder_extent_mean: number | null;
  /** Further arrivals at the client of packets that had arrived (RFC 5560): a link made copies of them. They count as no packets of their own, and none of them as lost. Null also over a real link, where a capture may show a packet twice that arrived once. */
  forward_duplicated: number | null;
  /** Packets towards the client that the link lost; over a real link, whoever dropped them. */
  forward_losses: number | null;
  /** Packets that sources of cross traffic sent towards the client, on all links of the hop. Null the links have no sources, or their packets were not seen. */
  forward_source_packets: number | null;
  /** Bytes of the IP packets that sources sent towards the client. Null the links have no sources, or their packets were not seen. */
  forward_source_bytes: number | null;
  /** Bytes of the packets of sources that came out where their link ends, towards the client. Null the links have no sources, or their packets were not seen. */
  forward_source_delivered_bytes: number | null;
  /** Packets of sources towards the client that a queue dropped or the link lost. Null the links have no sources, or their packets were not seen. */
  forward_source_lost: number | null;
  /** IP packets sent towards the server, drops and losses included. */
  return_packets: number | null;
  /** Bytes of the IP packets sent towards the server. */
  return_bytes: number | null;
  /** Packets towards the server that a queue dropped. */
  return_queue_drops: number | null;
  /** Packets marked with Congestion Experienced on the way towards the server. Null also over a real link. */
  return_marked: number | null;
  /** Packets that arrived at the server behind a packet of their flow that was sent later (RFC 4737, section 3). Their share of the packets that arrived is the reordered ratio. */
  return_reordered: number | null;
  /** The largest extent of a reordered packet towards the server: how many arrived from the first one that was sent later until it came itself (RFC 4737, section 4.2); 0 if none was reordered. */
  return_reorder_extent: number | null;
  /** The mean extent of the reordered packets towards the server (RFC 4737, section 4.2). Null none was reordered. */
  return_reorder_extent_mean: number | null;
  /** Further arrivals at the server of packets that had arrived (RFC 5560): a link made copies of them. They count as no packets of their own, and none of them as lost. Null also over a real link, where a capture may show a packet twice that arrived once. */
  return_duplicated: number | null;
  /** Packets towards the server that the link lost; over a real link, whoever dropped them. */
  return_losses: number | null;
  /** Packets that sources of cross traffic sent towards the server, on all links of the hop. Null the links have no sources, or their packets were not seen. */
  return_source_packets: number | null;
  /** Bytes of the IP packets that sources sent towards the server. Null the links have no sources, or their packets were not seen. */
  return_source_bytes: number | null;
  /** Bytes of the packets of sources that came out where their link ends, towards the server. Null the links have no sources, or their packets were not seen. */
  return_source_delivered_bytes: number | null;
  /** Packets of sources towards the server that a queue dropped or the link lost. Null the links have no sources, or their packets were not seen. */
  return_source_lost: number | null;
  /** Requests for capacity that the terminal sent. Null no return link of the hop is a carrier of DVB-RCS2, or requests were not counted. */
  return_capacity_requests: number | null;
  /** Those of them that were lost. Null no return link of the hop is a carrier of DVB-RCS2, or requests were not counted. */
  return_capacity_requests_lost: number | null;
  /** Those that were denied. Null no return link of the hop is a carrier of DVB-RCS2, or requests were not counted. */
  return_capacity_requests_denied: number | null;
  /** Those that collided with another terminal's. Null no return link of the hop is a carrier of DVB-RCS2, or requests were not counted. */
  return_capacity_requests_collided: number | null;
  /** The mean time from a request to the superframe in which capacity was assigned for it, over those that were received. Null nothing was assigned for any. */
  return_grant_wait_mean_ms: number | null;
  /** The longest such time. Null nothing was assigned for any. */
  return_grant_wait_max_ms: number | null;
  /** Connections that completed a handshake on this hop. */
  connections: number | null;
  /** The smallest RTT sample of the hop's own sender. */
  rtt_min_ms: number | null;
  /** The median RTT sample of the hop's own sender. */
  rtt_median_ms: number | null;
  /** Of the stream bytes that this sender sent. */
  retransmitted_share: number | null;
  /** The rules that found something wrong on this hop. */
  findings: string[];
};

/** A tunnel: what went through it, counted where it enters and leaves, and what that took on the link of the satellite (`forward_bytes` and `return_bytes` of the record). Both count from the moment at which all flows may begin: what set it up is not in them. */
export type TunnelResult = {
  /** `wireguard`, `openvpn-udp` or `openvpn-tcp`. */
  kind: string;
  /** Where it ended, from the client: `gateway` or `server`. */
  to: string;
  /** The version of its program. */
  version: string;
  /** The largest IP packet that it took. */
  mtu_bytes: number;
  /** The congestion control of its own connection, of a tunnel over TCP; else empty. */
  congestion_control: string;
  /** From the start of its programs until a packet had gone through and another one back. */
  setup_s: number;
  /** IP packets of the flows towards the client, as they were given to the tunnel, or to the path behind it. */
  forward_packets: number;
  /** Their bytes. */
  forward_bytes: number;
  /** The same towards the server. */
  return_packets: number;
  /** Their bytes. */
  return_bytes: number;
  /** Packets of these, both ways, that did not come out at the other end: dropped or lost by the link, or dropped by the tunnel's own programs and devices. */
  lost_packets: number;
  /** Bytes on the link that were not those of packets inside: headers, padding, and the tunnel's own messages and retransmissions. Negative where it dropped more than that before the link. */
  overhead_bytes: number;
  /** The same as a share of all bytes on the link. Null where there were none. */
  overhead_share: number | null;
  /** CPU time of its program on the client. */
  cpu_client_s: number;
  /** CPU time of its program at the other end. */
  cpu_far_s: number;
};

/** What the page of a cell shows of each iteration. */
export type ShownRecord = Pick<
  TrialRecord,
  | "trial"
  | "iteration"
  | "seed"
  | "outcome"
  | "detail"
  | "transport"
  | "handshake_s"
  | "ttfb_s"
  | "completion_s"
  | "transfer_s"
  | "goodput_bps"
  | "efficiency"
  | "share_of_limit"
  | "rs_s"
  | "fcp_s"
  | "lcp_s"
  | "speed_index_s"
  | "dcl_s"
  | "plt_s"
  | "requests_at_once"
  | "startup_s"
  | "stalls"
  | "stalled_s"
  | "media_rate_bps"
  | "rate_changes"
  | "latency_s"
  | "frames"
  | "late_frames"
  | "lost_frames"
  | "in_time_share"
  | "frame_age_median_s"
  | "frame_age_p95_s"
  | "frame_age_p99_s"
  | "frame_age_max_s"
  | "virtual_s"
  | "wall_s"
  | "cpu_client_s"
  | "cpu_server_s"
  | "forward_packets"
  | "forward_bytes"
  | "forward_queue_drops"
  | "forward_marked"
  | "forward_reordered"
  | "forward_reorder_extent"
  | "forward_duplicated"
  | "forward_losses"
  | "return_packets"
  | "return_bytes"
  | "return_queue_drops"
  | "return_marked"
  | "return_reordered"
  | "return_reorder_extent"
  | "return_duplicated"
  | "return_losses"
  | "forward_queueing_median_ms"
  | "forward_queueing_p99_ms"
  | "return_queueing_median_ms"
  | "return_queueing_p99_ms"
  | "forward_ect"
  | "forward_ce_echoed"
  | "forward_ce_answered"
  | "received_step_s"
  | "received_bytes"
  | "jain_index"
  | "packet_log_hash"
  | "began"
  | "tries"
  | "clock_offset_ms"
  | "clock_error_ms"
  | "one_way_difference_ms"
  | "probe_rtt_ms"
  | "probe_loss_share"
>;
