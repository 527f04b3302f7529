//! The files of `tests/corpus` and `tests/captures-tcp`, and random changes of them, go through
//! reader, observer and frames, and on through ledger, metrics and findings; whatever is in them,
//! certain things hold.
//!
//! `cargo test` reads every file and tries some thousand changes. To look for longer, with all
//! checks of a debug build:
//!
//! ```sh
//! export BENTPIPE_FUZZ_ROUNDS=1000000
//! cargo test -p bentpipe-analysis --test corpus -- --ignored --nocapture
//! ```
//!
//! A round that fails says its seed. `BENTPIPE_FUZZ_SEED=… BENTPIPE_FUZZ_ROUNDS=1` plays it again
//! and leaves the file that it read in the folder of temporary files; it belongs in the corpus.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::{env, fs};

use bentpipe_analysis::findings::{Findings, View};
use bentpipe_analysis::{CaptureFile, Captured, LinkFacts, Metrics};
use bentpipe_wire::capture::{CaptureError, CapturedPacket, Input, Item, Reader};
use bentpipe_wire::quic::{Frame, Frames, MOST_WAITING, Observer};
use bentpipe_wire::{Datagram, KeyLog};

/// Rounds of a usual test.
const ROUNDS: u64 = 3000;

fn corpus() -> Vec<(String, Vec<u8>)> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let folders = ["corpus", "captures-tcp"].map(|name| fs::read_dir(tests.join(name)).unwrap());
    let files = folders
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    let captures = files.filter(|path| path.extension().is_some_and(|it| it != "md"));
    let mut found: Vec<_> = captures
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    found.sort();
    found
}

/// The contents of a capture file.
#[derive(Debug, Default)]
struct Found {
    captured: usize,
    packets: usize,
    payloads: Vec<Vec<u8>>,
}

/// Reads a file as the programs do, and checks what must hold for any.
fn read(file: &[u8]) -> Found {
    let mut found = Found::default();
    let Ok(mut reader) = Reader::new(file) else {
        return found;
    };
    let secrets = KeyLog::default();
    let (mut observers, mut bytes, mut position) = (Vec::new(), 0, 0);
    while let Some(item) = reader.next() {
        assert!(reader.position() <= file.len() && position <= reader.position());
        position = reader.position();
        match item {
            Ok(Item::TlsSecrets(text)) => {
                for observer in &mut observers {
                    Observer::add_secrets(observer, text);
                }
                if observers.is_empty() {
                    observers.push(Observer::new(&secrets));
                    observers[0].add_secrets(text);
                }
            }
            Ok(Item::Packet(packet)) => {
                assert!(
                    file.as_ptr_range().contains(&packet.bytes.as_ptr()) || packet.bytes.is_empty()
                );
                bytes += packet.bytes.len();
                assert!(packet.interface < reader.interfaces().len());
                while observers.len() <= packet.interface {
                    observers.push(Observer::new(&secrets));
                }
                found.captured += 1;
                look_into(&packet, &mut observers[packet.interface], &mut found);
            }
            Err(CaptureError::CutShort { offset, .. } | CaptureError::Garbage { offset, .. }) => {
                assert!(offset < file.len());
                assert!(reader.next().is_none(), "an error ends the file");
            }
            Err(CaptureError::NotACapture) => panic!("it began as one"),
        }
    }
    assert!(bytes <= file.len());
    found
}

fn look_into(captured: &CapturedPacket<'_>, observer: &mut Observer<'_>, found: &mut Found) {
    let Ok(datagram) = Datagram::of(captured) else {
        return;
    };
    assert!(datagram.payload.len() <= datagram.length.min(captured.bytes.len()));
    let mut size = 0;
    observer.datagram(&datagram, |seen| match seen {
        Ok(packet) => {
            if packet.waited_since.is_none() {
                size += packet.size;
            }
            found.packets += 1;
            assert!(packet.payload.len() < packet.size);
            look_at_frames(packet.payload);
            found.payloads.push(packet.payload.to_vec());
        }
        Err(undecoded) if undecoded.waited_since.is_none() => size += undecoded.size,
        Err(_) => {}
    });
    assert!(size <= datagram.payload.len());
    assert!(observer.waiting().count() <= MOST_WAITING);
}

/// Goes the whole way to the findings, with overflow checks in a debug build. Tells how many
/// connections there are.
fn analyze(name: &str, bytes: &[u8]) -> usize {
    let input = Input::Memory(bytes.into());
    let captured = Captured::read(&[CaptureFile { name, input }], KeyLog::default(), &|_| {});
    let link = LinkFacts {
        forward_rate_bps: Some(20_000_000),
        rtt_ms: Some(600.0),
        ..LinkFacts::default()
    };
    for link in [LinkFacts::default(), link] {
        for connection in &captured.connections {
            let ledger = connection.ledger();
            let view = View {
                connection,
                ledger: &ledger,
                link: &link,
                windows: [None; 2],
            };
            let metrics = Metrics::of(connection, &ledger, &link);
            for time in [metrics.rtt_min_ms, metrics.rtt_max_ms, metrics.completion_s] {
                assert!(
                    time.is_none_or(|time| time.abs() < 1e10),
                    "{name}: {time:?}"
                );
            }
            assert!(!Findings::of(&view).all.is_empty());
        }
    }
    captured.connections.len()
}

