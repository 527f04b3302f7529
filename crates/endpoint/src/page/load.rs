//! The load of a page or a live stream: its requests, the files that their replies go to, and when
//! what came.

use std::time::Duration;

use super::discovery::Discovery;
use super::player::Player;
use super::{Delivery, LiveStream, Plan, Resource};
use crate::contract::RequestReport;
use crate::error::EndpointError;
use crate::files::Download;
use crate::setup::Setup;
use crate::test_case::TestCase;
use crate::tickets::Resume;
use crate::words::{missing, nanos};

/// The load of a page or a live stream. It has no connection: whoever has tells it what comes.
#[derive(Debug)]
pub struct PageLoad {
    now: Duration,
    resources: Vec<Resource>,
    plan: Box<dyn Plan>,
    requests: Vec<(Download, RequestReport)>,
    /// The first error of a request.
    failure: Option<String>,
    /// A file that could not be written.
    broken: Option<EndpointError>,
}

impl PageLoad {
    /// The page of a client's `setup`; its requests alone are one in which nothing leads to
    /// anything.
    pub fn new(setup: &Setup) -> Result<Self, EndpointError> {
        let (_, requests) = visits(setup);
        let plan: Box<dyn Plan> = match live(setup)? {
            Some(stream) => Box::new(Player::new(stream, requests.len())),
            None => Box::new(Discovery::new(resources(setup)?)),
        };
        Self::with(setup, requests, resources(setup)?, plan)
    }

    /// The visit before it, whose ticket it has (`endpoints/contract/pages.md`);
    /// `None`: it has none.
    pub fn earlier(setup: &Setup) -> Result<Option<Self>, EndpointError> {
        let (requests, _) = visits(setup);
        if requests.is_empty() {
            return Ok(None);
        }
        let resources = vec![Resource::FIRST; requests.len()];
        let plan = Box::new(Discovery::new(resources.clone()));
        Self::with(setup, requests, resources, plan).map(Some)
    }

    fn with(
        setup: &Setup,
        requests: &[String],
        resources: Vec<Resource>,
        plan: Box<dyn Plan>,
    ) -> Result<Self, EndpointError> {
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
        let requests = requests.iter().map(request);
        Ok(Self {
            now: Duration::ZERO,
            plan,
            resources,
            requests: requests.collect::<Result<_, EndpointError>>()?,
            failure: None,
            broken: None,
        })
    }

    /// Finds what the page begins with.
    pub fn start(&mut self, now: Duration) {
        self.now = now;
        self.plan.start(now);
    }

    /// Says what time it is.
    pub fn set_time(&mut self, now: Duration) {
        self.now = now;
    }

    /// The number of the next resource to be asked for, if one is to be now: it is under way then.
    /// A connection must be there that takes the request.
    pub fn ask(&mut self) -> Option<usize> {
        let number = self.plan.ask(self.now)?;
        self.requests[number].1.asked_ns = Some(nanos(self.now));
        Some(number)
    }

    /// The number of requests that are to be sent as soon as possible.
    pub fn ready(&mut self) -> usize {
        self.plan.ready(self.now)
    }

    /// The number of requests that were sent and have not ended.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.plan.under_way()
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
        self.plan.arrived(self.now, number, report.bytes);
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
        let [first, last] = [report.first_byte_ns, report.last_byte_ns];
        let came = Delivery {
            took: Duration::from_nanos(first.zip(last).map_or(0, |(first, last)| last - first)),
            bytes: report.bytes,
        };
        let came = ended.is_ok().then_some(came);
        self.plan.ended(self.now, number, came);
    }

    /// The time at which another request is due, if nothing arrives before.
    #[must_use]
    pub fn next_wake(&self) -> Option<Duration> {
        self.plan.next_wake(self.now)
    }

    /// Whether all that was found has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.plan.is_done()
    }

    /// The error of a file that could not be written, once.
    pub fn check(&mut self) -> Result<(), EndpointError> {
        self.broken.take().map_or(Ok(()), Err)
    }

    /// Completes the files as far as they came; says what became of each request, and what failed
    /// first.
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

/// The requests of an earlier visit, whose ticket that which counts has, and those of the latter.
fn visits(setup: &Setup) -> (&[String], &[String]) {
    let is_second = setup.test_case.is_of_page() && setup.test_case.resume() != Resume::Nothing;
    let earlier = usize::from(is_second).min(setup.requests.len());
    setup.requests.split_at(earlier)
}

/// The description of each request of the visit that is measured.
fn resources(setup: &Setup) -> Result<Vec<Resource>, EndpointError> {
    if !setup.test_case.is_of_page() && setup.page.is_empty() {
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
        None => "it must be there in test case \"live\"".to_owned(),
        Some(_) if !is_live => "it is of test case \"live\" alone".to_owned(),
        Some(it) => match it.problem(setup.requests.len()) {
            None => return Ok(Some(it.clone())),
            Some(problem) => problem,
        },
    };
    Err(EndpointError::Field {
        field: "live",
        value: serde_json::to_string(&setup.live).unwrap_or_default(),
        problem,
    })
}

/// The flaw of a page, if it has one.
fn problem(setup: &Setup) -> Option<String> {
    let case = setup.test_case;
    if !case.is_of_page() {
        return Some(format!("there is none in test case {:?}", case.name()));
    }
    let (_, requests) = visits(setup);
    if setup.page.len() != requests.len() {
        let requests = requests.len();
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
