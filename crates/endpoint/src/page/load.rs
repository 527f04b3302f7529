//! The load of a page: its requests, the files that their replies go to, and when what came.

use std::time::Duration;

use super::Resource;
use super::discovery::Discovery;
use crate::contract::RequestReport;
use crate::error::EndpointError;
use crate::files::Download;
use crate::setup::Setup;
use crate::words::{missing, nanos, path_of, wrong_request};

/// The load of a page. It has no connection: whoever has tells it what comes.
#[derive(Debug)]
pub struct PageLoad {
    now: Duration,
    resources: Vec<Resource>,
    discovery: Discovery,
    requests: Vec<(Download, RequestReport)>,
    /// What went wrong with a request first.
    failure: Option<String>,
    /// A file that could not be written.
    broken: Option<EndpointError>,
}

impl PageLoad {
    /// The page of a client's `setup`; its requests alone are one in which nothing leads to anything.
    /// So many requests may be under way at once.
    pub fn new(setup: &Setup, at_once: usize) -> Result<Self, EndpointError> {
        let folder = setup.downloads.as_deref();
        let folder = folder.ok_or_else(|| missing("downloads"))?;
        let request = |url: &String| {
            let path = path_of(url);
            let file = path.and_then(|path| Some((path, Download::new(folder, &path[1..])?)));
            let problem = "its path must name a file within the downloads folder";
            let (path, download) = file.ok_or_else(|| wrong_request(url, problem))?;
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
            discovery: Discovery::new(resources.clone(), at_once),
            resources,
            requests,
            failure: None,
            broken: None,
        })
    }

    /// Finds what the page begins with.
    pub fn start(&mut self, now: Duration) {
        self.now = now;
        self.discovery.start(now);
    }

    /// Says what time it is.
    pub fn set_time(&mut self, now: Duration) {
        self.now = now;
    }

    /// The number of the next resource to be asked for, if one is to be now: it is under way then.
    pub fn ask(&mut self) -> Option<usize> {
        let number = self.discovery.ask(self.now)?;
        self.requests[number].1.asked_ns = Some(nanos(self.now));
        Some(number)
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
        self.discovery.arrived(self.now, number, report.bytes);
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
        self.discovery.ended(self.now, number, ended.is_ok());
    }

    /// When [`PageLoad::ask`] is to be called next, though nothing comes.
    #[must_use]
    pub fn next_wake(&self) -> Option<Duration> {
        self.discovery.next_wake()
    }

    /// Whether all that was found has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.discovery.is_done()
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

/// What is known of each request.
fn resources(setup: &Setup) -> Result<Vec<Resource>, EndpointError> {
    if setup.page.is_empty() {
        return Ok(vec![Resource::FIRST; setup.requests.len()]);
    }
    let initiators = setup.page.iter().map(|it| it.initiator).enumerate();
    let is_behind =
        |(number, initiator): (usize, Option<usize>)| initiator.is_none_or(|it| it < number);
    if setup.page.len() != setup.requests.len() || !initiators.clone().all(is_behind) {
        return Err(EndpointError::Field {
            field: "page",
            value: format!("{} resources", setup.page.len()),
            problem: "there must be one for each request, each behind its initiator".to_owned(),
        });
    }
    Ok(setup.page.clone())
}
