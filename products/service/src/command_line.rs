//! The command line: options that set keys of the settings.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches};
use toml::{Table, Value};

use crate::SettingsError;
use crate::settings::Override;

/// The place of mistakes in it.
pub const PLACE: &str = "the command line";

/// An option, and the path of the key that it sets.
pub type Sets = (&'static str, &'static [&'static str]);

/// The options that every program has, beside `--config`, `--check`, `--set`, `--help` and
/// `--version`: each sets one key to a text.
const COMMON: [Sets; 3] = [
    ("metrics", &["metrics", "listen"]),
    ("log-format", &["log", "format"]),
    ("log-level", &["log", "level"]),
];

/// Changes, each with its place on the command line.
pub type Placed = Result<Vec<(usize, Override)>, SettingsError>;

/// A command line: the options that a program has beside those that all have.
#[derive(Debug, Clone, Copy)]
pub struct CommandLine {
    /// The command that people type, such as `bentpipe pep`.
    pub name: &'static str,
    /// The whole help.
    pub help: &'static str,
    /// The output of `--version`.
    pub version: &'static str,
    /// Options that set one key to a text.
    pub texts: &'static [Sets],
    /// Options that may be given several times, each with NAME=VALUE.
    pub pairs: &'static [Sets],
    /// Options that may be given several times, and make up a list together.
    pub lists: &'static [Sets],
    /// The letters that some of them have, too.
    pub letters: &'static [(&'static str, char)],
    /// Whether it has several threads, and `--workers`.
    pub workers: bool,
    /// Flags that ask for something else than to serve.
    pub tasks: &'static [&'static str],
    /// Options of another form.
    pub own: fn() -> Vec<Arg>,
    /// The changes by these, each with its place on the command line.
    pub own_overrides: fn(&ArgMatches) -> Placed,
}

/// The command: what is to be done.
#[derive(Debug)]
pub enum Command {
    /// To print the help.
    Help,
    /// To print the version.
    Version,
    /// Validates, and prints what is understood.
    Check(Arguments),
    /// One of the program's own tasks, by its flag.
    Task(&'static str, Arguments),
    /// To serve.
    Run(Arguments),
}

/// The arguments, from which the configuration comes; it is read again on SIGHUP.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// The changes to it.
    pub overrides: Vec<Override>,
}

impl CommandLine {
    /// Reads what follows the program's name.
    pub fn parse(&self, arguments: impl Iterator<Item = String>) -> Result<Command, SettingsError> {
        let matches = match self.command().try_get_matches_from(arguments) {
            Ok(matches) => matches,
            Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok(Command::Help),
            Err(error) if error.kind() == ErrorKind::DisplayVersion => return Ok(Command::Version),
            Err(error) => return Err(self.problem(&error)),
        };
        let arguments = Arguments {
            file: last(&matches, "config").map(PathBuf::from),
            overrides: self.overrides(&matches)?,
        };
        if let Some(task) = self.tasks.iter().find(|task| matches.get_flag(task)) {
            return Ok(Command::Task(task, arguments));
        }
        Ok(if matches.get_flag("check") {
            Command::Check(arguments)
        } else {
            Command::Run(arguments)
        })
    }

    /// For clap, which neither prints nor ends the process.
    #[must_use]
    pub fn command(&self) -> clap::Command {
        let named = [self.texts, self.pairs, self.lists, &COMMON].into_iter();
        let lettered = |name| {
            let letter = self.letters.iter().find(|(other, _)| *other == name);
            let option = option(name);
            letter.map_or(option.clone(), |(_, letter)| option.short(*letter))
        };
        let named = named.flatten().map(|(name, _)| lettered(*name));
        clap::Command::new(self.name)
            .no_binary_name(true)
            .args_override_self(true)
            .override_help(self.help)
            .version(self.version)
            .disable_version_flag(true)
            .arg(flag("version").action(ArgAction::Version))
            .arg(flag("check"))
            .arg(option("config").short('c').value_name("FILE"))
            .arg(option("set"))
            .args(named)
            .args(self.tasks.iter().map(|task| flag(task)))
            .args(self.workers.then(workers))
            .args((self.own)())
    }

