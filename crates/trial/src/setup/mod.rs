//! The setup of a flow: what its programs are given, and where they leave what they make.
//!
//! It knows the job, and nothing of how the flow went.

mod addresses;
mod served_files;

use std::error::Error;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::slice;

use bentpipe_endpoint::LiveStream;
use bentpipe_endpoint::contract::{CONTRACT, ProxyHello, TunnelEnds};
use bentpipe_link::HostName;
use bentpipe_units::Span;

pub use self::addresses::{Network, address};
use crate::job::{EPOCH_UNIX_S, FlowJob, Job, PageResource, Role, Variant};

const PAGE: &str = "page.json";
const LIVE: &str = "live.json";
const FRAMES: &str = "frames.json";
const REPORT: &str = "report.json";
const PICTURE: &str = "page.png";

/// The files, folders and addresses of a flow of a job. The first flow is the one that is measured.
pub struct FlowSetup<'a> {
    number: usize,
    job: &'a Job,
    flow: &'a FlowJob,
    /// The size of all files.
    size_bytes: u64,
    /// The size of those that are measured.
    measured_bytes: u64,
    www: PathBuf,
    /// For what it leaves, until that is looked at.
    scratch: PathBuf,
}

impl<'a> FlowSetup<'a> {
    /// Its place within the trial's.
    fn folder(scratch: &Path, number: usize) -> PathBuf {
        scratch.join(number.to_string())
    }

    /// The folder for the files of the flow with that number, if they are made here: too large to
    /// be transferred within its duration.
    #[must_use]
    pub fn endless_folder(scratch: &Path, number: usize) -> PathBuf {
        Self::folder(scratch, number).join("www")
    }

    /// The flow with that number, and its place within `scratch`.
    pub(crate) fn new(job: &'a Job, number: usize, scratch: &Path) -> Result<Self, Box<dyn Error>> {
        let flow = &job.flows[number];
        if flow.testcase_facts.measured(&flow.requests).is_empty() {
            let (testcase, count) = (&flow.testcase, flow.requests.len());
            return Err(format!("{testcase}: {count} requests are too few").into());
        }
        let endless = Self::endless_folder(scratch, number);
        let scratch = Self::folder(scratch, number);
        fs::create_dir_all(scratch.join("downloads"))?;
        let mut setup = Self {
            number,
            job,
            flow,
            size_bytes: 0,
            measured_bytes: 0,
            www: job.www.clone(),
            scratch,
        };
        if let Some(duration) = flow.duration_ns {
            setup.www = endless;
            served_files::make_endless(job, flow, Span::from_nanos(duration), &setup.www)?;
        } else {
            setup.size_bytes = served_files::size_of(&setup.www, &flow.requests)?;
            let measured = flow.testcase_facts.measured(&flow.requests);
            setup.measured_bytes = served_files::size_of(&setup.www, measured)?;
        }
        if !flow.page.is_empty() {
            let page: Vec<_> = flow.page.iter().map(PageResource::discovery).collect();
            fs::write(setup.scratch.join(PAGE), serde_json::to_vec(&page)?)?;
        }
        if let Some(live) = &flow.live {
            check_live(live, &setup)?;
            fs::write(setup.scratch.join(LIVE), serde_json::to_vec(live)?)?;
        }
        if let Some(frames) = &flow.frames {
            if let Some(problem) = frames.problem(flow.requests.len()) {
                return Err(format!("the job: flows[{number}].frames: {problem}").into());
            }
            fs::write(setup.scratch.join(FRAMES), serde_json::to_vec(frames)?)?;
        }
        Ok(setup)
    }

    /// The file of the page that a client in socket mode is to load; none for any other workload.
    #[must_use]
    pub fn page(&self) -> Option<PathBuf> {
        (!self.flow.page.is_empty()).then(|| self.scratch.join(PAGE))
    }

    /// The file of the live stream that a client in socket mode is to play; none for any other
    /// workload.
    #[must_use]
    pub fn live(&self) -> Option<PathBuf> {
        (self.flow.live.is_some()).then(|| self.scratch.join(LIVE))
    }

    /// The file of the stream of frames that both ends in socket mode get; none for any other
    /// workload.
    #[must_use]
    pub fn frames(&self) -> Option<PathBuf> {
        (self.flow.frames.is_some()).then(|| self.scratch.join(FRAMES))
    }

    /// Whether `role` gets the requests: of frames both do.
    #[must_use]
    pub fn asks(&self, role: Role) -> bool {
        role == Role::Client || self.flow.frames.is_some()
    }

