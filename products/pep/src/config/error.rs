//! The errors of a configuration.

use bentpipe_endpoint::EndpointError;
use thiserror::Error;

/// The reason why a proxy cannot be made.
#[derive(Debug, Error)]
pub enum PepError {
    /// An option of a hop or its value.
    #[error("{0}")]
    Option(#[from] EndpointError),
    /// Values that are wrong together, or that no option has.
    #[error("{0}")]
    Config(String),
    /// A TLS configuration that lacks what QUIC needs.
    #[error("TLS: {0}")]
    Tls(String),
}
