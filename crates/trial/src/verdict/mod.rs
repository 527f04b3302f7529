//! The verdict on a flow: how it ended, in one word and a detail (the words:
//! `schemas/record.toml`), by its end, the files that arrived, and what the wire shows.

mod files;
mod frames;
mod live;
mod page;
mod resumption;
mod silence;
mod verifier;
mod verifiers;

use std::collections::BTreeMap;

use bentpipe_analysis::DecodingGap;
use bentpipe_endpoint::contract::{Bye, Statistics};
use bentpipe_link::HostName;
use bentpipe_units::Time;

use crate::evidence::Drawing;
use crate::schema::Outcome;

pub(crate) use self::silence::silence;
pub use self::verifier::ProofFailure;
pub(crate) use self::verifier::unreported;
pub(crate) use self::verifiers::verifier;

/// The contract's words for the end of RFC 9000 section 10.1, and for a stack that gives up on a
/// handshake.
const TIMEOUTS: [&str; 2] = ["idle timeout", "handshake timeout"];

/// The end of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowEnd {
    /// The client is done, and so is the server, or it had time enough.
    Done,
    /// The time that it was to last is over.
    Cut,
    /// The scenario's timeout passed.
    TimeLimit,
    /// Neither side will ever wake, and nothing is under way.
    Deadlock,
}

/// The verdict on a flow: why it ended as it did.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The word.
    pub outcome: Outcome,
    /// The detail of the outcome; may be empty.
    pub detail: String,
    /// None: it did not get that far.
    pub end: Option<FlowEnd>,
    /// The client's final report; empty if it gave none.
    pub client: Bye,
    /// The account that a browser gives of how it drew its page.
    pub drawing: Drawing,
    /// The statistics that programs report of themselves.
    pub statistics: BTreeMap<HostName, Statistics>,
    /// The host whose program failed, if one did.
    pub culprit: Option<HostName>,
}

impl Verdict {
    /// On a conversation that ended in order; the files may still change it.
    #[must_use]
    pub fn of_end(end: FlowEnd, client: Bye, now: Time) -> Self {
        let timeout = match client.handshake_ns {
            None => Outcome::HandshakeTimeout,
            Some(_) => Outcome::TransferTimeout,
        };
        let came = client.requests.iter().any(|request| request.bytes > 0);
        let (outcome, detail) = match (end, client.error.as_deref()) {
            (FlowEnd::Cut, error) if came => (Outcome::Ok, error.unwrap_or_default().to_owned()),
            (FlowEnd::Cut, _) => (
                timeout,
                format!("no byte had come when the time was over at {now}"),
            ),
            (FlowEnd::TimeLimit, _) => (timeout, format!("the scenario's timeout of {now} passed")),
            (FlowEnd::Deadlock, _) => (
                timeout,
                format!("deadlock: after {now} neither side would ever wake"),
            ),
            (FlowEnd::Done, None) => (Outcome::Ok, String::new()),
            (FlowEnd::Done, Some(error)) if TIMEOUTS.contains(&error) => {
                (timeout, error.to_owned())
            }
            (FlowEnd::Done, Some(error)) => (Outcome::Ok, error.to_owned()),
        };
        Self {
            outcome,
            detail,
            end: Some(end),
            statistics: BTreeMap::from([(HostName::Client, client.statistics.clone())]),
            client,
            drawing: Drawing::default(),
            culprit: None,
        }
    }

    /// The statistics that the program of a host reported; empty if it reported none.
    #[must_use]
    pub fn statistics_of(&self, host: HostName) -> Statistics {
        self.statistics.get(&host).cloned().unwrap_or_default()
    }

    /// Adds what a proxy or the server says of itself and, where the trial did not come to a good
    /// end, of that.
    pub fn hear(&mut self, host: HostName, error: Option<&str>, statistics: Statistics) {
        self.statistics.insert(host, statistics);
        if let (false, Some(error)) = (self.outcome == Outcome::Ok && self.detail.is_empty(), error)
        {
            self.add(&format!("{host}: {error}"));
        }
    }

    /// On a program that failed the contract.
    #[must_use]
    pub fn of_failure(culprit: HostName, outcome: Outcome, detail: String) -> Self {
        Self {
            outcome,
            detail,
            culprit: Some(culprit),
            ..Self::default()
        }
    }

    /// Lets what arrived decide; `wrong` is what is wrong with it, and `untold` what the client
    /// does not report of it.
    pub fn take_files_into_account(
        &mut self,
        wrong: Option<(Outcome, String)>,
        untold: Option<String>,
    ) {
        match (wrong, untold) {
            (None, None) => self.outcome = Outcome::Ok,
            (None, Some(untold)) => {
                self.outcome = Outcome::Crashed;
                self.culprit = Some(HostName::Client);
                self.detail = untold;
            }
            (Some((outcome, what)), _) => {
                if self.outcome == Outcome::Ok || outcome == Outcome::CorruptFile {
                    self.outcome = outcome;
                }
                self.add(&what);
            }
        }
    }

    /// Lets the end decide on a transfer that was to last for a time: it is `ok` only if it was
    /// there until that was over.
    pub fn take_duration_into_account(&mut self) {
        if self.outcome == Outcome::Ok && self.end != Some(FlowEnd::Cut) {
            self.outcome = Outcome::MissingFile;
            self.add("the transfer ended before its time was over");
        }
    }

