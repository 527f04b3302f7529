//! Drives one endpoint program alone through a recorded conversation, to find out why it failed.

use std::error::Error;
use std::fs;
use std::io::{Write, stderr, stdout};
use std::path::Path;
use std::time::Duration;

use bentpipe_endpoint::contract::{self, Bye, Ran, Run};
use bentpipe_link::HostName;
use bentpipe_trial::SentMessage;
use bentpipe_units::Time;

use crate::child::Child;

/// Long enough to look around in a debugger.
const DEBUGGING_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Sends the messages in `file` to `command`, one after each answer, and prints the answers with
/// their times, a verdict and, at the end, what the program itself printed. What it writes goes to
/// a folder that is removed: that of the trial is gone. So may be the folder `www` of a server.
pub fn replay(file: &Path, command: &[String]) -> Result<(), Box<dyn Error>> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let questions = questions(file, &bytes)?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let mut hosts = HostName::ALL.into_iter();
    let host = hosts.find(|host| stem.ends_with(host.name()));
    let (host, scratch) = (host.unwrap_or(HostName::Client), tempfile::tempdir()?);
    let mut child = Child::start(host, command, scratch.path(), DEBUGGING_TIMEOUT)?;
    let is_proxy = matches!(host, HostName::Terminal | HostName::Gateway);
    let (mut answered, mut result) = (0, Ok(()));
    for (kind, message) in &questions {
        let moved = (*kind == contract::HELLO).then(|| redirected(message, scratch.path()));
        let message = moved.transpose()?.unwrap_or_else(|| message.to_vec());
        result = ask((*kind, message), is_proxy, &mut child);
        if result.is_err() {
            break;
        }
        answered += 1;
    }
    let all = questions.len();
    if result.is_ok() && questions.last().is_some_and(|it| it.0 == contract::FINISH) {
        result = child.leave().map_err(Into::into);
    }
    let verdict = match &result {
        Ok(()) => format!("it answered all {all} messages"),
        Err(error) if answered == all => format!("it answered all {all} messages, but {error}"),
        Err(error) => format!("it failed at message {} of {all}: {error}", answered + 1),
    };
    writeln!(stdout(), "verdict: {verdict}")?;
    stderr().write_all(&child.exit().log)?;
    result
}

/// A message to a program: its type, and all of it.
type Question<'a> = (u8, &'a [u8]);

fn questions<'a>(file: &Path, mut rest: &'a [u8]) -> Result<Vec<Question<'a>>, Box<dyn Error>> {
    let mut questions = Vec::new();
    while !rest.is_empty() {
        let header = contract::decode_header(rest);
        let (length, kind) = header.map_err(|error| format!("{}: {error}", file.display()))?;
        if ![contract::HELLO, contract::RUN, contract::FINISH].contains(&kind) {
            let name = file.display();
            return Err(format!("{name}: no message to a program has type {kind}").into());
        }
        let (message, behind) = rest
            .split_at_checked(contract::HEADER_LEN + length)
            .ok_or_else(|| format!("{}: the last message is cut short", file.display()))?;
        rest = behind;
        questions.push((kind, message));
    }
    Ok(questions)
}

/// HELLO with places in `scratch` for what the program writes, and without shared memory.
fn redirected(hello: &[u8], scratch: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut values: serde_json::Value = serde_json::from_slice(&hello[contract::HEADER_LEN..])?;
    for key in ["downloads", "qlog", "keylog"] {
        if let Some(place) = values.get_mut(key).filter(|place| place.is_string()) {
            let own = scratch.join(key);
            if key != "keylog" {
                fs::create_dir(&own)?;
            }
            *place = own.to_string_lossy().into();
        }
    }
    if let Some(keys) = values.as_object_mut() {
        keys.shift_remove("shared_memory");
    }
    let body = serde_json::to_vec(&values)?;
    Ok(contract::encode_message(contract::HELLO, &body))
}

