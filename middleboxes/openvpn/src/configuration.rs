//! The configuration of an end.

use std::net::SocketAddr;

use rcgen::{Certificate, CertificateParams, Error, KeyPair};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// The end of a tunnel, as the contract tells it (`endpoints/contract/middleboxes.md`).
#[derive(Debug, Clone, Deserialize)]
pub struct Instructions {
    /// The name of the TUN device, which is there already.
    pub device: String,
    /// The largest IP packet that the tunnel takes.
    pub mtu_bytes: u32,
    /// The protocol of the tunnel's own packets: `udp` or `tcp`.
    pub transport: String,
    /// The address at which the far end listens, for that end.
    pub listen: Option<SocketAddr>,
    /// The address at which the far end listens, for the client's end.
    pub next_hop: Option<SocketAddr>,
    /// The same for both ends of a tunnel, and known to nobody else.
    pub secret: String,
}

/// An end's key and certificate.
struct Identity {
    key: KeyPair,
    certificate: Certificate,
}

impl Identity {
    /// The identity of an end, `client` or `far`: whoever knows the secret makes the same.
    fn of(end: &str, secret: &str) -> Result<Self, Error> {
        // An Ed25519 private key in PKCS #8 (RFC 8410 section 7) is this, and its 32 bytes.
        let mut der = vec![
            0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22,
            0x04, 0x20,
        ];
        der.extend(Sha256::digest(format!("{end} {secret}")));
        let key = KeyPair::try_from(der)?;
        let parameters = CertificateParams::new(["tunnel".to_owned()])?;
        let certificate = parameters.self_signed(&key)?;
        Ok(Self { key, certificate })
    }

    /// SHA-256 of its certificate, as `openssl x509 -fingerprint` prints it.
    fn fingerprint(&self) -> String {
        let bytes = Sha256::digest(self.certificate.der());
        let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        bytes.join(":")
    }
}

/// The configuration for `openvpn`, with keys inside. An error if the addresses name no end.
pub fn configuration(instructions: &Instructions) -> Result<String, Box<dyn std::error::Error>> {
    let (at, is_client) = match (instructions.listen, instructions.next_hop) {
        (None, Some(next_hop)) => (next_hop, true),
        (Some(listen), None) => (listen, false),
        _ => {
            return Err(
                "the instructions: one of `listen` and `next_hop` names the far end".into(),
            );
        }
    };
    let version = if at.is_ipv4() { "4" } else { "6" };
    let (host, port) = (at.ip(), at.port());
    let protocol = |side: &str| match instructions.transport.as_str() {
        "tcp" => format!("tcp{version}-{side}"),
        _ => format!("udp{version}"),
    };
    let [client, far] = [
        Identity::of("client", &instructions.secret)?,
        Identity::of("far", &instructions.secret)?,
    ];
    Ok(if is_client {
        format!(
            "proto {}\nremote {host} {port}\nnobind\nconnect-retry 1\ntls-client\n{}",
            protocol("client"),
            common(instructions, &client, &far)
        )
    } else {
        format!(
            "proto {}\nlocal {host}\nport {port}\ntls-server\ndh none\n{}",
            protocol("server"),
            common(instructions, &far, &client)
        )
    })
}

fn common(instructions: &Instructions, own: &Identity, peer: &Identity) -> String {
    let Instructions {
        device, mtu_bytes, ..
    } = instructions;
    format!(
        "dev {device}\ndev-type tun\ndisable-dco\ntun-mtu {mtu_bytes}\n\
         verb 1\nlog-append /dev/stderr\n\
         <cert>\n{}</cert>\n<key>\n{}</key>\n<peer-fingerprint>\n{}\n</peer-fingerprint>\n",
        own.certificate.pem(),
        own.key.serialize_pem(),
        peer.fingerprint()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instructions(is_client: bool, secret: &str) -> Instructions {
        let far: SocketAddr = "[2001:db8:2::1]:443".parse().unwrap();
        Instructions {
            device: "tunnel".to_owned(),
            mtu_bytes: 1400,
            transport: "tcp".to_owned(),
            listen: (!is_client).then_some(far),
            next_hop: is_client.then_some(far),
            secret: secret.to_owned(),
        }
    }

    #[test]
    fn each_end_knows_the_others_certificate() {
        let [client, far] =
            [true, false].map(|it| configuration(&instructions(it, "abc")).unwrap());
        assert!(client.starts_with("proto tcp6-client\nremote 2001:db8:2::1 443\n"));
        assert!(far.starts_with("proto tcp6-server\nlocal 2001:db8:2::1\nport 443\n"));
        let [own, peer] = ["client", "far"].map(|end| Identity::of(end, "abc").unwrap());
        assert!(client.contains(&peer.fingerprint()) && client.contains(&own.certificate.pem()));
        assert!(far.contains(&own.fingerprint()) && far.contains(&peer.certificate.pem()));
        assert!(!client.contains(&peer.key.serialize_pem()));
    }

    #[test]
    fn another_secret_gives_other_keys() {
        let [one, other] = ["abc", "abd"].map(|secret| Identity::of("far", secret).unwrap());
        assert_ne!(one.fingerprint(), other.fingerprint());
    }

    #[test]
    fn an_end_is_one_of_two() {
        let both = Instructions {
            listen: instructions(false, "").listen,
            ..instructions(true, "")
        };
        assert!(configuration(&both).is_err());
    }
}
