//! The times of a page, from when its client asked for and got what.

use bentpipe_endpoint::contract::RequestReport;
use bentpipe_units::Time;

use crate::evidence::Moments;
use crate::job::{FlowJob, PageResource};
use crate::numbers::seconds;
use crate::verdict::Verdict;

/// The part of the document that is its head, a tenth: what that leads to blocks rendering.
const HEAD: u64 = 10;

/// The times of a page, in seconds from the client's first packet; null where no page was loaded,
/// or not to there.
#[derive(Debug, Default, PartialEq)]
pub struct PageTimes {
    pub rs_s: Option<f64>,
    pub fcp_s: Option<f64>,
    pub lcp_s: Option<f64>,
    pub speed_index_s: Option<f64>,
    pub dcl_s: Option<f64>,
    pub plt_s: Option<f64>,
    pub requests_at_once: Option<u64>,
}

impl PageTimes {
    /// The times of a flow that began at `start`.
    pub fn of(flow: &FlowJob, verdict: &Verdict, start: Time) -> Self {
        let requests = flow.testcase_facts.measured(&verdict.client.requests);
        Self::new(&flow.page, requests, verdict.drawing.moments, start)
    }

    /// The times of a page whose client reports `requests`, one for each resource; of any other
    /// workload there are none. Where a browser reports when it drew, these times count.
    fn new(
        page: &[PageResource],
        requests: &[RequestReport],
        moments: Moments,
        start: Time,
    ) -> Self {
        if page.is_empty() || page.len() != requests.len() {
            return Self::default();
        }
        let since = |time: u64| seconds(time.saturating_sub(start.as_nanos()));
        let all = || page.iter().zip(requests);
        let of_document = || all().filter(|(it, _)| it.is_of_document());
        let head = page[0].bytes.div_ceil(HEAD);
        let is_in_head = |it: &PageResource| it.found_after_bytes.is_some_and(|it| it <= head);
        let blocking = of_document().filter(|(it, _)| is_in_head(it));
        let [painted, parsed] = [last(blocking), last(of_document())];
        let later = |a: Option<u64>, b: Option<u64>| Some(a?.max(b?));
        let begun = requests[0].first_byte_ns;
        let of_browser = |said: Option<u64>, computed: Option<u64>| {
            let known = if moments.are_said() { said } else { computed };
            known.map(since)
        };
        Self {
            rs_s: begun.map(since),
            fcp_s: of_browser(moments.first_paint_ns, later(begun, painted)),
            lcp_s: moments.largest_paint_ns.map(since),
            speed_index_s: moments.speed_index_ns.map(since),
            dcl_s: of_browser(
                moments.content_loaded_ns,
                later(end((&page[0], &requests[0])), parsed),
            ),
            plt_s: last(all()).map(since),
            requests_at_once: at_once(requests),
        }
    }
}

/// When all of a resource was there. None: it is not.
fn end((resource, said): (&PageResource, &RequestReport)) -> Option<u64> {
    said.last_byte_ns.filter(|_| said.bytes == resource.bytes)
}

/// When the last of some resources was there; 0 of none at all. None if one of them is not.
fn last<'a>(mut all: impl Iterator<Item = (&'a PageResource, &'a RequestReport)>) -> Option<u64> {
    all.try_fold(0, |last: u64, one| Some(last.max(end(one)?)))
}

/// The most requests that were under way at one time. One that never ended is to the end. None if
/// it is not known when any was asked for.
fn at_once(requests: &[RequestReport]) -> Option<u64> {
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
    Some(u64::try_from(counts.max()?).expect("no more end than begin"))
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
            bytes: 1000,
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
        let start = Time::from_nanos(1_000_000_000);
        let times =
            |requests: &[RequestReport], moments| PageTimes::new(&page, requests, moments, start);
        let said = Moments::default();
        let expected = PageTimes {
            rs_s: Some(1.0),
            fcp_s: Some(3.0),
            lcp_s: None,
            speed_index_s: None,
            dcl_s: Some(5.0),
            plt_s: Some(8.0),
            requests_at_once: Some(4),
        };
        assert_eq!(times(&requests, said), expected);
        let drawn = Moments {
            first_paint_ns: Some(4_500_000_000),
            largest_paint_ns: Some(5_500_000_000),
            ..said
        };
        let of_browser = times(&requests, drawn);
        assert_eq!(
            (of_browser.fcp_s, of_browser.lcp_s, of_browser.dcl_s),
            (Some(3.5), Some(4.5), None)
        );
        requests[2].bytes = 999;
        let unfinished = times(&requests, said);
        assert_eq!(
            (unfinished.fcp_s, unfinished.dcl_s, unfinished.plt_s),
            (Some(3.0), None, None)
        );
        assert_eq!(
            PageTimes::new(&[], &requests, said, Time::ZERO),
            PageTimes::default()
        );
    }
}
