//! The command line.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command, Error};

const ABOUT: &str = "A transparent proxy that splits TCP connections";

/// The wanted task.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    /// To be the proxy of a trial.
    Trial,
    /// The version of the kernel whose TCP it uses.
    Version,
}

/// Reads the command line, whose first word is the program. An error may be the help that was asked
/// for.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Wanted, Error> {
    let mut words: Vec<_> = words.into_iter().collect();
    if words.len() < 2 {
        words.push("--help".into());
    }
    let given = definition().try_get_matches_from(words)?;
    if given.get_flag("version") {
        return Ok(Wanted::Version);
    }
    Ok(Wanted::Trial)
}

fn definition() -> Command {
    let trial = Command::new("trial")
        .about("Be the proxy of a trial, as a testbed tells it in JSON on standard input");
    let version = Arg::new("version")
        .long("version")
        .help("Print the version of the kernel")
        .action(ArgAction::SetTrue);
    Command::new("bentpipe-tcp-pep")
        .about(ABOUT)
        .disable_help_subcommand(true)
        .subcommand(trial)
        .arg(version.global(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_understood() {
        definition().debug_assert();
        let parse_words = |words: &[&str]| {
            let words = std::iter::once("bentpipe-tcp-pep").chain(words.iter().copied());
            parse(words.map(OsString::from)).map_err(|error| error.to_string())
        };
        assert_eq!(parse_words(&["trial"]), Ok(Wanted::Trial));
        assert_eq!(parse_words(&["--version"]), Ok(Wanted::Version));
        assert_eq!(parse_words(&["trial", "--version"]), Ok(Wanted::Version));
        assert!(parse_words(&[]).unwrap_err().contains("Usage"));
        assert!(parse_words(&["tiral"]).unwrap_err().contains("'trial'"));
    }
}
