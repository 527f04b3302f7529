//! The tunnel as a middlebox of a trial (`endpoints/contract/middleboxes.md`).

mod instructions;
mod sockets;
mod virtual_time;

use std::process::ExitCode;

use bentpipe_fec::Settings;

/// Its name and version, as records have it.
const VERSION: &str = concat!("bentpipe-fec ", env!("CARGO_PKG_VERSION"));

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["fec", "--virtual-time"] => virtual_time::run(Settings::default()),
        ["fec", "trial"] => sockets::run(Settings::default()),
        ["sidecar", "--virtual-time"] => virtual_time::run(Settings::asking()),
        ["sidecar", "trial"] => sockets::run(Settings::asking()),
        _ => {
            eprintln!("usage: bentpipe-fec fec|sidecar --virtual-time|trial");
            eprintln!("endpoints/contract/middleboxes.md says what it does.");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bentpipe-fec: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
