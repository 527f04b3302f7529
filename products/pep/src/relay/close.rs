//! With what the proxy closes connections.
//!
//! An application's error code goes through unchanged. Where there is none, the other side gets an
//! application error code of these; they are large and lie close together, so that nobody takes
//! them for an application's own.

use noq_proto::{ConnectionError, TransportErrorCode};
use rustls::AlertDescription;

use crate::connections::Side;
use crate::events::ClosedBy;

/// The application error codes of the proxy (RFC 9000, section 20.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub enum CloseCode {
    /// The next hop refused the connection.
    NextHopRefused = 0x5045_5001,
    /// The next hop did not answer in time.
    NextHopUnreachable = 0x5045_5002,
    /// The next hop was connected, and fell silent or forgot the connection.
    NextHopLost = 0x5045_5003,
    /// The certificate of the next hop is not to be trusted: unknown, expired, or of another name.
    Certificate = 0x5045_5004,
    /// The next hop speaks none of the application protocols that the client offers.
    Protocol = 0x5045_5005,
    /// The next hop does not speak the version of QUIC.
    Version = 0x5045_5006,
    /// The next hop or the connection to it broke a rule of QUIC or TLS.
    NextHopFailed = 0x5045_5007,
    /// The client fell silent or forgot the connection.
    ClientLost = 0x5045_5008,
    /// The client or the connection to it broke a rule of QUIC or TLS.
    ClientFailed = 0x5045_5009,
    /// A peer left a gap open in a stream while it filled the proxy's buffer, or it did not take
    /// what was waiting for it in time.
    Buffer = 0x5045_500b,
    /// The proxy is shutting down.
    ShuttingDown = 0x5045_500c,
    /// The proxy does not go to the server of this name.
    Name = 0x5045_500d,
}

impl CloseCode {
    /// All codes.
    pub const ALL: [Self; 12] = [
        Self::NextHopRefused,
        Self::NextHopUnreachable,
        Self::NextHopLost,
        Self::Certificate,
        Self::Protocol,
        Self::Version,
        Self::NextHopFailed,
        Self::ClientLost,
        Self::ClientFailed,
        Self::Buffer,
        Self::ShuttingDown,
        Self::Name,
    ];

    /// The number that stands in `CONNECTION_CLOSE`.
    #[must_use]
    pub fn value(self) -> u64 {
        self as u64
    }

    /// The reason phrase that goes with it.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::NextHopRefused => "proxy: the next hop refused the connection",
            Self::NextHopUnreachable => "proxy: the next hop did not answer",
            Self::NextHopLost => "proxy: the next hop was lost",
            Self::Certificate => "proxy: the certificate of the next hop is not trusted",
            Self::Protocol => "proxy: the next hop speaks no application protocol of the client",
            Self::Version => "proxy: the next hop does not speak this version of QUIC",
            Self::NextHopFailed => "proxy: the connection to the next hop failed",
            Self::ClientLost => "proxy: the client was lost",
            Self::ClientFailed => "proxy: the connection of the client failed",
            Self::Buffer => "proxy: a buffer was full for too long",
            Self::ShuttingDown => "proxy: shutting down",
            Self::Name => "proxy: not allowed to connect to this name",
        }
    }

    /// The code with this value.
    #[must_use]
    pub fn from_value(value: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.value() == value)
    }
}

/// The error code and reason phrase that a connection is closed with (RFC 9000, section 19.19).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloseReason {
    /// An application error code.
    pub code: u64,
    /// The reason phrase.
    pub reason: Vec<u8>,
    /// Whether it is an application's, which is only handed on.
    pub is_application: bool,
}

impl From<CloseCode> for CloseReason {
    fn from(code: CloseCode) -> Self {
        Self {
            code: code.value(),
            reason: code.reason().into(),
            is_application: false,
        }
    }
}

impl CloseReason {
    /// The reason that the client gets when the connection to the next hop has ended so.
    pub fn of_next_hop(error: &ConnectionError, was_connected: bool) -> Self {
        Self::of(error, |code| match (error, code) {
            (ConnectionError::TimedOut, _) if !was_connected => CloseCode::NextHopUnreachable,
            (ConnectionError::TimedOut | ConnectionError::Reset, _) => CloseCode::NextHopLost,
            (ConnectionError::VersionMismatch, _) => CloseCode::Version,
            (_, Some(TransportErrorCode::CONNECTION_REFUSED)) => CloseCode::NextHopRefused,
            (_, Some(code)) if is_alert(code, AlertDescription::NoApplicationProtocol) => {
                CloseCode::Protocol
            }
            (ConnectionError::TransportError(_), Some(code)) if is_about_certificate(code) => {
                CloseCode::Certificate
            }
            _ => CloseCode::NextHopFailed,
        })
    }

    /// The reason that the server gets when the connection of the client has ended so.
    pub fn of_client(error: &ConnectionError) -> Self {
        Self::of(error, |_| match error {
            ConnectionError::TimedOut | ConnectionError::Reset => CloseCode::ClientLost,
            _ => CloseCode::ClientFailed,
        })
    }

    /// The end that has closed a connection with this, if the one on the side `gone` was the first
    /// to end.
    pub fn by(&self, gone: Side) -> ClosedBy {
        match gone {
            _ if !self.is_application => ClosedBy::Proxy {
                code: self.code,
                reason: String::from_utf8_lossy(&self.reason).into_owned(),
            },
            Side::Client => ClosedBy::Client(self.code),
            Side::Server => ClosedBy::Server(self.code),
        }
    }

    fn of(
        error: &ConnectionError,
        ours: impl FnOnce(Option<TransportErrorCode>) -> CloseCode,
    ) -> Self {
        match error {
            ConnectionError::ApplicationClosed(close) => Self {
                code: close.error_code.into_inner(),
                reason: close.reason.to_vec(),
                is_application: true,
            },
            ConnectionError::ConnectionClosed(close) => ours(Some(close.error_code)).into(),
            ConnectionError::TransportError(error) => ours(Some(error.code)).into(),
            _ => ours(None).into(),
        }
    }
}

fn is_alert(code: TransportErrorCode, alert: AlertDescription) -> bool {
    code == TransportErrorCode::crypto(alert.into())
}

fn is_about_certificate(code: TransportErrorCode) -> bool {
    use AlertDescription as Alert;
    let alerts = [
        Alert::BadCertificate,
        Alert::UnsupportedCertificate,
        Alert::CertificateRevoked,
        Alert::CertificateExpired,
        Alert::CertificateUnknown,
        Alert::UnknownCA,
        Alert::DecryptError,
        Alert::AccessDenied,
    ];
    alerts.into_iter().any(|alert| is_alert(code, alert))
}
