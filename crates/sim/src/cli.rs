//! The command line.

use std::error::Error;
use std::io::{Write, stdout};
use std::path::PathBuf;

use lexopt::prelude::*;

const HELP: &str = "\
Real QUIC stacks against each other over a satellite link, in virtual time

Usage:
  bentpipe-sim trial < job.json         run one trial; its result is printed as JSON
  bentpipe-sim scenario FILE [--set KEY=VALUE]...
                                        print a scenario as it is understood, as JSON
  bentpipe-sim replay FRAMES -- COMMAND...
                                        drive one endpoint program alone through the frames
                                        that a failed trial left in client.frames or server.frames

Examples:
  bentpipe-sim scenario scenarios/sat.toml --set forward.queue=1BDP
  bentpipe-sim replay runs/demo/trials/sat-…/server.frames -- ./my-endpoint --virtual-time
";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Help,
    Trial,
    Scenario {
        file: PathBuf,
        sets: Vec<(String, String)>,
    },
    Replay {
        frames: PathBuf,
        command: Vec<String>,
    },
}

/// Reads the command line.
pub fn parse(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    match parser.next()? {
        None | Some(Short('h') | Long("help")) => Ok(Command::Help),
        Some(Value(word)) => match word.string()?.as_str() {
            "trial" => parse_trial(&mut parser),
            "scenario" => parse_scenario(&mut parser),
            "replay" => parse_replay(&mut parser),
            other => Err(format!("{other:?} is none of: trial, scenario, replay").into()),
        },
        Some(other) => Err(other.unexpected()),
    }
}

fn parse_trial(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    match parser.next()? {
        None => Ok(Command::Trial),
        Some(other) => Err(other.unexpected()),
    }
}

fn parse_scenario(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut file, mut sets) = (None, Vec::new());
    while let Some(argument) = parser.next()? {
        match argument {
            Long("set") => {
                let text = parser.value()?.string()?;
                let (key, value) = text.split_once('=').ok_or_else(|| {
                    format!("--set {text}: write KEY=VALUE, for example forward.queue=1BDP")
                })?;
                sets.push((key.trim().to_owned(), value.trim().to_owned()));
            }
            Value(path) if file.is_none() => file = Some(path.into()),
            other => return Err(other.unexpected()),
        }
    }
    let file = file.ok_or("scenario needs a FILE")?;
    Ok(Command::Scenario { file, sets })
}

fn parse_replay(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut frames, mut command) = (None, Vec::new());
    while let Some(argument) = parser.next()? {
        match argument {
            Value(path) if frames.is_none() => frames = Some(path.into()),
            Value(word) => {
                command.push(word.string()?);
                for rest in parser.raw_args()? {
                    command.push(rest.string()?);
                }
            }
            other => return Err(other.unexpected()),
        }
    }
    match frames {
        Some(frames) if !command.is_empty() => Ok(Command::Replay { frames, command }),
        _ => Err("replay needs FRAMES -- COMMAND".into()),
    }
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
        let words = std::iter::once("bentpipe-sim").chain(words.iter().copied());
        parse(lexopt::Parser::from_iter(words)).map_err(|error| error.to_string())
    }

    #[test]
    fn commands_are_understood() {
        assert_eq!(parse_words(&[]), Ok(Command::Help));
        assert_eq!(parse_words(&["trial"]), Ok(Command::Trial));
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
            frames: "a.frames".into(),
            command,
        };
        assert_eq!(
            parse_words(&["replay", "a.frames", "--", "./endpoint", "--virtual-time"]),
            Ok(replay)
        );
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(
            parse_words(&["tiral"]).unwrap_err(),
            "\"tiral\" is none of: trial, scenario, replay"
        );
        assert!(
            parse_words(&["scenario", "a", "--set", "b"])
                .unwrap_err()
                .contains("KEY=VALUE")
        );
        assert!(parse_words(&["trial", "extra"]).is_err());
        assert!(parse_words(&["replay", "a.frames"]).is_err());
    }
}
