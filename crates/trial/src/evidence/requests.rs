//! The requests of a page or a live stream, as its client reports them: `requests.json` of a trial.

use std::fs;
use std::io;
use std::path::Path;

use bentpipe_endpoint::LiveStream;
use bentpipe_endpoint::contract::RequestReport;
use bentpipe_units::Time;

use super::Drawing;
use crate::job::{FlowJob, PageResource};
use crate::numbers::seconds;
use crate::schema::{PageRequest, PageRequests};

/// The format of the file (`schemas/requests.toml`).
const FORMAT: u64 = 2;

impl PageRequests {
    /// The requests of the page or the live stream of `flow`, of which its client says `reports`;
    /// its first packet was sent at `start`. None if there is neither, or the client does not
    /// report on each request.
    pub fn new(flow: &FlowJob, reports: &[RequestReport], start: Time) -> Option<Self> {
        if let Some(stream) = &flow.live {
            return Self::of_segments(flow, stream, reports, start);
        }
        let facts = flow.testcase_facts;
        let (paths, reports) = (facts.measured(&flow.requests), facts.measured(reports));
        if flow.page.is_empty() || [paths.len(), reports.len()] != [flow.page.len(); 2] {
            return None;
        }
        let requests = (0..).zip(&flow.page).zip(reports);
        let requests = requests
            .map(|((number, resource), report)| request(paths, number, resource, report, start));
        Some(Self {
            format: FORMAT,
            film: Vec::new(),
            requests: requests.collect(),
        })
    }

    /// The requests of the segments that were asked for.
    fn of_segments(
        flow: &FlowJob,
        stream: &LiveStream,
        reports: &[RequestReport],
        start: Time,
    ) -> Option<Self> {
        if reports.len() != flow.requests.len() {
            return None;
        }
        let rates = stream.rates_bps.iter().cycle();
        let requests = (0..).zip(reports).zip(rates);
        let requests = requests.filter(|((_, report), _)| report.asked_ns.is_some());
        let requests = requests.map(|((number, report), rate)| {
            let segment = PageResource::segment(stream.segment_bytes(*rate));
            request(&flow.requests, number, &segment, report, start)
        });
        Some(Self {
            format: FORMAT,
            film: Vec::new(),
            requests: requests.collect(),
        })
    }

    /// Adds what a browser alone says.
    pub fn complete(&mut self, drawing: &Drawing, start: Time) {
        self.film = drawing.film_since(start);
        let protocols = drawing.protocols_of_last(self.requests.len());
        for (request, protocol) in self.requests.iter_mut().zip(protocols) {
            request.protocol = protocol;
        }
    }

    /// Writes them to `path`.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        fs::write(path, text)
    }
}

fn request(
    paths: &[String],
    number: usize,
    resource: &PageResource,
    report: &RequestReport,
    start: Time,
) -> PageRequest {
    let since = |time: u64| seconds(time.saturating_sub(start.as_nanos()));
    let is_whole = report.bytes == resource.bytes;
    PageRequest {
        path: paths[number].clone(),
        r#type: resource.kind,
        bytes: resource.bytes,
        initiator: resource.initiator.and_then(|it| paths.get(it).cloned()),
        urgency: resource.urgency,
        protocol: None,
        asked_s: report.asked_ns.map(since),
        first_byte_s: report.first_byte_ns.map(since),
        last_byte_s: report.last_byte_ns.filter(|_| is_whole).map(since),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A document, and a script that it leads to.
    fn flow() -> FlowJob {
        let program = json!({"name": "noq", "command": []});
        let facts = json!({"sender": "server", "connections": 1, "round_trips": 2,
            "saved_round_trips": 0});
        let page = |kind: &str, bytes: u64, initiator: Value| {
            json!({"type": kind, "bytes": bytes, "initiator": initiator, "found_after_bytes": null,
                "wait_ms": 0, "urgency": 1, "incremental": false})
        };
        let flow = json!({
            "testcase": "page", "testcase_facts": facts,
            "requests": ["/0-400.html", "/1-50.js"],
            "page": [page("document", 400, Value::Null), page("script", 50, json!(0))],
            "client": program, "server": program,
        });
        serde_json::from_value(flow).expect("a flow of a job")
    }

    fn report(bytes: u64, [asked, first, last]: [Option<u64>; 3]) -> RequestReport {
        RequestReport {
            asked_ns: asked,
            bytes,
            first_byte_ns: first,
            last_byte_ns: last,
            ..RequestReport::default()
        }
    }

    #[test]
    fn what_did_not_come_whole_has_no_end() {
        let reports = [
            report(400, [1, 2, 3].map(|it| Some(it * 1_000_000_000))),
            report(49, [Some(3_500_000_000), None, Some(4_000_000_000)]),
        ];
        let start = Time::from_nanos(1_000_000_000);
        let all = PageRequests::new(&flow(), &reports, start).expect("a page that is reported on");
        let expected = json!({"format": 2, "film": [], "requests": [
            {"path": "/0-400.html", "type": "document", "bytes": 400, "initiator": null,
                "urgency": 1,
                "protocol": null, "asked_s": 0.0, "first_byte_s": 1.0, "last_byte_s": 2.0},
            {"path": "/1-50.js", "type": "script", "bytes": 50, "initiator": "/0-400.html",
                "urgency": 1, "protocol": null, "asked_s": 2.5, "first_byte_s": null,
                    "last_byte_s": null},
        ]});
        assert_eq!(serde_json::to_value(&all).expect("JSON"), expected);
    }

    #[test]
    fn a_client_that_says_nothing_has_none() {
        assert!(PageRequests::new(&flow(), &[], Time::ZERO).is_none());
        let no_page = FlowJob {
            page: Vec::new(),
            ..flow()
        };
        assert!(PageRequests::new(&no_page, &[], Time::ZERO).is_none());
    }
}
