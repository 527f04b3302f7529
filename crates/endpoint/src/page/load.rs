//! The load of a page or a live stream: its requests, the files that their replies go to, and when what came.

use std::time::Duration;

use super::discovery::Discovery;
use super::player::{Came, Player};
use super::{LiveStream, Resource};
use crate::contract::RequestReport;
use crate::error::EndpointError;
use crate::files::Download;
use crate::setup::Setup;
use crate::test_case::TestCase;
use crate::words::{missing, nanos};

/// What is asked for when.
#[derive(Debug)]
enum Plan {
    Page(Discovery),
    Live(Player),
}

/// The load of a page or a live stream. It has no connection: whoever has tells it what comes.
#[derive(Debug)]
pub struct PageLoad {
    now: Duration,
    resources: Vec<Resource>,
    plan: Plan,
    requests: Vec<(Download, RequestReport)>,
    /// What went wrong with a request first.
    failure: Option<String>,
    /// A file that could not be written.
    broken: Option<EndpointError>,
}

impl PageLoad {
    /// The page of a client's `setup`; its requests alone are one in which nothing leads to anything.
    pub fn new(setup: &Setup) -> Result<Self, EndpointError> {
        let folder = setup.downloads.as_deref();
        let folder = folder.ok_or_else(|| missing("downloads"))?;
        let request = |url: &String| {
            let (path, download) = Download::of_url(folder, url)?;
            let report = RequestReport {
                path: path.to_owned(),
                ..RequestReport::default()
            };
            Ok((download, report))
        };
        let requests = setup.requests.iter().map(request);
        let requests: Vec<_> = requests.collect::<Result<_, EndpointError>>()?;
        let resources = resources(setup)?;
        Ok(Self {
            now: Duration::ZERO,
            plan: match live(setup)? {
                Some(stream) => Plan::Live(Player::new(stream, requests.len())),
                None => Plan::Page(Discovery::new(resources.clone())),
            },
            resources,
            requests,
            failure: None,
            broken: None,
        })
    }

    /// Finds what the page begins with.
    pub fn start(&mut self, now: Duration) {
        self.now = now;
        match &mut self.plan {
            Plan::Page(page) => page.start(now),
            Plan::Live(player) => player.start(now),
        }
    }

    /// Says what time it is.
    pub fn set_time(&mut self, now: Duration) {
        self.now = now;
    }

    /// The number of the next resource to be asked for, if one is to be now: it is under way then. A
    /// connection must be there that takes the request.
    pub fn ask(&mut self) -> Option<usize> {
        let number = match &mut self.plan {
            Plan::Page(page) => page.ask(self.now),
            Plan::Live(player) => player.ask(self.now),
        }?;
        self.requests[number].1.asked_ns = Some(nanos(self.now));
        Some(number)
    }

    /// How many are to be asked for as soon as that can be.
    pub fn ready(&mut self) -> usize {
        match &mut self.plan {
            Plan::Page(page) => page.ready(self.now),
            Plan::Live(player) => player.ready(self.now),
        }
    }

    /// How many were asked for and have not ended.
    #[must_use]
    pub fn under_way(&self) -> usize {
        match &self.plan {
            Plan::Page(page) => page.under_way(),
            Plan::Live(player) => player.under_way(),
        }
    }

    /// The path of a resource, with its leading slash.
    #[must_use]
    pub fn path(&self, number: usize) -> &str {
        &self.requests[number].1.path
    }

    /// The value of its header `priority`.
    #[must_use]
    pub fn priority(&self, number: usize) -> String {
        self.resources[number].priority()
    }

    /// The head of a response has come.
    pub fn answered(&mut self, number: usize) {
        let report = &mut self.requests[number].1;
        report.first_byte_ns.get_or_insert(nanos(self.now));
    }

    /// Bytes of a resource have come.
    pub fn arrived(&mut self, number: usize, bytes: &[u8]) {
        let (download, report) = &mut self.requests[number];
        if let Err(error) = download.write(bytes) {
            self.broken.get_or_insert(error);
        }
        report.bytes += bytes.len() as u64;
        report.first_byte_ns.get_or_insert(nanos(self.now));
        report.last_byte_ns = Some(nanos(self.now));
        if let Plan::Page(page) = &mut self.plan {
            page.arrived(self.now, number, report.bytes);
        }
    }

