//! The command line.

use std::error::Error;
use std::ffi::OsString;
use std::io::{Write, stdout};
use std::path::PathBuf;

use bentpipe_emulator::HostName;
use lexopt::prelude::*;

const HELP: &str = "\
Real programs behind an emulated satellite link

Usage:
  bentpipe-emu shell --scenario FILE [OPTION]... [-- COMMAND...]
                                        run a command, or $SHELL, on a host of the scenario
  bentpipe-emu probe                    print as JSON whether real time works here
  bentpipe-emu trial < job.json         run one trial; its result is printed as JSON
  bentpipe-emu bench [--seconds N] [--json]
                                        measure how exact the emulator is on this machine, for so long each (default: 5)
  bentpipe-emu awake                    keep idle processors from sleeping, until standard input ends

Options of shell:
  --scenario FILE     a scenario's TOML file
  --scenario-fd N     or: its JSON form, from a file descriptor
  --on HOST           client (the default), terminal, gateway or server
  --server LINE       a command line for the server, started first
  --seed N            all randomness of the link comes from it (default: 1)
  --meters            each second, what crosses the link, on standard error
  --awake             keep idle processors from sleeping: more exact, above all in virtual machines

Examples:
  bentpipe-emu shell --scenario scenarios/sat.toml -- ping -c 3 server
  bentpipe-emu shell --scenario scenarios/sat.toml --server 'iperf3 -s' -- iperf3 -c server
";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Help,
    Shell(Shell),
    Probe,
    Trial,
    Bench { seconds: u64, json: bool },
    Awake,
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

/// Where a scenario is.
#[derive(Debug, PartialEq, Eq)]
pub enum Source {
    /// In a TOML file.
    File(PathBuf),
    /// In JSON, to be read from a file descriptor.
    Descriptor(i32),
}

/// Reads the command line.
pub fn parse(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    match parser.next()? {
        None | Some(Short('h') | Long("help")) => Ok(Command::Help),
        Some(Value(word)) => match word.string()?.as_str() {
            "shell" => parse_shell(&mut parser),
            "trial" => alone(&mut parser, Command::Trial),
            "probe" => alone(&mut parser, Command::Probe),
            "awake" => alone(&mut parser, Command::Awake),
            "bench" => parse_bench(&mut parser),
            other => Err(format!("{other:?} is none of: shell, trial, probe, bench, awake").into()),
        },
        Some(other) => Err(other.unexpected()),
    }
}

/// A command without options.
fn alone(parser: &mut lexopt::Parser, command: Command) -> Result<Command, lexopt::Error> {
    match parser.next()? {
        None => Ok(command),
        Some(other) => Err(other.unexpected()),
    }
}

fn parse_shell(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut scenario = None;
    let (mut on, mut server, mut seed) = (HostName::Client, None, 1);
    let (mut meters, mut awake) = (false, false);
    let mut command = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("scenario") => scenario = Some(Source::File(parser.value()?.into())),
            Long("scenario-fd") => scenario = Some(Source::Descriptor(parser.value()?.parse()?)),
            Long("on") => on = parser.value()?.parse()?,
            Long("server") => server = Some(parser.value()?.string()?),
            Long("seed") => seed = parser.value()?.parse()?,
            Long("meters") => meters = true,
            Long("awake") => awake = true,
            Value(word) => {
                command.push(word);
                command.extend(parser.raw_args()?);
            }
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Shell(Shell {
        scenario: scenario.ok_or("shell needs --scenario FILE")?,
        on,
        server,
        seed,
        meters,
        awake,
        command,
    }))
}

fn parse_bench(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut seconds, mut json) = (5, false);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("seconds") => {
                seconds = parser.value()?.parse_with(|text| match text.parse() {
                    Ok(0) | Err(_) => Err("not a number of seconds above 0"),
                    Ok(seconds) => Ok(seconds),
                })?;
            }
            Long("json") => json = true,
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Bench { seconds, json })
}

/// Prints what the program can do.
pub fn print_help() -> Result<(), Box<dyn Error>> {
    stdout().write_all(HELP.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Result<Command, String> {
        let words = std::iter::once("bentpipe-emu").chain(words.iter().copied());
        parse(lexopt::Parser::from_iter(words)).map_err(|error| error.to_string())
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
        assert!(parse_words(&["bench", "--seconds", "0"]).is_err());
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(
            parse_words(&["shel"]).unwrap_err(),
            "\"shel\" is none of: shell, trial, probe, bench, awake"
        );
        assert!(parse_words(&["shell"]).unwrap_err().contains("--scenario"));
        let place = parse_words(&["shell", "--on", "moon", "--scenario", "a"]).unwrap_err();
        assert!(
            place.contains("client, terminal, gateway, server"),
            "{place}"
        );
    }
}
