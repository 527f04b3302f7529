//! Whether a connection took over from the one before what it says that it did.

use super::verifier::ProofFailure;
use crate::evidence::DecodedConnection;

/// Whether the server took a ticket, and so sent no Certificate.
pub fn resumed(second: &DecodedConnection) -> Result<(), ProofFailure> {
    let it = &second.establishment;
    let what = match (it.resumed, it.certificate) {
        (Some(true), None | Some(false)) => return Ok(()),
        (None, _) => {
            return Err(ProofFailure::Sealed(
                "the second ServerHello could not be read",
            ));
        }
        (Some(true), Some(true)) => "the second ServerHello took a ticket, but a Certificate came",
        (Some(false), Some(true)) => {
            "two connections, but the second handshake carried a Certificate: the server did not \
             resume"
        }
        (Some(false), _) => {
            "two connections, but the second ServerHello has no pre_shared_key: the server did not \
             resume"
        }
    };
    other(format!(
        "expected a second connection that is resumed; saw {what}"
    ))
}

/// Whether the server took stream data in 0-RTT packets.
pub fn early(second: &DecodedConnection) -> Result<(), ProofFailure> {
    let it = &second.establishment;
    match (it.zero_rtt_bytes, it.zero_rtt_accepted) {
        (Some(1..), Some(true)) => Ok(()),
        (Some(0), _) => {
            other("expected stream data in 0-RTT; saw a resumed connection without any".to_owned())
        }
        (Some(bytes), Some(false)) => other(format!(
            "expected 0-RTT that the server accepts; saw {bytes} stream bytes in it, but neither \
             an acknowledgement nor early_data in the server's answer: the server did not accept \
             0-RTT"
        )),
        (None, _) => Err(ProofFailure::Sealed(
            "what was sent in 0-RTT could not be decrypted",
        )),
        (_, None) => Err(ProofFailure::Sealed(
            "nothing of 0-RTT was acknowledged, and the server's answer to it could not be \
             decrypted",
        )),
    }
}

fn other<T>(what: String) -> Result<T, ProofFailure> {
    Err(ProofFailure::Other(what))
}
