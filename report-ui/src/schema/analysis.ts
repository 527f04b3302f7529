// Analysis: generated from schemas/analysis.toml by `make schemas`.

/** Where packets were captured. */
export type Sides = "both" | "client" | "server" | "unknown";

/** A transport protocol. */
export type Protocol = "quic" | "tcp";

/** Whether a flaw is there. */
export type Verdict = "yes" | "no" | "not_sure";

/** The behaviour of the spin bit in 1-RTT packets (RFC 9000 section 17.4). */
export type SpinBit = "absent" | "constant" | "random" | "spins";

/** A kind of plot, as `bentpipe plot --kind` names it. */
export type PlotKind = "offset" | "number" | "size" | "rate" | "in_flight" | "rtt" | "acks" | "delay";

/** The contents of captures. */
export type Summary = {
  /** The number of this file's format, as at the top of this page. */
  format: number;
  /** The names of the captures, without folders. */
  files: string[];
  /** Where the connection with the most packets was captured. */
  sides: Sides;
  /** Packets that were left out, by reason. */
  undecoded: Undecoded[];
  /** Errors that kept captures from being read to their ends. */
  errors: string[];
  /** The connections, in the order of their first packets. */
  connections: Connection[];
};

/** Packets that were left out for the same reason. */
export type Undecoded = {
  /** Their number. */
  count: number;
  /** Their kind, and the reason. */
  what: string;
  /** The frame of the first of them, counted from 1 within its file. */
  first_frame: number;
};

/** A connection of QUIC or TCP. */
export type Connection = {
  /** Its number, from 0, which its packets have in `packets.parquet`. */
  connection: number;
  /** Its transport protocol. */
  protocol: Protocol;
  /** The version of QUIC: `1`, `2`, or a draft, as `draft-29`. Null of TCP, or the handshake was not captured. */
  version: string | null;
  /** Address and port of the end that opened it. */
  client: string;
  /** Address and port of the other end. */
  server: string;
  /** Where it was captured. */
  vantage: Sides;
  /** When its first packet was seen, with nanoseconds, which a JSON number would not hold. */
  start_unix_s: string;
  /** The correction that was subtracted from times of the server's side, where clocks are certain to differ; else 0. */
  server_clock_ahead_s: number;
  /** The number of its packets. */
  packets: number;
  /** The flow control limits in each end's transport parameters. Absent where none were seen. */
  transport_parameters?: InitialCredits | null;
  /** How it was established. Absent of TCP without TLS, and of QUIC where nothing of it was captured. */
  establishment?: Establishment | null;
  /** Its measures. */
  metrics: Metrics;
  /** Measures that need no secrets. Absent from analyses of Bentpipe 0.2 and before. */
  passive?: Passive | null;
  /** Whether it has 1-RTT packets, none of which could be decrypted. Absent from analyses of Bentpipe 0.2 and before. */
  sealed?: boolean | null;
  /** Events that happen once. */
  events: Event[];
  /** The verdict of each rule. */
  findings: Finding[];
  /** Values that endpoints logged. Absent if none logged its congestion window. */
  qlog?: LoggedWindows | null;
};

/** The initial flow-control limits of both ends. */
export type InitialCredits = {
  /** The limits that the client gave. Null not seen. */
  client: InitialCredit | null;
  /** The limits that the server gave. Null not seen. */
  server: InitialCredit | null;
};

/** Limits for the peer of the end that gives them (RFC 9000 section 18.2). Those that are not given are 0. */
export type InitialCredit = {
  /** Over all streams. */
  initial_max_data: number;
  /** On a bidirectional stream that the giving end opened. */
  initial_max_stream_data_bidi_local: number;
  /** On one that its peer opened. */
  initial_max_stream_data_bidi_remote: number;
  /** On a unidirectional stream of its peer. */
  initial_max_stream_data_uni: number;
};

