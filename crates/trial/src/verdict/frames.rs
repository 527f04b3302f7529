//! The verification of frames with deadlines: what came whole is what was served, and server and
//! client did what `endpoints/contract/media.md` asks.
//!
//! Nobody is taken at his word alone. When frames were made is exact, in real time too: the
//! contract has a frame say when it was due, however late a timer fires. What one program says is
//! held against another's clock and against the wire with a tolerance, [`CLOCKS`].

mod schedule;
mod wire;

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use bentpipe_endpoint::contract::RequestReport;
use bentpipe_link::Direction;

use self::schedule::{made, off_schedule, span};
use self::wire::Wire;
use super::verifier::{CLOCKS, Kind, ProofFailure, Verifier, only_one};
use super::{FlowEnd, Verdict, files};
use crate::evidence::HopObservation;
use crate::job::{Role, TestCaseFacts};
use crate::schema::Outcome;
use crate::setup::FlowSetup;

/// The server makes frames, and gives up those whose time is over.
#[derive(Debug, Clone, Copy)]
struct Frames;

/// Frames with deadlines.
pub const KIND: Kind = Kind {
    verifiers: &[("frames", &Frames)],
};

impl Verifier for Frames {
    fn agrees(&self, facts: TestCaseFacts) -> bool {
        (facts.sender, facts.connections) == (Role::Server, 1)
    }

    fn arrived(
        &self,
        setup: &FlowSetup,
        said: &[RequestReport],
    ) -> io::Result<Option<(Outcome, String)>> {
        let requests = &setup.flow().requests;
        for (path, report) in requests.iter().zip(said) {
            if let Some(wrong) = misreported(&setup.downloads(), path, report)? {
                return Ok(Some(wrong));
            }
        }
        files::of_these(setup, &files::stored(setup, requests))
    }

    fn unfinished(&self, verdict: &Verdict) -> Option<(Outcome, String)> {
        let is_at_end = verdict.end == Some(FlowEnd::Done) && verdict.client.error.is_none();
        let what = "the frames did not come to their end".to_owned();
        (!is_at_end).then_some((Outcome::MissingFile, what))
    }

    fn untold(&self, said: &[RequestReport]) -> Option<String> {
        let came = |it: &RequestReport| it.bytes > 0 || it.last_byte_ns.is_some();
        let number = said
            .iter()
            .position(|it| came(it) && it.asked_ns.is_none())?;
        Some(format!(
            "frame {number} came, but the client does not report when it was made"
        ))
    }

    fn disobeyed(&self, setup: &FlowSetup, said: &[RequestReport]) -> Option<String> {
        let stream = setup.flow().frames.as_ref()?;
        let least = setup.job().scenario.min_one_way(Direction::Forward);
        off_schedule(stream, said)
            .or_else(|| too_young(said, Duration::from_nanos(least.as_nanos())))
    }

    fn shown(
        &self,
        setup: &FlowSetup,
        hops: &[HopObservation],
        said: &[RequestReport],
    ) -> Result<(), ProofFailure> {
        let flow = setup.flow();
        let here = only_one(&hops[0].connections)?;
        if !here.is_readable() {
            return Err(ProofFailure::Sealed(
                "the connection's streams could not be decrypted",
            ));
        }
        let Some(stream) = &flow.frames else {
            return Ok(());
        };
        let wire = Wire::new(stream, flow.requests.len(), said);
        let mut wrong = wire.wrong(here);
        if let Some(there) = hops.last().and_then(|hop| hop.carrying().first().copied()) {
            // A proxy's secrets are its own affair: a hop that cannot be read shows nothing.
            wrong = wrong.or_else(|| wire.outlived(there));
        }
        wrong.map_or(Ok(()), |what| Err(ProofFailure::Other(what)))
    }
}

