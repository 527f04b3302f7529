//! The client and the proxy as a program: a middlebox of a trial.

mod trial;

use std::process::ExitCode;

/// The program's name and version, with the libraries of QUIC and HTTP/3 in it.
const VERSION: &str = concat!(
    "bentpipe-masque ",
    env!("CARGO_PKG_VERSION"),
    " (noq-proto 1.4.0, h3 0.0.8)"
);

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["--virtual-time"] => trial::in_virtual_time(),
        ["trial"] => trial::over_sockets(),
        _ => {
            eprintln!("usage: bentpipe-masque --virtual-time|trial");
            eprintln!("endpoints/contract/middleboxes.md says what it does.");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bentpipe-masque: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_libraries_are_those_that_are_locked() {
        let (_, libraries) = super::VERSION.split_once('(').unwrap();
        for library in libraries.trim_end_matches(')').split(", ") {
            let (name, version) = library.split_once(' ').unwrap();
            let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
            let locked = include_str!("../../../Cargo.lock");
            assert!(locked.contains(&entry), "update VERSION: {library}");
        }
    }
}
