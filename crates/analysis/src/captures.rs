//! From capture files to connections.
//!
//! Every interface of every file is a separate place. A file is read once, all its places together,
//! and several files side by side on the machine's cores; what was seen is joined at the end. Files
//! are read in pieces, so memory goes to what is noted of each packet.
//!
//! Secrets may stand anywhere in a file, and are those of packets before them, too. Where some come
//! late, files are read again once all are known.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::thread;

use crate::connection::{
    CaptureInfo, Codepoint, Connection, Fate, Recorder, Recording, Undecodable, join,
};
use crate::tcp;
use bentpipe_wire::KeyLog;
use bentpipe_wire::capture::{CapturedPacket, Input, Item, Piece, ReadError};
use bentpipe_wire::quic::Scratch;
use bentpipe_wire::tcp::Segment;
use bentpipe_wire::{Datagram, DecapsulationError, IpLayer};

/// A capture file that is to be read.
#[derive(Debug)]
pub struct CaptureFile<'a> {
    /// Its name without folder and ending; "client" or "server" in it says where it was taken.
    pub name: &'a str,
    /// The input from which it is read.
    pub input: Input<'a>,
}

/// The content of captures: connections, and what could not be decoded.
#[derive(Debug, Default)]
pub struct Captured {
    /// By the time of their first packets.
    pub connections: Vec<Connection>,
    /// The undecodable parts, by the reason.
    pub undecodable: BTreeMap<String, Undecodable>,
    /// Per file, why it could not be read to its end.
    pub errors: Vec<Option<ReadError>>,
}

impl Captured {
    /// Reads `files`. Secrets that stand in the files are added to `secrets`.
    ///
    /// Of a file that cannot be read to its end, what comes before that counts.
    /// `progress` is told of bytes of the files as they have been read; where secrets come late,
    /// of some twice.
    #[must_use]
    pub fn read(
        files: &[CaptureFile<'_>],
        secrets: KeyLog,
        progress: &(impl Fn(u64) + Sync),
    ) -> Self {
        let mut leading = secrets.clone();
        for file in files {
            add_leading_secrets(file, &mut leading);
        }
        let recorded = record_all(files, &leading, Late::Refuse, progress).unwrap_or_else(|| {
            let mut all = secrets;
            for file in files {
                // A file that cannot be opened is said to be one when it is recorded.
                let _ = file.input.add_secrets(&mut all);
            }
            record_all(files, &all, Late::PassOver, progress).expect("no secrets are refused")
        });
        let (mut errors, mut places) = (Vec::new(), Vec::new());
        for file in recorded {
            errors.push(file.error);
            places.extend(file.places);
        }
        let mut undecodable = BTreeMap::new();
        for (what, missing) in places.iter().flat_map(|(_, it)| &it.undecodable) {
            let entry = undecodable.entry(what.clone());
            let sum = entry.or_insert(Undecodable {
                count: 0,
                ..*missing
            });
            sum.count += missing.count;
            sum.first_frame = sum.first_frame.min(missing.first_frame);
        }
        let places = places.into_iter();
        Self {
            connections: join(places.map(|(name, it)| (Some(name), it)).collect()),
            undecodable,
            errors,
        }
    }
}

/// Takes the secrets that stand before the first packet of a file.
fn add_leading_secrets(file: &CaptureFile<'_>, secrets: &mut KeyLog) {
    let Ok(mut pieces) = file.input.pieces() else {
        return;
    };
    let mut piece = Piece::default();
    while pieces.next(&mut piece) {
        for item in piece.items() {
            match item {
                Item::TlsSecrets(text) => secrets.add(text),
                Item::Packet(_) => return,
            }
        }
    }
}

/// The recordings of a file.
struct RecordedFile {
    /// The interfaces on which packets were captured, by number: names, and what passed.
    places: Vec<(String, Recording)>,
    error: Option<ReadError>,
}

/// The treatment of secrets behind packets that are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Late {
    Refuse,
    PassOver,
}

