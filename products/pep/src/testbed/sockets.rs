//! Real time: the job comes on standard input, and what is to be said at the end is the last line
//! of standard output.

use std::io::{read_to_string, stdin};
use std::net::{SocketAddr, UdpSocket};

use bentpipe_connections::listening;
use bentpipe_endpoint::contract::{ProxyBye, ProxyHello};
use bentpipe_endpoint::{Clock, EndpointError};
use bentpipe_fec::Settings;
use bentpipe_fec::hop::{self, RelayedHop};
use bentpipe_fec::relay::inner_socket;
use bentpipe_pep::Proxy;

use super::job::{Job, address};
use crate::VERSION;
use crate::program::serve_trial;

/// Serves until SIGTERM.
pub fn run() -> Result<(), EndpointError> {
    bentpipe_endpoint::keep_freed_memory();
    let text = read_to_string(stdin()).map_err(EndpointError::io("reading standard input"))?;
    let mut hello: ProxyHello = serde_json::from_str(&text)?;
    let settings = hop::take(&mut hello.options)?;
    let clock = Clock::start_now();
    let Some(settings) = settings else {
        let (job, proxy) = Job::new(hello, &clock, true, false)?;
        let listening = listen(job.listen)?;
        let proxy = serve_trial(proxy, clock, listening)?;
        return say(job.finish(proxy)?);
    };
    // What is forwarded untouched would come back by the tunnel's one address, with all else.
    if hello.options.get("auto").is_some_and(|it| it == "on") {
        let problem = "in real time fec excludes it: leave out auto=on or fec";
        return Err(EndpointError::option("auto", "on", problem));
    }
    // What is repaired has one address, so that all of a hop is one tunnel.
    let Repaired {
        hop,
        listening,
        made: (job, proxy),
    } = repair(settings, hello, &clock)?;
    let proxy = serve_trial(proxy, clock, listening)?;
    let mut bye = job.finish(proxy)?;
    hop.finish(&mut bye)?;
    say(bye)
}

/// A proxy whose hop is repaired, and its sockets.
struct Repaired {
    hop: RelayedHop,
    listening: Vec<UdpSocket>,
    made: (Job, Proxy),
}

fn repair(
    settings: Settings,
    mut hello: ProxyHello,
    clock: &Clock,
) -> Result<Repaired, EndpointError> {
    if hello.place == "terminal" {
        let local = address("local", &hello.local)?;
        let next_hop = address("next_hop", &hello.next_hop)?;
        let (hop, place) = RelayedHop::of_terminal(settings, local, next_hop)?;
        hello.next_hop = place.to_string();
        let made = Job::new(hello, clock, true, true)?;
        return Ok(Repaired {
            hop,
            listening: listen(made.0.listen)?,
            made,
        });
    }
    let made = Job::new(hello, clock, true, true)?;
    let inner = inner_socket()?;
    let place = inner.local_addr();
    let place = place.map_err(EndpointError::io("asking for the socket's address"))?;
    let hop = RelayedHop::of_gateway(settings, made.0.listen, place)?;
    Ok(Repaired {
        hop,
        listening: vec![inner],
        made,
    })
}

fn listen(place: SocketAddr) -> Result<Vec<UdpSocket>, EndpointError> {
    listening::group(place, 1, true).map_err(EndpointError::io("binding the socket"))
}

fn say(mut bye: ProxyBye) -> Result<(), EndpointError> {
    VERSION.clone_into(&mut bye.version);
    println!("{}", serde_json::to_string(&bye)?);
    Ok(())
}
