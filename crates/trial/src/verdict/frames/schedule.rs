//! The schedule of frames: when each was made, by what the client says.

use std::time::Duration;

use bentpipe_endpoint::FrameStream;
use bentpipe_endpoint::contract::RequestReport;
use bentpipe_units::Span;

/// The time at which the first frame was made, by the first of which anything came; None if nothing
/// came.
pub fn began(stream: &FrameStream, said: &[RequestReport]) -> Option<Duration> {
    let (number, at) = made(said).next()?;
    Some(at.saturating_sub(stream.made(number)))
}

/// The frame that was not made when it was due, if one was not.
pub fn off_schedule(stream: &FrameStream, said: &[RequestReport]) -> Option<String> {
    let began = began(stream, said)?;
    let (number, at) = made(said).find(|(number, at)| began + stream.made(*number) != *at)?;
    let (after, due) = (span(at.saturating_sub(began)), span(stream.made(number)));
    Some(format!(
        "frame {number} was made {after} after the first one, and it was due {due} after it"
    ))
}

/// Frames by number, and when they were made, by the client's report.
pub fn made(said: &[RequestReport]) -> impl Iterator<Item = (usize, Duration)> {
    let all = said.iter().enumerate();
    all.filter_map(|(number, it)| Some((number, Duration::from_nanos(it.asked_ns?))))
}

/// A time as people read it.
pub fn span(time: Duration) -> Span {
    Span::from_nanos(u64::try_from(time.as_nanos()).expect("it is one of a trial"))
}
