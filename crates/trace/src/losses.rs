//! `bentpipe-trace losses`: what was lost between the two sides of captures, as JSON.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bentpipe_analysis::losses::Losses;
use serde::Serialize;

use crate::captures;
use crate::input;

/// The answer.
#[derive(Serialize)]
struct Answer {
    /// Names of the captures, without folders.
    files: Vec<String>,
    /// Why captures could not be read to their ends.
    errors: Vec<String>,
    #[serde(flatten)]
    losses: Losses,
}

/// Prints the losses of the connections that were captured at both sides. Of a capture that cannot
/// be read to its end, what comes before that counts, and the exit code is 1.
pub fn print(files: &[PathBuf], key_log: Option<&Path>) -> Result<ExitCode, Box<dyn Error>> {
    let names: Vec<String> = files.iter().map(|file| input::name(file)).collect();
    // Packets are the same at both sides whether they can be decrypted or not; secrets join
    // connections whose beginning was not captured.
    let (captured, errors) = captures::read(files, key_log, &names, &|_| {})?;
    if captured.connections.is_empty() {
        return Err(no_connection(&names, key_log).into());
    }
    let losses = Losses::of(&captured.connections);
    if losses.connections == 0 {
        return Err(one_sided(&names).into());
    }
    for error in &errors {
        eprintln!("error: {error}");
    }
    let failed = !errors.is_empty();
    let mut out = io::BufWriter::new(io::stdout().lock());
    serde_json::to_writer(
        &mut out,
        &Answer {
            files: names,
            errors,
            losses,
        },
    )?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(ExitCode::from(u8::from(failed)))
}

fn no_connection(names: &[String], key_log: Option<&Path>) -> String {
    let names = names.join(", ");
    let why =
        "no connection of QUIC or TCP in it that begins with its handshake, nor QUIC on port 443";
    if key_log.is_some() {
        return format!("{names}: {why}, nor a connection of QUIC that is in the key log");
    }
    let hint = "hint: --keylog KEYS finds one on another port that begins midway";
    format!("{names}: {why}\n{hint}")
}

fn one_sided(names: &[String]) -> String {
    let (what, hint) = if names.len() > 1 {
        (
            "no connection is in both of them",
            "they have to be of the same connections, captured at the same time",
        )
    } else {
        (
            "its connections were captured at one place, which does not see what is lost",
            "give the capture of the other side as well: CLIENT.pcap SERVER.pcap",
        )
    };
    format!("{}: {what}\nhint: {hint}", names.join(", "))
}
