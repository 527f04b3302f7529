//! The command line.

use std::path::PathBuf;

use lexopt::ValueExt as _;
use toml::{Table, Value};

use super::settings::{Override, SettingsError};

pub const HELP: &str = include_str!("help.txt");

/// Flags that set one key to a text.
const TEXTS: [(&str, &[&str]); 7] = [
    ("next-hop", &["next-hop", "address"]),
    ("mode", &["mode"]),
    ("ca", &["next-hop", "ca"]),
    ("client-ca", &["clients", "ca"]),
    ("metrics", &["metrics", "listen"]),
    ("log-format", &["log", "format"]),
    ("log-level", &["log", "level"]),
];

/// Flags that may be given several times, each with NAME=VALUE.
const PAIRS: [(&str, &[&str]); 3] = [
    ("allow", &["next-hop", "allow"]),
    ("client-side", &["client-side"]),
    ("server-side", &["server-side"]),
];

const LETTERS: [(char, &str); 5] = [
    ('c', "config"),
    ('l', "listen"),
    ('n', "next-hop"),
    ('m', "mode"),
    ('h', "help"),
];

/// What is to be done.
#[derive(Debug)]
pub enum Command {
    Help,
    Version,
    /// Validates, and prints what is understood.
    Check(Arguments),
    Run(Arguments),
}

/// From where the configuration comes; read again on SIGHUP.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    pub file: Option<PathBuf>,
    pub overrides: Vec<Override>,
}

fn problem(what: impl Into<String>) -> SettingsError {
    let hint = "bentpipe pep --help lists all options";
    SettingsError::new("the command line", what, hint)
}

impl From<lexopt::Error> for SettingsError {
    fn from(error: lexopt::Error) -> Self {
        problem(error.to_string())
    }
}

/// Reads what follows `pep`.
pub fn parse(words: impl Iterator<Item = String>) -> Result<Command, SettingsError> {
    let mut parser = lexopt::Parser::from_args(words);
    let mut arguments = Arguments::default();
    let mut check = false;
    let (mut listen, mut chain, mut key) = (Vec::new(), None, None);
    while let Some(flag) = next(&mut parser)? {
        match flag.as_str() {
            "help" => return Ok(Command::Help),
            "version" => return Ok(Command::Version),
            "check" => check = true,
            "config" => arguments.file = Some(parser.value()?.into()),
            "listen" => listen.push(Value::from(parser.value()?.string()?)),
            "cert" => chain = Some(parser.value()?.string()?),
            "key" => key = Some(parser.value()?.string()?),
            "set" => arguments.overrides.push(set(&parser.value()?.string()?)?),
            other => arguments.overrides.push(change(other, &mut parser)?),
        }
    }
    if !listen.is_empty() {
        let change = Override::new("--listen", &["listen"], listen);
        arguments.overrides.push(change);
    }
    arguments.overrides.extend(certificate(chain, key)?);
    Ok(if check {
        Command::Check(arguments)
    } else {
        Command::Run(arguments)
    })
}

/// The next flag's name; its value is still the parser's.
fn next(parser: &mut lexopt::Parser) -> Result<Option<String>, SettingsError> {
    use lexopt::prelude::{Long, Short, Value};
    match parser.next()? {
        None => Ok(None),
        Some(Long(name)) => Ok(Some(name.to_owned())),
        Some(Short(letter)) => match LETTERS.iter().find(|(known, _)| *known == letter) {
            Some((_, name)) => Ok(Some((*name).to_owned())),
            None => Err(problem(format!("unknown option -{letter}"))),
        },
        Some(Value(text)) => {
            let text = text.string()?;
            Err(problem(format!("{text:?} is one word too many")))
        }
    }
}

fn change(flag: &str, parser: &mut lexopt::Parser) -> Result<Override, SettingsError> {
    if let Some((_, path)) = TEXTS.iter().find(|(name, _)| *name == flag) {
        let value = parser.value()?.string()?;
        return Ok(Override::new(format!("--{flag} {value}"), path, value));
    }
    if let Some((_, path)) = PAIRS.iter().find(|(name, _)| *name == flag) {
        let text = parser.value()?.string()?;
        let Some((name, value)) = text.split_once('=') else {
            return Err(problem(format!("--{flag} {text:?} is no NAME=VALUE")));
        };
        let path = [path, &[name][..]].concat();
        return Ok(Override::new(format!("--{flag} {text}"), &path, value));
    }
    match flag {
        "auto" => {
            let value = parser.optional_value().map(lexopt::ValueExt::string);
            let value = value.transpose()?.map_or(Value::from(true), Value::from);
            Ok(Override::new("--auto", &["auto"], value))
        }
        "no-verify" => Ok(Override::new("--no-verify", &["next-hop", "verify"], false)),
        "workers" => {
            let count: u32 = parser.value()?.parse()?;
            Ok(Override::new("--workers", &["workers"], i64::from(count)))
        }
        other => Err(problem(format!("unknown option --{other}"))),
    }
}

/// `KEY=VALUE` as a file would say it; a value that is no TOML is a text.
fn set(text: &str) -> Result<Override, SettingsError> {
    let Some((key, value)) = text.split_once('=') else {
        let what = format!("--set {text:?} is no KEY=VALUE");
        let hint = "write one such as --set limits.connections=100";
        return Err(SettingsError::new("the command line", what, hint));
    };
    let quoted = Value::from(value.trim()).to_string();
    let read = |value: &str| format!("{key} = {value}").parse::<Table>();
    let keys = read(value).or_else(|_| read(&quoted)).map_err(|_| {
        let hint = "write a key with dots, as in --set limits.connections=100";
        SettingsError::new(
            "the command line",
            format!("--set {text:?}: {key:?} is no key"),
            hint,
        )
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
        _ => return Err(problem("--cert and --key belong together")),
    };
    let one: Table = [("chain", chain), ("key", key)]
        .map(|(name, path)| (name.to_owned(), path.into()))
        .into_iter()
        .collect();
    Ok(Some(Override::new("--cert", &["certificate"], vec![one])))
}
