//! The command line.

use std::error::Error;
use std::io::{Write, stdout};
use std::path::PathBuf;

use bentpipe_trace::qlog::of_date;
use lexopt::prelude::*;

use crate::qlog_command::Job;

const HELP: &str = "\
What was on the wire: the QUIC packets of captures, decrypted

Usage:
  bentpipe-trace packets FILE... [--keylog KEYS]
                      print a JSON object per packet; what could not be decoded, and why, is
                      summed up on standard error
  bentpipe-trace qlog FILE... [-o OUT [--epoch DATE]] [--json]
                      print what the endpoints' logs hold; or write them all, converted to qlog
                      0.3, into one file that qvis opens

Options:
  --keylog KEYS       TLS secrets in NSS format (SSLKEYLOGFILE), beside those in the captures
  -o, --out OUT       the file to convert to
  --epoch DATE        with --out: what times count from in logs that do not say it (noq, quinn);
                      2000-01-01T00:00:00Z in a trial of bentpipe run
  --json              print a JSON object per file

A FILE is pcapng or pcap: Ethernet, raw IP, loopback or Linux cooked. QUIC versions 1 and 2 are
decoded. Each interface is an observer of its own: it knows only what passed there.
A FILE of qlog is JSON, JSON-SEQ or lines of JSON, of 0.3, of the drafts before it, or of the
current schema.

Examples:
  bentpipe-trace packets runs/demo/trials/sat-…/trace.pcapng
  bentpipe-trace packets client.pcap server.pcap --keylog keys.log > packets.jsonl
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
    Qlog(Job),
}

/// Reads the command line.
pub fn parse(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    match parser.next()? {
        None | Some(Short('h') | Long("help")) => Ok(Command::Help),
        Some(Value(word)) => match word.string()?.as_str() {
            "packets" => parse_packets(&mut parser),
            "qlog" => parse_qlog(&mut parser),
            other => Err(format!("{other:?} is no command (hint: packets, qlog)").into()),
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
            &["qlog", "--epoch", "2000"],
            &["qlog", "a", "--epoch", "2000-01-01T00:00:00Z"],
        ] {
            assert!(parse_words(words).unwrap_err().contains("hint"));
        }
        assert!(parse_words(&["packets", "a", "--keys", "b"]).is_err());
        assert!(parse_words(&["packets", "a", "--keylog"]).is_err());
    }
}
