//! The job of a proxy in a trial, and its report at the end.

use std::net::SocketAddr;
use std::sync::Arc;

use bentpipe_endpoint::contract::{CONTRACT, HQ_INTEROP, ProxyBye, ProxyHello, Statistics};
use bentpipe_endpoint::{Clock, EndpointError, LogFile, LogFolder, Tls};
use bentpipe_noq_options::Report;
use bentpipe_pep::{Config, ConfigContext, Limits, NextHop, Place, Proxy};

use super::plain;

/// The job of a proxy: the parts of its HELLO beside the proxy's own configuration.
pub struct Job {
    /// Where datagrams on the client side come from, in virtual time.
    pub previous_hop: Option<SocketAddr>,
    /// Where clients connect to.
    pub listen: SocketAddr,
    /// Where they go.
    pub next_hop: SocketAddr,
    /// The congestion controllers' reports, once all is over.
    reports: [Option<Report>; 2],
    keylog: Option<LogFile>,
    qlog: Option<LogFolder>,
}

impl Job {
    /// Makes the proxy that `hello` asks for; `one_socket`: whether all that it sends to the next
    /// hop is from one address.
    pub fn new(
        hello: ProxyHello,
        clock: &Clock,
        real_time: bool,
        one_socket: bool,
    ) -> Result<(Self, Proxy), EndpointError> {
        check(&hello)?;
        let next_hop = address("next_hop", &hello.next_hop)?;
        let previous_hop = hello.previous_hop.as_deref();
        let previous_hop = previous_hop.map(|it| address("previous_hop", it));
        let keylog = hello.keylog.as_deref().map(LogFile::create).transpose()?;
        let qlog = hello.qlog.map(|path| LogFolder::new(path, "proxy"));
        let tls = |keylog| Tls {
            certs: &hello.certs,
            clock,
            alpn: HQ_INTEROP, // a connection has those that its client offers
            keylog,
        };
        let context = ConfigContext {
            place: place(&hello.place)?,
            next_hop: NextHop::Fixed(next_hop),
            client_tls: Arc::new(tls(None).server()?),
            server_tls: Arc::new(tls(keylog.as_ref()).client()?),
            limits: Limits::default(),
            qlog: qlog.clone(),
            real_time,
            clock: clock.clone(),
            paths: Default::default(),
        };
        let mut config: Config = Config::from_options(hello.options, context).map_err(plain)?;
        config.one_socket = one_socket;
        let protocols = hello.alpn.iter();
        config.pool.from_start = protocols
            .map(|alpn| (hello.server_name.clone(), alpn.clone().into_bytes()))
            .collect();
        let reports = [config.client.report.take(), config.server.report.take()];
        let job = Self {
            previous_hop: previous_hop.transpose()?,
            listen: address("listen", &hello.listen)?,
            next_hop,
            reports,
            keylog,
            qlog,
        };
        Ok((job, Proxy::new(config, clock.clone()).map_err(plain)?))
    }

    /// Completes all files, and says what happened.
    pub fn finish(self, proxy: Proxy) -> Result<ProxyBye, EndpointError> {
        let mut statistics = Statistics::default();
        for (metric, value) in proxy.statistics().entries() {
            statistics.say(metric.name, value);
        }
        for (side, report) in ["client_side", "server_side"]
            .into_iter()
            .zip(&self.reports)
        {
            for (name, value) in report.iter().flat_map(|report| report().into_entries()) {
                statistics.say(&format!("{side}_{name}"), value);
            }
        }
        // The library writes what it still buffers when it is dropped.
        drop(proxy);
        if let Some(qlog) = &self.qlog {
            qlog.complete()?;
        }
        if let Some(keylog) = &self.keylog {
            keylog.complete()?;
        }
        Ok(ProxyBye {
            statistics,
            ..ProxyBye::default()
        })
    }
}

fn check(hello: &ProxyHello) -> Result<(), EndpointError> {
    if hello.contract != CONTRACT {
        let what = format!(
            "version {} of the contract; this is {CONTRACT}",
            hello.contract
        );
        return Err(EndpointError::Unsupported(what));
    }
    if hello.role != "proxy" {
        return Err(EndpointError::Unsupported(format!("role {:?}", hello.role)));
    }
    Ok(())
}

fn place(text: &str) -> Result<Place, EndpointError> {
    match text {
        "terminal" => Ok(Place::Terminal),
        "gateway" => Ok(Place::Gateway),
        other => Err(EndpointError::Unsupported(format!("place {other:?}"))),
    }
}

/// An address of `hello`.
pub fn address(field: &'static str, value: &str) -> Result<SocketAddr, EndpointError> {
    value.parse().map_err(|_| EndpointError::Field {
        field,
        value: value.to_owned(),
        problem: "write an IP address and a port, such as 192.0.2.254:443".into(),
    })
}
