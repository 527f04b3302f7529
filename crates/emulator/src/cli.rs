//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use bentpipe_emulator::HostName;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Error, value_parser};

const PROGRAM: &str = "bentpipe-emu";

const ABOUT: &str = "Real programs behind an emulated satellite link";

const EXAMPLES: &str = "\
Examples:
  bentpipe-emu shell --scenario scenarios/sat.toml -- ping -c 3 server
  bentpipe-emu shell --scenario scenarios/sat.toml --server 'iperf3 -s' -- iperf3 -c server
  bentpipe-emu trial < job.json
  bentpipe-emu bench --seconds 2";

/// The command that the words name.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Shell(Shell),
    Probe,
    Trial,
    Bench { seconds: u64, json: bool },
    IdlePrevention,
}

/// A command behind the link of a scenario.
#[derive(Debug, PartialEq, Eq)]
pub struct Shell {
    pub scenario: Source,
    pub on: HostName,
    pub server: Option<String>,
    pub seed: u64,
    pub meters: bool,
    pub awake: bool,
    /// Empty: an interactive shell.
    pub command: Vec<OsString>,
}

/// The place of a scenario.
#[derive(Debug, PartialEq, Eq)]
pub enum Source {
    /// In a TOML file.
    File(PathBuf),
    /// In JSON, to be read from a file descriptor.
    Descriptor(i32),
}

/// Reads the words behind the program's name. An error may be the help that was asked for.
pub fn parse(words: &[OsString]) -> Result<Command, Error> {
    let help = ["--help".into()];
    let words = if words.is_empty() { &help } else { words };
    let program = [PROGRAM.into()];
    let mut matches = command().try_get_matches_from(program.iter().chain(words))?;
    let (name, mut given) = matches.remove_subcommand().expect("clap asks for one");
    Ok(match name.as_str() {
        "shell" => Command::Shell(shell(&mut given)),
        "trial" => Command::Trial,
        "probe" => Command::Probe,
        "awake" => Command::IdlePrevention,
        _ => Command::Bench {
            seconds: given.remove_one("seconds").expect("it has a default"),
            json: given.get_flag("json"),
        },
    })
}

fn command() -> clap::Command {
    let trial = clap::Command::new("trial")
        .about("Run one trial, a job in JSON on standard input, and print its result as JSON");
    let probe = clap::Command::new("probe").about("Print as JSON whether real time works here");
    let awake = clap::Command::new("awake")
        .about("Keep idle processors from sleeping, until standard input ends");
    let bench = clap::Command::new("bench")
        .about("Measure how exact the emulator is on this machine")
        .args_override_self(true)
        .arg(
            option("seconds", "N", "How long each measurement takes")
                .value_parser(value_parser!(u64).range(1..))
                .default_value("5"),
        )
        .arg(flag("json", "Print one JSON document"));
    clap::Command::new(PROGRAM)
        .about(ABOUT)
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommands([shell_command(), probe, trial, bench, awake])
}

fn shell_command() -> clap::Command {
    clap::Command::new("shell")
        .about("Run a command, or $SHELL, on a host of a scenario")
        .args_override_self(true)
        .override_usage("bentpipe-emu shell --scenario FILE [OPTIONS] [-- COMMAND...]")
        .arg(
            option("scenario", "FILE", "A scenario's TOML file")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            option(
                "scenario-fd",
                "N",
                "Or: its JSON form, from a file descriptor",
            )
            .value_parser(value_parser!(i32)),
        )
        .group(
            ArgGroup::new("source")
                .args(["scenario", "scenario-fd"])
                .required(true),
        )
        .arg(
            option("on", "HOST", "client, terminal, gateway or server")
                .value_parser(value_parser!(HostName))
                .default_value("client"),
        )
        .arg(option(
            "server",
            "LINE",
            "A command line for the server, started first",
        ))
        .arg(
            option("seed", "N", "All randomness of the link comes from it")
                .value_parser(value_parser!(u64))
                .default_value("1"),
        )
        .arg(flag(
            "meters",
            "Each second, what crosses the link, on standard error",
        ))
        .arg(flag(
            "awake",
            "Keep idle processors from sleeping: more exact, above all in virtual machines",
        ))
        .arg(
            Arg::new("command")
                .value_name("COMMAND")
                .num_args(0..)
                .trailing_var_arg(true)
                .value_parser(value_parser!(OsString)),
        )
}

fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    let option = Arg::new(name).long(name).value_name(value).help(help);
    // A value may begin with a hyphen, as a file's name can.
    option.allow_hyphen_values(true)
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    let flag = Arg::new(name).long(name).help(help);
    flag.action(ArgAction::SetTrue)
}

fn shell(given: &mut ArgMatches) -> Shell {
    let file = given.remove_one("scenario").map(Source::File);
    let descriptor = || given.remove_one("scenario-fd").map(Source::Descriptor);
    Shell {
        scenario: file.or_else(descriptor).expect("clap asks for one"),
        on: given.remove_one("on").expect("it has a default"),
        server: given.remove_one("server"),
        seed: given.remove_one("seed").expect("it has a default"),
        meters: given.get_flag("meters"),
        awake: given.get_flag("awake"),
        command: given
            .remove_many("command")
            .map(Iterator::collect)
            .unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Result<Command, String> {
        let words: Vec<_> = words.iter().map(OsString::from).collect();
        parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn options_end_where_the_command_begins() {
        let words = [
            "shell",
            "--scenario",
            "a.toml",
            "--on",
            "terminal",
            "ping",
            "--on",
            "-c",
        ];
        let expected = Shell {
            scenario: Source::File("a.toml".into()),
            on: HostName::Terminal,
            server: None,
            seed: 1,
            meters: false,
            awake: false,
            command: ["ping", "--on", "-c"].map(OsString::from).to_vec(),
        };
        assert_eq!(parse_words(&words), Ok(Command::Shell(expected)));
    }

    #[test]
    fn bench_measures_for_five_seconds_unless_told_otherwise() {
        let bench = |seconds, json| Ok(Command::Bench { seconds, json });
        assert_eq!(parse_words(&["bench"]), bench(5, false));
        let words = ["bench", "--json", "--seconds", "2"];
        assert_eq!(parse_words(&words), bench(2, true));
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn help_is_what_no_words_get() {
        for words in [
            &[][..],
            &["--help"],
            &["-h"],
            &["shell", "--help"],
            &["bench", "--help"],
        ] {
            let help = parse_words(words).unwrap_err();
            assert!(help.contains("\nUsage: bentpipe-emu "), "{help}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (words, says) in [
            (
                &["shel"][..],
                "'shel'\n\n  tip: a similar subcommand exists: 'shell'",
            ),
            (&["shell"], "--scenario <FILE>"),
            (
                &["shell", "--scenario", "a", "--scenario-fd", "3"],
                "cannot be used with",
            ),
            (
                &["shell", "--sead", "2", "ping"],
                "a similar argument exists: '--seed'",
            ),
            (
                &["shell", "--on", "moon", "--scenario", "a"],
                "client, terminal, gateway, server",
            ),
            (&["bench", "--seconds", "0"], "0 is not in 1.."),
            (&["probe", "more"], "unexpected argument 'more'"),
        ] {
            let error = parse_words(words).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
