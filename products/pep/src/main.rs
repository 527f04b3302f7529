//! The proxy as a program, for operators and in trials.

mod program;
mod testbed;

use std::ffi::OsString;
use std::process::ExitCode;

/// The program's name and version, with the library that implements QUIC in it.
const VERSION: &str = concat!(
    "bentpipe-pep ",
    env!("CARGO_PKG_VERSION"),
    " (noq-proto 1.4.0)"
);

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1).map(OsString::into_string);
    let arguments: Vec<String> = match arguments.collect() {
        Ok(arguments) => arguments,
        Err(odd) => {
            let odd = odd.to_string_lossy();
            eprintln!("error: the command line: {odd:?} is not UTF-8");
            return ExitCode::from(2);
        }
    };
    testbed::run(&arguments).unwrap_or_else(|| program::main(arguments.into_iter()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_library_is_the_one_that_is_locked() {
        let (_, library) = super::VERSION.split_once('(').unwrap();
        let (name, version) = library.trim_end_matches(')').split_once(' ').unwrap();
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(
            include_str!("../../../Cargo.lock").contains(&entry),
            "update VERSION"
        );
    }
}
