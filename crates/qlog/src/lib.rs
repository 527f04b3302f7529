//! Reads qlog, the log format of QUIC endpoints, of all generations that are in use.
//!
//! | generation | says | events are named | since |
//! |---|---|---|---|
//! | draft-00, draft-01 | `qlog_version: "draft-01"` | by columns, which `event_fields` names | 2019 |
//! | draft-02, 0.1 | `qlog_version: "draft-02"` | by `category` and `type`, or `transport:packet_sent` | 2020 |
//! | 0.3 | `qlog_version: "0.3"` | `transport:packet_sent` | 2021 |
//! | 0.4 | `qlog_version: "0.4"` | `quic:packet_sent` | 2023 |
//! | current | `file_schema: "urn:ietf:params:qlog:file:…"` | `quic:packet_sent` | 2024 |
//!
//! Source: draft-marx-qlog-main-schema-00 to -03, draft-ietf-quic-qlog-main-schema-01 to -14, and
//! the definitions of events beside them. The files are contained JSON, JSON text sequences (RFC
//! 7464), or lines of JSON; each may be printed over many lines. One that says no version is read
//! as what its first event looks like; it may be but a trace or a list of events.
//!
//! [`Reader`] gives [`Event`]s one by one out of the file's bytes, with the names of the current
//! schema; what their data holds stays JSON text until someone asks. [`CongestionLog`] collects
//! what a congestion controller said about itself, and [`convert`] writes 0.3, the newest that qvis
//! opens.
//!
//! The published crates have types for what their stack writes, and refuse what others do: no serde
//! structure fits quinn's, quic-go's and aioquic's files at once. Reading needs few members, and is
//! our own for that.

mod clock;
mod congestion;
pub mod convert;
mod error;
mod event;
mod frame;
mod names;
mod outline;
mod reader;
mod records;
mod scan;
mod time;
mod trace;

pub use clock::Clock;
pub use congestion::{CongestionLog, Phase, Sample};
pub use error::QlogError;
pub use event::Event;
pub use outline::Outline;
pub use reader::Reader;
pub use records::Format;
pub use time::{milliseconds, of_date};
pub use trace::{Generation, Trace, VantagePoint};
