//! The end of an `OpenVPN` tunnel on a host of a trial: it writes a configuration from what it
//! reads on standard input, and becomes `openvpn` with it.
//!
//! Each end has a separate certificate, which the other one knows by its fingerprint
//! (`--peer-fingerprint`, since 2.6). Both are made of the secret that both ends get. What the
//! configuration leaves out is as `OpenVPN` has it: TLS 1.3, AES-256-GCM, and `mssfix 1492`.

mod configuration;

use std::error::Error;
use std::fs::File;
use std::io::{Seek, Write, stdin};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use self::configuration::{Instructions, configuration};

const PROGRAM: &str = "openvpn";
/// Where distributions have it, which is not on the `PATH` of ordinary users.
const SYSTEM: &str = "/usr/local/sbin:/usr/sbin:/sbin";

fn main() -> ExitCode {
    match run() {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<std::convert::Infallible, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.is_empty() {
        return Err(become_openvpn(&arguments, None).into());
    }
    let instructions: Instructions = serde_json::from_reader(stdin())
        .map_err(|error| format!("the instructions on standard input: {error}"))?;
    // A file in memory: keys are in none that others could read, nor on a command line.
    let memory = rustix::fs::memfd_create("openvpn", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(memory);
    file.write_all(configuration(&instructions)?.as_bytes())?;
    file.rewind()?;
    let arguments = ["--config", "stdin"].map(str::to_owned);
    Err(become_openvpn(&arguments, Some(file)).into())
}

/// Runs `openvpn` in the place of this program; returns only if that fails.
fn become_openvpn(arguments: &[String], input: Option<File>) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments)
        .env("PATH", format!("{path}:{SYSTEM}"));
    if let Some(input) = input {
        command.stdin(input);
    }
    format!("{PROGRAM}: {}", command.exec())
}
