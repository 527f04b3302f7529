//! The job of an end in a trial.

use std::net::SocketAddr;

use bentpipe_endpoint::contract::{CONTRACT, H3, ProxyHello};
use bentpipe_endpoint::{Clock, EndpointError, LogFile, LogFolder, Role, Surroundings, Tls};
use bentpipe_masque::{
    Client, ClientSettings, ProxySettings, Settings, Target, Template, UdpProxy,
};

use super::end::{End, Job, Kind};

/// The limits of a proxy of a trial, which has one client.
const CONNECTIONS: usize = 16;
const REQUESTS: u32 = 64;

/// The end that `hello` asks for.
pub fn make(hello: ProxyHello, clock: &Clock, real_time: bool) -> Result<End, EndpointError> {
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
            let template = Template::of_proxy("server").map_err(EndpointError::failed)?;
            let settings = ClientSettings {
                tunnel: Settings::take(hello.options, &around(Role::Client))?,
                proxy: job.next_hop,
                proxy_name: "server".to_owned(), // what the trial's certificate says
                template,
                target,
                token: None,
                tls: tls.client()?,
            };
            Kind::Client(Box::new(Client::new(settings, clock.clone())?))
        }
        "gateway" => {
            let settings = ProxySettings {
                tunnel: Settings::take(hello.options, &around(Role::Server))?,
                tls: tls.server()?,
                tokens: Vec::new(),
                connections: CONNECTIONS,
                requests: REQUESTS,
            };
            Kind::Proxy(Box::new(UdpProxy::new(settings, clock.clone())?), target)
        }
        other => return Err(field("place", other, "want terminal or gateway")),
    };
    Ok(End::new(job, kind))
}

fn address(name: &'static str, text: &str) -> Result<SocketAddr, EndpointError> {
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
