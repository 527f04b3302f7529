//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Error, value_parser};

const ABOUT: &str = "Real QUIC stacks against each other over a satellite link, in virtual time";

const EXAMPLES: &str = "\
Examples:
  bentpipe-sim trial < job.json
  bentpipe-sim scenario scenarios/sat.toml --set forward.queue=1BDP
  bentpipe-sim replay runs/demo/trials/sat-…/server.frames -- ./my-endpoint --virtual-time";

/// The command that the words name.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Trial {
        costs: bool,
    },
    Shell,
    Scenario {
        file: PathBuf,
        sets: Vec<(String, String)>,
    },
    Courses,
    Replay {
        messages: PathBuf,
        command: Vec<String>,
    },
}

/// Reads the command line, whose first word is the program. An error may be the help that was asked
/// for.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command, Error> {
    let mut words: Vec<_> = words.into_iter().collect();
    if words.len() < 2 {
        words.push("--help".into());
    }
    let mut matches = command().try_get_matches_from(words)?;
    let (name, mut given) = matches.remove_subcommand().expect("clap asks for one");
    Ok(match name.as_str() {
        "trial" => Command::Trial {
            costs: given.get_flag("costs"),
        },
        "shell" => Command::Shell,
        "scenario" => Command::Scenario {
            file: given.remove_one("file").expect("clap asks for it"),
            sets: all(&mut given, "set"),
        },
        "courses" => Command::Courses,
        _ => Command::Replay {
            messages: given.remove_one("messages").expect("clap asks for it"),
            command: all(&mut given, "command"),
        },
    })
}

fn command() -> clap::Command {
    let trial = clap::Command::new("trial")
        .about("Run one trial, a job in JSON on standard input, and print its result as JSON")
        .arg(
            Arg::new("costs")
                .long("costs")
                .help("Print on standard error what each step cost, as JSON")
                .action(ArgAction::SetTrue),
        );
    let shell = clap::Command::new("shell").about(
        "Run two commands in guests with a link between them, a job in JSON on standard input, \
         and exit as the client's does",
    );
    let scenario = clap::Command::new("scenario")
        .about("Print a scenario as it is understood, as JSON")
        .arg(file("file", "FILE").help("A scenario in TOML"))
        .arg(
            Arg::new("set")
                .long("set")
                .value_name("KEY=VALUE")
                .help("Change one setting, such as forward.queue=1BDP; may be given again")
                .value_parser(setting)
                .allow_hyphen_values(true)
                .action(ArgAction::Append),
        );
    let courses = clap::Command::new("courses").about(
        "Print what changes with time on the links of a trial, whose scenario, seed and length are \
         in JSON on standard input",
    );
    let replay = clap::Command::new("replay")
        .about("Drive one endpoint program alone through what was said to it in a failed trial")
        .arg(
            file("messages", "MESSAGES")
                .help("client.frames or server.frames in the trial's folder"),
        )
        .arg(
            Arg::new("command")
                .value_name("COMMAND")
                .help("The endpoint program and its options")
                .required(true)
                .num_args(1..)
                .trailing_var_arg(true),
        );
    clap::Command::new("bentpipe-sim")
        .about(ABOUT)
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommands([trial, shell, scenario, courses, replay])
}

fn file(name: &'static str, value: &'static str) -> Arg {
    let file = Arg::new(name).value_name(value).required(true);
    file.value_parser(value_parser!(PathBuf))
}

fn setting(text: &str) -> Result<(String, String), &'static str> {
    let (key, value) = text
        .split_once('=')
        .ok_or("write KEY=VALUE (hint: such as forward.queue=1BDP)")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

fn all<T: Clone + Send + Sync + 'static>(given: &mut ArgMatches, name: &str) -> Vec<T> {
    let values = given.remove_many(name);
    values.map(Iterator::collect).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Result<Command, String> {
        let words = std::iter::once("bentpipe-sim").chain(words.iter().copied());
        parse(words.map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn commands_are_understood() {
        for (words, costs) in [(&["trial"][..], false), (&["trial", "--costs"], true)] {
            assert_eq!(parse_words(words), Ok(Command::Trial { costs }));
        }
        assert_eq!(parse_words(&["shell"]), Ok(Command::Shell));
        assert_eq!(parse_words(&["courses"]), Ok(Command::Courses));
        let sets = vec![("forward.queue".to_owned(), "1BDP".to_owned())];
        let scenario = Command::Scenario {
            file: "sat.toml".into(),
            sets,
        };
        assert_eq!(
            parse_words(&["scenario", "sat.toml", "--set", "forward.queue=1BDP"]),
            Ok(scenario)
        );
        let command = ["./endpoint", "--virtual-time"].map(str::to_owned).to_vec();
        let replay = Command::Replay {
            messages: "a.frames".into(),
            command,
        };
        assert_eq!(
            parse_words(&["replay", "a.frames", "--", "./endpoint", "--virtual-time"]),
            Ok(replay)
        );
        let words = ["replay", "a.frames", "./endpoint", "--help"];
        assert!(parse_words(&words).is_ok(), "help of the endpoint");
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn help_is_what_no_words_get() {
        for words in [&[][..], &["--help"], &["-h"], &["replay", "--help"]] {
            let help = parse_words(words).unwrap_err();
            assert!(help.contains("\nUsage: bentpipe-sim "), "{help}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (words, says) in [
            (
                &["tiral"][..],
                "'tiral'\n\n  tip: a similar subcommand exists: 'trial'",
            ),
            (
                &["scenario", "a", "--set", "b"],
                "'b' for '--set <KEY=VALUE>': write KEY=VALUE (hint: such as",
            ),
            (&["scenario"], "not provided:\n  <FILE>"),
            (&["trial", "extra"], "unexpected argument 'extra'"),
            (&["replay", "a.frames"], "not provided:\n  <COMMAND>..."),
            (
                &["replay", "a", "--keep", "b"],
                "unexpected argument '--keep'",
            ),
        ] {
            let error = parse_words(words).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
