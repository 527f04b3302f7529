//! The version that the program in a guest reports.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use super::{STARTUP_TIMEOUT, wait};

/// Virtual time for a program to end that has said its version.
const A_MOMENT: Duration = Duration::from_millis(100);
const UNKNOWN: &str = "of a version that it does not say";

/// The version that the program prints when it is asked (contract, "Guests"). One that does not
/// know `--version` may start in place of an answer, and is ended.
pub(super) fn ask(command: &[String]) -> String {
    let (program, arguments) = command.split_first().expect("there is one");
    let mut question = Command::new(program);
    question.args(arguments).arg("--version").env_clear();
    question
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let Ok(mut asked) = question.spawn() else {
        return UNKNOWN.to_owned();
    };
    let output = asked.stdout.take().expect("it is piped");
    let (said, line) = channel();
    thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(output).read_line(&mut line); // what is no text is no version
        let _ = said.send(line); // it came too late
    });
    let line = line.recv_timeout(STARTUP_TIMEOUT).unwrap_or_default();
    wait(A_MOMENT);
    let _ = asked.kill(); // most have ended by now
    let succeeded = asked.wait().is_ok_and(|status| status.success());
    let line = line.trim();
    if succeeded && !line.is_empty() {
        line.to_owned()
    } else {
        UNKNOWN.to_owned()
    }
}
