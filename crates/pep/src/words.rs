//! A configuration from the words of a variant, such as `iw=100 access.cc=cubic mode=warm`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bentpipe_endpoint::{Clock, LogFolder};

use crate::config::{Config, NextHop};
use crate::error::PepError;

/// Where a proxy stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the user's end of the satellite's hop, which is on its server side.
    Terminal,
    /// At the other end: the satellite's hop is on its client side.
    Gateway,
}

/// What a configuration needs beside the words.
pub struct Basis {
    /// Where the proxy stands.
    pub place: Place,
    /// Where connections go.
    pub next_hop: NextHop,
    /// The certificate that clients are shown.
    pub client_tls: Arc<rustls::ServerConfig>,
    /// Whom the proxy trusts.
    pub server_tls: Arc<rustls::ClientConfig>,
    /// For a qlog per connection and side.
    pub qlog: Option<LogFolder>,
    /// Real time and sockets; else virtual time.
    pub real_time: bool,
    /// The time.
    pub clock: Clock,
}

/// Takes all `words`; refuses what it does not know.
///
/// Words of a hop are of the side that faces the satellite; with `access.` (terminal) or `ground.` (gateway) before them, of the other.
pub fn from_words(words: BTreeMap<String, String>, basis: Basis) -> Result<Config, PepError> {
    let _ = (words, basis);
    todo!("the skeleton only")
}
