//! The tunnel as a middlebox of a trial (`endpoints/contract/middleboxes.md`).

mod instructions;
mod sockets;
mod virtual_time;

use std::process::ExitCode;

/// Its name and version, as records have it.
const VERSION: &str = concat!("bentpipe-fec ", env!("CARGO_PKG_VERSION"));

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["--virtual-time"] => virtual_time::run(),
        ["trial"] => sockets::run(),
        _ => {
            eprintln!("usage: bentpipe-fec --virtual-time | trial");
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
