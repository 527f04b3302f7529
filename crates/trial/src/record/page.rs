//! The times of a page, from when its client asked for and got what.

use bentpipe_endpoint::contract::RequestReport;
use bentpipe_units::Time;

use super::numbers::seconds;
use crate::job::PageResource;

/// The share of the document that is its head: what that leads to blocks rendering.
const HEAD: f64 = 0.1;

/// The times of a page, in seconds from the client's first packet; null where no page was loaded, or
/// not to there.
#[derive(Debug, Default, PartialEq)]
pub struct PageTimes {
    pub rs_s: Option<f64>,
    pub fcp_s: Option<f64>,
    pub dcl_s: Option<f64>,
    pub plt_s: Option<f64>,
    pub requests_at_once: Option<u64>,
}

impl PageTimes {
    /// Those of a page whose client reports `requests`, one for each resource; of any other
    /// workload there are none.
    pub fn new(page: &[PageResource], requests: &[RequestReport], start: Time) -> Self {
        if page.is_empty() || page.len() != requests.len() {
            return Self::default();
        }
        let since = |time: u64| seconds(time.saturating_sub(start.as_nanos()));
        let all = || page.iter().zip(requests);
        let of_document = || all().filter(|(it, _)| it.is_of_document());
        let head = |it: &PageResource| {
            let after = it.found_after_bytes;
            after.is_some_and(|after| is_in_head(after, page[0].bytes))
        };
        let document = &requests[0];
        let blocking = of_document().filter(|(it, _)| head(it));
        let painted = last(blocking.map(|(_, it)| it.last_byte_ns));
        let parsed = last(of_document().map(|(_, it)| it.last_byte_ns));
        let later = |a: Option<u64>, b: Option<u64>| Some(a?.max(b?));
        Self {
            rs_s: document.first_byte_ns.map(since),
            fcp_s: later(document.first_byte_ns, painted).map(since),
            dcl_s: later(document.last_byte_ns, parsed).map(since),
            plt_s: last(requests.iter().map(|it| it.last_byte_ns)).map(since),
            requests_at_once: Some(at_once(requests)),
        }
    }
}

/// Whether what so many bytes of a document lead to is found in its head.
#[expect(clippy::cast_precision_loss, reason = "a share of a document")]
fn is_in_head(after: u64, document: u64) -> bool {
    after as f64 <= HEAD * document as f64
}

/// The last of some times; 0 of none at all. None if one of them never came.
fn last(mut times: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    times.try_fold(0, |last: u64, time| Some(last.max(time?)))
}

/// The most requests that were under way at one time. One that never ended is to the end.
fn at_once(requests: &[RequestReport]) -> u64 {
    let begun = requests.iter().filter_map(|it| Some((it.asked_ns?, 1)));
    let ended = requests.iter().filter(|it| it.asked_ns.is_some());
    let ended = ended.map(|it| (it.last_byte_ns.unwrap_or(u64::MAX), -1));
    let mut changes: Vec<(u64, i64)> = begun.chain(ended).collect();
    changes.sort_unstable(); // an end before a beginning at the same time
    let mut under_way = 0;
    let counts = changes.into_iter().map(|(_, change)| {
        under_way += change;
        under_way
    });
    u64::try_from(counts.max().unwrap_or(0)).expect("no more end than begin")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::ResourceType;

    fn resource(kind: ResourceType, initiator: Option<usize>, after: Option<u64>) -> PageResource {
        PageResource {
            kind,
            bytes: 1000,
            initiator,
            found_after_bytes: after,
            wait_ms: 0,
            urgency: 3,
            incremental: false,
        }
    }

    fn request(times: [u64; 3]) -> RequestReport {
        let [asked, first, last] = times.map(|time| Some(time * 1_000_000_000));
        RequestReport {
            asked_ns: asked,
            first_byte_ns: first,
            last_byte_ns: last,
            ..RequestReport::default()
        }
    }

    #[test]
    fn each_time_waits_for_what_it_is_of() {
        use ResourceType::{Document, Image, Script, Stylesheet};
        let page = [
            resource(Document, None, None),
            resource(Stylesheet, Some(0), Some(100)),
            resource(Script, Some(0), Some(500)),
            resource(Image, Some(0), Some(50)),
            resource(Script, Some(2), None),
        ];
        let mut requests = [
            request([1, 2, 5]),
            request([2, 3, 4]),
            request([3, 4, 6]),
            request([2, 3, 9]),
            request([6, 7, 8]),
        ];
        let times = PageTimes::new(&page, &requests, Time::from_nanos(1_000_000_000));
        let expected = PageTimes {
            rs_s: Some(1.0),
            fcp_s: Some(3.0),
            dcl_s: Some(5.0),
            plt_s: Some(8.0),
            requests_at_once: Some(4),
        };
        assert_eq!(times, expected);
        requests[2].last_byte_ns = None;
        let unfinished = PageTimes::new(&page, &requests, Time::from_nanos(1_000_000_000));
        assert_eq!(
            (unfinished.fcp_s, unfinished.dcl_s, unfinished.plt_s),
            (Some(3.0), None, None)
        );
        assert_eq!(
            PageTimes::new(&[], &requests, Time::ZERO),
            PageTimes::default()
        );
    }
}
