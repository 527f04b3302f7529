//! What ends of `OpenVPN` are told: a configuration on standard input, with a certificate of its own for each end, which the
//! other one knows by its fingerprint (`--peer-fingerprint`, since 2.6).
//!
//! What it does not say is as `OpenVPN` has it: TLS 1.3, AES-256-GCM, and `mssfix 1492`.

use std::io;

use bentpipe_emulator::TUNNEL;
use bentpipe_trial::{TunnelJob, TunnelKind};
use rcgen::{CertifiedKey, KeyPair};
use sha2::{Digest, Sha256};

use super::Ends;

/// How an end is started.
pub fn arguments() -> Vec<String> {
    ["--config", "stdin"].map(str::to_owned).to_vec()
}

/// What the client's end and the other one are told, with new keys.
pub fn inputs(tunnel: &TunnelJob, ends: Ends) -> io::Result<[String; 2]> {
    let made = || rcgen::generate_simple_self_signed(["tunnel".to_owned()]);
    let [client, far] = [
        made().map_err(io::Error::other)?,
        made().map_err(io::Error::other)?,
    ];
    let version = if ends.client.is_ipv4() { "4" } else { "6" };
    let is_tcp = tunnel.kind == TunnelKind::OpenvpnTcp;
    let proto = |side: &str| {
        if is_tcp {
            format!("tcp{version}-{side}")
        } else {
            format!("udp{version}")
        }
    };
    let (host, port, mtu) = (ends.far.ip(), ends.far.port(), tunnel.mtu_bytes);
    let to_server = format!(
        "proto {}\nremote {host} {port}\nnobind\nconnect-retry 1\ntls-client\n",
        proto("client")
    );
    let to_client = format!(
        "proto {}\nlocal {host}\nport {port}\ntls-server\ndh none\n",
        proto("server")
    );
    Ok([
        format!("{to_server}{}", common(mtu, &client, &far)),
        format!("{to_client}{}", common(mtu, &far, &client)),
    ])
}

fn common(mtu: u32, own: &CertifiedKey<KeyPair>, peer: &CertifiedKey<KeyPair>) -> String {
    format!(
        "dev {TUNNEL}\ndev-type tun\ndisable-dco\ntun-mtu {mtu}\n\
         verb 1\nlog-append /dev/stderr\n\
         <cert>\n{}</cert>\n<key>\n{}</key>\n<peer-fingerprint>\n{}\n</peer-fingerprint>\n",
        own.cert.pem(),
        own.signing_key.serialize_pem(),
        fingerprint(peer.cert.der())
    )
}

/// SHA-256 of a certificate, as `openssl x509 -fingerprint` prints it.
fn fingerprint(der: &[u8]) -> String {
    let bytes = Sha256::digest(der);
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    bytes.join(":")
}
