//! Drives one endpoint program alone through a recorded conversation, to find out why it failed.

use std::error::Error;
use std::fs;
use std::io::{Write, stdout};
use std::path::Path;
use std::time::Duration;

use bentpipe_endpoint::contract;

use crate::child::Child;
use crate::job::Role;

/// Long enough to look around in a debugger.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Sends the frames in `file` to `command`, one after each answer, and prints what comes back.
pub fn replay(file: &Path, command: &[String]) -> Result<(), Box<dyn Error>> {
    let frames = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut child = Child::start(Role::Client, command, PATIENCE)?;
    let mut out = stdout().lock();
    let mut rest = &frames[..];
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
            let ran = contract::Ran::decode(&body)?;
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
