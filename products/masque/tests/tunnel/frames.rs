//! Frames of HTTP/3 as a peer by hand writes them.

/// The control stream: SETTINGS with `SETTINGS_H3_DATAGRAM = 1`.
pub const CONTROL: [u8; 5] = [0x00, 0x04, 0x02, 0x33, 0x01];

/// A HEADERS frame, its fields literal (RFC 9204, section 4.5.6).
fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in fields {
        // Names of 7 bytes and more: 3 bits of the length, and what is left of it.
        match u8::try_from(name.len()).unwrap() {
            short @ 0..7 => section.push(0x20 | short),
            long => section.extend([0x27, long - 7]),
        }
        section.extend(name.bytes());
        match u8::try_from(value.len()).unwrap() {
            short @ 0..127 => section.push(short),
            long => section.extend([0x7f, long - 127]),
        }
        section.extend(value.bytes());
    }
    let mut frame = vec![0x01];
    frame.extend((0x4000 | u16::try_from(section.len()).unwrap()).to_be_bytes());
    frame.extend(section);
    frame
}

/// That of an extended CONNECT request, or of another.
pub fn request(method: &str, protocol: &str, path: &str) -> Vec<u8> {
    request_with(method, protocol, path, &[])
}

/// That with further fields.
pub fn request_with(method: &str, protocol: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let mut fields = vec![(":method", method)];
    if !protocol.is_empty() {
        fields.push((":protocol", protocol));
    }
    let rest = [
        (":scheme", "https"),
        (":authority", "server"),
        (":path", path),
    ];
    fields.extend(rest);
    fields.extend(more);
    headers(&fields)
}

/// A DATA frame.
pub fn data(bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x00];
    frame.extend((0x4000 | u16::try_from(bytes.len()).unwrap()).to_be_bytes());
    frame.extend(bytes);
    frame
}
