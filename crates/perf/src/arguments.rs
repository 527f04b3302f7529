//! The command line.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use lexopt::ValueExt as _;

use crate::protocol::{Amount, Direction, Request};

pub const HELP: &str = include_str!("help.txt");

const PORT: u16 = 4433;
const TIME_S: f64 = 10.0;
const INTERVAL_S: f64 = 1.0;
const IDLE_S: f64 = 30.0;
const CONNECT_S: f64 = 10.0;

/// Options of the noq endpoint that have a flag of their own.
const NAMED: [(&str, &str); 8] = [
    ("cc", "cc"),
    ("ss", "ss"),
    ("iw", "iw"),
    ("window", "window"),
    ("ack-frequency", "ack"),
    ("mtu", "mtu"),
    ("rate", "rate"),
    ("pacing", "pacing"),
];

/// Letters, as in iperf3 where it has the option.
const LETTERS: [(char, &str); 9] = [
    ('p', "port"),
    ('1', "once"),
    ('t', "time"),
    ('n', "bytes"),
    ('P', "streams"),
    ('R', "reverse"),
    ('i', "interval"),
    ('J', "json"),
    ('o', "option"),
];

/// A part of the command line; a flag's value is still the parser's.
enum Word {
    Flag(String),
    Value(String),
}

/// The command that the command line gives.
#[derive(Debug)]
pub enum Command {
    Help,
    Server(ServerArguments),
    Client(ClientArguments),
}

/// The options of output and logs, which server and client have alike.
#[derive(Debug, Clone, Default)]
pub struct OutputOptions {
    pub json: bool,
    pub qlog: Option<PathBuf>,
    pub keylog: Option<PathBuf>,
    pub idle: Duration,
}

/// The arguments of `server`.
#[derive(Debug)]
pub struct ServerArguments {
    /// `None`: all addresses that the machine has.
    pub address: Option<IpAddr>,
    pub port: u16,
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Ends after one test.
    pub once: bool,
    pub output: OutputOptions,
}

/// The arguments of `client`.
#[derive(Debug)]
pub struct ClientArguments {
    pub host: String,
    pub port: u16,
    pub request: Request,
    pub zero_rtt: bool,
    /// The word for Careful Resume.
    pub resume: Option<String>,
    pub authority: Option<PathBuf>,
    pub server_name: Option<String>,
    pub connect: Duration,
    /// A file of paths, which is this side's alone.
    pub memory: Option<String>,
    pub output: OutputOptions,
}

/// An error of the command line: what is not understood, and what to write instead.
#[derive(Debug)]
pub struct UsageError {
    pub what: String,
    pub hint: String,
}

impl UsageError {
    fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            hint: hint.into(),
        }
    }
}

impl From<lexopt::Error> for UsageError {
    fn from(error: lexopt::Error) -> Self {
        Self::new(error.to_string(), "bentpipe perf --help lists all options")
    }
}

/// Reads what follows `perf`.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Command, UsageError> {
    let arguments: Vec<_> = arguments.collect();
    let (role, rest) = match arguments.split_first() {
        Some((role, rest)) => (role.as_str(), rest.to_vec()),
        None => ("--help", Vec::new()),
    };
    let is_help = |word: &String| word == "--help" || word == "-h";
    if role == "--help" || role == "-h" || rest.iter().any(is_help) {
        return Ok(Command::Help);
    }
    match role {
        "server" => server(lexopt::Parser::from_args(rest)).map(Command::Server),
        "client" => client(lexopt::Parser::from_args(rest)).map(Command::Client),
        other => Err(UsageError::new(
            format!("{other:?} in place of server or client"),
            "start with `bentpipe perf server`, then `bentpipe perf client HOST`",
        )),
    }
}

fn server(mut parser: lexopt::Parser) -> Result<ServerArguments, UsageError> {
    let mut server = ServerArguments {
        address: None,
        port: PORT,
        identity: None,
        once: false,
        output: OutputOptions::new(),
    };
    let (mut certificate, mut key) = (None, None);
    while let Some(word) = next(&mut parser)? {
        let flag = match word {
            Word::Value(text) if server.address.is_none() => {
                let (address, port) = listen(&text)?;
                server.address = Some(address);
                server.port = port.unwrap_or(server.port);
                continue;
            }
            Word::Value(text) => return Err(superfluous(&text)),
            Word::Flag(flag) => flag,
        };
        match flag.as_str() {
            "port" => server.port = parser.value()?.parse()?,
            "once" => server.once = true,
            "cert" => certificate = Some(path(&mut parser)?),
            "key" => key = Some(path(&mut parser)?),
            other => server.output.take(other, &mut parser)?,
        }
    }
    server.identity = match (certificate, key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some((certificate, key)),
        _ => {
            return Err(UsageError::new(
                "--cert and --key belong together",
                "give both, or neither: then the server makes a certificate for itself",
            ));
        }
    };
    Ok(server)
}

