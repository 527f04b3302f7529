//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, Error, value_parser};

const ABOUT: &str =
    "A program that knows sockets and a clock, on a kernel of its own in virtual time";

const EXAMPLES: &str = "\
A testbed starts it, and speaks to it on descriptors 3 and 4. To see what it does by itself:
  bentpipe-sim replay runs/demo/trials/sat-…/server.frames -- bentpipe-guest linux -- \
    ./my-endpoint";

/// The program that is to live in a guest, and what it is given.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The guest's kernel.
    pub kernel: PathBuf,
    /// Memory of the guest, in MiB.
    pub memory_mib: u32,
    /// Where the program works, if it is a command that knows nothing of the contract.
    pub folder: Option<PathBuf>,
    /// The program and its arguments.
    pub command: Vec<String>,
}

/// Reads the command line, whose first word is the program. An error may be the help that was asked
/// for.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Wanted, Error> {
    let mut given = definition().try_get_matches_from(words)?;
    Ok(Wanted {
        kernel: given.remove_one("kernel").expect("clap asks for it"),
        memory_mib: given.remove_one("memory").expect("it has a default"),
        folder: given.remove_one("folder"),
        command: given
            .remove_many("command")
            .map(Iterator::collect)
            .unwrap_or_default(),
    })
}

fn definition() -> clap::Command {
    clap::Command::new("bentpipe-guest")
        .about(ABOUT)
        .after_help(EXAMPLES)
        .arg(
            Arg::new("kernel")
                .value_name("KERNEL")
                .help("The guest's kernel, as guest/build.sh makes it")
                .required(true)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("memory")
                .long("memory")
                .value_name("MIB")
                .help("The guest's memory in MiB")
                .default_value("512")
                .value_parser(value_parser!(u32).range(32..)),
        )
        .arg(
            Arg::new("folder")
                .long("folder")
                .value_name("FOLDER")
                .help(
                    "The program is any command, which works in this folder and may write there. \
                     What it prints goes to descriptors 5 and 6",
                )
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("command")
                .value_name("COMMAND")
                .help("The program, in socket mode, and its arguments")
                .required(true)
                .last(true)
                .num_args(1..),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Result<Wanted, String> {
        let words = std::iter::once("bentpipe-guest").chain(words.iter().copied());
        parse(words.map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn words_behind_the_dashes_are_the_programs() {
        let found = parse_words(&["linux", "--memory", "64", "--", "./server", "--memory", "x"]);
        let wanted = Wanted {
            kernel: "linux".into(),
            memory_mib: 64,
            folder: None,
            command: ["./server", "--memory", "x"].map(str::to_owned).to_vec(),
        };
        assert_eq!(found, Ok(wanted));
    }

    #[test]
    fn mistakes_are_named() {
        for (words, says) in [
            (&["linux"][..], "not provided:\n  <COMMAND>..."),
            (&["--", "./server"], "not provided:\n  <KERNEL>"),
            (&["linux", "--memory", "8", "--", "a"], "8 is not in 32.."),
        ] {
            let error = parse_words(words).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