/// Sends one message, and prints it and its answer.
fn ask(
    (kind, message): (u8, Vec<u8>),
    is_proxy: bool,
    child: &mut Child,
) -> Result<(), Box<dyn Error>> {
    let mut out = stdout().lock();
    let body = message[contract::HEADER_LEN..].to_vec();
    child.send(SentMessage::Other(message))?;
    match kind {
        contract::HELLO => {
            let body = child.receive(contract::READY)?;
            writeln!(out, "READY {}", String::from_utf8_lossy(&body))?;
        }
        contract::RUN => {
            let run = if is_proxy {
                Run::decode_for_proxy(&body)
            } else {
                Run::decode(&body)
            }?;
            let until = Time::from_nanos(run.until);
            write!(out, "RUN until {until}, {} arrivals: ", run.arrivals.len())?;
            out.flush()?;
            let body = child.receive(contract::RAN);
            let body = body.inspect_err(|_| drop(writeln!(out, "no answer")))?;
            let ran = if is_proxy {
                Ran::decode_of_proxy(&body)
            } else {
                Ran::decode(&body)
            }?;
            writeln!(out, "{}", in_words(&ran))?;
        }
        _ => {
            let body = child.receive(contract::BYE)?;
            writeln!(out, "BYE {}", String::from_utf8_lossy(&body))?;
            // That of a proxy has neither requests nor a handshake.
            if let Ok(bye) = serde_json::from_slice::<Bye>(&body) {
                writeln!(out, "{}", times(&bye))?;
            }
        }
    }
    Ok(())
}

fn in_words(ran: &Ran) -> String {
    let wake = match ran.next_wake {
        contract::NEVER => "never".to_owned(),
        wake => format!("at {}", Time::from_nanos(wake)),
    };
    let sent = ran.departures.first().zip(ran.departures.last());
    let sent = sent.map(|(first, last)| {
        let (first, last) = (Time::from_nanos(first.time), Time::from_nanos(last.time));
        format!(" from {first} to {last}")
    });
    let (count, sent) = (ran.departures.len(), sent.unwrap_or_default());
    let done = if ran.done { ", done" } else { "" };
    format!("{count} departures{sent}, wakes {wake}{done}")
}

/// The times that a record has, as the program itself says them.
fn times(bye: &Bye) -> String {
    let first = bye.requests.iter().filter_map(|it| it.first_byte_ns).min();
    let last = bye.requests.iter().filter_map(|it| it.last_byte_ns).max();
    let bytes: u64 = bye.requests.iter().map(|it| it.bytes).sum();
    let [handshake, first, last] = [bye.handshake_ns, first, last]
        .map(|time| time.map_or("never".to_owned(), |ns| Time::from_nanos(ns).to_string()));
    let error = bye.error.as_deref().unwrap_or("none");
    format!(
        "handshake {handshake}, first byte {first}, last byte {last}, {bytes} bytes, error: {error}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_writes_goes_to_the_scratch_folder() {
        let scratch = tempfile::tempdir().unwrap();
        let hello = br#"{"downloads": "/gone", "keylog": null, "seed": "1"}"#;
        let moved = redirected(
            &contract::encode_message(contract::HELLO, hello),
            scratch.path(),
        );
        let moved: serde_json::Value =
            serde_json::from_slice(&moved.unwrap()[contract::HEADER_LEN..]).unwrap();
        assert_eq!(
            moved["downloads"],
            scratch.path().join("downloads").to_str().unwrap()
        );
        assert!(scratch.path().join("downloads").is_dir());
        assert_eq!(
            (&moved["keylog"], &moved["seed"]),
            (&serde_json::Value::Null, &"1".into())
        );
    }

    #[test]
    fn messages_are_told_apart_and_a_cut_one_is_named() {
        let file = Path::new("client.frames");
        let hello = contract::encode_message(contract::HELLO, b"{}");
        let finish = contract::encode_message(contract::FINISH, &[]);
        let both = [hello.clone(), finish].concat();
        let kinds: Vec<u8> = questions(file, &both)
            .unwrap()
            .iter()
            .map(|it| it.0)
            .collect();
        assert_eq!(kinds, [contract::HELLO, contract::FINISH]);
        for (bytes, what) in [
            (&hello[..hello.len() - 1], "the last message is cut short"),
            (
                &contract::encode_message(contract::BYE, &[])[..],
                "has type 6",
            ),
        ] {
            let error = questions(file, bytes).unwrap_err().to_string();
            assert!(
                error.starts_with("client.frames: ") && error.contains(what),
                "{error}"
            );
        }
    }
}