fn client(mut parser: lexopt::Parser) -> Result<ClientArguments, UsageError> {
    let mut host = None;
    let (mut time, mut bytes) = (None, None);
    let mut client = ClientArguments {
        host: String::new(),
        port: PORT,
        request: Request {
            direction: Direction::Upload,
            amount: Amount::TimeS(TIME_S),
            streams: 1,
            interval_s: INTERVAL_S,
            options: BTreeMap::new(),
        },
        zero_rtt: false,
        resume: None,
        authority: None,
        server_name: None,
        connect: Duration::from_secs_f64(CONNECT_S),
        memory: None,
        output: OutputOptions::new(),
    };
    let request = &mut client.request;
    while let Some(word) = next(&mut parser)? {
        let flag = match word {
            Word::Value(text) if host.is_none() => {
                host = Some(text);
                continue;
            }
            Word::Value(text) => return Err(superfluous(&text)),
            Word::Flag(flag) => flag,
        };
        match flag.as_str() {
            "port" => client.port = parser.value()?.parse()?,
            "time" => time = Some(seconds(&mut parser, "time")?.as_secs_f64()),
            "bytes" => bytes = Some(size(&parser.value()?.string()?)?),
            "streams" => request.streams = parser.value()?.parse()?,
            "reverse" => request.direction = Direction::Download,
            "interval" => request.interval_s = seconds(&mut parser, "interval")?.as_secs_f64(),
            "zero-rtt" => client.zero_rtt = true,
            "resume" => {
                let word = parser.optional_value().map(lexopt::ValueExt::string);
                client.resume = Some(word.transpose()?.unwrap_or_else(|| "on".into()));
            }
            "ca" => client.authority = Some(path(&mut parser)?),
            "server-name" => client.server_name = Some(parser.value()?.string()?),
            "connect-timeout" => client.connect = seconds(&mut parser, "connect-timeout")?,
            "option" => {
                let (name, value) = pair(&parser.value()?.string()?)?;
                request.options.insert(name, value);
            }
            other => match NAMED.iter().find(|(flag, _)| *flag == other) {
                Some((_, option)) => {
                    let value = parser.value()?.string()?;
                    request
                        .options
                        .insert((*option).into(), in_bytes(option, value)?);
                }
                None => client.output.take(other, &mut parser)?,
            },
        }
    }
    request.amount = match (time, bytes) {
        (Some(_), Some(_)) => {
            return Err(UsageError::new(
                "--time and --bytes exclude each other",
                "a test ends after a time or with so many bytes",
            ));
        }
        (_, Some(bytes)) => Amount::Bytes(bytes),
        (time, None) => Amount::TimeS(time.unwrap_or(TIME_S)),
    };
    request
        .check()
        .map_err(|why| UsageError::new(why, "bentpipe perf --help lists all options"))?;
    client.memory = request.options.remove("memory");
    client.host = host.ok_or_else(|| {
        UsageError::new(
            "no HOST was given",
            "write the server's name or address, as in `bentpipe perf client 127.0.0.1`",
        )
    })?;
    Ok(client)
}

impl OutputOptions {
    fn new() -> Self {
        Self {
            idle: Duration::from_secs_f64(IDLE_S),
            ..Self::default()
        }
    }

    /// What client and server take alike.
    fn take(&mut self, flag: &str, parser: &mut lexopt::Parser) -> Result<(), UsageError> {
        match flag {
            "json" => self.json = true,
            "qlog" => self.qlog = Some(path(parser)?),
            "keylog" => self.keylog = Some(path(parser)?),
            "idle" => self.idle = seconds(parser, "idle")?,
            other => return Err(unknown(&format!("--{other}"))),
        }
        Ok(())
    }
}

fn next(parser: &mut lexopt::Parser) -> Result<Option<Word>, UsageError> {
    use lexopt::prelude::{Long, Short, Value};
    Ok(Some(match parser.next()? {
        None => return Ok(None),
        Some(Value(text)) => Word::Value(text.string()?),
        Some(Long(name)) => Word::Flag(name.to_owned()),
        Some(Short(letter)) => match LETTERS.iter().find(|(known, _)| *known == letter) {
            Some((_, name)) => Word::Flag((*name).to_owned()),
            None => return Err(unknown(&format!("-{letter}"))),
        },
    }))
}

fn unknown(flag: &str) -> UsageError {
    UsageError::new(
        format!("unknown option {flag}"),
        "bentpipe perf --help lists all options",
    )
}

fn superfluous(text: &str) -> UsageError {
    UsageError::new(
        format!("{text:?} is one word too many"),
        "bentpipe perf --help shows the order",
    )
}

fn pair(text: &str) -> Result<(String, String), UsageError> {
    match text.split_once('=') {
        Some((name, value)) if !value.contains(char::is_whitespace) => {
            Ok((name.into(), value.into()))
        }
        _ => Err(UsageError::new(
            format!("--option {text:?} is no NAME=VALUE"),
            "write an option of the noq endpoint, as in cwnd=3000000",
        )),
    }
}

