//! The TLS secrets of a connection, in the NSS key log format.

use std::fmt::Write as _;
use std::io::Write as _;
use std::ptr;
use std::sync::{Arc, Mutex};

use bentpipe_endpoint::LogFile;
use msquic::ffi::QUIC_TLS_SECRETS;
use msquic::{Api, PARAM_CONN_TLS_SECRETS, Status};

/// A place into which `MsQuic` writes a connection's secrets while the handshake goes on. It lives
/// in the connection's callback, which is dropped when `MsQuic` has closed the connection.
#[derive(Debug)]
pub struct Secrets {
    place: *mut QUIC_TLS_SECRETS,
    /// `None`: written already.
    keylog: Option<LogFile>,
}

impl Secrets {
    /// A place for a connection's secrets, if there is a `keylog` that they go to.
    #[expect(
        clippy::arc_with_non_send_sync,
        reason = "callback and caller share it; MsQuic never runs them at once"
    )]
    pub fn shared(keylog: Option<&LogFile>) -> Option<Arc<Mutex<Self>>> {
        keylog.map(|keylog| Arc::new(Mutex::new(Self::new(keylog.clone()))))
    }

    #[expect(unsafe_code, reason = "a struct of C")]
    fn new(keylog: LogFile) -> Self {
        // SAFETY: numbers and arrays of numbers, which may all be 0.
        let place = Box::into_raw(Box::new(unsafe { std::mem::zeroed() }));
        Self {
            place,
            keylog: Some(keylog),
        }
    }

    /// Asks for the secrets of a connection that has not started, or that has no configuration yet.
    #[expect(
        unsafe_code,
        reason = "MsQuic has this as a raw parameter of the connection"
    )]
    pub fn ask(&self, connection: &msquic::Connection) -> Result<(), Status> {
        let size = u32::try_from(size_of::<QUIC_TLS_SECRETS>()).expect("a small struct");
        // SAFETY: the handle is open, the size is that of what `place` points to, which is freed
        // after the connection.
        unsafe {
            let handle = connection.as_raw();
            Api::set_param(handle, PARAM_CONN_TLS_SECRETS, size, self.place.cast())
        }
    }

    /// Writes what there is, once. For callbacks at the end of the handshake or of the connection:
    /// `MsQuic` writes no more then.
    #[expect(unsafe_code, reason = "MsQuic wrote there")]
    pub fn log(&mut self) {
        let Some(mut keylog) = self.keylog.take() else {
            return;
        };
        // SAFETY: made by `new`, freed by `drop`; the thread that runs the callback is the one that
        // writes the secrets.
        let found = unsafe { ptr::read(self.place) };
        if found.IsSet.ClientRandom() == 0 {
            return;
        }
        let length = usize::from(found.SecretLength);
        let random = hex(&found.ClientRandom);
        for (there, label, secret) in [
            (
                found.IsSet.ClientEarlyTrafficSecret(),
                "CLIENT_EARLY_TRAFFIC_SECRET",
                &found.ClientEarlyTrafficSecret,
            ),
            (
                found.IsSet.ClientHandshakeTrafficSecret(),
                "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
                &found.ClientHandshakeTrafficSecret,
            ),
            (
                found.IsSet.ServerHandshakeTrafficSecret(),
                "SERVER_HANDSHAKE_TRAFFIC_SECRET",
                &found.ServerHandshakeTrafficSecret,
            ),
            (
                found.IsSet.ClientTrafficSecret0(),
                "CLIENT_TRAFFIC_SECRET_0",
                &found.ClientTrafficSecret0,
            ),
            (
                found.IsSet.ServerTrafficSecret0(),
                "SERVER_TRAFFIC_SECRET_0",
                &found.ServerTrafficSecret0,
            ),
        ] {
            if there != 0 {
                // A full disk shows again, as an error, when the file is completed.
                let _ = writeln!(keylog, "{label} {random} {}", hex(&secret[..length]));
            }
        }
    }
}

impl Drop for Secrets {
    #[expect(unsafe_code, reason = "the pair of `new`")]
    fn drop(&mut self) {
        // SAFETY: made by `new`, and freed nowhere else.
        drop(unsafe { Box::from_raw(self.place) });
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a String takes all text");
    }
    text
}