    /// Where the options are listed.
    fn hint(&self) -> String {
        format!("{} --help lists all options", self.name)
    }

    fn problem(&self, error: &clap::Error) -> SettingsError {
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
            Some(option) => format!("did you mean {option}? {}", self.hint()),
            None => self.hint(),
        };
        SettingsError::new(PLACE, what, hint)
    }

    /// The changes by options, in their order on the command line; lists come last.
    fn overrides(&self, matches: &ArgMatches) -> Result<Vec<Override>, SettingsError> {
        let mut found = (self.own_overrides)(matches)?;
        for (name, path) in self.texts.iter().chain(&COMMON) {
            for (place, value) in values(matches, name) {
                let flag = format!("--{name} {value}");
                found.push((place, Override::new(flag, path, value.as_str())));
            }
        }
        for (name, path) in self.pairs {
            for (place, text) in values(matches, name) {
                found.push((place, self.pair(name, path, text)?));
            }
        }
        for (place, text) in values(matches, "set") {
            found.push((place, set(text)?));
        }
        if self.workers
            && let Some(place) = matches.indices_of("workers").and_then(Iterator::last)
            && let Some(count) = matches.get_many::<u32>("workers").and_then(Iterator::last)
        {
            let workers = Override::new("--workers", &["workers"], i64::from(*count));
            found.push((place, workers));
        }
        for (name, path) in self.lists {
            let all: Vec<_> = values(matches, name).map(|(_, it)| it.clone()).collect();
            if !all.is_empty() {
                found.push((usize::MAX, Override::new(format!("--{name}"), path, all)));
            }
        }
        found.sort_by_key(|(place, _)| *place);
        Ok(found.into_iter().map(|(_, change)| change).collect())
    }

    fn pair(&self, option: &str, path: &[&str], text: &str) -> Result<Override, SettingsError> {
        let Some((name, value)) = text.split_once('=') else {
            let what = format!("--{option} {text:?} is no NAME=VALUE");
            return Err(SettingsError::new(PLACE, what, self.hint()));
        };
        let path = [path, &[name][..]].concat();
        let flag = format!("--{option} {text}");
        Ok(Override::new(flag, &path, value))
    }
}

/// An option with a value, which may begin with a hyphen, as a file's name can.
#[must_use]
pub fn option(name: &'static str) -> Arg {
    let option = Arg::new(name).long(name).value_name("VALUE");
    option.action(ArgAction::Append).allow_hyphen_values(true)
}

fn workers() -> Arg {
    option("workers").value_parser(clap::value_parser!(u32))
}

/// An option without a value.
#[must_use]
pub fn flag(name: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue)
}

/// The values of an option, each with its place on the command line.
pub fn values<'a>(
    matches: &'a ArgMatches,
    name: &str,
) -> impl Iterator<Item = (usize, &'a String)> + use<'a> {
    let places = matches.indices_of(name).into_iter().flatten();
    places.zip(matches.get_many(name).into_iter().flatten())
}

/// The last value of an option.
#[must_use]
pub fn last(matches: &ArgMatches, name: &str) -> Option<String> {
    values(matches, name).last().map(|(_, value)| value.clone())
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

/// Asserts that the help names every option that there is, and no other: for tests of programs.
pub fn assert_help_is_complete(line: &CommandLine) {
    let command = line.command();
    command.clone().debug_assert();
    let known = command.get_arguments().filter_map(|it| it.get_long());
    let mut known: Vec<_> = known.chain(["help"]).collect();
    let words = line
        .help
        .split(|it: char| !it.is_ascii_lowercase() && it != '-');
    let named = words.filter_map(|word| word.strip_prefix("--"));
    let mut named: Vec<_> = named.collect();
    for names in [&mut known, &mut named] {
        names.sort_unstable();
        names.dedup();
    }
    assert_eq!(known, named);
}