/// The error in the client's report of a frame, by the file that it stored below `downloads`.
fn misreported(
    downloads: &Path,
    path: &str,
    report: &RequestReport,
) -> io::Result<Option<(Outcome, String)>> {
    let stored = match fs::symlink_metadata(downloads.join(path.trim_start_matches('/'))) {
        Ok(file) => Some(file.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let bytes = report.bytes;
    Ok(match (stored, report.last_byte_ns) {
        (None, Some(_)) => Some((
            Outcome::MissingFile,
            format!("{path}: the client reports that it came, and nothing was stored"),
        )),
        (Some(_), None) => Some((
            Outcome::Unproven,
            format!("{path}: it was stored, and the client does not report that it came"),
        )),
        (Some(size), Some(_)) if size != bytes => Some((
            Outcome::Unproven,
            format!("{path}: the client reports {bytes} bytes, and {size} were stored"),
        )),
        _ => None,
    })
}

/// The frame that came sooner than the path allows, whose least delay is `least`, if one did.
fn too_young(said: &[RequestReport], least: Duration) -> Option<String> {
    let ages = made(said).filter_map(|(number, at)| {
        let came = Duration::from_nanos(said[number].last_byte_ns?);
        Some((number, at, came))
    });
    let (number, at, came) = ages
        .into_iter()
        .find(|(_, at, came)| *came + CLOCKS < *at + least)?;
    let when = match came.checked_sub(at) {
        Some(age) => format!("{} after it was made", span(age)),
        None => "before it was made".to_owned(),
    };
    Some(format!(
        "frame {number} came {when}, and the path takes {}",
        span(least)
    ))
}

#[cfg(test)]
mod tests {
    use bentpipe_endpoint::contract::Bye;
    use bentpipe_endpoint::{Carrier, FrameStream};
    use bentpipe_units::Time;

    use super::schedule::began;
    use super::*;

    const STREAM: FrameStream = FrameStream {
        interval_us: 40_000,
        deadline_ms: 400,
        over: Carrier::Streams,
    };
    const MS: u64 = 1_000_000;

    /// A frame that was made and came, in milliseconds.
    fn frame(made: u64, came: Option<u64>) -> RequestReport {
        RequestReport {
            asked_ns: Some(made * MS),
            bytes: 7,
            last_byte_ns: came.map(|it| it * MS),
            ..RequestReport::default()
        }
    }

    #[test]
    fn frames_are_to_come_to_their_end() {
        let verdict = |end, error: Option<&str>| {
            let client = Bye {
                error: error.map(str::to_owned),
                ..Bye::default()
            };
            Verdict::of_end(end, client, Time::ZERO)
        };
        assert_eq!(Frames.unfinished(&verdict(FlowEnd::Done, None)), None);
        for cut in [
            verdict(FlowEnd::TimeLimit, None),
            verdict(FlowEnd::Done, Some("gone")),
        ] {
            let outcome = Frames.unfinished(&cut).map(|(outcome, _)| outcome);
            assert_eq!(outcome, Some(Outcome::MissingFile));
        }
    }

    #[test]
    fn of_what_came_the_client_says_when_it_was_made() {
        let lost = RequestReport::default();
        assert_eq!(Frames.untold(&[frame(1, Some(2)), lost.clone()]), None);
        assert_eq!(Frames.untold(std::slice::from_ref(&lost)), None);
        let silent = RequestReport {
            asked_ns: None,
            ..frame(1, None)
        };
        let said = Frames.untold(&[lost, silent]);
        assert!(said.is_some_and(|it| it.starts_with("frame 1 came, but")));
    }

    #[test]
    fn frames_are_made_when_they_are_due() {
        let lost = RequestReport::default();
        let mut said = [lost, frame(1040, None), frame(1080, None)];
        assert_eq!(off_schedule(&STREAM, &said), None);
        assert_eq!(began(&STREAM, &said), Some(Duration::from_secs(1)));
        said[2].asked_ns = Some(1080 * MS + 1);
        let words =
            "frame 2 was made 80.000001 ms after the first one, and it was due 80 ms after it";
        assert_eq!(off_schedule(&STREAM, &said).as_deref(), Some(words));
        assert_eq!(off_schedule(&STREAM, &[]), None);
    }

    #[test]
    fn no_frame_outruns_the_path() {
        let least = Duration::from_millis(300);
        let wrong = |came| too_young(&[frame(1000, None), frame(1040, Some(came))], least);
        assert_eq!((wrong(1340), wrong(1339)), (None, None));
        let early = "frame 1 came 298 ms after it was made, and the path takes 300 ms";
        assert_eq!(wrong(1338).as_deref(), Some(early));
        assert!(wrong(1000).is_some_and(|it| it.contains("before it was made")));
    }

    #[test]
    fn what_is_reported_is_what_was_stored() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a"), "7 bytes").expect("a file");
        let wrong = |path: &str, report: &RequestReport| {
            let found = misreported(folder.path(), path, report).expect("a folder to look into");
            found.map(|(outcome, _)| outcome)
        };
        assert_eq!(wrong("/a", &frame(1, Some(2))), None);
        assert_eq!(wrong("/b", &frame(1, None)), None);
        assert_eq!(wrong("/b", &frame(1, Some(2))), Some(Outcome::MissingFile));
        assert_eq!(wrong("/a", &frame(1, None)), Some(Outcome::Unproven));
        let more = RequestReport {
            bytes: 8,
            ..frame(1, Some(2))
        };
        assert_eq!(wrong("/a", &more), Some(Outcome::Unproven));
    }
}
