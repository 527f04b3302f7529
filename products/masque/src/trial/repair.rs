//! The option `fec`: repair of losses between the two ends, as by the treatment `fec`. In virtual
//! time it stands around an end, in real time beside it.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};

use bentpipe_endpoint::EndpointError;
use bentpipe_endpoint::contract::ProxyHello;
use bentpipe_fec::hop::{self, RelayedHop};
use bentpipe_fec::relay::inner_socket;

use super::job;

/// The option that turns repair on.
const OPTION: &str = "fec";
/// The largest datagram that repair carries, which is that of the tunnel's packets then.
const LARGEST: u16 = 1440;

/// Has the tunnel's packets fit what repairs them.
pub fn fit(options: &mut BTreeMap<String, String>) -> Result<(), EndpointError> {
    if !options.contains_key(OPTION) {
        return Ok(());
    }
    let mtu = || LARGEST.to_string();
    let mtu = options.entry("mtu".to_owned()).or_insert_with(mtu);
    // What is no number the end itself refuses.
    if mtu.parse::<u16>().is_ok_and(|it| it > LARGEST) {
        let problem = "with fec the tunnel's packets have 1440 bytes at most";
        return Err(EndpointError::option("mtu", mtu, problem));
    }
    Ok(())
}

/// The repair beside an end in real time, which is between it and the satellite.
pub struct Repair {
    /// The relay.
    pub hop: RelayedHop,
    /// The end's socket towards it.
    pub socket: UdpSocket,
    /// Where a client reaches its proxy by way of it.
    pub proxy: Option<SocketAddr>,
}

impl Repair {
    /// The repair that the options ask for, which are taken out of them; `None`: of none.
    pub fn start(hello: &mut ProxyHello) -> Result<Option<Self>, EndpointError> {
        fit(&mut hello.options)?;
        let Some(settings) = hop::take(&mut hello.options)? else {
            return Ok(None);
        };
        let ends = hello.tunnel.as_ref().map(job::tunnel).transpose()?;
        let socket = inner_socket()?;
        let repair = if hello.place == "terminal" {
            let local = job::address("local", &hello.local)?;
            let next_hop = job::address("next_hop", &hello.next_hop)?;
            let [own, other] = ends.unwrap_or([local, next_hop]);
            let (hop, place) = RelayedHop::of_terminal(settings, own, other)?;
            Self {
                hop,
                socket,
                proxy: Some(place),
            }
        } else {
            let listen = job::address("listen", &hello.listen)?;
            let [own, _] = ends.unwrap_or([listen, listen]);
            let inner = socket.local_addr();
            let inner = inner.map_err(EndpointError::io("asking for the socket's address"))?;
            Self {
                hop: RelayedHop::of_gateway(settings, own, inner)?,
                socket,
                proxy: None,
            }
        };
        Ok(Some(repair))
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_endpoint::Options;

    use super::*;

    #[test]
    fn packets_fit_what_repairs_them() {
        for (words, mtu) in [
            ("cc=cubic", Ok(None)),
            ("fec=20%", Ok(Some("1440"))),
            ("fec=20% mtu=1300", Ok(Some("1300"))),
            ("fec=20% mtu=1452", Err(())),
            ("mtu=1452", Ok(Some("1452"))),
        ] {
            let mut options = Options::parse(words).unwrap().into_map();
            let fits = fit(&mut options).map_err(|_| ());
            let found = fits.map(|()| options.get("mtu").map(String::as_str));
            assert_eq!(found, mtu, "{words}");
        }
    }
}
