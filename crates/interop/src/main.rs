//! `bentpipe-interop COMMAND …`: a program that was written for the QUIC interop runner, as a stack
//! in socket mode.
//!
//! Such a program knows `ROLE`, `TESTCASE`, `REQUESTS`, the folders `/www`, `/downloads`, `/certs`
//! and `/logs`, and port 443; it does not say when it listens, and a server runs until it is
//! killed. Here it gets a separate root with these folders, the names `server4` and `server6`, and
//! what containers of the runner have besides; and this program keeps the contract for it.

mod place;
mod program;

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use place::Place;

/// The exit code that contract and runner define for an unsupported test case.
const UNSUPPORTED: u8 = 127;
/// The runner's: it has no word for another one.
const PORT: u16 = 443;

/// An error of this program: why the other could not be started as in the runner.
#[derive(Debug, thiserror::Error)]
pub enum InteropError {
    /// The environment lacks a variable of the contract.
    #[error("the variable {0} is missing")]
    Missing(&'static str),
    /// A part of its surroundings could not be made.
    #[error("{what}: {error}")]
    Io {
        /// The action that failed.
        what: String,
        /// Why it failed.
        error: io::Error,
    },
    /// The server did not listen, or ended before it did.
    #[error("{0}")]
    Server(String),
}

impl InteropError {
    /// An operation that failed, in words.
    pub fn io<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |error| Self::Io {
            what,
            error: error.into(),
        }
    }
}

/// A variable of the contract.
fn variable(name: &'static str) -> Result<String, InteropError> {
    env::var(name).map_err(|_| InteropError::Missing(name))
}

fn folder(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from)
}

fn main() -> ExitCode {
    let mut command: Vec<OsString> = env::args_os().skip(1).collect();
    if command.last().is_some_and(|last| last == "--version") {
        command.pop();
        println!("{}", program::version(&command));
        return ExitCode::SUCCESS;
    }
    match run(&command) {
        Ok(code) => code,
        Err(error) => {
            // The last line on standard output is what a guest tells of a program.
            println!("bentpipe-interop: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &[OsString]) -> Result<ExitCode, InteropError> {
    let is_server = variable("ROLE")? == "server";
    if let Some(why) = unsupported(is_server)? {
        eprintln!("bentpipe-interop: {why}");
        return Ok(ExitCode::from(UNSUPPORTED));
    }
    let place = Place {
        www: folder("WWW"),
        downloads: folder("DOWNLOADS"),
        certs: folder("CERTS"),
        hosts: hosts(is_server)?,
    };
    place.enter()?;
    if is_server {
        program::serve(command)
    } else {
        program::fetch(command, &requests()?)
    }
}

/// Why a program of the runner cannot be asked for this; none if it can.
fn unsupported(is_server: bool) -> Result<Option<String>, InteropError> {
    let alpn = env::var("BENTPIPE_ALPN").unwrap_or_default();
    if !matches!(alpn.as_str(), "" | "hq-interop") {
        return Ok(Some(format!(
            "the runner's files are over hq-interop, not {alpn}"
        )));
    }
    let options = env::var("BENTPIPE_OPTIONS").unwrap_or_default();
    if !options.is_empty() {
        return Ok(Some(format!("the runner knows no options: {options}")));
    }
    let listen = if is_server {
        variable("BENTPIPE_LISTEN")?
    } else {
        String::new()
    };
    let is_elsewhere = is_server && !listen.ends_with(&format!(":{PORT}"));
    Ok(is_elsewhere.then(|| format!("a server of the runner is at port {PORT}, not at {listen}")))
}

/// The contents of `/etc/hosts` there: the server's names, by the address that this end knows of
/// it.
fn hosts(is_server: bool) -> Result<String, InteropError> {
    let url = if is_server {
        variable("BENTPIPE_LISTEN")?
    } else {
        variable("REQUESTS")?
    };
    let address = address_in(&url);
    let name = name_of(address);
    Ok(format!(
        "127.0.0.1 localhost\n::1 localhost\n{address} server {name} server46\n"
    ))
}

/// The address in `192.0.2.1:443`, `[2001:db8::1]:443`, or a URL with one of these; without
/// brackets.
fn address_in(text: &str) -> &str {
    let text = text.trim_start_matches("https://");
    let end = text.find(['/', ' ']).unwrap_or(text.len());
    let (address, _port) = text[..end].rsplit_once(':').unwrap_or((&text[..end], ""));
    address.trim_start_matches('[').trim_end_matches(']')
}

/// The runner's name for a server with this address.
fn name_of(address: &str) -> &'static str {
    if address.contains(':') {
        "server6"
    } else {
        "server4"
    }
}

/// The URLs as the runner writes them: by the server's name.
fn requests() -> Result<String, InteropError> {
    let given = variable("REQUESTS")?;
    let named = given.split(' ').map(|url| {
        let address = address_in(url);
        let host = if address.contains(':') {
            format!("[{address}]")
        } else {
            address.to_owned()
        };
        url.replacen(&host, name_of(address), 1)
    });
    Ok(named.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_every_form() {
        for (text, address, name) in [
            ("192.0.2.1:443", "192.0.2.1", "server4"),
            ("[2001:db8::1]:443", "2001:db8::1", "server6"),
            (
                "https://192.0.2.1:443/1000 https://192.0.2.1:443/2",
                "192.0.2.1",
                "server4",
            ),
            ("https://[2001:db8::1]:443/1000", "2001:db8::1", "server6"),
        ] {
            assert_eq!(
                (address_in(text), name_of(address_in(text))),
                (address, name)
            );
        }
    }
}
