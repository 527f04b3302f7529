//! The client and the proxy as a program: for operators, and as a middlebox of a trial.

mod program;
mod trial;
mod tun;

use std::process::ExitCode;

/// The program's name and version, with the libraries of QUIC and HTTP/3 in it.
const VERSION: &str = concat!(
    "bentpipe-masque ",
    env!("CARGO_PKG_VERSION"),
    " (noq-proto 1.4.0, h3 0.0.8)"
);

fn main() -> ExitCode {
    let arguments = std::env::args_os()
        .skip(1)
        .map(std::ffi::OsString::into_string);
    let arguments: Vec<String> = match arguments.collect() {
        Ok(arguments) => arguments,
        Err(odd) => {
            let odd = odd.to_string_lossy();
            eprintln!("error: the command line: {odd:?} is not UTF-8");
            return ExitCode::from(2);
        }
    };
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["--virtual-time"] => trial::in_virtual_time(),
        ["trial"] => trial::over_sockets(),
        ["proxy", ..] => return program::proxy(arguments.into_iter().skip(1)),
        ["client", ..] => return program::client(arguments.into_iter().skip(1)),
        ["--version"] => {
            println!("{VERSION}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("error: the command line: it begins with neither proxy nor client");
            eprintln!("hint: bentpipe masque proxy --help and bentpipe masque client --help");
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
