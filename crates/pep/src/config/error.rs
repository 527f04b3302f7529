//! What can be wrong with a configuration.

use bentpipe_endpoint::EndpointError;
use thiserror::Error;

/// Why a proxy cannot be made.
#[derive(Debug, Error)]
pub enum PepError {
    /// An option of a hop or its value.
    #[error("{0}")]
    Option(#[from] EndpointError),
    /// A value that no option is wrong by itself in.
    #[error("{0}")]
    Config(String),
    /// The TLS configuration lacks what QUIC needs.
    #[error("TLS: {0}")]
    Tls(String),
}
