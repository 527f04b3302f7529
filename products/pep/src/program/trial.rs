//! A worker for one trial, at an address of its host: no settings, no reload, and it ends when it
//! is asked to.

use std::net::UdpSocket;
use std::sync::Arc;

use bentpipe_endpoint::{Clock, EndpointError};
use bentpipe_pep::Proxy;
use bentpipe_service::log::Log;
use bentpipe_service::settings::LogSettings;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

use super::worker::{BypassOwners, Inbox, Message, Shared, Worker};

/// Serves at these sockets until SIGTERM; says `ready` when clients may come. What is left is the
/// proxy, with all that it counted.
pub fn serve_trial(
    proxy: Proxy,
    clock: Clock,
    sockets: Vec<UdpSocket>,
) -> Result<Proxy, EndpointError> {
    let _log = Log::install(super::LOGGED, LogSettings::default());
    let inbox = Inbox::new().map_err(EndpointError::io("making an eventfd"))?;
    let shared = Arc::new(Shared {
        inboxes: vec![inbox],
        bypass_owners: BypassOwners::default(),
        busy: 1.into(),
    });
    let worker = Worker::new(0, proxy, clock, sockets, shared.clone())?;
    let mut signals = Signals::new([SIGTERM]).map_err(EndpointError::io("handling signals"))?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            shared.inboxes[0].send(Message::End);
        }
    });
    println!("ready");
    worker.run()
}
