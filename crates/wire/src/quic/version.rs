//! Versions of QUIC: those whose packets can be decoded, and the names of all.
//!
//! Source: RFC 9000 section 15 (reserved versions, numbers of drafts), RFC 9369 (version 2), the
//! registry "QUIC Versions" of IANA and the list of versions in the wiki of quicwg/base-drafts
//! (those of Google and Meta).
//!
//! Drafts 29 to 34 have the packets of version 1, with Initial keys and Retry integrity of their
//! own up to draft 32.

/// A version whose packets can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
    /// 29 to 34.
    Draft(u8),
}

impl Version {
    pub(super) fn of(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::V1),
            0x6b33_43cf => Some(Self::V2),
            0xff00_001d..=0xff00_0022 => Some(Self::Draft(number.to_be_bytes()[3])),
            _ => None,
        }
    }

    /// Its number in packet headers.
    pub(super) fn number(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 0x6b33_43cf,
            Self::Draft(number) => 0xff00_0000 | u32::from(number),
        }
    }
}

/// The name of a version, to stand behind "QUIC version": "1", "draft-29", "Q050 (gQUIC)". One that
/// has no name is called by its number.
#[must_use]
pub fn version_name(number: u32) -> String {
    known_name(number).unwrap_or_else(|| format!("0x{number:08x}"))
}

/// The name of a version that somebody has defined or reserved.
pub(super) fn known_name(number: u32) -> Option<String> {
    Some(match number {
        1 => "1".to_owned(),
        0x6b33_43cf => "2".to_owned(),
        0xff00_0001..=0xff00_00ff => format!("draft-{:02}", number & 0xff),
        0xface_b000..=0xface_b00f => format!("0x{number:08x} (mvfst)"),
        // RFC 9000 section 15: to have version negotiation tried.
        _ if number & 0x0f0f_0f0f == 0x0a0a_0a0a => format!("0x{number:08x} (reserved)"),
        _ => format!("{} (gQUIC)", google_name(number)?),
    })
}

/// Google's versions are four characters: Q, or T with TLS, and three digits.
fn google_name(number: u32) -> Option<String> {
    let characters = number.to_be_bytes();
    let is_google = matches!(
        characters,
        [b'Q' | b'T', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9']
    );
    is_google.then(|| String::from_utf8_lossy(&characters).into_owned())
}

/// The version in a packet of gQUIC before Q046, whose header is its own: flags that say that there
/// are a connection ID of 8 bytes and a version, and these.
pub(super) fn google_version(bytes: &[u8]) -> Option<u32> {
    const VERSION: u8 = 0x01;
    const CONNECTION_ID: u8 = 0x08;
    let flags = *bytes.first()?;
    if flags & 0x80 != 0 || flags & (VERSION | CONNECTION_ID) != VERSION | CONNECTION_ID {
        return None;
    }
    let number = u32::from_be_bytes(*bytes.get(9..)?.first_chunk()?);
    google_name(number).map(|_| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_names() {
        for (number, name) in [
            (1, "1"),
            (0x6b33_43cf, "2"),
            (0xff00_001d, "draft-29"),
            (0xff00_0009, "draft-09"),
            (0x5130_3433, "Q043 (gQUIC)"),
            (0x5430_3531, "T051 (gQUIC)"),
            (0xface_b002, "0xfaceb002 (mvfst)"),
            (0x1a2a_3a4a, "0x1a2a3a4a (reserved)"),
            (0x1234_5678, "0x12345678"),
        ] {
            assert_eq!(version_name(number), name);
        }
        for draft in 29..=34 {
            let version = Version::of(0xff00_0000 + u32::from(draft));
            assert_eq!(version, Some(Version::Draft(draft)));
            assert_eq!(Version::of(version.unwrap().number()), version);
        }
        assert_eq!(Version::of(0xff00_001c), None);
        assert_eq!(Version::of(0xff00_0023), None);
    }

    #[test]
    fn a_header_of_google_before_q046_tells_its_version() {
        let packet = [&[0x0d][..], &[7; 8], b"Q043", &[1, 2, 3]].concat();
        assert_eq!(google_version(&packet), Some(0x5130_3433));
        for length in 0..13 {
            assert_eq!(google_version(&packet[..length]), None);
        }
        let without_version = [&[0x0c], &packet[1..]].concat();
        assert_eq!(google_version(&without_version), None);
    }
}
