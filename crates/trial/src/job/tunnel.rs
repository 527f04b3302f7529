//! The tunnel of a trial: what its flows go through, encrypted, from the client to another host.

use std::fmt;

use bentpipe_link::HostName;
use serde::Deserialize;

use crate::job::Job;

/// The program that carries it, and what it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TunnelKind {
    /// `WireGuard`, by wireguard-go.
    Wireguard,
    /// `OpenVPN` over UDP.
    OpenvpnUdp,
    /// `OpenVPN` over TCP.
    OpenvpnTcp,
}

impl fmt::Display for TunnelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wireguard => "wireguard",
            Self::OpenvpnUdp => "openvpn-udp",
            Self::OpenvpnTcp => "openvpn-tcp",
        })
    }
}

/// A tunnel from the client to another host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunnelJob {
    /// Of what kind it is.
    pub kind: TunnelKind,
    /// Where it ends: at the gateway or at the server.
    pub to: HostName,
    /// The program of both its ends.
    pub command: Vec<String>,
    /// Of the program.
    pub version: String,
    /// The largest IP packet that it takes.
    pub mtu_bytes: u32,
}

impl Job {
    /// The hosts between client and server where a program takes what comes, and sends on what it likes.
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