    /// Lets the wire decide on whether anything came of a transfer that was cut: a program in real
    /// time does not say, and may store nothing before it has all.
    pub fn take_arrivals_into_account(&mut self, came: bool) {
        let timeouts = [Outcome::HandshakeTimeout, Outcome::TransferTimeout];
        if came && self.end == Some(FlowEnd::Cut) && timeouts.contains(&self.outcome) {
            self.outcome = Outcome::Ok;
            self.detail.clear();
        }
    }

    /// Tells the timeouts apart by the wire, where nobody else can: a program in real time does not
    /// say when its handshake was complete.
    pub fn take_handshake_into_account(&mut self, is_connected: bool) {
        if self.outcome == Outcome::HandshakeTimeout && is_connected {
            self.outcome = Outcome::TransferTimeout;
        }
    }

    /// Adds who was silent to the report of a client that gave up by its own timeout, and not by
    /// the trial's.
    pub fn take_silence_into_account(&mut self, who: impl FnOnce() -> String) {
        let gave_up = self.end == Some(FlowEnd::Done) && self.outcome != Outcome::Ok;
        if let Some(words) = TIMEOUTS.iter().find(|it| self.detail.starts_with(**it))
            && gave_up
        {
            let behind = self.detail.split_off(words.len());
            self.detail = format!("{}: {}{behind}", self.detail, who());
        }
    }

    /// Lets the wire decide on a trial whose files all arrived; `flaw` is what it lacks.
    pub fn take_wire_into_account(&mut self, flaw: ProofFailure) {
        match flaw {
            ProofFailure::Other(what) => {
                self.outcome = Outcome::Unproven;
                self.add(&what);
            }
            ProofFailure::Sealed(what) => {
                self.outcome = Outcome::NoSecrets;
                self.add(&format!(
                    "the client wrote too few TLS secrets to prove the test case: {what}"
                ));
            }
        }
    }

    /// Tells of packets that could not be decoded, where what is left of the wire would mislead.
    pub fn take_gap_into_account(&mut self, gap: DecodingGap) {
        self.add(&format!("{gap}, so times are the client's"));
    }

    fn add(&mut self, what: &str) {
        let separator = if self.detail.is_empty() { "" } else { "; " };
        self.detail = format!("{}{separator}{what}", self.detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(handshake_ns: Option<u64>, error: Option<&str>) -> Bye {
        Bye {
            handshake_ns,
            requests: Vec::new(),
            error: error.map(str::to_owned),
            ..Bye::default()
        }
    }

    fn outcome(end: FlowEnd, client: Bye, wrong: Option<Outcome>) -> (Outcome, String) {
        let mut verdict = Verdict::of_end(end, client, Time::from_nanos(5_000_000_000));
        let wrong = wrong.map(|outcome| (outcome, "/file: 1 of 2 bytes".to_owned()));
        verdict.take_files_into_account(wrong, None);
        (verdict.outcome, verdict.detail)
    }

    #[test]
    fn timeouts_are_told_apart_by_the_handshake() {
        let missing = Some(Outcome::MissingFile);
        for (end, error) in [
            (FlowEnd::TimeLimit, None),
            (FlowEnd::Deadlock, None),
            (FlowEnd::Done, Some(TIMEOUTS[0])),
            (FlowEnd::Done, Some(TIMEOUTS[1])),
        ] {
            assert_eq!(
                outcome(end, client(None, error), missing).0,
                Outcome::HandshakeTimeout
            );
            assert_eq!(
                outcome(end, client(Some(1), error), missing).0,
                Outcome::TransferTimeout
            );
        }
        let (_, detail) = outcome(FlowEnd::TimeLimit, client(Some(1), None), missing);
        assert_eq!(
            detail,
            "the scenario's timeout of 5 s passed; /file: 1 of 2 bytes"
        );
    }

    #[test]
    fn a_transfer_that_was_cut_is_judged_by_what_came() {
        for (end, came, expected) in [
            (FlowEnd::Cut, true, Outcome::Ok),
            (FlowEnd::Cut, false, Outcome::HandshakeTimeout),
            (FlowEnd::TimeLimit, true, Outcome::HandshakeTimeout),
        ] {
            let silent = client(None, None);
            let mut verdict = Verdict::of_end(end, silent, Time::from_nanos(3_000_000_000));
            verdict.take_arrivals_into_account(came);
            assert_eq!(verdict.outcome, expected, "{end:?} {came}");
            assert_eq!(verdict.detail.is_empty(), expected == Outcome::Ok);
        }
    }

    #[test]
    fn files_decide() {
        let closed = || client(Some(1), Some("closed by peer: 7"));
        assert_eq!(outcome(FlowEnd::Done, closed(), None).0, Outcome::Ok);
        let missing = outcome(FlowEnd::Done, closed(), Some(Outcome::MissingFile));
        assert_eq!(
            missing,
            (
                Outcome::MissingFile,
                "closed by peer: 7; /file: 1 of 2 bytes".to_owned()
            )
        );
        assert_eq!(
            outcome(FlowEnd::TimeLimit, closed(), Some(Outcome::CorruptFile)).0,
            Outcome::CorruptFile
        );
    }
}