/** The beginning of a QUIC connection. */
export type Establishment = {
  /** Whether the client completed the handshake. */
  complete: boolean;
  /** Whether the server sent a Retry. */
  retry: boolean;
  /** How often the ClientHello was sent: the most times that any byte of it was sent; 0 if it was not seen. */
  client_hellos: number;
  /** Whether the server accepted a ticket of the client: `pre_shared_key` in its ServerHello, which needs no secrets. Null not seen. */
  resumed: boolean | null;
  /** Whether the server sent a Certificate. Null not seen, or not decrypted. */
  certificate: boolean | null;
  /** Bytes of stream data in 0-RTT packets of the client, retransmissions included; over TCP in TLS's early data, without these. Null some of these could not be decrypted. */
  zero_rtt_bytes: number | null;
  /** Whether the server acknowledged one of these packets, or its EncryptedExtensions have `early_data`; over TCP the latter. Null there are no such packets, or they could not be decrypted. */
  zero_rtt_accepted: boolean | null;
};

/** The measures of a connection, for the reply. Only if `--link` says `"sender": "client"`, as it does for a trial of `upload`, they are of the client's data. Times are read at the client, or of a capture of the server's side alone there: they then lack the ways between. */
export type Metrics = {
  /** From the client's first packet until it sends its Finished. */
  handshake_s: number | null;
  /** Until the first packet with data of the reply arrives. Null also of an upload, whose answer has no data. */
  ttfb_s: number | null;
  /** Until no byte of the reply is missing; of an upload, until the end of the last answer. */
  completion_s: number | null;
  /** From the first packet with data of the files to their last byte, where they arrive. */
  transfer_s: number | null;
  /** From the client's first packet until the first 1, 2, 5, 10, 20, 50, 100, 200, 500 and 1000 million bytes of the reply, or of an upload, were there, none of them missing, as far as they were. Empty with several streams or connections. */
  first_mb_s: number[];
  /** 8 · `stream_bytes`, of an upload bytes of the files, / `transfer_s`. Null also above the link's rate: the files fit into a flight. */
  goodput_bps: number | null;
  /** Distinct bytes of the server's streams that arrived. Null they could not be decrypted. */
  stream_bytes: number | null;
  /** Distinct bytes of the client's streams that were sent and not lost. Null they could not be decrypted. */
  upload_bytes: number | null;
  /** From the server to the client. */
  forward: OneWay;
  /** From the client to the server. */
  return: OneWay;
  /** The shortest RTT sample (RFC 9002) of the `sender` of `--link`, else of the end that sent more data. */
  rtt_min_ms: number | null;
  /** The median. */
  rtt_median_ms: number | null;
  /** The longest. */
  rtt_max_ms: number | null;
  /** The most that this end had in flight. */
  in_flight_max_bytes: number | null;
};

/** Packets and bytes in one direction. */
export type OneWay = {
  /** QUIC packets (TCP segments). */
  packets: number;
  /** The datagrams that carried them. */
  datagrams: number;
  /** Bytes of IP packets. */
  ip_bytes: number;
  /** Bytes of stream data, retransmissions included. Null not decrypted. */
  stream_bytes: number | null;
  /** Bytes of stream data that its sender had sent before. Null captured at the receiver's side alone, where what was lost does not pass. */
  retransmitted_bytes: number | null;
  /** `retransmitted_bytes` / `stream_bytes`. */
  retransmitted_share: number | null;
  /** Those that left the sender's side and did not reach the receiver's. Null not captured at both sides. */
  lost_packets: number | null;
  /** `lost_packets` / `packets`. */
  lost_share: number | null;
  /** Those that arrived after one of their packet number space with a larger number; where numbers could not be decrypted, after one that had been sent later. Null not captured at the receiver's side. */
  reordered_packets: number | null;
  /** Packets that passed the same place once more; they count nowhere else. */
  duplicates: number;
  /** The shortest time from the sender's side to the receiver's, as exact as the two clocks. Null not captured at both sides. */
  one_way_delay_min_ms: number | null;
  /** The median. */
  one_way_delay_median_ms: number | null;
  /** The longest. */
  one_way_delay_max_ms: number | null;
  /** The mean size of the IP packets. */
  mean_datagram_bytes: number | null;
  /** The size of the largest IP packet. */
  largest_datagram_bytes: number | null;
  /** Packets with an ACK frame that went this way. */
  acks_sent: number;
  /** `acks_sent` of the other direction / packets with stream data of this. */
  acks_per_data_packet: number | null;
  /** IP bytes at the side of the files' receiver during the transfer, after its first packet. Where the transfer does not end within the capture, until it ends; without secrets, from the first 1-RTT packet of the end that sent more bytes to its last. */
  mean_rate_bps: number | null;
  /** The use of Explicit Congestion Notification. */
  ecn: EcnUse;
};