    /// A resource has come to its end, or will not: in words why.
    pub fn ended(&mut self, number: usize, ended: &Result<(), String>) {
        let (download, report) = &mut self.requests[number];
        let closed = match ended {
            Ok(()) => {
                report.last_byte_ns.get_or_insert(nanos(self.now));
                download.complete()
            }
            Err(why) => {
                let words = || format!("{}: {why}", report.path);
                self.failure.get_or_insert_with(words);
                download.close()
            }
        };
        if let Err(error) = closed {
            self.broken.get_or_insert(error);
        }
        let first = report.first_byte_ns.map(Duration::from_nanos);
        let came = Came {
            took: first.map_or(Duration::ZERO, |it| self.now.saturating_sub(it)),
            bytes: report.bytes,
        };
        match &mut self.plan {
            Plan::Page(page) => page.ended(self.now, number, ended.is_ok()),
            Plan::Live(player) => player.ended(ended.is_ok().then_some(came)),
        }
    }

    /// When there is more to be asked for, though nothing comes.
    #[must_use]
    pub fn next_wake(&self) -> Option<Duration> {
        match &self.plan {
            Plan::Page(page) => page.next_wake(),
            Plan::Live(player) => player.due().filter(|due| *due > self.now),
        }
    }

    /// Whether all that was found has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.plan {
            Plan::Page(page) => page.is_done(),
            Plan::Live(player) => player.is_done(),
        }
    }

    /// The error of a file that could not be written, once.
    pub fn check(&mut self) -> Result<(), EndpointError> {
        self.broken.take().map_or(Ok(()), Err)
    }

    /// Completes the files as far as they came; says what became of each request, and what failed first.
    pub fn finish(&mut self) -> Result<(Vec<RequestReport>, Option<String>), EndpointError> {
        self.check()?;
        let mut reports = Vec::new();
        for (mut download, report) in std::mem::take(&mut self.requests) {
            download.close()?;
            reports.push(report);
        }
        Ok((reports, self.failure.take()))
    }
}

/// A resource that waits for longer is none.
const MOST_WAIT_MS: u64 = 3_600_000;
/// The last of urgencies (RFC 9218, section 4.1).
const MOST_URGENCY: u8 = 7;

/// What is known of each request.
fn resources(setup: &Setup) -> Result<Vec<Resource>, EndpointError> {
    if setup.test_case != TestCase::Page && setup.page.is_empty() {
        return Ok(vec![Resource::FIRST; setup.requests.len()]);
    }
    match problem(setup) {
        None => Ok(setup.page.clone()),
        Some(problem) => Err(EndpointError::Field {
            field: "page",
            value: format!("{} resources", setup.page.len()),
            problem,
        }),
    }
}

/// The live stream of a client, in `live`.
fn live(setup: &Setup) -> Result<Option<LiveStream>, EndpointError> {
    let is_live = setup.test_case == TestCase::Live;
    let problem = match &setup.live {
        None if !is_live => return Ok(None),
        None => "it must be there in test case \"live\"",
        Some(_) if !is_live => "it is of test case \"live\" alone",
        Some(it) if it.rates_bps.is_empty() => "rates_bps: there must be one",
        Some(it) if !it.rates_bps.is_sorted() => "rates_bps: the lowest must come first",
        Some(it) if !(1..=MOST_WAIT_MS).contains(&it.segment_ms) => {
            "segment_ms: it is 1 to 3600000"
        }
        Some(it) if it.there == 0 => "there: one segment at least must be there",
        Some(it) if !setup.requests.len().is_multiple_of(it.rates_bps.len()) => {
            "there must be a request for each segment at each rate"
        }
        Some(it) => return Ok(Some(it.clone())),
    };
    Err(EndpointError::Field {
        field: "live",
        value: format!("{:?}", setup.live),
        problem: problem.to_owned(),
    })
}

/// What is wrong with a page.
fn problem(setup: &Setup) -> Option<String> {
    let case = setup.test_case;
    if case != TestCase::Page {
        return Some(format!("there is none in test case {:?}", case.name()));
    }
    if setup.page.len() != setup.requests.len() {
        let requests = setup.requests.len();
        return Some(format!("there must be one for each of {requests} requests"));
    }
    let wrong = |(number, it): (usize, &Resource)| {
        let what = if it.initiator.is_some_and(|it| it >= number) {
            "it must stand behind its initiator".to_owned()
        } else if it.urgency > MOST_URGENCY {
            format!("urgency: it is {MOST_URGENCY} at most")
        } else if it.wait_ms > MOST_WAIT_MS {
            format!("wait_ms: it is {MOST_WAIT_MS} at most")
        } else {
            return None;
        };
        Some(format!("resource {number}: {what}"))
    };
    setup.page.iter().enumerate().find_map(wrong)
}
