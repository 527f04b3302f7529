//! `bentpipe-trace packets`: a JSON object per packet.

use std::error::Error;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bentpipe_trace::capture::{CaptureError, CapturedPacket, Interface, Item, Reader};
use bentpipe_trace::quic::{Frames, Observer, Packet, Space};
use bentpipe_trace::{Datagram, KeyLog};
use serde::ser::{Serialize, Serializer};

use crate::input;
use crate::summary::Summary;

/// A packet in its JSON form.
#[derive(serde::Serialize)]
struct Line<'a> {
    /// The captured packet that it came in, counted from 1 as Wireshark does.
    frame: usize,
    interface: &'a str,
    /// Seconds since the Unix epoch, in text: a JSON number would not hold the nanoseconds.
    time_s: Option<Seconds>,
    connection: Option<usize>,
    sender: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    space: Option<&'static str>,
    number: Option<u64>,
    size: usize,
    #[serde(serialize_with = "readable")]
    frames: Frames<'a>,
}

/// Nanoseconds, shown as seconds.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND: u64 = 1_000_000_000;
        write!(f, "{}.{:09}", self.0 / SECOND, self.0 % SECOND)
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn readable<S: Serializer>(frames: &Frames<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(frames.clone().map_while(Result::ok))
}

/// Prints the packets of `files`. Of one that cannot be read to its end, those before that.
pub fn print(files: &[PathBuf], key_log: Option<&Path>) -> Result<(), Box<dyn Error>> {
    let captures: Vec<_> = files
        .iter()
        .map(|file| input::read(file))
        .collect::<Result<_, _>>()?;
    let mut secrets = input::key_log(key_log)?;
    for capture in &captures {
        add_secrets(capture, &mut secrets);
    }
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut failed = Vec::new();
    for (file, bytes) in files.iter().zip(&captures) {
        let name = file.display();
        let prefix = if files.len() > 1 {
            format!("{name}:")
        } else {
            String::new()
        };
        let mut capture = Capture::new(&secrets, prefix);
        match capture.print(bytes, &mut out) {
            Err(Stopped::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(()); // nobody wants to read on
            }
            Err(Stopped::Output(error)) => return Err(error.into()),
            Err(Stopped::Capture(error)) => failed.push(format!("{name}: {error}")),
            Ok(()) => {}
        }
        capture.summary.print(&name);
    }
    out.flush()?;
    if failed.is_empty() {
        return Ok(());
    }
    Err(failed.join("\nerror: ").into())
}

/// Takes the secrets out of a capture first, wherever in it they stand. Errors are met again when packets are read.
fn add_secrets(capture: &[u8], secrets: &mut KeyLog) {
    for item in Reader::new(capture).into_iter().flatten().flatten() {
        if let Item::TlsSecrets(text) = item {
            secrets.add(text);
        }
    }
}

/// Why a capture was not printed to its end.
enum Stopped {
    Capture(CaptureError),
    Output(io::Error),
}

impl From<CaptureError> for Stopped {
    fn from(error: CaptureError) -> Self {
        Self::Capture(error)
    }
}

/// One capture file while it is printed.
struct Capture<'k> {
    secrets: &'k KeyLog,
    /// What goes before the name of an interface, to tell those of several files apart.
    prefix: String,
    names: Vec<String>,
    observers: Vec<Observer<'k>>,
    summary: Summary,
}

impl<'k> Capture<'k> {
    fn new(secrets: &'k KeyLog, prefix: String) -> Self {
        Self {
            secrets,
            prefix,
            names: Vec::new(),
            observers: Vec::new(),
            summary: Summary::default(),
        }
    }

    fn print(&mut self, file: &[u8], out: &mut impl Write) -> Result<(), Stopped> {
        let mut reader = Reader::new(file)?;
        let mut frame = 0;
        while let Some(item) = reader.next() {
            if let Item::Packet(packet) = item? {
                frame += 1;
                self.meet(&reader.interfaces()[self.names.len()..]);
                self.print_packets(frame, &packet, out)
                    .map_err(Stopped::Output)?;
            }
        }
        Ok(())
    }

    /// Gives interfaces that are new an observer and a name: their own, or their number.
    fn meet(&mut self, interfaces: &[Interface]) {
        for interface in interfaces {
            let number = self.names.len().to_string();
            let name = interface.name.as_deref().unwrap_or(&number);
            self.names.push(format!("{}{name}", self.prefix));
            self.observers.push(Observer::new(self.secrets));
        }
    }

    fn print_packets(
        &mut self,
        frame: usize,
        captured: &CapturedPacket<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let datagram = match Datagram::of(captured) {
            Ok(datagram) => datagram,
            Err(reason) => {
                self.summary.no_datagram(frame, reason);
                return Ok(());
            }
        };
        let mut result = Ok(());
        let interface = &self.names[captured.interface];
        self.observers[captured.interface].datagram(&datagram, |seen| match seen {
            Ok(packet) if result.is_ok() => {
                let time = captured.time.map(Seconds);
                result = print_line(&Line::new(frame, interface, time, &packet), out);
                self.summary.packet(frame, &packet);
            }
            Ok(_) => {}
            Err(undecoded) => self.summary.undecoded(frame, interface, undecoded.reason),
        });
        result
    }
}

impl<'a> Line<'a> {
    fn new(frame: usize, interface: &'a str, time: Option<Seconds>, packet: &Packet<'a>) -> Self {
        Self {
            frame,
            interface,
            time_s: time,
            connection: packet.connection,
            sender: packet.sender.name(),
            kind: packet.kind.name(),
            space: packet.kind.space().map(Space::name),
            number: packet.number,
            size: packet.size,
            frames: packet.frames(),
        }
    }
}

fn print_line(line: &Line<'_>, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}
