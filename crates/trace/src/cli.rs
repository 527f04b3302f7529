//! The command line.

use std::error::Error;
use std::io::{Write, stdout};
use std::path::PathBuf;

use bentpipe_qlog::of_date;
use lexopt::prelude::*;

use crate::analyze::Analyze;
use crate::qlog_command::Job;

const HELP: &str = "\
What was on the wire: the QUIC packets of captures, decrypted

Usage:
  bentpipe-trace packets FILE... [--keylog KEYS]
                      print a JSON object per packet; what could not be decoded, and why, is
                      summed up on standard error
  bentpipe-trace analyze FILE... [--keylog KEYS] [--qlog QLOG]... [--link LINK] -o OUT
                      write the packets as a table, OUT/packets.parquet, and what they achieved
                      and what went wrong, OUT/analysis.json
  bentpipe-trace qlog FILE... [-o OUT [--epoch DATE]] [--json]
                      print what the endpoints' logs hold; or write them all, converted to qlog
                      0.3, into one file that qvis opens

Options:
  --keylog KEYS       TLS secrets in NSS format (SSLKEYLOGFILE), beside those in the captures
  --qlog QLOG         what an endpoint of the captured connections logged; may be given again
  --link LINK         what is known of the path: JSON, or a file with it. Any of forward_rate_bps,
                      return_rate_bps, rtt_ms, forward_queue_bytes, return_queue_bytes, mtu_bytes,
                      limit_s, size_bytes, sender
  -o, --out OUT       analyze: the folder for results; qlog: the file to convert to
  --epoch DATE        with --out: what times count from in logs that do not say it (noq, quinn);
                      2000-01-01T00:00:00Z in a trial of bentpipe run
  --json              print a JSON object per file

A FILE is pcapng or pcap: Ethernet, raw IP, loopback or Linux cooked. QUIC versions 1 and 2 are
decoded, and analyze reads TCP too. Each interface is an observer of its own: it knows only what passed there. analyze brings
the two sides of a connection together: \"client\" or \"server\" in the name of an interface or a
file says whose side it is.
A FILE of qlog is JSON, JSON-SEQ or lines of JSON, of 0.3, of the drafts before it, or of the
current schema.

Exit code of analyze: 0; 1 if a file could not be read to its end or there is no connection: what
there is has been analysed; 2 if there is no result.

Examples:
  bentpipe-trace packets runs/demo/trials/sat-…/trace.pcapng
  bentpipe-trace packets client.pcap server.pcap --keylog keys.log > packets.jsonl
  bentpipe-trace analyze client.pcap server.pcap --keylog keys.log -o analysis
  bentpipe-trace analyze trace.pcapng --link '{\"forward_rate_bps\": 20000000}' -o .
  bentpipe-trace qlog runs/demo/trials/sat-…/qlog/client/*
  bentpipe-trace qlog client.qlog server.sqlog -o both.qlog --epoch 2000-01-01T00:00:00Z
";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Help,
    Packets {
        files: Vec<PathBuf>,
        key_log: Option<PathBuf>,
    },
    Analyze(Analyze),
    Qlog(Job),
}

/// Reads the command line.
pub fn parse(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    match parser.next()? {
        None | Some(Short('h') | Long("help")) => Ok(Command::Help),
        Some(Value(word)) => match word.string()?.as_str() {
            "packets" => parse_packets(&mut parser),
            "analyze" => parse_analyze(&mut parser),
            "qlog" => parse_qlog(&mut parser),
            other => Err(format!("{other:?} is no command (hint: packets, analyze, qlog)").into()),
        },
        Some(other) => Err(other.unexpected()),
    }
}

fn parse_packets(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut files, mut key_log) = (Vec::new(), None);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long("keylog") => key_log = Some(parser.value()?.into()),
            Value(file) => files.push(file.into()),
            other => return Err(other.unexpected()),
        }
    }
    if files.is_empty() {
        return Err("packets needs a FILE (hint: trace.pcapng in a trial's folder)".into());
    }
    Ok(Command::Packets { files, key_log })
}

fn parse_analyze(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut files, mut qlogs) = (Vec::new(), Vec::new());
    let (mut key_log, mut link, mut out) = (None, None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long("keylog") => key_log = Some(parser.value()?.into()),
            Long("qlog") => qlogs.push(parser.value()?.into()),
            Long("link") => link = Some(parser.value()?.string()?),
            Short('o') | Long("out") => out = Some(parser.value()?.into()),
            Value(file) => files.push(file.into()),
            other => return Err(other.unexpected()),
        }
    }
    if files.is_empty() {
        return Err("analyze needs a FILE (hint: trace.pcapng in a trial's folder)".into());
    }
    let out = out.ok_or("analyze needs -o OUT, the folder for results (hint: -o .)")?;
    Ok(Command::Analyze(Analyze {
        files,
        key_log,
        qlogs,
        link,
        out,
    }))
}

fn parse_qlog(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut job = Job::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Short('o') | Long("out") => job.out = Some(parser.value()?.into()),
            Long("epoch") => job.epoch = Some(parse_date(&parser.value()?.string()?)?),
            Long("json") => job.json = true,
            Value(file) => job.files.push(file.into()),
            other => return Err(other.unexpected()),
        }
    }
    if job.files.is_empty() {
        return Err("qlog needs a FILE (hint: those in qlog/ in a trial's folder)".into());
    }
    if job.epoch.is_some() && job.out.is_none() {
        return Err("--epoch is for what is converted (hint: --out FILE)".into());
    }
    Ok(Command::Qlog(job))
}

fn parse_date(text: &str) -> Result<i64, lexopt::Error> {
    of_date(text).ok_or_else(|| {
        format!("--epoch {text}: is no date (hint: like 2000-01-01T00:00:00Z)").into()
    })
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
        let words = std::iter::once("bentpipe-trace").chain(words.iter().copied());
        parse(lexopt::Parser::from_iter(words)).map_err(|error| error.to_string())
    }

    #[test]
    fn commands_are_understood() {
        assert_eq!(parse_words(&[]), Ok(Command::Help));
        assert_eq!(parse_words(&["packets", "--help"]), Ok(Command::Help));
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
        };
        assert_eq!(
            parse_words(&[
                "analyze", "--qlog", "a.qlog", "a.pcap", "--qlog", "b.qlog", "--link", "{}", "-o",
                "out"
            ]),
            Ok(Command::Analyze(analyze))
        );
        let job = Job {
            files: vec!["a.qlog".into(), "b.sqlog".into()],
            out: Some("c.qlog".into()),
            epoch: Some(1_000_000_000),
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
                "--json",
                "b.sqlog"
            ]),
            Ok(Command::Qlog(job))
        );
    }

    #[test]
    fn mistakes_are_named() {
        for words in [
            &["packet"][..],
            &["packets"],
            &["qlog", "--json"],
            &["analyze", "-o", "out"],
            &["analyze", "a"],
            &["qlog", "--epoch", "2000"],
            &["qlog", "a", "--epoch", "2000-01-01T00:00:00Z"],
        ] {
            assert!(parse_words(words).unwrap_err().contains("hint"));
        }
        assert!(parse_words(&["packets", "a", "--keys", "b"]).is_err());
        assert!(parse_words(&["packets", "a", "--keylog"]).is_err());
    }
}
