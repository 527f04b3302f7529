//! `bentpipe-remote`: trials over real links.
//!
//! On the hosts of a link, `host` keeps programs for who holds the other end of its standard input,
//! and `echo` and `probe` are the small flow beside a trial. `record` runs at home, and makes a
//! trial's record of what hosts saw. `door` and `enter` are of the laboratory, whose hosts are
//! network namespaces.

mod clock;
mod door;
mod host;
mod monitor;
mod record;

use std::env;
use std::error::Error;
use std::process::ExitCode;

const USAGE: &str = "usage: bentpipe-remote host [--ahead-ms N] [--silence-s N]
       bentpipe-remote echo ADDRESS:PORT
       bentpipe-remote probe ADDRESS:PORT EVERY_MS
       bentpipe-remote record < OBSERVED.json
       bentpipe-remote door SOCKET ADDRESS:PORT COMMAND...
       bentpipe-remote enter SOCKET
bentpipe runs it: see docs/how-to/measure-real-links.md";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["host", options @ ..] => host_options(options).and_then(|options| host::run(&options)),
        ["echo", listen] => monitor::echo(listen),
        ["probe", to, every_ms] => monitor::probe(to, every_ms),
        ["door", socket, address, command @ ..] => door::open(socket, address, command),
        ["enter", socket] => door::enter(socket),
        ["record"] => record::from_standard_input(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn host_options(words: &[&str]) -> Result<host::Options, Box<dyn Error>> {
    let mut options = host::Options::default();
    for pair in words.chunks(2) {
        match pair {
            ["--ahead-ms", value] => options.ahead_ns = value.parse::<i64>()? * 1_000_000,
            ["--silence-s", value] => options.silence_s = value.parse()?,
            _ => return Err(USAGE.into()),
        }
    }
    Ok(options)
}
