//! The limits of a request for IP, by its path (RFC 9484, section 4.6).

use percent_encoding::percent_decode_str;
use thiserror::Error;

use super::network::Prefix;

/// The path of the default template, with which a proxy serves (RFC 9484, section 3).
const WELL_KNOWN: &str = "/.well-known/masque/ip/";

/// The limits of a request; `None`: there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scope {
    /// Where its packets go.
    pub target: Option<Prefix>,
    /// Their protocol.
    pub protocol: Option<u8>,
}

/// The reason for which a path limits no request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScopeError {
    /// A path that is not one of the default template.
    #[error("the path {0:?} is not {WELL_KNOWN}TARGET/PROTOCOL/")]
    Path(String),
    /// The name of a host, which nobody looks up.
    #[error("{0:?} is a name: only addresses and prefixes are served")]
    Name(String),
}

impl Scope {
    /// The path of a request without limits.
    pub const EVERYTHING: &'static str = "/.well-known/masque/ip/*/*/";

    /// The limits that a path of the default template names.
    pub fn of_path(path: &str) -> Result<Self, ScopeError> {
        let wrong = || ScopeError::Path(path.chars().take(100).collect());
        let rest = path.strip_prefix(WELL_KNOWN).ok_or_else(wrong)?;
        let parts: Vec<&str> = rest.split('/').collect();
        let [target, protocol, ""] = parts[..] else {
            return Err(wrong());
        };
        let decoded = |part| percent_decode_str(part).decode_utf8().map_err(|_| wrong());
        let (target, protocol) = (decoded(target)?, decoded(protocol)?);
        Ok(Self {
            target: match &*target {
                "*" => None,
                text => {
                    let prefix = text.parse::<Prefix>();
                    Some(prefix.map_err(|_| named(text).unwrap_or_else(wrong))?)
                }
            },
            protocol: match &*protocol {
                "*" => None,
                text if text.len() <= 3 && text.bytes().all(|it| it.is_ascii_digit()) => {
                    Some(text.parse().map_err(|_| wrong())?)
                }
                _ => return Err(wrong()),
            },
        })
    }
}

fn named(text: &str) -> Option<ScopeError> {
    let is_name = |it: u8| it.is_ascii_alphanumeric() || b"-.".contains(&it);
    let is_any_digit_alone = text.bytes().all(|it| it.is_ascii_digit() || it == b'.');
    let is_one = !text.is_empty() && text.bytes().all(is_name) && !is_any_digit_alone;
    is_one.then(|| ScopeError::Name(text.chars().take(100).collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_limits_target_and_protocol() {
        let of = |text: &str| Some(text.parse().unwrap());
        for (path, target, protocol) in [
            ("*/*", None, None),
            ("%2A/%2A", None, None),
            ("192.0.2.1/6", of("192.0.2.1"), Some(6)),
            ("192.0.2.0%2F24/0", of("192.0.2.0/24"), Some(0)),
            ("2001%3Adb8%3A%3A%2F32/*", of("2001:db8::/32"), None),
        ] {
            let found = Scope::of_path(&format!("{WELL_KNOWN}{path}/"));
            assert_eq!(found, Ok(Scope { target, protocol }), "{path}");
        }
        assert_eq!(Scope::of_path(Scope::EVERYTHING), Ok(Scope::default()));
    }

    #[test]
    fn what_is_no_scope_is_refused() {
        for path in [
            "*",
            "*/*/*",
            "/",
            "192.0.2.1%2F24/*",
            "192.0.2.1%2F33/*",
            "192.0.2.1%2F+2/*",
            "192.0.2/*",
            "*/256",
            "*/+6",
            "*/tcp",
            "%FF/*",
            "/*",
        ] {
            let found = Scope::of_path(&format!("{WELL_KNOWN}{path}/"));
            assert!(
                matches!(found, Err(ScopeError::Path(_))),
                "{path}: {found:?}"
            );
        }
        let found = Scope::of_path(&format!("{WELL_KNOWN}target.example/*/"));
        assert_eq!(found, Err(ScopeError::Name("target.example".to_owned())));
        assert!(Scope::of_path("/.well-known/masque/udp/192.0.2.1/6/").is_err());
    }

    proptest! {
        #[test]
        fn any_path_is_read_or_refused(path in "(/.well-known/masque/ip/)?[ -~]{0,200}") {
            let _ = Scope::of_path(&path);
        }
    }
}
