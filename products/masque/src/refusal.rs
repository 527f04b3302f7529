//! Why a proxy refuses a request for a target, and what its answer says of that.

use http::StatusCode;

/// The reason for which a request for a target is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The proxy does not let its clients reach this target.
    NotAllowed,
    /// The target's name has no address.
    NoAddress,
    /// There is no socket for it, or too many requests already.
    NoSocket,
    /// Too many names are being looked up.
    TooManyNames,
    /// No address is left for the client, or it has too many already.
    NoAddressLeft,
    /// There is no way to any of the target's addresses.
    Unroutable,
    /// The proxy takes no further requests.
    Draining,
}

impl Refusal {
    /// The status of the answer (RFC 9209, section 2.3, recommends them but for the first: what is
    /// not allowed is no fault of the next hop).
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::NotAllowed => StatusCode::FORBIDDEN,
            Self::NoAddress | Self::Unroutable => StatusCode::BAD_GATEWAY,
            Self::NoSocket | Self::TooManyNames | Self::NoAddressLeft | Self::Draining => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }

    /// The value of the header Proxy-Status (RFC 9209; RFC 9298, section 3.1).
    #[must_use]
    pub fn proxy_status(self) -> &'static str {
        match self {
            Self::NotAllowed => "bentpipe; error=destination_ip_prohibited",
            Self::NoAddress => "bentpipe; error=dns_error",
            Self::NoSocket | Self::TooManyNames | Self::NoAddressLeft => {
                "bentpipe; error=connection_limit_reached"
            }
            Self::Unroutable => "bentpipe; error=destination_ip_unroutable",
            Self::Draining => "bentpipe; error=destination_unavailable",
        }
    }

    /// The reason, in a word or two for a log.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::NotAllowed => "targets.allow",
            Self::NoAddress => "no address",
            Self::NoSocket => "no socket",
            Self::TooManyNames => "too many names",
            Self::NoAddressLeft => "ip.pool",
            Self::Unroutable => "no way there",
            Self::Draining => "shutting down",
        }
    }
}
