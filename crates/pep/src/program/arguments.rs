//! The command line.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches};
use toml::{Table, Value};

use super::settings::{Override, SettingsError};

/// The help that is printed, which `bentpipe pep` has without this program, too.
pub const HELP: &str = include_str!("help.txt");

/// The options that set one key to a text.
const TEXTS: [(&str, &[&str]); 7] = [
    ("next-hop", &["next-hop", "address"]),
    ("mode", &["mode"]),
    ("ca", &["next-hop", "ca"]),
    ("client-ca", &["clients", "ca"]),
    ("metrics", &["metrics", "listen"]),
    ("log-format", &["log", "format"]),
    ("log-level", &["log", "level"]),
];

/// The options that may be given several times, each with NAME=VALUE.
const PAIRS: [(&str, &[&str]); 3] = [
    ("allow", &["next-hop", "allow"]),
    ("client-side", &["client-side"]),
    ("server-side", &["server-side"]),
];

/// The place of mistakes in it.
const PLACE: &str = "the command line";
const HINT: &str = "bentpipe pep --help lists all options";

/// The command: what is to be done.
#[derive(Debug)]
pub enum Command {
    Help,
    Version,
    /// Validates, and prints what is understood.
    Check(Arguments),
    Run(Arguments),
}

/// The arguments, from which the configuration comes; it is read again on SIGHUP.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    pub file: Option<PathBuf>,
    pub overrides: Vec<Override>,
}

/// Reads what follows `pep`.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Command, SettingsError> {
    let matches = match command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok(Command::Help),
        Err(error) if error.kind() == ErrorKind::DisplayVersion => return Ok(Command::Version),
        Err(error) => return Err(error.into()),
    };
    let arguments = Arguments {
        file: last(&matches, "config").map(PathBuf::from),
        overrides: overrides(&matches)?,
    };
    Ok(if matches.get_flag("check") {
        Command::Check(arguments)
    } else {
        Command::Run(arguments)
    })
}

fn command() -> clap::Command {
    let option = |name: &'static str, value: &'static str| {
        let option = Arg::new(name).long(name).value_name(value);
        // A value may begin with a hyphen, as a file's name can.
        option.action(ArgAction::Append).allow_hyphen_values(true)
    };
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    clap::Command::new("bentpipe pep")
        .no_binary_name(true)
        .args_override_self(true)
        .override_help(HELP)
        .version(crate::VERSION)
        .disable_version_flag(true)
        .arg(flag("version").action(ArgAction::Version))
        .args([flag("check"), flag("no-verify")])
        .arg(option("config", "FILE").short('c'))
        .arg(option("listen", "ADDR:PORT").short('l'))
        .arg(option("next-hop", "HOST:PORT").short('n'))
        .arg(option("mode", "MODE").short('m'))
        .arg(
            option("auto", "TIME")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true"),
        )
        .arg(option("workers", "N").value_parser(clap::value_parser!(u32)))
        .args([
            option("allow", "NAME=HOST:PORT"),
            option("client-side", "NAME=VALUE"),
            option("server-side", "NAME=VALUE"),
            option("set", "KEY=VALUE"),
            option("cert", "FILE"),
            option("key", "FILE"),
            option("ca", "FILE"),
            option("client-ca", "FILE"),
            option("metrics", "ADDR:PORT"),
            option("log-format", "WORD"),
            option("log-level", "WORD"),
        ])
}

impl From<clap::Error> for SettingsError {
    fn from(error: clap::Error) -> Self {
        let context = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => Some(text.as_str()),
            _ => None,
        };
        let what = match (error.kind(), context(ContextKind::InvalidArg)) {
            (ErrorKind::UnknownArgument, Some(option)) if option.starts_with('-') => {
                format!("unknown option {option}")
            }
            (ErrorKind::UnknownArgument, Some(word)) => format!("{word:?} is one word too many"),
            _ => {
                let text = error.to_string();
                let line = text.lines().next().unwrap_or_default();
                line.trim_start_matches("error: ").to_owned()
            }
        };
        let hint = match context(ContextKind::SuggestedArg) {
            Some(option) => format!("did you mean {option}? {HINT}"),
            None => HINT.to_owned(),
        };
        Self::new(PLACE, what, hint)
    }
}

