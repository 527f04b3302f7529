//! The command line.

use std::path::PathBuf;

use lexopt::ValueExt as _;
use toml::{Table, Value};

use super::settings::{Change, Problem};

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
    Check(Wanted),
    Run(Wanted),
}

/// From where the configuration comes; read again on SIGHUP.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub file: Option<PathBuf>,
    pub changes: Vec<Change>,
}

fn problem(what: impl Into<String>) -> Problem {
    let hint = "bentpipe pep --help lists all options";
    Problem::new("the command line", what, hint)
}

impl From<lexopt::Error> for Problem {
    fn from(error: lexopt::Error) -> Self {
        problem(error.to_string())
    }
}

/// Reads what follows `pep`.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Command, Problem> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut wanted = Wanted::default();
    let mut check = false;
    let (mut listen, mut chain, mut key) = (Vec::new(), None, None);
    while let Some(flag) = next(&mut parser)? {
        match flag.as_str() {
            "help" => return Ok(Command::Help),
            "version" => return Ok(Command::Version),
            "check" => check = true,
            "config" => wanted.file = Some(parser.value()?.into()),
            "listen" => listen.push(Value::from(parser.value()?.string()?)),
            "cert" => chain = Some(parser.value()?.string()?),
            "key" => key = Some(parser.value()?.string()?),
            "set" => wanted.changes.push(set(&parser.value()?.string()?)?),
            other => wanted.changes.push(change(other, &mut parser)?),
        }
    }
    if !listen.is_empty() {
        let change = Change::new("--listen", &["listen"], listen);
        wanted.changes.push(change);
    }
    wanted.changes.extend(certificate(chain, key)?);
    Ok(if check {
        Command::Check(wanted)
    } else {
        Command::Run(wanted)
    })
}

/// The next flag's name; its value is still the parser's.
fn next(parser: &mut lexopt::Parser) -> Result<Option<String>, Problem> {
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

fn change(flag: &str, parser: &mut lexopt::Parser) -> Result<Change, Problem> {
    if let Some((_, path)) = TEXTS.iter().find(|(name, _)| *name == flag) {
        let value = parser.value()?.string()?;
        return Ok(Change::new(format!("--{flag} {value}"), path, value));
    }
    if let Some((_, path)) = PAIRS.iter().find(|(name, _)| *name == flag) {
        let text = parser.value()?.string()?;
        let Some((name, value)) = text.split_once('=') else {
            return Err(problem(format!("--{flag} {text:?} is no NAME=VALUE")));
        };
        let path = [path, &[name][..]].concat();
        return Ok(Change::new(format!("--{flag} {text}"), &path, value));
    }
    match flag {
        "auto" => {
            let value = parser.optional_value().map(lexopt::ValueExt::string);
            let value = value.transpose()?.map_or(Value::from(true), Value::from);
            Ok(Change::new("--auto", &["auto"], value))
        }
        "no-verify" => Ok(Change::new("--no-verify", &["next-hop", "verify"], false)),
        "workers" => {
            let count: u32 = parser.value()?.parse()?;
            Ok(Change::new("--workers", &["workers"], i64::from(count)))
        }
        other => Err(problem(format!("unknown option --{other}"))),
    }
}

/// `KEY=VALUE` as a file would say it; a value that is no TOML is a text.
fn set(text: &str) -> Result<Change, Problem> {
    let Some((key, value)) = text.split_once('=') else {
        let what = format!("--set {text:?} is no KEY=VALUE");
        let hint = "write one such as --set limits.connections=100";
        return Err(Problem::new("the command line", what, hint));
    };
    let quoted = Value::from(value.trim()).to_string();
    let read = |value: &str| format!("{key} = {value}").parse::<Table>();
    let keys = read(value).or_else(|_| read(&quoted)).map_err(|_| {
        let hint = "write a key with dots, as in --set limits.connections=100";
        Problem::new(
            "the command line",
            format!("--set {text:?}: {key:?} is no key"),
            hint,
        )
    })?;
    Ok(Change {
        flag: format!("--set {text}"),
        keys,
    })
}

/// One certificate, for all server names.
fn certificate(chain: Option<String>, key: Option<String>) -> Result<Option<Change>, Problem> {
    let (chain, key) = match (chain, key) {
        (None, None) => return Ok(None),
        (Some(chain), Some(key)) => (chain, key),
        _ => return Err(problem("--cert and --key belong together")),
    };
    let one: Table = [("chain", chain), ("key", key)]
        .map(|(name, path)| (name.to_owned(), path.into()))
        .into_iter()
        .collect();
    Ok(Some(Change::new("--cert", &["certificate"], vec![one])))
}