    /// The file that a client in socket mode leaves its report of a page, of frames or a live
    /// stream in.
    #[must_use]
    pub fn report(&self) -> Option<PathBuf> {
        self.flow.is_reported().then(|| self.scratch.join(REPORT))
    }

    /// The file that a browser leaves a picture in of a page that did not come whole.
    #[must_use]
    pub fn picture(&self) -> Option<PathBuf> {
        (!self.flow.page.is_empty()).then(|| self.scratch.join(PICTURE))
    }

    /// Addresses at both ends of a hop, that towards the client first.
    #[must_use]
    pub fn addresses(&self, hop: usize) -> [SocketAddr; 2] {
        self.ends(self.job.is_transparent(), hop)
    }

    /// Addresses at both ends of a hop, of each path, by number. The first are [`Self::addresses`];
    /// on each further path the client has another host's.
    #[must_use]
    pub fn paths(&self, hop: usize) -> Vec<[SocketAddr; 2]> {
        let [near, far] = self.addresses(hop);
        let further = 1..self.job.scenario.path_count();
        let further = further.map(|path| {
            let host = address(self.job.ip, Network::Access, self.client_number(path));
            [SocketAddr::new(host, near.port()), far]
        });
        std::iter::once([near, far]).chain(further).collect()
    }

    /// The number of the client's host in the access network, on a path.
    fn client_number(&self, path: usize) -> u8 {
        let number = 1 + self.number * self.job.scenario.path_count() + path;
        u8::try_from(number).expect("the job's check allows no more flows")
    }

    /// The same as proxies have it, which know of no tunnel.
    #[must_use]
    pub fn proxy_addresses(&self, hop: usize) -> [SocketAddr; 2] {
        self.ends(self.job.are_transparent(), hop)
    }

    fn ends(&self, is_transparent: bool, hop: usize) -> [SocketAddr; 2] {
        let hosts = if is_transparent {
            vec![HostName::Client, HostName::Server]
        } else {
            self.job.hosts()
        };
        let hop = hop.min(hosts.len() - 2);
        let own = u8::try_from(self.number + 1).expect("a job has no more flows than that");
        let at =
            |network, number, port| SocketAddr::new(address(self.job.ip, network, number), port);
        let near = match hosts[hop] {
            HostName::Terminal => at(Network::Satellite, 1, self.proxy_port(50_000)),
            HostName::Gateway => at(Network::Ground, 254, self.proxy_port(50_000)),
            _ => at(Network::Access, self.client_number(0), 50_000),
        };
        let far = match hosts[hop + 1] {
            HostName::Terminal => at(Network::Access, 254, self.proxy_port(443)),
            HostName::Gateway => at(Network::Satellite, 2, self.proxy_port(443)),
            _ => at(Network::Ground, own, 443),
        };
        [near, far]
    }

    /// The address at which clients find the host that has all servers in real time.
    #[must_use]
    pub fn server_host(&self) -> IpAddr {
        let tunnel = self.job.tunnel.as_ref();
        if tunnel.is_some_and(|tunnel| tunnel.to == HostName::Server) {
            return address(self.job.ip, Network::Tunnel, 2);
        }
        address(self.job.ip, Network::Ground, 1)
    }

    fn proxy_port(&self, first: u16) -> u16 {
        first + u16::try_from(self.number).expect("a job has fewer flows")
    }

    /// Its programs, each with where it is, from the client to the server.
    #[must_use]
    pub fn programs(&self) -> Vec<(HostName, &'a Variant)> {
        let proxies = self.job.proxies.iter();
        let proxies = proxies.map(|proxy| (proxy.place, &proxy.variant));
        let client = (HostName::Client, &self.flow.client);
        let server = (HostName::Server, &self.flow.server);
        [client]
            .into_iter()
            .chain(proxies)
            .chain([server])
            .collect()
    }

    /// The HELLO of the proxy on `host`, if it does not get its previous hop. Its addresses are
    /// where it listens, where it connects from, and its next hop.
    #[must_use]
    pub fn proxy_hello(
        &self,
        host: HostName,
        seed: u64,
        [listen, local, next_hop]: [SocketAddr; 3],
    ) -> ProxyHello {
        let proxy = self.job.proxies.iter().find(|it| it.place == host);
        let of_all = proxy.map(|it| it.variant.options.clone());
        let mut options = of_all.unwrap_or_default();
        options.extend(self.flow.middlebox.clone());
        ProxyHello {
            contract: CONTRACT,
            role: "proxy".to_owned(),
            place: host.name().to_owned(),
            options,
            seed: format!("{seed:016x}"),
            epoch_unix_s: EPOCH_UNIX_S,
            previous_hop: None,
            listen: listen.to_string(),
            local: local.to_string(),
            next_hop: next_hop.to_string(),
            tunnel: self.tunnel_ends(host),
            server_name: "server".to_owned(),
            alpn: vec![self.flow.alpn.clone()],
            certs: self.job.certs.clone(),
            keylog: Some(self.key_log(host)),
            qlog: self.qlog_of(host),
            shared_memory: None,
        }
    }