/// The flow control window may be written with a unit.
fn in_bytes(option: &str, value: String) -> Result<String, UsageError> {
    if option == "window" && value != "library" {
        return Ok(size(&value)?.to_string());
    }
    Ok(value)
}

/// An address to listen on, with a port if one is given.
fn listen(text: &str) -> Result<(IpAddr, Option<u16>), UsageError> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok((address, None));
    }
    match text.parse::<SocketAddr>() {
        Ok(both) => Ok((both.ip(), Some(both.port()))),
        Err(_) => Err(UsageError::new(
            format!("{text:?} is no IP address of this machine"),
            "write one such as 192.0.2.1 or 2001:db8::1, or none: all that the machine has",
        )),
    }
}

fn path(parser: &mut lexopt::Parser) -> Result<PathBuf, UsageError> {
    Ok(parser.value()?.into())
}

fn seconds(parser: &mut lexopt::Parser, name: &str) -> Result<Duration, UsageError> {
    let text = parser.value()?.string()?;
    let number = text.strip_suffix('s').unwrap_or(&text).parse::<f64>();
    match number {
        Ok(number) if (0.001..=86_400.0).contains(&number) => Ok(Duration::from_secs_f64(number)),
        _ => Err(UsageError::new(
            format!("--{name} {text:?} is no time"),
            "write seconds from 0.001 to 86400, such as 5 or 0.1",
        )),
    }
}

const SUFFIXES: [(&str, u64); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("", 1),
];

/// Bytes, such as 10MiB. A letter alone is as in iperf3: K, M and G are powers of 1024.
fn size(text: &str) -> Result<u64, UsageError> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let suffix = &text[digits.len()..];
    let unit = SUFFIXES.iter().find(|(name, _)| *name == suffix);
    let bytes = unit.and_then(|(_, unit)| digits.parse::<u64>().ok()?.checked_mul(*unit));
    bytes.ok_or_else(|| {
        UsageError::new(
            format!("{text:?} is no size"),
            "write bytes, with a unit if you like: 10485760, 10MiB, 10MB",
        )
    })
}

/// Where a server listens that is not told where.
pub fn everywhere() -> [IpAddr; 2] {
    [
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> impl Iterator<Item = String> {
        text.split(' ')
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .into_iter()
    }

    fn client(text: &str) -> ClientArguments {
        match parse(words(&format!("client {text}"))) {
            Ok(Command::Client(client)) => client,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn letters_are_those_of_iperf3() {
        let client = client("-p 5201 -t 2.5 -P 4 -R -i 0.1 -J host");
        let request = &client.request;
        assert_eq!((client.host.as_str(), client.port), ("host", 5201));
        assert_eq!(request.amount, Amount::TimeS(2.5));
        assert_eq!(request.direction, Direction::Download);
        assert_eq!((request.streams, client.output.json), (4, true));
    }

    #[test]
    fn options_of_the_endpoint() {
        let client =
            client("host --cc=cubic --window 1MiB -o cwnd=5000 --ack-frequency 10 -o memory=m");
        let options: Vec<_> = client.request.options.iter().collect();
        let text = format!("{options:?}");
        let expected =
            r#"[("ack", "10"), ("cc", "cubic"), ("cwnd", "5000"), ("window", "1048576")]"#;
        assert_eq!(text, expected);
        assert_eq!(client.memory.as_deref(), Some("m"), "it stays here");
    }

    #[test]
    fn a_word_for_resume_is_its_own() {
        assert_eq!(client("--resume host").resume.as_deref(), Some("on"));
        assert_eq!(client("--resume=full host").resume.as_deref(), Some("full"));
    }

    #[test]
    fn sizes() {
        assert_eq!(size("10MiB").unwrap(), 10 << 20);
        assert_eq!(size("10MB").unwrap(), 10_000_000);
        assert_eq!(size("1G").unwrap(), 1 << 30);
        for wrong in [
            "",
            "M",
            "-1",
            "1.5M",
            "1 M",
            "1mib",
            "99999999999999999999",
            "18446744073709551615K",
        ] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_understood() {
        for wrong in [
            "client",
            "client host other",
            "client host --bytes",
            "client host --json=5",
            "client host -x",
            "client host --streams 1000",
            "client host --time 0",
            "client host --option colour",
            "server host",
            "server 127.0.0.1 --cert a",
            "server --time 5",
            "listen",
        ] {
            assert!(parse(words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn where_a_server_listens() {
        let Ok(Command::Server(server)) = parse(words("server [::1]:99")) else {
            panic!("an address with a port");
        };
        assert_eq!(
            (server.address, server.port),
            (Some("::1".parse().unwrap()), 99)
        );
    }
}
