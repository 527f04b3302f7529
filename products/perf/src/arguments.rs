//! The command line.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, value_parser};

use crate::protocol::{Amount, Direction, Request};

pub const HELP: &str = include_str!("help.txt");

const PORT: u16 = 4433;
const TIME_S: f64 = 10.0;
const INTERVAL_S: f64 = 1.0;
const IDLE_S: f64 = 30.0;
const CONNECT_S: f64 = 10.0;

const HINT: &str = "bentpipe perf --help lists all options";
const START: &str = "start with `bentpipe perf server`, then `bentpipe perf client HOST`";

/// The options that are the noq endpoint's: by their name here, and by its own.
const OF_ENDPOINT: [(&str, &str); 8] = [
    ("cc", "cc"),
    ("ss", "ss"),
    ("iw", "iw"),
    ("window", "window"),
    ("ack-frequency", "ack"),
    ("mtu", "mtu"),
    ("rate", "rate"),
    ("pacing", "pacing"),
];

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

impl From<clap::Error> for UsageError {
    /// The first line of clap's error, and the option that was meant, if it knows one.
    fn from(error: clap::Error) -> Self {
        let text = error.to_string();
        let what = text.lines().next().unwrap_or_default();
        let what = what.trim_start_matches("error: ");
        if error.kind() == ErrorKind::InvalidSubcommand {
            return Self::new(what, START);
        }
        let hint = match error.get(ContextKind::SuggestedArg) {
            Some(ContextValue::String(option)) => format!("did you mean {option}? {HINT}"),
            _ => HINT.to_owned(),
        };
        Self::new(what, hint)
    }
}

/// Reads what follows `perf`.
pub fn parse(words: impl Iterator<Item = String>) -> Result<Command, UsageError> {
    let mut words = words.peekable();
    if words.peek().is_none() {
        return Ok(Command::Help);
    }
    let mut matches = match command().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok(Command::Help),
        Err(error) => return Err(error.into()),
    };
    match matches.remove_subcommand() {
        Some((role, given)) if role == "server" => server(given).map(Command::Server),
        Some((_, given)) => client(given).map(Command::Client),
        None => Err(UsageError::new("server or client is missing", START)),
    }
}

fn command() -> clap::Command {
    let role = |name: &'static str| {
        clap::Command::new(name)
            .override_help(HELP)
            .args_override_self(true)
            .args(of_both())
    };
    let server = role("server")
        .arg(Arg::new("address").value_name("ADDR").value_parser(listen))
        .args([file("cert"), file("key")])
        .arg(flag("once").short('1'));
    clap::Command::new("bentpipe perf")
        .no_binary_name(true)
        .override_help(HELP)
        .disable_help_subcommand(true)
        .subcommands([server, role("client").args(of_client())])
}

fn of_both() -> [Arg; 5] {
    [
        option("port")
            .short('p')
            .value_name("PORT")
            .value_parser(value_parser!(u16)),
        flag("json").short('J'),
        file("qlog"),
        file("keylog"),
        option("idle").value_name("SECONDS").value_parser(seconds),
    ]
}

fn of_client() -> Vec<Arg> {
    let mut options = vec![
        Arg::new("host").value_name("HOST"),
        option("time")
            .short('t')
            .value_name("SECONDS")
            .value_parser(seconds)
            .conflicts_with("bytes"),
        option("bytes")
            .short('n')
            .value_name("SIZE")
            .value_parser(size),
        option("streams")
            .short('P')
            .value_parser(value_parser!(u32)),
        flag("reverse").short('R'),
        option("interval")
            .short('i')
            .value_name("SECONDS")
            .value_parser(seconds),
        flag("zero-rtt"),
        option("resume")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("on"),
        file("ca"),
        option("server-name"),
        option("connect-timeout")
            .value_name("SECONDS")
            .value_parser(seconds),
        option("option")
            .short('o')
            .value_name("NAME=VALUE")
            .action(ArgAction::Append)
            .value_parser(pair),
    ];
    options.extend(OF_ENDPOINT.map(|(name, _)| option(name)));
    options
}

fn option(name: &'static str) -> Arg {
    // A value may begin with a hyphen, as a file's name can.
    let option = Arg::new(name).long(name).value_name("VALUE");
    option.allow_hyphen_values(true)
}

fn file(name: &'static str) -> Arg {
    let file = option(name).value_name("FILE");
    file.value_parser(value_parser!(PathBuf))
}

fn flag(name: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue)
}

fn server(mut given: ArgMatches) -> Result<ServerArguments, UsageError> {
    let (address, of_address) = given
        .remove_one::<(IpAddr, Option<u16>)>("address")
        .map_or((None, None), |(address, port)| (Some(address), port));
    let port: Option<u16> = given.remove_one("port");
    if port.is_some() && of_address.is_some() {
        let what = "there are two ports";
        return Err(UsageError::new(what, "give --port, or ADDR:PORT"));
    }
    let identity = match (given.remove_one("cert"), given.remove_one("key")) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some((certificate, key)),
        _ => {
            return Err(UsageError::new(
                "--cert and --key belong together",
                "give both, or neither: then the server makes a certificate for itself",
            ));
        }
    };
    Ok(ServerArguments {
        address,
        port: port.or(of_address).unwrap_or(PORT),
        identity,
        once: given.get_flag("once"),
        output: OutputOptions::of(&mut given),
    })
}

