//! Checks across settings: whether the values go together.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use bentpipe_connections::steering::MOST_WORKERS;
use bentpipe_service::settings::{Problem, time, within, wrong};
use bentpipe_units::Size;
use rustls::pki_types::DnsName;

use super::{Auto, Settings};

impl Settings {
    /// All checks.
    pub(super) fn check_all(&self) -> Result<(), Problem> {
        self.check_listen()
            .and_then(|()| self.check_next_hop())
            .and_then(|()| self.check_auto())
            .and_then(|()| self.check_certificates())
            .and_then(|()| self.check_ranges())
    }

    fn check_listen(&self) -> Result<(), Problem> {
        if self.listen.is_empty() {
            let hint = "write where clients connect to, as in listen = [\"[::]:443\"]";
            return wrong("listen = []: there is no address", hint);
        }
        for (index, one) in self.listen.iter().enumerate() {
            for other in &self.listen[..index] {
                if covers(one.ip(), other.ip()) || covers(other.ip(), one.ip()) {
                    let what = format!("listen: {other} and {one} are the same address to clients");
                    let hint = "write each address once, or one of them alone: what the proxy \
                                answers must leave by the socket that it came to";
                    return wrong(what, hint);
                }
            }
        }
        Ok(())
    }

    fn check_next_hop(&self) -> Result<(), Problem> {
        let next = &self.next_hop;
        match (&next.address, next.allow.len()) {
            (None, 0) => {
                let hint = "name one with next-hop.address = \"HOST:PORT\" (--next-hop), or for \
                            each server name that is allowed with [next-hop.allow] (--allow \
                            NAME=HOST:PORT): a proxy to everywhere would serve anybody";
                return wrong("next-hop: there is none", hint);
            }
            (Some(address), 1..) => {
                let what = format!(
                    "next-hop.address = \"{address}\" and next-hop.allow exclude each other"
                );
                let hint = "give one address for all server names, or one for each that is allowed";
                return wrong(what, hint);
            }
            _ => {}
        }
        for name in next.allow.keys() {
            check_name("next-hop.allow", name)?;
        }
        match (next.verify.0, &next.ca) {
            (true, None) => wrong(
                "next-hop.ca: missing, so that the next hop's certificate cannot be verified",
                "name the file with the certificates that sign it, as in ca = \
                 \"/etc/ssl/certs/ca-certificates.crt\" (--ca), or in a laboratory verify = false \
                 (--no-verify)",
            ),
            (false, Some(ca)) => wrong(
                format!(
                    "next-hop.verify = false, but next-hop.ca = {:?} is there to verify with",
                    ca.display().to_string()
                ),
                "leave one of them out",
            ),
            _ => pair(
                "next-hop.certificate",
                "next-hop.key",
                next.certificate.is_some(),
                next.key.is_some(),
            ),
        }
    }

    /// A flow that is forwarded untouched never meets the proxy's TLS.
    fn check_auto(&self) -> Result<(), Problem> {
        if self.auto == Auto::Off || self.clients.ca.is_none() {
            return Ok(());
        }
        wrong(
            "auto and clients.ca exclude each other: whose flow is forwarded untouched would not \
             be asked for a certificate",
            "leave auto out, or have the server ask for certificates and leave clients.ca out",
        )
    }

    fn check_certificates(&self) -> Result<(), Problem> {
        let mut seen = BTreeSet::new();
        for certificate in &self.certificate {
            for name in &certificate.names {
                check_name("certificate.names", name)?;
                if !seen.insert(name.to_ascii_lowercase()) {
                    let what =
                        format!("certificate.names = {name:?}: two certificates are for this name");
                    return wrong(what, "give each server name to one [[certificate]]");
                }
            }
            if certificate.names.is_empty() && !seen.insert(String::new()) {
                let what = "certificate: two have no names, and so are for all";
                return wrong(what, "give all but one of them names = [\"…\"]");
            }
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<(), Problem> {
        let limits = &self.limits;
        within("workers", self.workers as u64, 0..=MOST_WORKERS as u64)?;
        within(
            "limits.connections",
            limits.connections.into(),
            1..=1_000_000,
        )?;
        within(
            "limits.connections-per-client",
            limits.connections_per_client.into(),
            1..=1_000_000,
        )?;
        within("limits.streams", limits.streams.into(), 1..=1_000_000)?;
        within("limits.warm", limits.warm.into(), 1..=100)?;
        bytes("limits.stream-buffer", limits.stream_buffer)?;
        bytes("limits.connection-buffer", limits.connection_buffer)?;
        if limits.stream_buffer > limits.connection_buffer {
            let what = format!(
                "limits.stream-buffer = \"{}\" is more than limits.connection-buffer = \"{}\"",
                limits.stream_buffer, limits.connection_buffer
            );
            return wrong(
                what,
                "a connection holds what waits of all its streams: give it as much at least",
            );
        }
        let times = &self.times;
        time("times.idle", times.idle)?;
        time("times.handshake", times.handshake)?;
        time("times.gap", times.gap)?;
        time("times.linger", times.linger)?;
        time("times.drain", times.drain)
    }
}

/// Whether a socket at `wide` receives packets sent to `narrow`.
fn covers(wide: IpAddr, narrow: IpAddr) -> bool {
    wide == narrow || (wide.is_unspecified() && wide.is_ipv4() == narrow.is_ipv4())
}

fn check_name(key: &str, name: &str) -> Result<(), Problem> {
    if DnsName::try_from(name).is_ok() && name.parse::<SocketAddr>().is_err() {
        return Ok(());
    }
    let hint =
        "write a name as clients ask for it, such as \"www.example.org\"; there are no wildcards";
    wrong(format!("{key} = {name:?}: this is no server name"), hint)
}

fn pair(one: &str, other: &str, has_one: bool, has_other: bool) -> Result<(), Problem> {
    match (has_one, has_other) {
        (true, false) => wrong(
            format!("{other}: missing; {one} is there"),
            "give both, or neither",
        ),
        (false, true) => wrong(
            format!("{one}: missing; {other} is there"),
            "give both, or neither",
        ),
        _ => Ok(()),
    }
}

fn bytes(key: &str, size: Size) -> Result<(), Problem> {
    if (16 << 10..=256 << 20).contains(&size.bytes()) {
        return Ok(());
    }
    wrong(
        format!("{key} = \"{size}\""),
        "write a size from \"16 KiB\" to \"256 MiB\"",
    )
}