fn look_at_frames(payload: &[u8]) {
    let mut count = 0;
    for frame in Frames::new(payload) {
        count += 1;
        match frame {
            Ok(Frame::Ack { ranges, .. }) => {
                let mut below = None;
                for range in ranges.iter() {
                    assert!(range.start() <= range.end());
                    assert!(below.is_none_or(|below| range.end() + 1 < below));
                    below = Some(*range.start());
                }
            }
            Ok(Frame::Stream { data, .. } | Frame::Crypto { data, .. }) => {
                assert!(data.len() < payload.len());
            }
            Ok(_) => {}
            Err(error) => assert!(error.offset < payload.len()),
        }
    }
    assert!(count <= payload.len());
}

/// A source of numbers that are the same for the same seed (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    fn range(&mut self, length: usize) -> Range<usize> {
        let start = self.below(length);
        start..(start + 1 + self.below(64)).min(length)
    }
}

/// Changes something: bits, bytes of meaning, runs left out, said twice or taken from elsewhere,
/// the end cut off.
fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len());
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 1, 0x3f, 0x40, 0x7f, 0x80, 0xc0, 0xff][random.below(8)],
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(random.range(bytes.len()))),
            4 => {
                let run = bytes[random.range(bytes.len())].to_vec();
                bytes.splice(at..at, run);
            }
            5 if !other.is_empty() => {
                let run = other[random.range(other.len())].to_vec();
                let end = (at + run.len()).min(bytes.len());
                bytes.splice(at..end, run);
            }
            _ => {
                let end = (at + 4).min(bytes.len());
                bytes[at..end].fill(if random.below(2) == 0 { 0 } else { 0xff });
            }
        }
    }
}

/// The file of a round: one of the corpus, changed.
fn file_of(seed: u64, corpus: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut random = Random(seed);
    let mut file = corpus[random.below(corpus.len())].1.clone();
    let other = &corpus[random.below(corpus.len())].1;
    change(&mut file, other, &mut random);
    file
}

fn rounds(first: u64, count: u64) {
    let corpus = corpus();
    for seed in first..first + count {
        let file = file_of(seed, &corpus);
        let round = || {
            let mut random = Random(!seed);
            for mut payload in read(&file).payloads {
                change(&mut payload, &file, &mut random);
                look_at_frames(&payload);
            }
            if seed % 4 == 0 {
                analyze("fuzz", &file);
            }
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(round)) {
            let place =
                Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("corpus-{seed}.pcapng"));
            fs::write(&place, &file).unwrap();
            eprintln!("seed {seed} failed; its file is {}", place.display());
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn every_file_of_the_corpus() {
    let corpus = corpus();
    assert!(corpus.len() >= 15);
    for (name, file) in &corpus {
        let found = read(file);
        let is_quic = !["client.pcap", "server.pcap"].contains(&&name[..]);
        assert!(found.captured > 0, "{name}: {found:?}");
        assert_eq!(found.packets > 0, is_quic, "{name}: {found:?}");
        let connections = analyze(name, file);
        assert!(connections > 0 || name.starts_with("other"), "{name}");
    }
}

#[test]
fn random_changes() {
    rounds(0, ROUNDS);
}

#[test]
#[ignore = "takes as long as it is told to"]
fn many_random_changes() {
    let number = |name| {
        env::var(name)
            .ok()
            .map(|text| text.parse().expect("a number"))
    };
    let first = number("BENTPIPE_FUZZ_SEED").unwrap_or(0);
    rounds(first, number("BENTPIPE_FUZZ_ROUNDS").unwrap_or(ROUNDS));
}

/// The blocks of a little-endian pcapng file, with their types.
fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
    let mut blocks = Vec::new();
    while let Some((head, _)) = file.split_first_chunk::<8>() {
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        let (block, rest) = file.split_at(word(4) as usize);
        blocks.push((word(0), block));
        file = rest;
    }
    blocks
}

#[test]
fn secrets_may_stand_behind_the_packets_that_need_them() {
    const SECRETS: u32 = 10;
    for name in [
        "v1-key-update.pcapng",
        "v1-midway.pcapng",
        "v2-retry.pcapng",
    ] {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
        let file = fs::read(corpus.join(name)).unwrap();
        let (secrets, others): (Vec<_>, Vec<_>) =
            blocks(&file).into_iter().partition(|it| it.0 == SECRETS);
        assert!(!secrets.is_empty(), "{name}");
        let connections = |blocks: &[(u32, &[u8])]| {
            let bytes: Vec<u8> = blocks.iter().flat_map(|it| it.1).copied().collect();
            let input = Input::Memory(bytes.into());
            Captured::read(&[CaptureFile { name, input }], KeyLog::default(), &|_| {}).connections
        };
        let usual = connections(&blocks(&file));
        assert!(
            usual
                .iter()
                .any(|it| it.packets.iter().any(|it| it.decoded))
        );
        let half = others.len() / 2;
        let late = [&others[..], &secrets].concat();
        let between = [&others[..half], &secrets, &others[half..]].concat();
        assert!(
            connections(&late) == usual && connections(&between) == usual,
            "{name}"
        );
    }
}