    /// The ends of the tunnel between middleboxes that encapsulate IP packets, that at the terminal
    /// first; `None`: there is no such tunnel.
    #[must_use]
    pub fn ip_tunnel(&self) -> Option<[SocketAddr; 2]> {
        self.job.encapsulates_ip().then(|| self.ends(false, 1))
    }

    /// The same as seen from one of them.
    fn tunnel_ends(&self, host: HostName) -> Option<TunnelEnds> {
        let ends = self.ip_tunnel()?.map(|it| it.to_string());
        let [local, remote] = match (host, ends) {
            (HostName::Terminal, ends) => ends,
            (_, [terminal, gateway]) => [gateway, terminal],
        };
        Some(TunnelEnds { local, remote })
    }

    /// The prefix of the names of its files: empty for the first flow.
    pub(crate) fn prefix(&self) -> String {
        match self.number {
            0 => String::new(),
            number => format!("flow{}-", number + 1),
        }
    }

    /// The folder for what its programs leave until that is looked at.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Its number, from 0; that of the flow that is measured.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Bytes of all its files; 0 of a duration.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Bytes of those of its files that are measured; 0 of a duration.
    pub(crate) fn measured_bytes(&self) -> u64 {
        self.measured_bytes
    }

    /// The folder with the files that are served.
    pub(crate) fn www(&self) -> &Path {
        &self.www
    }

    /// The job that it is part of.
    #[must_use]
    pub fn job(&self) -> &'a Job {
        self.job
    }

    /// The flow, as in the job.
    #[must_use]
    pub fn flow(&self) -> &'a FlowJob {
        self.flow
    }

    /// The folder that is `role`'s to serve from, if it sends.
    #[must_use]
    pub fn www_of(&self, role: Role) -> Option<&Path> {
        (role == self.flow.testcase_facts.sender).then_some(&self.www)
    }

    /// The folder that is `role`'s to store in, if it receives.
    #[must_use]
    pub fn downloads_of(&self, role: Role) -> Option<PathBuf> {
        (role == self.flow.testcase_facts.receiver()).then(|| self.downloads())
    }

    /// The folder for the qlog of the program on `host`, if one is wanted. Only the first flow has
    /// one.
    #[must_use]
    pub fn qlog_of(&self, host: HostName) -> Option<PathBuf> {
        let wanted = self.job.qlog && self.number == 0;
        wanted.then(|| self.job.folder.join("qlog").join(host.name()))
    }

    /// Makes the folders for qlogs, if any are wanted.
    pub(crate) fn make_qlog_folders(&self) -> io::Result<()> {
        for host in self.job.hosts() {
            if let Some(folder) = self.qlog_of(host) {
                fs::create_dir_all(folder)?;
            }
        }
        Ok(())
    }

    /// The TLS secrets of a hop, which the program at its end towards the client has written; empty
    /// if there are none.
    #[must_use]
    pub fn secrets(&self, hop: usize) -> String {
        let hop = if self.job.is_transparent() { 0 } else { hop };
        let host = self.job.hosts()[hop];
        fs::read_to_string(self.key_log(host)).unwrap_or_default()
    }

    /// The folder that files are stored in.
    #[must_use]
    pub fn downloads(&self) -> PathBuf {
        self.scratch.join("downloads")
    }

    /// The file for the TLS secrets of the connections that the program on `host` opens.
    #[must_use]
    pub fn key_log(&self, host: HostName) -> PathBuf {
        self.scratch.join(format!("{host}.keys"))
    }
}

/// An error if a live stream is none, or its files have other sizes than its rates say.
fn check_live(stream: &LiveStream, setup: &FlowSetup) -> Result<(), Box<dyn Error>> {
    let flow = setup.flow;
    if let Some(problem) = stream.problem(flow.requests.len()) {
        return Err(format!("the job: flows[{}].live: {problem}", setup.number).into());
    }
    for (path, rate) in flow.requests.iter().zip(stream.rates_bps.iter().cycle()) {
        let bytes = served_files::size_of(&setup.www, slice::from_ref(path))?;
        let wanted = stream.segment_bytes(*rate);
        if bytes != wanted {
            let what = format!("{path} has {bytes} bytes, and at {rate} bit/s it has {wanted}");
            return Err(format!("the job: flows[{}].live: {what}", setup.number).into());
        }
    }
    Ok(())
}
