//! The job of an end in a trial.

use std::net::SocketAddr;
use std::sync::Arc;

use bentpipe_endpoint::contract::{CONTRACT, H3, ProxyHello, TunnelEnds};
use bentpipe_endpoint::{Clock, EndpointError, LogFile, LogFolder, Role, Surroundings, Tls};
use bentpipe_masque::{
    Access, Client, ClientSettings, IpSettings, IpTemplate, MasqueProxy, Prefix, ProxySettings,
    Purpose, Route, Settings, Target, Template,
};
use bentpipe_service::quota::ConnectionLimits;

use super::end::{End, Job, Kind};

/// The limits of a proxy of a trial, which has one client.
const CONNECTIONS: usize = 16;
const REQUESTS: u32 = 64;

/// The end that `hello` asks for; `proxy`: where its proxy is, if not at the next hop.
pub fn make(
    hello: ProxyHello,
    clock: &Clock,
    real_time: bool,
    proxy: Option<SocketAddr>,
) -> Result<End, EndpointError> {
    if hello.contract != CONTRACT {
        let what = format!("version {} of the contract", hello.contract);
        return Err(EndpointError::Unsupported(what));
    }
    let previous_hop = hello.previous_hop.as_deref();
    let previous_hop = previous_hop.map(|it| address("previous_hop", it));
    let job = Job {
        previous_hop: previous_hop.transpose()?,
        listen: address("listen", &hello.listen)?,
        local: address("local", &hello.local)?,
        next_hop: address("next_hop", &hello.next_hop)?,
        keylog: hello.keylog.as_deref().map(LogFile::create).transpose()?,
        qlog: hello.qlog.map(|path| LogFolder::new(path, "proxy")),
        tunnel: hello.tunnel.as_ref().map(tunnel).transpose()?,
    };
    let tls = Tls {
        certs: &hello.certs,
        clock,
        alpn: H3,
        keylog: job.keylog.as_ref(),
    };
    // The server is a name and a port for the client; the proxy knows where that is.
    let target = Target::new(&hello.server_name, &job.next_hop.port().to_string());
    let target = target.map_err(EndpointError::failed)?;
    let around = |role| Surroundings {
        role,
        real_time,
        qlog: job.qlog.clone(),
        clock: clock.clone(),
    };
    let kind = match hello.place.as_str() {
        "terminal" => {
            let wanted = match job.tunnel {
                None => Purpose::Udp {
                    template: Template::of_proxy("server").map_err(EndpointError::failed)?,
                    target,
                },
                Some(_) => Purpose::Ip {
                    template: IpTemplate::of_proxy("server").map_err(EndpointError::failed)?,
                    clients: Some(vec![Prefix::of(job.local.ip())]),
                },
            };
            let settings = ClientSettings {
                tunnel: Settings::take(hello.options, &around(Role::Client))?,
                proxy: proxy
                    .or(job.tunnel.map(|[_, gateway]| gateway))
                    .unwrap_or(job.next_hop),
                proxy_name: "server".to_owned(), // what the trial's certificate says
                wanted,
                token: None,
                tls: tls.client()?,
            };
            Kind::Client(Box::new(Client::new(settings, clock.clone())?))
        }
        "gateway" => {
            let settings = ProxySettings {
                tunnel: Settings::take(hello.options, &around(Role::Server))?,
                ip: job.tunnel.map(|_| IpSettings::Shared(access(&job))),
                tls: tls.server()?,
                tokens: Vec::new(),
                connections: ConnectionLimits {
                    total: CONNECTIONS,
                    of_client: CONNECTIONS,
                },
                quota: Arc::default(),
                requests: REQUESTS,
                idle: None,
                connection_ids: None,
            };
            Kind::Proxy(Box::new(MasqueProxy::new(settings, clock.clone())?), target)
        }
        other => return Err(field("place", other, "want terminal or gateway")),
    };
    Ok(End::new(job, kind))
}

/// The addresses of a trial: one client's, and the server's.
fn access(job: &Job) -> Access {
    Access {
        clients: vec![Prefix::of(job.local.ip())],
        routes: vec![Route::to(Prefix::of(job.next_hop.ip()))],
    }
}

/// The ends of a tunnel of IP packets.
pub fn tunnel(ends: &TunnelEnds) -> Result<[SocketAddr; 2], EndpointError> {
    Ok([
        address("tunnel.local", &ends.local)?,
        address("tunnel.remote", &ends.remote)?,
    ])
}

/// An address of `hello`.
pub fn address(name: &'static str, text: &str) -> Result<SocketAddr, EndpointError> {
    let parsed = text.parse();
    parsed.map_err(|_| field(name, text, "want an address and a port"))
}

fn field(field: &'static str, value: &str, problem: &str) -> EndpointError {
    EndpointError::Field {
        field,
        value: value.to_owned(),
        problem: problem.to_owned(),
    }
}
