//! A client or a proxy between two hops, each of which has one address.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use bentpipe_endpoint::contract::ProxyBye;
use bentpipe_endpoint::driver::MAX_DATAGRAMS;
use bentpipe_endpoint::{EndpointError, LogFile, LogFolder, Received, Transmit};
use bentpipe_masque::{Client, MasqueProxy, Target};
use bentpipe_noq_options::Report;

/// The addresses and the files of an end.
pub struct Job {
    /// Where datagrams on the client side come from, in virtual time.
    pub previous_hop: Option<SocketAddr>,
    /// Where clients send to.
    pub listen: SocketAddr,
    /// Where it sends from on the server side.
    pub local: SocketAddr,
    /// Where it sends to.
    pub next_hop: SocketAddr,
    /// The file for secrets.
    pub keylog: Option<LogFile>,
    /// The folder for qlog files.
    pub qlog: Option<LogFolder>,
    /// The ends of the tunnel, this one's first, where it carries IP packets.
    pub tunnel: Option<[SocketAddr; 2]>,
}

/// An end of a trial.
pub struct End {
    pub job: Job,
    pub kind: Kind,
    /// Why a proxy's latest socket failed.
    pub error: Option<String>,
    report: Option<Report>,
}

/// Which of the two it is.
pub enum Kind {
    /// The client, at the terminal.
    Client(Box<Client>),
    /// The proxy, at the gateway, and the only target that it lets datagrams go to.
    Proxy(Box<MasqueProxy>, Target),
}

impl End {
    pub fn new(job: Job, mut kind: Kind) -> Self {
        let report = match &mut kind {
            Kind::Client(client) => client.take_report(),
            Kind::Proxy(proxy, _) => proxy.take_report(),
        };
        Self {
            job,
            kind,
            error: None,
            report,
        }
    }

    /// A packet of the tunnel has come.
    pub fn handle_datagram(&mut self, now: Duration, datagram: Received) {
        match &mut self.kind {
            Kind::Client(client) => client.handle_datagram(now, datagram),
            Kind::Proxy(proxy, _) => proxy.handle_datagram(now, datagram),
        }
    }

    /// The largest IP packet that it carries.
    pub fn largest_packet(&self) -> usize {
        match &self.kind {
            Kind::Client(client) => client.largest_packet(),
            Kind::Proxy(proxy, _) => proxy.largest_packet(),
        }
    }

    pub fn next_timeout(&self) -> Option<Duration> {
        match &self.kind {
            Kind::Client(client) => client.next_timeout(),
            Kind::Proxy(proxy, _) => proxy.next_timeout(),
        }
    }

    pub fn handle_timeout(&mut self, now: Duration) {
        match &mut self.kind {
            Kind::Client(client) => client.handle_timeout(now),
            Kind::Proxy(proxy, _) => proxy.handle_timeout(now),
        }
    }

    /// The next packets of the tunnel.
    pub fn poll_transmit(
        &mut self,
        now: Duration,
        most: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let most = NonZeroUsize::new(most.min(MAX_DATAGRAMS)).expect("a poll returns a datagram");
        buffer.clear();
        match &mut self.kind {
            Kind::Client(client) => client.poll_transmit(now, most, buffer),
            Kind::Proxy(proxy, _) => proxy.poll_transmit(now, most, buffer),
        }
    }

    /// Ends all connections; what says so to the peers is still to be sent.
    pub fn close(&mut self, now: Duration) {
        match &mut self.kind {
            Kind::Client(client) => client.close(now),
            Kind::Proxy(proxy, _) => proxy.close(now),
        }
    }

    /// Completes all files and says what happened.
    pub fn finish(self) -> Result<ProxyBye, EndpointError> {
        let (counts, error) = match self.kind {
            Kind::Client(mut client) => (client.counts(), client.error().map(str::to_owned)),
            Kind::Proxy(mut proxy, _) => (proxy.counts(), self.error),
        };
        let mut statistics = counts.of_trial();
        let report = self.report.iter().flat_map(|it| it().into_entries());
        for (name, value) in report {
            statistics.say(&format!("tunnel_{name}"), value);
        }
        if let Some(qlog) = &self.job.qlog {
            qlog.complete()?;
        }
        if let Some(keylog) = &self.job.keylog {
            keylog.complete()?;
        }
        Ok(ProxyBye {
            error,
            statistics,
            ..ProxyBye::default()
        })
    }
}
