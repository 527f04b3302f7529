//! The messages of `endpoints/CONTRACT.md`, for both sides of the pipe.
//!
//! Bytes from a pipe are hostile: decoding checks every length before it believes it and returns an
//! error, never panics, and never allocates more than a small multiple of the bytes that are there.

mod encoding;
mod messages;
mod statistics;

pub use encoding::{
    Arrival, BODY_LIMIT, BYE, ContractError, Datagram, FINISH, HEADER_LEN, HELLO, NEVER, PATH_BITS,
    PATH_SHIFT, PAYLOAD_LIMIT, RAN, READY, RUN, Ran, RanMessage, Run, SERVER_SIDE, SHARED,
    SHARED_FROM, decode_header, encode_header, encode_message, encode_run, message_name, put_run,
    put_run_body, run_body_len,
};
pub use messages::{
    Bye, CONTRACT, H3, HQ_INTEROP, Hello, HelloPath, ProxyBye, ProxyHello, Ready, RequestReport,
    SharedMemory, TunnelEnds, hq_interop,
};
pub use statistics::{STATISTICS_LIMIT, Statistics};
