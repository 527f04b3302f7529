//! The measures of frames with deadlines: how many came in time, and how old they were when they
//! came.

use bentpipe_endpoint::FrameStream;
use bentpipe_endpoint::contract::RequestReport;

use crate::job::FlowJob;
use crate::numbers::{float, nearest_rank, seconds};
use crate::verdict::Verdict;

const NS_PER_MS: u64 = 1_000_000;

/// The arrival of frames, as a viewer reports it; null where there were none. Percentiles of ages
/// are over all frames, of which those that never came whole are older than any.
#[derive(Debug, Default, PartialEq)]
pub struct FrameArrivals {
    pub frames: Option<u64>,
    pub late_frames: Option<u64>,
    pub lost_frames: Option<u64>,
    pub in_time_share: Option<f64>,
    pub frame_age_median_s: Option<f64>,
    pub frame_age_p95_s: Option<f64>,
    pub frame_age_p99_s: Option<f64>,
    pub frame_age_max_s: Option<f64>,
}

impl FrameArrivals {
    /// The arrivals of a flow's frames.
    pub fn of(flow: &FlowJob, verdict: &Verdict) -> Self {
        let requests = &verdict.client.requests;
        match &flow.frames {
            Some(stream) if requests.len() == flow.requests.len() => Self::new(stream, requests),
            _ => Self::default(),
        }
    }

    fn new(stream: &FrameStream, requests: &[RequestReport]) -> Self {
        let ages = requests
            .iter()
            .filter_map(|it| Some(it.last_byte_ns?.saturating_sub(it.asked_ns?)));
        let mut ages: Vec<u64> = ages.collect();
        ages.sort_unstable();
        let deadline = stream.deadline_ms * NS_PER_MS;
        let late = ages.iter().filter(|age| **age > deadline).count();
        let percentile = |percent| {
            let age = nearest_rank(&ages, requests.len(), percent)?;
            Some(seconds(*age))
        };
        Self {
            frames: Some(requests.len() as u64),
            late_frames: Some(late as u64),
            lost_frames: Some((requests.len() - ages.len()) as u64),
            in_time_share: Some(float((ages.len() - late) as u64) / float(requests.len() as u64)),
            frame_age_median_s: percentile(50),
            frame_age_p95_s: percentile(95),
            frame_age_p99_s: percentile(99),
            frame_age_max_s: ages.last().map(|age| seconds(*age)),
        }
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_endpoint::Carrier;

    use super::*;

    #[test]
    fn frames_are_in_time_late_or_lost() {
        let stream = FrameStream {
            interval_us: 40_000,
            deadline_ms: 400,
            over: Carrier::Streams,
        };
        let report = |made: u64, came: Option<u64>| RequestReport {
            asked_ns: came.map(|_| made * NS_PER_MS),
            last_byte_ns: came.map(|it| it * NS_PER_MS),
            ..RequestReport::default()
        };
        let requests = [
            report(1000, Some(1300)),
            report(1040, Some(1440)),
            report(1080, None),
            report(1120, Some(1521)),
        ];
        let arrivals = FrameArrivals::new(&stream, &requests);
        let expected = FrameArrivals {
            frames: Some(4),
            late_frames: Some(1),
            lost_frames: Some(1),
            in_time_share: Some(0.5),
            frame_age_median_s: Some(0.4),
            frame_age_p95_s: None,
            frame_age_p99_s: None,
            frame_age_max_s: Some(0.401),
        };
        assert_eq!(arrivals, expected);
    }
}
