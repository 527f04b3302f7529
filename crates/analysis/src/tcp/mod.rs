//! TCP, beside which QUIC is held.
//!
//! Source: RFC 9293 (segments), RFC 7323 (timestamps, window scale), RFC 2018 (SACK), RFC 2883
//! (D-SACK), RFC 3168 (ECN), RFC 9768 (accurate ECN), RFC 6298 section 3 (Karn's algorithm),
//! RFC 8684 (MPTCP). Where the RFCs have no word, the definitions are those of Wireshark's
//! `tcp.analysis` (keep-alive, zero window probe).
//!
//! **Model.** A [`Recorder`] per place tells connections apart and keeps the
//! [`Header`](bentpipe_wire::tcp::Header) of each segment. When places have been joined, the
//! traffic that was captured is translated to the terms of QUIC:
//!
//! | TCP | here |
//! |---|---|
//! | segment | packet; its number is its ordinal among all segments of its sender, by the time of sending. What was sent is known only at the sender's side: a capture of the far end counts what arrived. |
//! | payload, FIN | `Frame::Stream` of stream 0, from offset 0 behind the SYN, 64 bits wide; where TLS was read, of the application data alone, and `Frame::Crypto` of the rest |
//! | ACK field, SACK blocks | `Frame::Ack`: the numbers of the segments covered by this and earlier ACKs, down to the lowest that is new to their sender |
//! | ACK field + window | `Frame::MaxStreamData` of stream 0; absent where the window scale is not known, and of MPTCP with several subflows |
//! | timestamp echo, Karn | `Frame::Echo`: the segment of which an ACK gives an RTT sample; absent where it gives none |
//! | SYN and SYN-ACK that set up ECN (RFC 3168 section 6.1.1), or accurate ECN (RFC 9768) | beside `SYN`, `Frame::Other` of the names `ECN_SETUP`, `ACCURATE_ECN_SETUP` |
//! | ECE, CWR of other segments, without accurate ECN | `Frame::Other` of the names `ECE`, `CWR` |
//! | SYN, RST, keep-alive, zero window probe, D-SACK | `Frame::Other` of the names `SYN`, `RST`, `KEEP_ALIVE`, `ZERO_WINDOW_PROBE`, `DSACK` |
//!
//! Every segment has an ACK field and a window. One that takes sequence space and repeats both from
//! an earlier one that arrived has no frames of them, so that ACKs can be counted.
//!
//! **A new connection** begins with a SYN that has another initial sequence number than the one
//! before on the same addresses and ports. The client is who sent it. Of a connection that was
//! running when the capture began, the lower port is the server's, and offset 0 is the first byte
//! that was captured.
//!
//! **What ACKs acknowledge.** TCP acknowledges bytes, and bytes may have been sent more than once.
//! An ACK covers the segments whose bytes it covers and that had arrived when it was sent; where
//! the receiver's side was not captured: that had been sent when it came. So of two-sided captures,
//! a lost segment is never acknowledged, though its bytes are. RTT samples, however, are those that
//! the sender can take: none if a segment newly covered has bytes that were sent twice, unless the
//! timestamp that is echoed names one of those newly covered.
//!
//! **Offloading.** Hosts hand the network card segments beyond the MSS and get such from it. Where
//! both SYNs gave the MSS, such a segment counts as the ones that are on the wire, each with its
//! share of the bytes and all at the time of the whole; otherwise it is kept as it is, and does not
//! match what the other side saw of it.
//!
//! **Subflows of MPTCP** are connections of TCP, each with a part of the data. TLS is read from the
//! data that the mappings of all subflows put together, and each subflow has the application data
//! that it carries; what was sent over two is in both. Its stream ends with the last of its data,
//! not with its FIN, which may come later. Which connection a subflow joins is known by the token
//! in its SYN, if the first subflow's SYNs were captured. Windows count from the connection's
//! data, not from the subflow's, and are left out where several subflows carried data. A connection
//! that falls back to TCP (RFC 8684 section 3.7) has its data in the order of the subflow from
//! there on: from its first data if these have no mapping, or from a mapping of length 0.
//!
//! **Joining.** A segment is the same at two places if sequence number, ACK, flags, window, SACK,
//! timestamps and IPv4 identification are. Addresses and ports may be translated between, and
//! captures may cut payloads. Without timestamps and over IPv6, a retransmission cannot be told
//! from the original: then they are matched in order. A proxy, or a middlebox that writes other
//! sequence numbers, makes two connections of one.

mod acknowledged;
mod content;
mod placement;
mod recorder;
mod sequence;
mod subflows;
mod translate;

pub use recorder::Recorder;
pub(crate) use translate::translate;
