//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use bentpipe_qlog::of_date;
use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Error, value_parser};

use crate::analyze::Analyze;
use crate::qlog_command::Job;

const USAGE: &str = "bentpipe-trace packets|analyze|losses|qlog FILE... [OPTIONS]";

const ABOUT: &str = "What was on the wire: the QUIC packets of captures, decrypted";

const EXAMPLES: &str = "\
A FILE is pcapng or pcap, with Ethernet, IP, PPP, loopback or Linux cooked headers; packets in
tunnels are unwrapped. QUIC versions 1, 2 and drafts 29 to 34 are decoded, and analyze reads TCP
too. Any file may be packed with gzip or zstd. Each interface is an observer of its own: it knows \
    only what
passed there. analyze brings the two sides of a connection together: \"client\" or \"server\" in the
name of an interface or a file says whose side it is.
A FILE of qlog is JSON, JSON-SEQ or lines of JSON, of 0.3, of the drafts before it, or of the
current schema.

Options of a command: bentpipe-trace COMMAND --help

Examples:
  bentpipe-trace packets runs/demo/trials/sat-…/trace.pcapng
  bentpipe-trace packets client.pcap server.pcap --keylog keys.log > packets.jsonl
  bentpipe-trace analyze client.pcap server.pcap --keylog keys.log -o analysis
  bentpipe-trace analyze trace.pcapng --link '{\"forward_rate_bps\": 20000000}' -o .
  bentpipe-trace qlog runs/demo/trials/sat-…/qlog/client/*
  bentpipe-trace qlog client.qlog server.sqlog -o both.qlog --epoch 2000-01-01T00:00:00Z";

const PACKETS_EXAMPLES: &str = "\
Examples:
  bentpipe-trace packets runs/demo/trials/sat-…/trace.pcapng
  bentpipe-trace packets client.pcap server.pcap --keylog keys.log > packets.jsonl";

const ANALYZE_EXAMPLES: &str = "\
Exit code: 0; 1 if a file could not be read to its end or there is no connection: what there is has
been analysed; 2 if there is no result.

Examples:
  bentpipe-trace analyze client.pcap server.pcap --keylog keys.log -o analysis
  bentpipe-trace analyze trace.pcapng --link '{\"forward_rate_bps\": 20000000}' -o .";

const LOSSES_EXAMPLES: &str = "\
Exit code: 0; 1 if a file could not be read to its end: what there is has been fitted; 2 if there is
no result.

Examples:
  bentpipe-trace losses runs/demo/trials/sat-…/trace.pcapng
  bentpipe-trace losses client.pcap server.pcap
  bentpipe-trace losses midway-client.pcap midway-server.pcap --keylog keys.log";

const QLOG_EXAMPLES: &str = "\
Examples:
  bentpipe-trace qlog runs/demo/trials/sat-…/qlog/client/*
  bentpipe-trace qlog client.qlog server.sqlog -o both.qlog --epoch 2000-01-01T00:00:00Z";

/// The command that the words name.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Packets {
        files: Vec<PathBuf>,
        key_log: Option<PathBuf>,
    },
    Analyze(Analyze),
    Losses {
        files: Vec<PathBuf>,
        key_log: Option<PathBuf>,
    },
    Qlog(Job),
}

/// Reads the command line, whose first word is the program. An error may be the help that was asked
/// for.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command, Error> {
    let mut command = command();
    let mut words: Vec<_> = words.into_iter().collect();
    if words.len() < 2 {
        words.push("--help".into());
    }
    let mut matches = command.try_get_matches_from_mut(words)?;
    let (name, mut matches) = matches.remove_subcommand().expect("clap asks for one");
    let result = match name.as_str() {
        "packets" => packets(&mut matches),
        "analyze" => analyze(&mut matches),
        "losses" => losses(&mut matches),
        _ => qlog(&mut matches),
    };
    result.map_err(|mistake| {
        let command = command.find_subcommand_mut(name);
        let command = command.expect("it was just found");
        command.error(ErrorKind::ValueValidation, mistake)
    })
}

fn command() -> clap::Command {
    let usage = |usage: &'static str, command: clap::Command| {
        let command = command.override_usage(usage);
        command.arg(files()).disable_help_subcommand(true)
    };
    let packets = clap::Command::new("packets")
        .about(
            "Print a JSON object per packet; what could not be decoded, and why, is summed up on\n\
             standard error",
        )
        .arg(key_log())
        .after_help(PACKETS_EXAMPLES);
    let analyze = clap::Command::new("analyze")
        .about(
            "Write the packets as a table, OUT/packets.parquet, and what they achieved and what \
             went\nwrong, OUT/analysis.json",
        )
        .arg(key_log())
        .arg(
            option(
                "qlog",
                "QLOG",
                "What an endpoint of the captured connections logged; may be given again",
            )
            .action(ArgAction::Append),
        )
        .arg(
            option(
                "link",
                "LINK",
                "What is known of the path: JSON, or a file with it. Any of forward_rate_bps,\n\
                 return_rate_bps, rtt_ms, forward_queue_bytes, return_queue_bytes, forward_marks,\n\
                 return_marks, mtu_bytes, limit_s, size_bytes, sender",
            )
            .value_parser(ValueParser::string()),
        )
        .arg(option("out", "OUT", "The folder for results").short('o'))
        .arg(
            Arg::new("progress")
                .long("progress")
                .help("Print how far it has come: what is done, how much, of how much")
                .action(ArgAction::SetTrue),
        )
        .after_help(ANALYZE_EXAMPLES);
    let losses = clap::Command::new("losses")
        .about(
            "Print, as JSON, which models of losses fit what was lost between two sides, and tests",
        )
        .arg(key_log())
        .after_help(LOSSES_EXAMPLES);
    let qlog = clap::Command::new("qlog")
        .about(
            "Print what the endpoints' logs hold; or write them all, converted to qlog 0.3, into \
             one\nfile that qvis opens",
        )
        .arg(option("out", "OUT", "The file to convert to").short('o'))
        .arg(
            option(
                "epoch",
                "DATE",
                "With --out: what times count from in logs that do not say it (noq, quinn);\n\
                 2000-01-01T00:00:00Z in a trial of bentpipe run",
            )
            .value_parser(ValueParser::string()),
        )
        .arg(
            Arg::new("explain")
                .long("explain")
                .help("Also list the phases of congestion control, and why each began")
                .action(ArgAction::SetTrue),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .help("Print a JSON object per file")
                .action(ArgAction::SetTrue),
        )
        .after_help(QLOG_EXAMPLES);
    clap::Command::new("bentpipe-trace")
        .about(ABOUT)
        .override_usage(USAGE)
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommand(usage(
            "bentpipe-trace packets FILE... [--keylog KEYS]",
            packets,
        ))
        .subcommand(usage(
            "bentpipe-trace analyze FILE... [--keylog KEYS] [--qlog QLOG]... [--link LINK] -o OUT",
            analyze,
        ))
        .subcommand(usage(
            "bentpipe-trace losses FILE... [--keylog KEYS]",
            losses,
        ))
        .subcommand(usage(
            "bentpipe-trace qlog FILE... [-o OUT [--epoch DATE]] [--explain] [--json]",
            qlog,
        ))
}

fn files() -> Arg {
    Arg::new("files")
        .value_name("FILE")
        .num_args(0..)
        .value_parser(value_parser!(PathBuf))
        .help("Capture files; of qlog, logs")
}

fn key_log() -> Arg {
    option(
        "keylog",
        "KEYS",
        "TLS secrets in NSS format (SSLKEYLOGFILE), beside those in the captures",
    )
}

/// An option whose value is a path.
fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    let option = Arg::new(name).long(name).value_name(value).help(help);
    option.value_parser(value_parser!(PathBuf))
}

fn packets(matches: &mut ArgMatches) -> Result<Command, String> {
    let files = given_files(matches);
    if files.is_empty() {
        return Err("packets needs a FILE (hint: trace.pcapng in a trial's folder)".to_owned());
    }
    Ok(Command::Packets {
        files,
        key_log: matches.remove_one("keylog"),
    })
}

fn analyze(matches: &mut ArgMatches) -> Result<Command, String> {
    let files = given_files(matches);
    if files.is_empty() {
        return Err("analyze needs a FILE (hint: trace.pcapng in a trial's folder)".to_owned());
    }
    let out = matches.remove_one("out");
    Ok(Command::Analyze(Analyze {
        files,
        key_log: matches.remove_one("keylog"),
        qlogs: matches
            .remove_many("qlog")
            .map(Iterator::collect)
            .unwrap_or_default(),
        link: matches.remove_one("link"),
        out: out.ok_or("analyze needs -o OUT, the folder for results (hint: -o .)")?,
        progress: matches.get_flag("progress"),
    }))
}

fn losses(matches: &mut ArgMatches) -> Result<Command, String> {
    let files = given_files(matches);
    if files.is_empty() {
        return Err("losses needs a FILE (hint: trace.pcapng in a trial's folder)".to_owned());
    }
    Ok(Command::Losses {
        files,
        key_log: matches.remove_one("keylog"),
    })
}

fn qlog(matches: &mut ArgMatches) -> Result<Command, String> {
    let epoch: Option<String> = matches.remove_one("epoch");
    let job = Job {
        files: given_files(matches),
        out: matches.remove_one("out"),
        epoch: epoch.as_deref().map(date).transpose()?,
        explain: matches.get_flag("explain"),
        json: matches.get_flag("json"),
    };
    if job.files.is_empty() {
        return Err("qlog needs a FILE (hint: those in qlog/ in a trial's folder)".to_owned());
    }
    if job.epoch.is_some() && job.out.is_none() {
        return Err("--epoch is for what is converted (hint: --out FILE)".to_owned());
    }
    Ok(Command::Qlog(job))
}

fn given_files(matches: &mut ArgMatches) -> Vec<PathBuf> {
    let files = matches.remove_many("files");
    files.map(Iterator::collect).unwrap_or_default()
}

fn date(text: &str) -> Result<i64, String> {
    let hint = "hint: like 2000-01-01T00:00:00Z";
    of_date(text).ok_or_else(|| format!("--epoch {text}: is no date ({hint})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Result<Command, String> {
        let words = std::iter::once("bentpipe-trace").chain(words.iter().copied());
        parse(words.map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn help_has_examples() {
        for words in [
            &[][..],
            &["--help"],
            &["-h"],
            &["packets", "--help"],
            &["analyze", "-h"],
            &["losses", "--help"],
            &["qlog", "a", "--help"],
        ] {
            let words = std::iter::once("bentpipe-trace").chain(words.iter().copied());
            let help = parse(words.map(OsString::from)).unwrap_err();
            assert_eq!(help.kind(), ErrorKind::DisplayHelp);
            assert!(help.to_string().contains("\nExamples:\n  bentpipe-trace "));
        }
    }

    #[test]
    fn commands_are_understood() {
        let packets = Command::Packets {
            files: vec!["a.pcap".into(), "b.pcap".into()],
            key_log: Some("keys".into()),
        };
        assert_eq!(
            parse_words(&["packets", "a.pcap", "--keylog", "keys", "b.pcap"]),
            Ok(packets)
        );
        let analyze = Analyze {
            files: vec!["a.pcap".into()],
            key_log: None,
            qlogs: vec!["a.qlog".into(), "b.qlog".into()],
            link: Some("{}".to_owned()),
            out: "out".into(),
            progress: false,
        };
        assert_eq!(
            parse_words(&[
                "analyze", "--qlog", "a.qlog", "a.pcap", "--qlog", "b.qlog", "--link", "{}", "-o",
                "out"
            ]),
            Ok(Command::Analyze(analyze))
        );
        let losses = Command::Losses {
            files: vec!["a.pcap".into(), "b.pcap".into()],
            key_log: Some("keys".into()),
        };
        assert_eq!(
            parse_words(&["losses", "a.pcap", "b.pcap", "--keylog", "keys"]),
            Ok(losses)
        );
        let job = Job {
            files: vec!["a.qlog".into(), "b.sqlog".into()],
            out: Some("c.qlog".into()),
            epoch: Some(1_000_000_000),
            explain: true,
            json: true,
        };
        assert_eq!(
            parse_words(&[
                "qlog",
                "a.qlog",
                "-o",
                "c.qlog",
                "--epoch",
                "1970-01-01T00:00:01Z",
                "--explain",
                "--json",
                "b.sqlog"
            ]),
            Ok(Command::Qlog(job))
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (words, says) in [
            (
                &["packet"][..],
                "'packet'\n\n  tip: a similar subcommand exists: 'packets'",
            ),
            (
                &["frames"],
                "'frames'\n\nUsage: bentpipe-trace packets|analyze|losses|qlog FILE",
            ),
            (&["losses"], "needs a FILE (hint: trace.pcapng in"),
            (&["packets"], "needs a FILE (hint: trace.pcapng in"),
            (&["qlog", "--json"], "needs a FILE (hint: those in qlog/"),
            (
                &["analyze", "-o", "out"],
                "needs a FILE (hint: trace.pcapng in",
            ),
            (
                &["analyze", "a"],
                "needs -o OUT, the folder for results (hint: -o .)",
            ),
            (
                &["qlog", "--epoch", "2000"],
                "no date (hint: like 2000-01-01T00:00:00Z)",
            ),
            (
                &["qlog", "a", "--epoch", "2000-01-01T00:00:00Z"],
                "for what is converted (hint: --out FILE)",
            ),
            (
                &["packets", "a", "--keys", "b"],
                "'--keys' found\n\n  tip: a similar argument",
            ),
            (
                &["packets", "a", "--keylog"],
                "a value is required for '--keylog <KEYS>'",
            ),
        ] {
            let error = parse_words(words).unwrap_err();
            assert!(
                error.starts_with("error: ") && error.contains(says),
                "{error}"
            );
        }
    }
}
