//! Copies the source of noq-proto from where cargo keeps it, and mends it.
//!
//! `docs/upstream/noq-*.md` are the reports of what is mended. Should a release have the mends, this crate goes away.
//! With `BENTPIPE_NOQ_PLAIN` set in the environment, nothing is mended: that shows what happens without. What is added is there all the same.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

const SOURCE: &str = "noq-proto-1.4.0";

/// In which file, what is written there, how often, and what it has to be.
///
/// `defragment` takes the number of bytes read for the offset before which all has been read. That holds in ordered mode only:
/// unordered, it throws away chunks that fill a gap.
///
/// `defragment` leaves apart what lies side by side, if it fills its packets well: 2049 full packets that nobody has read are then
/// taken for as many gaps, and the connection is given up: `docs/upstream/noq-unread.md`. So before that is counted, all but large pieces are merged.
///
/// The pacer holds back packets with nothing but an ACK, too, which RFC 9002, section 7.7, advises against: `docs/upstream/noq-acks.md`. Over a
/// long round trip a receiver's ACKs then come in bursts.
///
/// All that a qlog could say of a packet is put into words where nobody asked for one, too: `docs/upstream/noq-qlog.md`.
const MENDS: [(&str, &str, usize, &str); 14] = [
    (
        "connection/assembler.rs",
        "let mut offset = self.bytes_read;",
        2,
        "let mut offset = if self.state.is_ordered() { self.bytes_read } else { 0 };",
    ),
    (
        "connection/assembler.rs",
        "if over_allocation > threshold || self.data.len() > COMPACT_THRESHOLD {",
        1,
        "if over_allocation > threshold || self.data.len() > COMPACT_THRESHOLD {
            if self.data.len() > COMPACT_THRESHOLD {
                for chunk in self.data.iter_mut().filter(|chunk| chunk.bytes.len() < 1 << 16) {
                    chunk.defragmented = false;
                    chunk.allocation_size = 2 * chunk.bytes.len();
                }
            }",
    ),
    (
        "connection/mod.rs",
        "if let Some(delay) = self.path_data_mut(path_id).pacing_delay(bytes_to_send, now) {",
        1,
        "let only_acks = !can_send.other && !need_loss_probe && !can_send.close;
        if !only_acks && let Some(delay) = self.path_data_mut(path_id).pacing_delay(bytes_to_send, now) {",
    ),
    (QLOG, "impl QlogSink {", 1, QLOG_CONSTRUCTORS),
    (QLOG, "    inner: PacketSent,", 1, "    inner: PacketSent,\n    is_unwanted: bool,"),
    (QLOG, "    inner: PacketReceived,", 1, "    inner: PacketReceived,\n    is_unwanted: bool,"),
    (QLOG, "                padding: 0,", 1, "                is_unwanted: false,\n                padding: 0,"),
    (
        QLOG,
        "self.inner.header.scid = header.src_cid().map(stringify_cid);",
        2,
        "if self.is_unwanted {
                return;
            }
            self.inner.header.scid = header.src_cid().map(stringify_cid);",
    ),
    (
        QLOG,
        "self.frame_raw(frame.to_qlog());",
        1,
        "if !self.is_unwanted {
            self.frame_raw(frame.to_qlog());
        }",
    ),
    (
        QLOG,
        "self.inner.frames.get_or_insert_default().push(frame);",
        1,
        "if !self.is_unwanted {
            self.inner.frames.get_or_insert_default().push(frame);
        }",
    ),
    (
        QLOG,
        "if matches!(frame, Frame::Padding) {",
        1,
        "if self.is_unwanted {
                return;
            }
            if matches!(frame, Frame::Padding) {",
    ),
    (
        "connection/packet_builder.rs",
        "let mut qlog = QlogSentPacket::default();",
        1,
        "let mut qlog = conn.qlog.packet_sent();",
    ),
    (
        "connection/mod.rs",
        "let mut qlog = QlogRecvPacket::new(len);",
        1,
        "let mut qlog = self.qlog.packet_received(len);",
    ),
    (
        "connection/mod.rs",
        "let qlog = QlogRecvPacket::new(partial_decode.len());",
        1,
        "let qlog = self.qlog.packet_received(partial_decode.len());",
    ),
];

/// What the library knows and does not tell, in the same words: `docs/upstream/noq-streams.md`.
const ADDITION: (&str, &str, usize, &str) = (
    "connection/streams/mod.rs",
    "    /// The number of streams that may have unacknowledged data.",
    1,
    "    /// How many streams the peer has allowed to be opened over the lifetime of the connection (RFC 9000, section 19.11).
    pub fn allowed(&self, dir: Dir) -> u64 {
        self.state.max[dir as usize]
    }

    /// The number of streams that may have unacknowledged data.",
);

const QLOG: &str = "connection/qlog.rs";
const QLOG_CONSTRUCTORS: &str = "impl QlogSink {
    pub(crate) fn packet_sent(&self) -> QlogSentPacket {
        QlogSentPacket {
            inner: Default::default(),
            is_unwanted: self.stream.is_none(),
        }
    }

    pub(crate) fn packet_received(&self, len: usize) -> QlogRecvPacket {
        let mut packet = QlogRecvPacket::new(len);
        packet.is_unwanted = self.stream.is_none();
        packet
    }
";

fn main() {
    println!("cargo::rerun-if-env-changed=BENTPIPE_NOQ_PLAIN");
    println!("cargo::rerun-if-changed=build.rs");
    let copy = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("src");
    if copy.exists() {
        fs::remove_dir_all(&copy).expect("the old copy goes");
    }
    copy_folder(&source().join("src"), &copy).expect("the source is copied");
    // Attributes of the crate cannot be included; src/lib.rs has them.
    edit(&copy.join("lib.rs"), |text| {
        let start = text.find("extern crate alloc;").expect("where items begin");
        text[start..].to_owned()
    });
    let mends: &[_] = match env::var_os("BENTPIPE_NOQ_PLAIN") {
        Some(_) => &[],
        None => &MENDS,
    };
    for &(file, wrong, count, right) in mends.iter().chain([&ADDITION]) {
        edit(&copy.join(file), |text| {
            assert_eq!(text.matches(wrong).count(), count, "{file}: {wrong}");
            text.replace(wrong, right)
        });
    }
}

/// Where cargo keeps the sources that it fetched.
fn source() -> PathBuf {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let registries = home.expect("CARGO_HOME or HOME").join("registry/src");
    let sources = fs::read_dir(&registries).into_iter().flatten().flatten();
    let mut found = sources.map(|registry| registry.path().join(SOURCE));
    found
        .find(|folder| folder.is_dir())
        .unwrap_or_else(|| panic!("no {SOURCE} in {}", registries.display()))
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::write(target, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

fn edit(file: &Path, change: impl Fn(&str) -> String) {
    let text = fs::read_to_string(file).expect("a file of the copy");
    fs::write(file, change(&text)).expect("a file of the copy");
}
