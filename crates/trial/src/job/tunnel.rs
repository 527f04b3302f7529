//! The tunnel of a trial: what its flows go through, encrypted, from the client to another host.

use bentpipe_link::HostName;
use serde::{Deserialize, Serialize};

use crate::job::Job;

/// The transport of a tunnel's own packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TunnelTransport {
    /// Datagrams: what is lost stays lost.
    Udp,
    /// One connection of TCP.
    Tcp,
}

/// A tunnel from the client to another host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunnelJob {
    /// Its kind (`kinds` of `middlebox.toml`).
    pub kind: String,
    /// The host at which it ends: the gateway or the server.
    pub to: HostName,
    /// The program of both its ends.
    pub command: Vec<String>,
    /// The version of the program.
    pub version: String,
    /// The largest IP packet that it takes.
    pub mtu_bytes: u32,
    /// The port on which its far end listens.
    pub port: u16,
    /// Over which its own packets go.
    pub transport: TunnelTransport,
}

impl Job {
    /// The hosts between client and server where a program takes what comes, and sends on what it
    /// likes.
    #[must_use]
    pub fn stops(&self) -> Vec<HostName> {
        let proxies = self.proxies.iter().map(|proxy| proxy.place);
        let tunnel = self.tunnel.iter().map(|tunnel| tunnel.to);
        proxies
            .chain(tunnel.filter(|to| *to != HostName::Server))
            .collect()
    }

    pub(super) fn check_tunnel(&self) -> Result<(), String> {
        let Some(tunnel) = &self.tunnel else {
            return Ok(());
        };
        if !matches!(tunnel.to, HostName::Gateway | HostName::Server) {
            let to = tunnel.to;
            return Err(format!(
                "a tunnel to the {to}: write one to the gateway or to the server"
            ));
        }
        if self.proxies.iter().any(|proxy| proxy.place >= tunnel.to) {
            return Err(
                "a tunnel to the gateway, where a proxy is: write one to the server".to_owned(),
            );
        }
        Ok(())
    }
}
