//! The path manager of MPTCP (RFC 8684) in Linux's kernel, over generic netlink.
//!
//! It opens a subflow from each of a host's *endpoints*, addresses that it was told of. Source:
//! Linux's `Documentation/netlink/specs/mptcp_pm.yaml` and `genetlink.yaml`.

use std::io;
use std::net::IpAddr;

use netlink_sys::protocols::NETLINK_GENERIC;
use netlink_sys::{Socket, SocketAddr};

/// Bytes of the header of a netlink message, and of one of generic netlink behind it.
const HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;
/// The type of a message with an error, or with zero in its place, and flags of a request.
const ERROR: u16 = 2;
const REQUEST: u16 = 1;
const ACK: u16 = 4;
/// The flag of an attribute that has attributes within.
const NESTED: u16 = 1 << 15;

/// The family that tells of others, its request, and its attributes.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// The path manager: its family, requests and attributes.
const PATH_MANAGER: &[u8] = b"mptcp_pm\0";
const ADD_ADDRESS: u8 = 1;
const SET_LIMITS: u8 = 5;
const ENDPOINT: u16 = 1;
const ENDPOINT_FAMILY: u16 = 1;
const ENDPOINT_ADDRESS_4: u16 = 3;
const ENDPOINT_ADDRESS_6: u16 = 4;
const ENDPOINT_FLAGS: u16 = 6;
const LIMIT_ACCEPTED: u16 = 2;
const LIMIT_SUBFLOWS: u16 = 3;
const INET: u16 = 2;
const INET6: u16 = 10;

/// A further address of a host, from which the path manager opens subflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MptcpEndpoint {
    /// The address.
    pub address: IpAddr,
    /// Whether a subflow goes to each address of the peer, and not to the first alone.
    pub is_full_mesh: bool,
    /// Whether its subflows carry data only when those of no other endpoint can.
    pub is_backup: bool,
}

impl MptcpEndpoint {
    /// The flags, as `linux/mptcp.h` numbers them.
    fn flags(self) -> u32 {
        const SUBFLOW: u32 = 1 << 1;
        const BACKUP: u32 = 1 << 2;
        const FULL_MESH: u32 = 1 << 3;
        let mut flags = SUBFLOW;
        if self.is_backup {
            flags |= BACKUP;
        }
        if self.is_full_mesh {
            flags |= FULL_MESH;
        }
        flags
    }

    fn attributes(self) -> Vec<u8> {
        let (family, place, address) = match self.address {
            IpAddr::V4(it) => (INET, ENDPOINT_ADDRESS_4, it.octets().to_vec()),
            IpAddr::V6(it) => (INET6, ENDPOINT_ADDRESS_6, it.octets().to_vec()),
        };
        let mut endpoint = Vec::new();
        add_attribute(&mut endpoint, ENDPOINT_FAMILY, &family.to_ne_bytes());
        add_attribute(&mut endpoint, place, &address);
        add_attribute(&mut endpoint, ENDPOINT_FLAGS, &self.flags().to_ne_bytes());
        let mut all = Vec::new();
        add_attribute(&mut all, ENDPOINT | NESTED, &endpoint);
        all
    }
}

/// The path manager of the network namespace that the thread was in when this was opened.
pub struct MptcpPathManager {
    socket: Socket,
    family: u16,
}

