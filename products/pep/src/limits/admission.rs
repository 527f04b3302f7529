//! Whether a client that arrives is taken.

use bentpipe_service::quota::ConnectionPermit;
use std::net::IpAddr;

use crate::config::Config;
use crate::events::Refusal;

/// Where handshakes of this part of all connections that there may be are under way, clients have
/// to show that they are at their addresses.
const HANDSHAKES: usize = 4;

/// So do they where the first packets of this part are not complete. Each costs more memory than a
/// handshake does.
const INCOMPLETE_HELLOS: usize = 16;

/// The admission of clients, which ends when the proxy shuts down.
#[derive(Debug, Default)]
pub struct Admission {
    /// No client is accepted any more.
    pub is_draining: bool,
}

/// The clients that have shown nothing of themselves so far.
#[derive(Debug, Clone, Copy)]
pub struct Unproven {
    /// Clients whose `ClientHello` is not complete.
    pub hellos: usize,
    /// Clients whose handshakes are under way.
    pub handshakes: usize,
}

impl Admission {
    /// Whether a client has to show that it is at its address (RFC 9000, section 8.1.2): there are
    /// enough connections, or enough of this client, that some may be of somebody who is not there.
    pub fn wants_validation(config: &Config, unproven: Unproven, client: IpAddr) -> bool {
        let limits = config.limits.connection_limits();
        INCOMPLETE_HELLOS * unproven.hellos >= limits.total
            || HANDSHAKES * unproven.handshakes >= limits.total
            || config.quota.is_half_used(client, limits)
    }

    /// A permit for a connection of `client`.
    pub fn acquire(&self, config: &Config, client: IpAddr) -> Result<ConnectionPermit, Refusal> {
        if self.is_draining {
            return Err(Refusal::Draining);
        }
        let limits = config.limits.connection_limits();
        Ok(config.quota.acquire(client, limits)?)
    }
}
