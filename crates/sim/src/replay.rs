//! Drives one endpoint program alone through a recorded conversation, to find out why it failed.

use std::error::Error;
use std::fs;
use std::io::{Write, stderr, stdout};
use std::path::Path;
use std::time::Duration;

use bentpipe_endpoint::contract::{self, Ran};
use bentpipe_link::HostName;

use crate::child::Child;

/// Long enough to look around in a debugger.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Sends the frames in `file` to `command`, one after each answer, and prints what comes back and, at the end, what the program
/// itself printed. A client's folder for downloads was that of the trial and is gone: it may fail where it stores a file.
pub fn replay(file: &Path, command: &[String]) -> Result<(), Box<dyn Error>> {
    let frames = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let mut hosts = HostName::ALL.into_iter();
    let host = hosts.find(|host| stem.ends_with(host.name()));
    let (host, scratch) = (host.unwrap_or(HostName::Client), tempfile::tempdir()?);
    let mut child = Child::start(host, command, scratch.path(), PATIENCE)?;
    let result = converse(file, &frames, &mut child);
    stderr().write_all(&child.exit().log)?;
    result
}

fn converse(file: &Path, frames: &[u8], child: &mut Child) -> Result<(), Box<dyn Error>> {
    let mut out = stdout().lock();
    let mut rest = frames;
    while !rest.is_empty() {
        let (length, kind) = contract::decode_header(rest)?;
        let (frame, behind) = rest
            .split_at_checked(contract::HEADER_LEN + length)
            .ok_or_else(|| format!("{}: the last frame is cut short", file.display()))?;
        rest = behind;
        child.send(frame.to_vec())?;
        let answer = match kind {
            contract::HELLO => contract::READY,
            contract::RUN => contract::RAN,
            contract::FINISH => contract::BYE,
            other => {
                return Err(
                    format!("{}: no frame to a program has type {other}", file.display()).into(),
                );
            }
        };
        let body = child.receive(answer)?;
        if answer == contract::RAN {
            let ran = Ran::decode_of_proxy(&body)?;
            let (count, wake) = (ran.departures.len(), ran.next_wake);
            writeln!(
                out,
                "RAN next_wake {wake} done {} departures {count}",
                ran.done
            )?;
        } else {
            writeln!(
                out,
                "{} {}",
                contract::frame_name(answer),
                String::from_utf8_lossy(&body)
            )?;
        }
    }
    Ok(())
}
