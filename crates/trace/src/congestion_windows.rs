//! Congestion windows out of the qlog files of endpoints, on the clocks of captured connections.
//!
//! A log whose clock is that of the Unix epoch belongs to the connection that began next to its
//! first packet. One whose clock is not named is set by its first packet, and belongs to the
//! connection with the most packets: qlog names connections in ways that differ from stack to
//! stack.

use std::path::PathBuf;

use bentpipe_analysis::connection::Connection;
use bentpipe_analysis::{CongestionWindow, CongestionWindows};
use bentpipe_qlog::{Clock, CongestionLog, QlogError, Reader, VantagePoint};
use bentpipe_wire::quic::End;

use crate::input;

/// Reads the windows in `files`; what could not be read goes to `errors`. A file that is not there
/// ends it all.
pub fn read(
    files: &[PathBuf],
    connections: &[Connection],
    errors: &mut Vec<String>,
) -> Result<CongestionWindows, String> {
    let mut windows = Vec::new();
    for file in files {
        let content = input::read_part(file)?;
        let mut fail = |why: String| errors.push(format!("{}: {why}", input::name(file)));
        if let Some(error) = content.error {
            fail(error.to_string());
        }
        let (logs, error) = logs(&content.bytes);
        if let Some(error) = error {
            fail(error.to_string());
        }
        for log in logs {
            match window(&log, connections) {
                Ok(window) => windows.extend(window),
                Err(why) => fail(why.to_owned()),
            }
        }
    }
    Ok(CongestionWindows::new(windows))
}

/// The logs of a file, and the first error in it.
fn logs(file: &[u8]) -> (Vec<CongestionLog>, Option<QlogError>) {
    let mut reader = match Reader::new(file) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut logs: Vec<_> = reader.traces().iter().map(CongestionLog::new).collect();
    let mut error = None;
    for event in reader.by_ref() {
        match event {
            Ok(event) => logs[event.trace].add(&event),
            Err(cause) => error = error.or(Some(cause)),
        }
    }
    (logs, error)
}

/// The window in a log. None: the log has none, or there is no connection.
fn window(
    log: &CongestionLog,
    connections: &[Connection],
) -> Result<Option<CongestionWindow>, &'static str> {
    if log.congestion_window.is_empty() {
        return Ok(None);
    }
    if log.outline.groups_alternate {
        return Err("events of several connections alternate in it: which is which cannot be told");
    }
    let end = match log.outline.vantage {
        VantagePoint::Client => End::Client,
        VantagePoint::Server => End::Server,
        VantagePoint::Network | VantagePoint::Unknown => {
            return Err("it does not say whether the client or the server wrote it");
        }
    };
    let first = log.outline.first_packet.ok_or("no packet in it")?;
    let began = |it: &Connection| {
        let mut seen = it.packets.iter().filter_map(|it| it.seen[end as usize]);
        seen.next().unwrap_or(0)
    };
    let start = |it: &Connection| i64::try_from(it.start).unwrap_or(i64::MAX);
    let numbered = connections.iter().enumerate();
    let found = match log.outline.clock {
        Clock::Unix => numbered.min_by_key(|(_, it)| first.abs_diff(start(it))),
        Clock::Unknown => numbered.max_by_key(|(_, it)| it.packets.len()),
    };
    Ok(found.map(|(number, connection)| {
        let zero = match log.outline.clock {
            Clock::Unix => start(connection),
            Clock::Unknown => first - began(connection),
        };
        let samples = log.congestion_window.iter();
        CongestionWindow {
            connection: number,
            end,
            samples: samples.map(|it| (it.time - zero, it.value)).collect(),
        }
    }))
}
