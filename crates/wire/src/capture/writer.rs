//! A writer of pcapng files, as much of the format as a trace needs.
//!
//! Source: draft-ietf-opsawg-pcapng: Section Header (4.1), Interface Description (4.2), Enhanced
//! Packet (4.3) and Decryption Secrets (4.8) blocks, little-endian. It is written here because no
//! published crate writes Decryption Secrets Blocks. Times are nanoseconds since the Unix epoch.

use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 0x0a;
/// "TLSK": NSS key log lines.
const TLS_KEY_LOG: u32 = 0x544c_534b;
/// `LINKTYPE_RAW`: a packet begins with its IP header.
const RAW_IP: u16 = 101;

/// The number of an interface of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface(u32);

/// The writer of a pcapng file, block after block.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    interfaces: u32,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a file; `application` is named as its writer.
    pub fn new(out: W, application: &str) -> io::Result<Self> {
        let mut writer = Self {
            out,
            interfaces: 0,
            block: Vec::new(),
        };
        writer
            .block
            .extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
        writer.block.extend_from_slice(&[1, 0, 0, 0]); // version 1.0
        writer.block.extend_from_slice(&u64::MAX.to_le_bytes()); // section length: not given
        writer.option(4, application.as_bytes());
        writer.end_of_options();
        writer.flush_block(SECTION_HEADER)?;
        Ok(writer)
    }

    /// Adds an interface of raw IP packets with nanosecond times.
    pub fn interface(&mut self, name: &str) -> io::Result<Interface> {
        self.block.extend_from_slice(&RAW_IP.to_le_bytes());
        self.block.extend_from_slice(&[0; 6]); // reserved; no limit on the captured length
        self.option(2, name.as_bytes());
        self.option(9, &[9]); // if_tsresol: 10^-9 s
        self.end_of_options();
        self.flush_block(INTERFACE_DESCRIPTION)?;
        self.interfaces += 1;
        Ok(Interface(self.interfaces - 1))
    }

    /// Adds TLS secrets in NSS key log format. They must come before the packets that they decrypt.
    pub fn tls_secrets(&mut self, key_log: &[u8]) -> io::Result<()> {
        self.block.extend_from_slice(&TLS_KEY_LOG.to_le_bytes());
        self.block.extend_from_slice(&length_field(key_log.len())?);
        self.block.extend_from_slice(key_log);
        self.pad();
        self.flush_block(DECRYPTION_SECRETS)
    }

    /// Adds a packet seen on `interface` at `time` (nanoseconds since the Unix epoch), with a note
    /// on it if there is one.
    pub fn packet(
        &mut self,
        interface: Interface,
        time: u64,
        packet: &[u8],
        comment: Option<&str>,
    ) -> io::Result<()> {
        self.block.extend_from_slice(&interface.0.to_le_bytes());
        self.block.extend_from_slice(&time.to_le_bytes()[4..]);
        self.block.extend_from_slice(&time.to_le_bytes()[..4]);
        self.block.extend_from_slice(&length_field(packet.len())?);
        self.block.extend_from_slice(&length_field(packet.len())?);
        self.block.extend_from_slice(packet);
        self.pad();
        if let Some(comment) = comment {
            self.option(1, comment.as_bytes());
            self.end_of_options();
        }
        self.flush_block(ENHANCED_PACKET)
    }

    /// Writes out what is buffered and returns the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let length = u16::try_from(value.len()).expect("options are short");
        self.block.extend_from_slice(&code.to_le_bytes());
        self.block.extend_from_slice(&length.to_le_bytes());
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn end_of_options(&mut self) {
        self.block.extend_from_slice(&[0; 4]);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn flush_block(&mut self, kind: u32) -> io::Result<()> {
        let length = length_field(self.block.len() + 12)?;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&length)?;
        self.block.clear();
        Ok(())
    }
}

fn length_field(length: usize) -> io::Result<[u8; 4]> {
    u32::try_from(length).map(u32::to_le_bytes).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "a pcapng block holds less than 4 GiB",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks over the blocks as a reader does: (type, body) each, lengths before and behind equal.
    fn blocks(mut file: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let word =
            |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let mut found = Vec::new();
        while !file.is_empty() {
            let length = word(file, 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(file, length - 4) as usize, length);
            found.push((word(file, 0), file[8..length - 4].to_vec()));
            file = &file[length..];
        }
        found
    }

    #[test]
    fn blocks_are_as_the_format_says() {
        let mut writer = Writer::new(Vec::new(), "test").unwrap();
        let client = writer.interface("client").unwrap();
        let server = writer.interface("server").unwrap();
        assert_ne!(client, server);
        writer.tls_secrets(b"CLIENT_RANDOM 00 11\n").unwrap();
        writer
            .packet(server, 0x0102_0304_0506_0708, b"abcde", None)
            .unwrap();
        writer.packet(client, 0, b"ab", Some("lost")).unwrap();
        let file = writer.finish().unwrap();

        let blocks = blocks(&file);
        let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(
            kinds,
            [
                SECTION_HEADER,
                INTERFACE_DESCRIPTION,
                INTERFACE_DESCRIPTION,
                DECRYPTION_SECRETS,
                ENHANCED_PACKET,
                ENHANCED_PACKET
            ]
        );
        let packet = &blocks[4].1;
        assert_eq!(packet[..4], [1, 0, 0, 0]);
        assert_eq!(packet[4..12], [4, 3, 2, 1, 8, 7, 6, 5], "high word first");
        assert_eq!(packet[12..16], [5, 0, 0, 0]);
        assert_eq!(packet[20..], *b"abcde\0\0\0");
        assert_eq!(blocks[5].1[20..], *b"ab\0\0\x01\0\x04\0lost\0\0\0\0");
    }
}