/// Records the packets of each file. None if one has secrets that are refused.
fn record_all(
    files: &[CaptureFile<'_>],
    secrets: &KeyLog,
    late: Late,
    progress: &(impl Fn(u64) + Sync),
) -> Option<Vec<RecordedFile>> {
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    let share = files.len().div_ceil(workers).max(1);
    thread::scope(|scope| {
        let shares = files.chunks(share).map(|files| {
            let record = move |file| FileRecorder::new(secrets).record(file, late, progress);
            scope.spawn(move || files.iter().map(record).collect::<Option<Vec<_>>>())
        });
        let threads: Vec<_> = shares.collect();
        let recorded = threads
            .into_iter()
            .map(|it| it.join().expect("a worker panicked"));
        let recorded: Option<Vec<_>> = recorded.collect();
        Some(recorded?.into_iter().flatten().collect())
    })
}

/// Takes note of what passes at the places of one file.
struct FileRecorder<'k> {
    secrets: &'k KeyLog,
    /// By the number of the interface; None until a packet was captured there.
    /// By interface; None: nothing passed there. A file may declare many that it has no packet of.
    places: Vec<Option<Box<Recorders<'k>>>>,
    /// The memory that all of them share.
    scratch: Scratch,
    /// The number of the last captured packet.
    frame: u64,
}

impl<'k> FileRecorder<'k> {
    fn new(secrets: &'k KeyLog) -> Self {
        Self {
            secrets,
            places: Vec::new(),
            scratch: Scratch::shared(),
            frame: 0,
        }
    }

    /// Of a file that cannot be read to its end, what comes before that is recorded. None if it has
    /// secrets that are refused.
    fn record(
        mut self,
        file: &CaptureFile<'_>,
        late: Late,
        progress: &impl Fn(u64),
    ) -> Option<RecordedFile> {
        let mut pieces = match file.input.pieces() {
            Ok(pieces) => pieces,
            Err(error) => {
                return Some(RecordedFile {
                    places: Vec::new(),
                    error: Some(ReadError::Io(error)),
                });
            }
        };
        let (mut piece, mut read) = (Piece::default(), 0);
        while pieces.next(&mut piece) {
            progress(pieces.bytes_read() - read);
            read = pieces.bytes_read();
            for item in piece.items() {
                match item {
                    Item::Packet(packet) => self.note(&packet),
                    Item::TlsSecrets(text) => {
                        if late == Late::Refuse && self.secrets.lacks(text) {
                            return None;
                        }
                    }
                }
            }
        }
        let interfaces = pieces.interfaces().iter().zip(self.places);
        let places = interfaces.filter_map(|(interface, place)| {
            let own = interface.name.as_deref();
            let name = format!("{} {}", file.name, own.unwrap_or_default());
            Some((name, place?.finish()))
        });
        Some(RecordedFile {
            places: places.collect(),
            error: pieces.failure(),
        })
    }

    fn note(&mut self, packet: &CapturedPacket<'_>) {
        self.frame += 1;
        if self.places.len() <= packet.interface {
            self.places.resize_with(packet.interface + 1, || None);
        }
        let place = &mut self.places[packet.interface];
        let place = place.get_or_insert_with(|| Box::new(Recorders::new(self.secrets)));
        place.quic.exchange_scratch(&mut self.scratch);
        place.note(self.frame, packet);
        place.quic.exchange_scratch(&mut self.scratch);
    }
}

/// Takes note of what passes at one place.
struct Recorders<'k> {
    quic: Recorder<'k>,
    tcp: tcp::Recorder<'k>,
}

impl<'k> Recorders<'k> {
    fn new(secrets: &'k KeyLog) -> Self {
        Self {
            quic: Recorder::new(secrets),
            tcp: tcp::Recorder::new(secrets),
        }
    }

    fn finish(self) -> Recording {
        let mut recording = self.quic.finish();
        self.tcp.finish(&mut recording);
        recording.leave_out_outliers();
        recording
    }

    fn note(&mut self, frame: u64, packet: &CapturedPacket<'_>) {
        let Some(time) = packet.time else {
            return self.quic.no_time(frame);
        };
        let fate = packet.comment.and_then(Fate::from_comment);
        let info = CaptureInfo {
            time,
            frame,
            ecn: ecn(packet),
            fate,
        };
        match Datagram::of(packet) {
            Ok(datagram) => self.quic.datagram(&datagram, info),
            Err(DecapsulationError::NotUdp) => match Segment::of(packet) {
                Ok((segment, payload)) => self.tcp.segment(&segment, payload, info),
                Err(reason) => self.quic.no_datagram(frame, reason),
            },
            Err(reason) => self.quic.no_datagram(frame, reason),
        }
    }
}

/// The ECN codepoint of the IP packet in a captured packet. What holds none is not noted either.
fn ecn(packet: &CapturedPacket<'_>) -> Codepoint {
    let ip = IpLayer::of(packet).ok().flatten();
    ip.map_or(Codepoint::NotEct, |ip| Codepoint::of_bits(ip.ecn))
}
