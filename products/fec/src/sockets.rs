//! Real time: an end is told its place on standard input, and says at SIGTERM what it did, as the
//! last line of standard output.

use std::io::{Write, read_to_string, stdin, stdout};
use std::os::unix::net::UnixStream;

use bentpipe_endpoint::EndpointError;
use bentpipe_endpoint::contract::{ProxyBye, ProxyHello};
use bentpipe_endpoint::driver::Port;
use bentpipe_fec::Settings;
use bentpipe_fec::relay::Relay;
use signal_hook::consts::SIGTERM;

use crate::VERSION;
use crate::instructions::Instructions;

/// Serves until SIGTERM.
pub fn run(defaults: Settings) -> Result<(), EndpointError> {
    let text = read_to_string(stdin()).map_err(EndpointError::io("reading standard input"))?;
    let hello: ProxyHello = serde_json::from_str(&text)?;
    let Instructions {
        settings,
        client_side,
        listen,
        local,
        next_hop,
    } = Instructions::of(hello, defaults)?;
    let (ended, signal) = UnixStream::pair().map_err(EndpointError::io("making a pipe"))?;
    signal_hook::low_level::pipe::register(SIGTERM, signal)
        .map_err(EndpointError::io("handling SIGTERM"))?;
    let near = (Port::open(listen, &[])?, client_side);
    let mut relay = Relay::new(settings, near, (Port::open(local, &[])?, next_hop));
    say("ready")?;
    relay.run(&ended)?;
    let bye = ProxyBye {
        version: VERSION.to_owned(),
        error: None,
        statistics: relay.statistics(),
    };
    say(&serde_json::to_string(&bye)?)
}

fn say(line: &str) -> Result<(), EndpointError> {
    let mut out = stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(EndpointError::io("writing to standard output"))
}
