//! Reads files that the programs `gzip` and `zstd` packed; a prefix, and a file with one byte
//! changed, give the data before that, and an error.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use bentpipe_unpack::{Packing, UnpackError, Unpacked, read, read_part};
use proptest::prelude::*;

/// Packs with a program.
fn packed(command: &[&str], content: &[u8]) -> Vec<u8> {
    let (stdin, stdout) = (Stdio::piped(), Stdio::piped());
    let mut program = Command::new(command[0]);
    let program = program.args(&command[1..]).stdin(stdin).stdout(stdout);
    let mut child = program.spawn().expect("gzip and zstd are there");
    let mut input = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(content).unwrap());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        output.stdout
    })
}

fn gzip(content: &[u8]) -> Vec<u8> {
    packed(&["gzip", "-c"], content)
}

fn zstd(content: &[u8]) -> Vec<u8> {
    packed(&["zstd", "-q", "-c"], content)
}

/// Data that can be packed, not too well, and are longer than what programs read at once.
fn content() -> Vec<u8> {
    let numbers = (0_u32..60_000).map(|it| it.wrapping_mul(2_654_435_761) >> 12);
    numbers
        .flat_map(|it| format!("{it}\n").into_bytes())
        .collect()
}

/// The data that could be read, and the error that ended reading.
fn unpacked(file: &[u8]) -> (Vec<u8>, Option<UnpackError>) {
    let mut bytes = Vec::new();
    let end = Unpacked::new(file).unwrap().read_to_end(&mut bytes);
    let error = end.err().map(|error| UnpackError::of(error).unwrap());
    (bytes, error)
}

#[test]
fn what_is_packed_is_read_and_what_follows_it() {
    let content = content();
    for file in [
        content.clone(),
        gzip(&content),
        zstd(&content),
        packed(&["zstd", "-q", "-19", "--long=27", "-c"], &content),
        packed(&["zstd", "-q", "--no-check", "-c"], &content),
    ] {
        let (bytes, error) = unpacked(&file);
        assert!(bytes == content);
        assert!(error.is_none());
        if file != content {
            let (bytes, error) = unpacked(&file.repeat(2));
            assert!(bytes == content.repeat(2));
            assert!(error.is_none());
        }
    }
}

#[test]
fn a_frame_to_be_skipped_is_none_of_the_content() {
    let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0], &b"abc"[..]].concat();
    let file = [&skipped[..], &zstd(b"some"), &skipped, &zstd(b" text")].concat();
    assert_eq!(unpacked(&file).0, b"some text");
    let (bytes, error) = unpacked(&file[..skipped.len() - 1]);
    assert!(bytes.is_empty());
    assert!(matches!(error, Some(UnpackError::CutShort { at: 10, .. })));
}

#[test]
fn of_a_file_that_is_cut_short_what_stands_before_is_read() {
    let content = content();
    for (file, lost) in [(gzip(&content), 70_000), (zstd(&content), 140_000)] {
        let half = file.len() * 9 / 10;
        let (bytes, error) = unpacked(&file[..half]);
        assert!(content.starts_with(&bytes));
        assert!(
            bytes.len() > content.len() * 9 / 10 - lost,
            "{}",
            bytes.len()
        );
        let error = error.unwrap();
        let says = format!("cut short: it ends at byte {half}, before what is packed does");
        assert!(error.to_string().ends_with(&says), "{error}");
    }
}

#[test]
fn a_bomb_is_named_and_takes_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bomb");
    let zeros = vec![0; 8 << 20];
    for bomb in [gzip(&zeros), zstd(&zeros)] {
        assert!(bomb.len() < 10_000);
        fs::write(&file, &bomb).unwrap();
        let content = read_part(&file, 1 << 20).unwrap();
        assert_eq!(content.bytes.len(), 1 << 20);
        let error = content.error.unwrap().to_string();
        assert!(
            error.starts_with("more than 1048576 bytes are packed"),
            "{error}"
        );
        assert!(read(&file, 1 << 20).is_err());
        assert_eq!(read(&file, 8 << 20).unwrap(), zeros);
    }
    fs::write(&file, &zeros).unwrap();
    assert_eq!(read(&file, 1).unwrap(), zeros, "it is not packed");
    // A frame that asks to look back further than 128 MiB.
    let (_, error) = unpacked(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0xa0, 1, 0, 0]);
    assert!(matches!(error, Some(UnpackError::Damaged { .. })));
}

#[test]
fn what_is_packed_in_another_way_is_named() {
    for (file, packing, hint) in [
        (&b"\xfd7zXZ\0\0"[..], Packing::Xz, "hint: xz -d FILE"),
        (b"BZh91AY&SY..", Packing::Bzip2, "hint: bzip2 -d FILE"),
        (b"PK\x03\x04....", Packing::Zip, "hint: unzip FILE"),
        (b"\x04\x22\x4d\x18...", Packing::Lz4, "hint: lz4 -d FILE"),
    ] {
        let (bytes, error) = unpacked(file);
        let error = error.unwrap();
        assert!(bytes.is_empty());
        assert!(matches!(&error, UnpackError::Refused(it) if *it == packing));
        assert!(error.to_string().contains(hint), "{error}");
    }
    assert!(read(Path::new("not-there"), 1).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_prefix_and_any_change_ends_well(
        at in any::<prop::sample::Index>(), change in 1_u8.., with_zstd: bool
    ) {
        let content = &content()[..20_000];
        let file = if with_zstd { zstd(content) } else { gzip(content) };
        let at = at.index(file.len());
        let (bytes, error) = unpacked(&file[..at]);
        prop_assert!(content.starts_with(&bytes) || file.starts_with(&bytes));
        prop_assert!(at < 4 || error.is_some());
        let mut changed = file;
        changed[at] ^= change;
        let (bytes, error) = unpacked(&changed);
        // Fields of the header beside the content, such as a time, may have any value.
        prop_assert!(error.is_some() || bytes == content || at < 10);
    }
}
