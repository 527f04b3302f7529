//! From capture files to connections.
//!
//! Every interface of every file is a separate place. The places are read side by side on the
//! machine's cores; what they saw is joined at the end. Files are read in pieces, so memory goes to
//! what is noted of each packet.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::thread;

use crate::connection::{
    CaptureInfo, Codepoint, Connection, Fate, Recorder, Recording, Undecodable, join,
};
use crate::tcp;
use bentpipe_wire::KeyLog;
use bentpipe_wire::capture::{CapturedPacket, Input, Item, Piece, ReadError};
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
    #[must_use]
    pub fn read(files: &[CaptureFile<'_>], mut secrets: KeyLog) -> Self {
        let mut errors = Vec::new();
        let mut places = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let (interfaces, error) = scan(file, &mut secrets);
            errors.push(error);
            places.extend(
                interfaces
                    .into_iter()
                    .map(|(interface, name)| CaptureInterface {
                        file: number,
                        interface,
                        name,
                    }),
            );
        }
        let recordings = record_all(files, &places, &secrets);
        let mut undecodable = BTreeMap::new();
        for (what, missing) in recordings.iter().flat_map(|it| &it.undecodable) {
            let entry = undecodable.entry(what.clone());
            let sum = entry.or_insert(Undecodable {
                count: 0,
                ..*missing
            });
            sum.count += missing.count;
            sum.first_frame = sum.first_frame.min(missing.first_frame);
        }
        let names = places.into_iter().map(|place| Some(place.name));
        Self {
            connections: join(names.zip(recordings).collect()),
            undecodable,
            errors,
        }
    }
}

/// An interface of a file on which packets were captured.
struct CaptureInterface {
    file: usize,
    interface: usize,
    name: String,
}

/// Takes the secrets out of a file, wherever in it they stand, and tells the interfaces that have
/// packets.
fn scan(file: &CaptureFile<'_>, secrets: &mut KeyLog) -> (Vec<(usize, String)>, Option<ReadError>) {
    let mut pieces = match file.input.pieces() {
        Ok(pieces) => pieces,
        Err(error) => return (Vec::new(), Some(ReadError::Io(error))),
    };
    let mut used = Vec::new();
    let mut look = |item: Item<'_>| match item {
        Item::TlsSecrets(text) => secrets.add(text),
        Item::Packet(packet) if !used.contains(&packet.interface) => used.push(packet.interface),
        Item::Packet(_) => {}
    };
    let mut piece = Piece::default();
    while pieces.next(&mut piece, &mut look) {}
    let name = |interface: usize| {
        let own = pieces.interfaces()[interface].name.as_deref();
        format!("{} {}", file.name, own.unwrap_or_default())
    };
    used.sort_unstable();
    let named = used
        .into_iter()
        .map(|interface| (interface, name(interface)));
    (named.collect(), pieces.failure())
}

/// Records the packets at each place.
fn record_all(
    files: &[CaptureFile<'_>],
    places: &[CaptureInterface],
    secrets: &KeyLog,
) -> Vec<Recording> {
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    let share = places.len().div_ceil(workers).max(1);
    thread::scope(|scope| {
        let shares = places.chunks(share).map(|places| {
            let record = move |place: &CaptureInterface| {
                record(&files[place.file], place.interface, secrets)
            };
            scope.spawn(move || places.iter().map(record).collect::<Vec<_>>())
        });
        let threads: Vec<_> = shares.collect();
        let recordings = threads
            .into_iter()
            .flat_map(|it| it.join().expect("a worker panicked"));
        recordings.collect()
    })
}

/// Takes note of what passes at one place.
struct Recorders<'k> {
    quic: Recorder<'k>,
    tcp: tcp::Recorder<'k>,
}

fn record(file: &CaptureFile<'_>, interface: usize, secrets: &KeyLog) -> Recording {
    let mut recorders = Recorders {
        quic: Recorder::new(secrets),
        tcp: tcp::Recorder::new(secrets),
    };
    let mut frame = 0;
    let mut note = |item: Item<'_>| {
        if let Item::Packet(packet) = item {
            frame += 1;
            if packet.interface == interface {
                recorders.note(frame, &packet);
            }
        }
    };
    // Errors in reading were noted when secrets were looked for.
    if let Ok(mut pieces) = file.input.pieces() {
        let mut piece = Piece::default();
        while pieces.next(&mut piece, &mut note) {}
    }
    let mut recording = recorders.quic.finish();
    recorders.tcp.finish(&mut recording);
    recording.leave_out_outliers();
    recording
}

impl Recorders<'_> {
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