/// The values of an option, each with its place on the command line.
fn values<'a>(
    matches: &'a ArgMatches,
    name: &str,
) -> impl Iterator<Item = (usize, &'a String)> + use<'a> {
    let places = matches.indices_of(name).into_iter().flatten();
    places.zip(matches.get_many(name).into_iter().flatten())
}

fn last(matches: &ArgMatches, name: &str) -> Option<String> {
    values(matches, name).last().map(|(_, value)| value.clone())
}

/// What the options change, in their order on the command line; all places to listen at together
/// come last.
fn overrides(matches: &ArgMatches) -> Result<Vec<Override>, SettingsError> {
    let mut found = Vec::new();
    for (name, path) in TEXTS {
        for (place, value) in values(matches, name) {
            let flag = format!("--{name} {value}");
            found.push((place, Override::new(flag, path, value.as_str())));
        }
    }
    for (name, path) in PAIRS {
        for (place, text) in values(matches, name) {
            found.push((place, pair(name, path, text)?));
        }
    }
    for (place, text) in values(matches, "set") {
        found.push((place, set(text)?));
    }
    for (place, text) in values(matches, "auto") {
        let value = match text.as_str() {
            "true" => Value::from(true),
            text => Value::from(text),
        };
        found.push((place, Override::new("--auto", &["auto"], value)));
    }
    if matches.get_flag("no-verify") {
        let place = matches.index_of("no-verify").unwrap_or_default();
        let off = Override::new("--no-verify", &["next-hop", "verify"], false);
        found.push((place, off));
    }
    if let (Some(place), Some(count)) = (
        matches.indices_of("workers").and_then(Iterator::last),
        matches.get_many::<u32>("workers").and_then(Iterator::last),
    ) {
        let workers = Override::new("--workers", &["workers"], i64::from(*count));
        found.push((place, workers));
    }
    found.sort_by_key(|(place, _)| *place);
    let mut overrides: Vec<_> = found.into_iter().map(|(_, change)| change).collect();
    let listen: Vec<_> = values(matches, "listen")
        .map(|(_, value)| value.clone())
        .collect();
    if !listen.is_empty() {
        overrides.push(Override::new("--listen", &["listen"], listen));
    }
    overrides.extend(certificate(last(matches, "cert"), last(matches, "key"))?);
    Ok(overrides)
}

fn pair(option: &str, path: &[&str], text: &str) -> Result<Override, SettingsError> {
    let Some((name, value)) = text.split_once('=') else {
        let what = format!("--{option} {text:?} is no NAME=VALUE");
        return Err(SettingsError::new(PLACE, what, HINT));
    };
    let path = [path, &[name][..]].concat();
    let flag = format!("--{option} {text}");
    Ok(Override::new(flag, &path, value))
}

/// `KEY=VALUE` as a file would say it; a value that is no TOML is a text.
fn set(text: &str) -> Result<Override, SettingsError> {
    let Some((key, value)) = text.split_once('=') else {
        let what = format!("--set {text:?} is no KEY=VALUE");
        let hint = "write one such as --set limits.connections=100";
        return Err(SettingsError::new(PLACE, what, hint));
    };
    let quoted = Value::from(value.trim()).to_string();
    let read = |value: &str| format!("{key} = {value}").parse::<Table>();
    let keys = read(value).or_else(|_| read(&quoted)).map_err(|_| {
        let what = format!("--set {text:?}: {key:?} is no key");
        let hint = "write a key with dots, as in --set limits.connections=100";
        SettingsError::new(PLACE, what, hint)
    })?;
    Ok(Override {
        flag: format!("--set {text}"),
        keys,
    })
}

/// One certificate, for all server names.
fn certificate(
    chain: Option<String>,
    key: Option<String>,
) -> Result<Option<Override>, SettingsError> {
    let (chain, key) = match (chain, key) {
        (None, None) => return Ok(None),
        (Some(chain), Some(key)) => (chain, key),
        _ => {
            let what = "--cert and --key belong together";
            return Err(SettingsError::new(PLACE, what, HINT));
        }
    };
    let one: Table = [("chain", chain), ("key", key)]
        .map(|(name, path)| (name.to_owned(), path.into()))
        .into_iter()
        .collect();
    Ok(Some(Override::new("--cert", &["certificate"], vec![one])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Command, SettingsError> {
        parse(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn clap_knows_every_option_of_the_help_and_no_other() {
        let command = command();
        let known = command.get_arguments().filter_map(|it| it.get_long());
        let mut known: Vec<_> = known.chain(["help"]).collect();
        let words = HELP.split(|it: char| !it.is_ascii_lowercase() && it != '-');
        let named = words.filter_map(|word| word.strip_prefix("--"));
        let mut named: Vec<_> = named.collect();
        for names in [&mut known, &mut named] {
            names.sort_unstable();
            names.dedup();
        }
        assert_eq!(known, named);
    }

    #[test]
    fn options_keep_their_order() {
        let words = [
            "--set",
            "mode=\"warm\"",
            "-m",
            "parallel",
            "--auto",
            "--auto=50 ms",
            "-l",
            "a",
            "--no-verify",
        ];
        let Command::Run(arguments) = read(&words).unwrap() else {
            panic!("{words:?}");
        };
        let flags: Vec<_> = arguments
            .overrides
            .iter()
            .map(|it| it.flag.as_str())
            .collect();
        let expected = [
            "--set mode=\"warm\"",
            "--mode parallel",
            "--auto",
            "--auto",
            "--no-verify",
            "--listen",
        ];
        assert_eq!(flags, expected);
    }

    #[test]
    fn what_looks_like_an_option_is_suggested() {
        let error = read(&["--worker", "2"]).unwrap_err();
        assert_eq!(error.what, "unknown option --worker");
        assert!(
            error.hint.starts_with("did you mean --workers? "),
            "{error:?}"
        );
        let error = read(&["--workers", "many"]).unwrap_err();
        assert!(error.what.contains("--workers"), "{error:?}");
        let error = read(&["--config"]).unwrap_err();
        assert!(error.what.contains("--config <FILE>"), "{error:?}");
    }
}
