//! A packed capture is read as what it holds, and one that is cut short as far as it can be.

use std::io::Write;
use std::process::{Command, Stdio};

use bentpipe_wire::Writer;
use bentpipe_wire::capture::{CaptureError, Input, Item, Piece, ReadError};

fn packed(program: &str, content: &[u8]) -> Vec<u8> {
    let (stdin, stdout) = (Stdio::piped(), Stdio::piped());
    let mut command = Command::new(program);
    let command = command.arg("-c").stdin(stdin).stdout(stdout);
    let mut child = command.spawn().expect("gzip and zstd are there");
    let mut input = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(content).unwrap());
        child.wait_with_output().unwrap().stdout
    })
}

/// A megabyte of packets that do not repeat much, each with its number.
fn capture() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), "test").unwrap();
    let interface = writer.interface("client").unwrap();
    writer.tls_secrets(b"CLIENT_RANDOM 00 11\n").unwrap();
    for number in 0_u32..1000 {
        let noise = (0..250_u32).map(|at| (number ^ at).wrapping_mul(2_654_435_761));
        let packet: Vec<u8> = noise.flat_map(u32::to_be_bytes).collect();
        writer
            .packet(interface, number.into(), &packet, None)
            .unwrap();
    }
    writer.finish().unwrap()
}

/// The times of the packets, whether there were secrets, and why no more was read.
fn read(file: &[u8]) -> (Vec<u64>, bool, Option<ReadError>) {
    let input = Input::Memory(file.into());
    let (mut pieces, mut piece) = (input.pieces().unwrap(), Piece::default());
    let (mut times, mut has_secrets) = (Vec::new(), false);
    while pieces.next(&mut piece) {
        for item in piece.items() {
            match item {
                Item::Packet(packet) => times.extend(packet.time),
                Item::TlsSecrets(_) => has_secrets = true,
            }
        }
    }
    (times, has_secrets, pieces.failure())
}

#[test]
fn a_packed_capture_is_read_as_what_it_holds() {
    let all: Vec<u64> = (0..1000).collect();
    for program in ["gzip", "zstd"] {
        let file = packed(program, &capture());
        let (times, has_secrets, error) = read(&file);
        assert!(times == all && has_secrets && error.is_none());
        assert!(
            Input::Memory(file.as_slice().into())
                .begins_with_secrets()
                .unwrap()
        );

        let (times, _, error) = read(&file[..file.len() / 2]);
        assert!(
            all.starts_with(&times) && times.len() > 200,
            "{}",
            times.len()
        );
        let error = error.unwrap();
        assert!(matches!(error, ReadError::Packed(_)));
        assert!(error.to_string().contains("cut short: it ends at byte"));

        let (_, _, error) = read(&packed(program, b"no capture"));
        assert!(matches!(
            error,
            Some(ReadError::Capture(CaptureError::NotACapture))
        ));
    }
}