impl MptcpPathManager {
    /// Opens that of the calling thread's network namespace. Not found: the kernel has no MPTCP.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_GENERIC)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        let mut name = Vec::new();
        add_attribute(&mut name, FAMILY_NAME, PATH_MANAGER);
        let answer = exchange(&socket, &message(CONTROL, GET_FAMILY, REQUEST, &name))?;
        let family = family_in(&answer)
            .ok_or_else(|| io::Error::other("the kernel named no family of generic netlink"))?;
        Ok(Self { socket, family })
    }

    /// Allows a connection so many subflows beyond its first, of which the peer's announcements of
    /// addresses may cause as many. Linux takes up to 8.
    pub fn set_limits(&mut self, subflows: u32) -> io::Result<()> {
        let mut limits = Vec::new();
        for limit in [LIMIT_ACCEPTED, LIMIT_SUBFLOWS] {
            add_attribute(&mut limits, limit, &subflows.to_ne_bytes());
        }
        self.ask(SET_LIMITS, &limits)
    }

    /// Adds an endpoint. One with the address of a connection's first subflow adds none to that
    /// connection, but says whether the first is a backup. Where there is one with this address
    /// already, as another client in the namespace has added it, that one stays as it is.
    pub fn add(&mut self, endpoint: MptcpEndpoint) -> io::Result<()> {
        match self.ask(ADD_ADDRESS, &endpoint.attributes()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    fn ask(&mut self, command: u8, attributes: &[u8]) -> io::Result<()> {
        let request = message(self.family, command, REQUEST | ACK, attributes);
        exchange(&self.socket, &request).map(drop)
    }
}

/// Sends a request; the answer, if it is no error.
fn exchange(socket: &Socket, request: &[u8]) -> io::Result<Vec<u8>> {
    socket.send(request, 0)?;
    let (answer, _) = socket.recv_from_full()?;
    match error_in(&answer) {
        Some(0) | None => Ok(answer),
        Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
    }
}

fn message(family: u16, command: u8, flags: u16, attributes: &[u8]) -> Vec<u8> {
    let length = HEADER + GENERIC_HEADER + attributes.len();
    let mut bytes = u32::try_from(length).expect("short").to_ne_bytes().to_vec();
    bytes.extend(family.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]); // its number and its sender: there is one request at a time
    bytes.extend([command, 1, 0, 0]); // version 1 of either family
    bytes.extend(attributes);
    bytes
}

/// Appends an attribute, with what fills it up to four bytes.
fn add_attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(4 + value.len()).expect("short");
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u16::from_ne_bytes)
}

/// The number in a message of an error, negative; 0 in one that only confirms.
fn error_in(answer: &[u8]) -> Option<i32> {
    if word(answer, 4)? != ERROR {
        return None;
    }
    let code = answer.get(HEADER..)?.first_chunk().copied();
    code.map(i32::from_ne_bytes)
}

/// The number of the family that an answer names.
fn family_in(answer: &[u8]) -> Option<u16> {
    let mut rest = answer.get(HEADER + GENERIC_HEADER..)?;
    loop {
        let (length, kind) = (usize::from(word(rest, 0)?), word(rest, 2)?);
        let attribute = rest.get(..length.max(4))?;
        if kind == FAMILY_ID {
            return word(attribute, 4);
        }
        rest = rest.get(attribute.len().next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The answer of a kernel to the question for a family.
    fn answer() -> Vec<u8> {
        let mut attributes = Vec::new();
        add_attribute(&mut attributes, FAMILY_NAME, PATH_MANAGER);
        add_attribute(&mut attributes, FAMILY_ID, &33_u16.to_ne_bytes());
        message(CONTROL, 1, 0, &attributes)
    }

    #[test]
    fn a_family_is_found_behind_its_name() {
        assert_eq!(family_in(&answer()), Some(33));
        assert_eq!(error_in(&answer()), None);
    }

    #[test]
    fn an_answer_that_is_cut_short_names_none() {
        let whole = answer();
        for length in 0..whole.len() - 2 {
            assert_eq!(family_in(&whole[..length]), None, "{length}");
        }
    }

    #[test]
    fn an_endpoint_says_its_address_and_its_flags() {
        let endpoint = MptcpEndpoint {
            address: [192, 0, 2, 2].into(),
            is_full_mesh: true,
            is_backup: true,
        };
        let bytes = endpoint.attributes();
        let flags = bytes.last_chunk().copied().map(u32::from_ne_bytes);
        assert_eq!(flags, Some(0b1110));
        assert_eq!(bytes[16..20], [192, 0, 2, 2]);
        assert_eq!(bytes.len(), 4 + 8 + 8 + 8);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (family_in(&bytes), error_in(&bytes));
        }
    }
}