/** The use of ECN by the sender and the receiver of one direction: the codepoints that were set, the marks that arrived, those that were reported, and the sender's answer. */
export type EcnUse = {
  /** The codepoint that most of the sender's packets with one had, `ECT(0)` or `ECT(1)` (RFC 3168 section 5); `none` if no packet had one. Packets of the handshake do not count. Null not captured at the sender's side. */
  codepoint: string | null;
  /** The share of the sender's packets with stream data that had ECT(0) or ECT(1). Null also without such packets. */
  capable_share: number | null;
  /** Packets that arrived with Congestion Experienced; of QUIC, those of one datagram count each. Null not captured at the receiver's side. */
  ce_arrived: number | null;
  /** Marks that the receiver reported. QUIC: the largest CE count in its ACK frames, summed over packet number spaces (RFC 9000 section 19.3.2). TCP: the episodes in which it set ECN-Echo, each from a mark to the sender's CWR (RFC 3168 section 6.1.3). Null accurate ECN of TCP (RFC 9768), whose counters are not read. */
  ce_echoed: number | null;
  /** Round trips in which the sender received reports of marks, each until a packet sent after the first report of one was acknowledged (RFC 9002 section 7.3.2); without those in which new data ended. Null not captured at the sender's side; accurate ECN of TCP. */
  ce_rounds: number | null;
  /** Those in which the sender slowed down. TCP says so by CWR (RFC 3168 section 6.1.2). Of QUIC, the most bytes in flight in the second half of the round trip were at least a full-sized packet below the most in as long a time before it. Null as `ce_rounds`. */
  ce_answered: number | null;
};

/** Measures that need no secrets (RFC 9312): from the times and sizes of datagrams, the Initial packets, which anybody can read, and the bits of short headers that are not encrypted. */
export type Passive = {
  /** The server name (SNI) in the client's ClientHello. Null not seen, or it named none. */
  server_name: string | null;
  /** The application protocols that the client offered there, the best first. */
  alpn: string[];
  /** The connection IDs that became known, of QUIC. Those that ends issue later are encrypted. */
  connection_ids: ConnectionIds;
  /** Addresses that ends used after their first. */
  later_addresses: AddressChange[];
  /** The round trip of the handshake, the time that both ends took to answer included: from an Initial packet to the one that acknowledges it; of TCP from a segment to the first that gives an RTT sample of it. Null not captured where that can be seen. */
  handshake_rtt_ms: number | null;
  /** The behaviour of the spin bit. Null of TCP. */
  spin_bit: SpinBit | null;
  /** RTT by the spin bit, delays of both ends included. */
  spin_rtt: RttSpread;
  /** RTT samples by the spin bit that were left out, since no end had anything to send meanwhile. */
  spin_rejected: number;
  /** RTT by matching packets that passed both sides: of a packet of the end that sent more bytes and the next one back, the times on the way, without the delay of the far end. Without samples where one side was captured. */
  matched_rtt: RttSpread;
  /** Losses by the loss bits (RFC 9506) in the packets of each end. */
  loss_bits: LossBitsOfEnds;
  /** Bursts of the datagrams of each end. */
  bursts: BurstsOfEnds;
  /** IP bytes of the server / IP bytes of the client. Null the client sent none. */
  bytes_ratio: number | null;
  /** Datagrams of the server / datagrams of the client. Null the client sent none. */
  datagrams_ratio: number | null;
};