fn client(mut given: ArgMatches) -> Result<ClientArguments, UsageError> {
    let host = given.remove_one("host").ok_or_else(|| {
        UsageError::new(
            "no HOST was given",
            "write the server's name or address, as in `bentpipe perf client 127.0.0.1`",
        )
    })?;
    let mut request = request(&mut given)?;
    let connect: Option<Duration> = given.remove_one("connect-timeout");
    Ok(ClientArguments {
        host,
        port: given.remove_one("port").unwrap_or(PORT),
        zero_rtt: given.get_flag("zero-rtt"),
        resume: given.remove_one("resume"),
        authority: given.remove_one("ca"),
        server_name: given.remove_one("server-name"),
        connect: connect.unwrap_or(Duration::from_secs_f64(CONNECT_S)),
        memory: request.options.remove("memory"),
        request,
        output: OutputOptions::of(&mut given),
    })
}

fn request(given: &mut ArgMatches) -> Result<Request, UsageError> {
    let in_seconds = |time: Duration| time.as_secs_f64();
    let time = given.remove_one("time").map_or(TIME_S, in_seconds);
    let bytes = given.remove_one("bytes").map(Amount::Bytes);
    let request = Request {
        direction: if given.get_flag("reverse") {
            Direction::Download
        } else {
            Direction::Upload
        },
        amount: bytes.unwrap_or(Amount::TimeS(time)),
        streams: given.remove_one("streams").unwrap_or(1),
        interval_s: given.remove_one("interval").map_or(INTERVAL_S, in_seconds),
        options: endpoint_options(given)?,
    };
    request.check().map_err(|why| UsageError::new(why, HINT))?;
    Ok(request)
}

fn endpoint_options(given: &mut ArgMatches) -> Result<BTreeMap<String, String>, UsageError> {
    let pairs = given.remove_many("option");
    let mut options: BTreeMap<_, _> = pairs.map(Iterator::collect).unwrap_or_default();
    for (name, of_endpoint) in OF_ENDPOINT {
        if let Some(value) = given.remove_one(name) {
            let twice = options.insert(of_endpoint.to_owned(), in_bytes(of_endpoint, value)?);
            if twice.is_some() {
                let what = format!("--{name} and --option {of_endpoint} are the same");
                return Err(UsageError::new(what, "give one of them"));
            }
        }
    }
    Ok(options)
}

impl OutputOptions {
    fn of(given: &mut ArgMatches) -> Self {
        Self {
            json: given.get_flag("json"),
            qlog: given.remove_one("qlog"),
            keylog: given.remove_one("keylog"),
            idle: given
                .remove_one("idle")
                .unwrap_or(Duration::from_secs_f64(IDLE_S)),
        }
    }
}

fn pair(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !value.contains(char::is_whitespace) => {
            Ok((name.into(), value.into()))
        }
        _ => Err("it is no NAME=VALUE, as in cwnd=3000000"),
    }
}

/// The flow control window may be written with a unit.
fn in_bytes(option: &str, value: String) -> Result<String, UsageError> {
    if option == "window" && value != "library" {
        let bytes = size(&value);
        let wrong = |why| UsageError::new(format!("--window {value:?}: {why}"), HINT);
        return Ok(bytes.map_err(wrong)?.to_string());
    }
    Ok(value)
}

/// An address to listen on, with a port if one is given.
fn listen(text: &str) -> Result<(IpAddr, Option<u16>), &'static str> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok((address, None));
    }
    let both = text.parse::<SocketAddr>();
    both.map(|both| (both.ip(), Some(both.port()))).map_err(|_| {
        "it is no IP address of this machine, such as 192.0.2.1 or [2001:db8::1]:4433 (none: all \
         that the machine has)"
    })
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    let number = text.strip_suffix('s').unwrap_or(text).parse::<f64>();
    match number {
        Ok(number) if (0.001..=86_400.0).contains(&number) => Ok(Duration::from_secs_f64(number)),
        _ => Err("it is no time: write seconds from 0.001 to 86400, such as 5 or 0.1"),
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
fn size(text: &str) -> Result<u64, &'static str> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let suffix = &text[digits.len()..];
    let unit = SUFFIXES.iter().find(|(name, _)| *name == suffix);
    let bytes = unit.and_then(|(_, unit)| digits.parse::<u64>().ok()?.checked_mul(*unit));
    bytes.ok_or("it is no size: write bytes, with a unit if you like: 10485760, 10MiB, 10MB")
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
    fn clap_knows_every_option_of_the_help_and_no_other() {
        let command = command();
        command.clone().debug_assert();
        let known = command
            .get_subcommands()
            .flat_map(clap::Command::get_arguments);
        let mut known: Vec<_> = known.filter_map(Arg::get_long).chain(["help"]).collect();
        let words = HELP.split(|it: char| !it.is_ascii_lowercase() && it != '-');
        let named = words.filter_map(|word| word.strip_prefix("--"));
        let mut named: Vec<_> = named.chain(["help"]).collect();
        for names in [&mut known, &mut named] {
            names.sort_unstable();
            names.dedup();
        }
        assert_eq!(known, named);
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
            "client host --cc cubic -o cc=newreno",
            "server --port 4433 127.0.0.1:4434",
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
