//! The instructions of a trial to an end of the tunnel.

use std::net::SocketAddr;

use bentpipe_endpoint::contract::{CONTRACT, ProxyHello};
use bentpipe_endpoint::{EndpointError, Options};
use bentpipe_fec::{Settings, Side};

/// An end's place and settings.
#[derive(Debug)]
pub struct Instructions {
    pub settings: Settings,
    /// The side towards the client; the one towards the server is the other.
    pub client_side: Side,
    pub listen: SocketAddr,
    pub local: SocketAddr,
    pub next_hop: SocketAddr,
}

impl Instructions {
    /// Those that `hello` has.
    pub fn of(hello: ProxyHello, defaults: Settings) -> Result<Self, EndpointError> {
        if hello.contract != CONTRACT {
            let what = format!("version {} of the contract", hello.contract);
            return Err(EndpointError::Unsupported(what));
        }
        let mut options = Options::new(hello.options);
        let settings = Settings::take(&mut options, defaults)?;
        options.finish()?;
        Ok(Self {
            settings,
            client_side: match hello.place.as_str() {
                "terminal" => Side::Plain,
                "gateway" => Side::Tunnel,
                other => return Err(field("place", other, "want terminal or gateway")),
            },
            listen: address("listen", &hello.listen)?,
            local: address("local", &hello.local)?,
            next_hop: address("next_hop", &hello.next_hop)?,
        })
    }
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