/** Connection IDs, in hexadecimal. */
export type ConnectionIds = {
  /** Those in packets to the client. One without bytes is an empty text. */
  client: string[];
  /** Those in packets to the server; the first is the one that the client chose. */
  server: string[];
};

/** An end migrated, or a NAT gave it another address. */
export type AddressChange = {
  /** `client` or `server`. */
  end: string;
  /** Address and port. */
  address: string;
  /** When a packet from it was first seen. */
  at_s: number;
};

/** RTT samples. */
export type RttSpread = {
  /** Their number. */
  samples: number;
  /** The shortest. Null there are none. */
  min_ms: number | null;
  /** The median. Null there are none. */
  median_ms: number | null;
  /** The longest. Null there are none. */
  max_ms: number | null;
};

/** Loss bits of both ends. */
export type LossBitsOfEnds = {
  /** Those in packets of the client. Null they show none. */
  client: LossBits | null;
  /** Those in packets of the server. Null they show none. */
  server: LossBits | null;
};

/** Losses by the square bit and the loss event bit of an end's short headers. */
export type LossBits = {
  /** Packets of complete periods of the square bit. */
  square_packets: number;
  /** Packets of these periods that did not arrive: lost between their sender and the place of capture. */
  upstream_lost_packets: number;
  /** `upstream_lost_packets` / packets of these periods. */
  upstream_lost_share: number;
  /** Packets with the loss event bit: one for each packet that the sender declared lost, on the whole path. */
  reported_lost_packets: number;
  /** `reported_lost_packets` / packets with a short header. */
  reported_lost_share: number;
};

/** Bursts of both ends. */
export type BurstsOfEnds = {
  /** Bursts of the client's datagrams. */
  client: Bursts;
  /** Bursts of the server's datagrams. */
  server: Bursts;
};

/** Datagrams (TCP: segments) less than 1 ms apart, at the first place of capture: at their sender's side, or behind a bottleneck, which changes them. */
export type Bursts = {
  /** Their number, those of one datagram included. */
  bursts: number;
  /** Datagrams of the longest burst. */
  longest_datagrams: number;
  /** Bytes of the longest burst's IP packets. */
  longest_bytes: number;
  /** When the longest burst began. Null there is none. */
  longest_at_s: number | null;
  /** Bytes in bursts of more than 10 datagrams / all bytes. */
  long_share: number;
};

/** An event that happens once. */
export type Event = {
  /** `handshake_complete`, `first_byte`, `slow_start_end` or `last_byte`. */
  name: string;
  /** Its time. */
  at_s: number;
};

/** The verdict of a rule on a connection. */
export type Finding = {
  /** The name of the rule, as in [the list of rules](findings.md). */
  rule: string;
  /** Whether the flaw is there. */
  verdict: Verdict;
  /** The name of the flaw, for people. */
  title: string;
  /** One plain sentence. */
  text: string;
  /** The numbers that it rests on. */
  evidence: Evidence[];
  /** The plot that shows it. Null nowhere. */
  plot: PlotPlace | null;
};

/** A number that a finding rests on. */
export type Evidence = {
  /** The meaning of the number. */
  what: string;
  /** The time to which it applies, or from which on. */
  at_s: number;
  /** The end of that time, of something that lasted. Null it took none. */
  until_s: number | null;
  /** The number. */
  value: number;
  /** Its unit. */
  unit: string;
};

/** A part of a plot. */
export type PlotPlace = {
  /** The kind of plot. */
  kind: PlotKind;
  /** Its beginning. */
  from_s: number;
  /** Its end. */
  to_s: number;
};

/** Values that the ends of a connection logged. */
export type LoggedWindows = {
  /** Absent if the client logged no congestion window. */
  client?: Logged | null;
  /** Absent if the server logged none. */
  server?: Logged | null;
};

/** Values that an end logged. */
export type Logged = {
  /** Its congestion window. */
  cwnd: WindowSeries;
};

/** A value from each of these times on, thinned out. */
export type WindowSeries = {
  /** When it changed. */
  time_s: number[];
  /** The new value. */
  bytes: number[];
};
