//! Sources as scenario files describe them.

use std::path::Path;

use bentpipe_units::{Rate, Size, Span, Time};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use toml::Value;

use super::sizes::TransferSizes;
use crate::fields::{Entry, Fields, Problem};
use crate::packed_text::file_text;

/// A source of cross traffic, as `sources` of a direction lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The traffic that it sends.
    pub traffic: Traffic,
    /// When it begins; at 0 s if left out.
    pub start: Time,
    /// When it ends. It must be given: nothing else ends a source.
    pub stop: Time,
}

/// The traffic of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// `kind = "cbr"`: constant bit rate.
    Constant(Stream),
    /// `kind = "on-off"`: constant bit rate in periods.
    OnOff(Stream, Periods),
    /// `kind = "web"`: transfers that begin at random times.
    Web(Transfers),
    /// `kind = "replay"`: the sizes and times of a capture.
    Replay(Replayed),
}

/// Flows of packets of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The rate of each flow while it sends.
    pub rate: Rate,
    /// Bytes of the IP packets; 1500 if left out.
    pub ip_bytes: u32,
    /// The number of flows, 1 to 1000; 1 if left out.
    pub flows: u64,
}

/// The periods of a flow that is on and off by turns: their means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periods {
    /// How long it sends.
    pub on: Span,
    /// How long it is silent.
    pub off: Span,
}

/// Transfers whose beginnings are a Poisson process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfers {
    /// The mean rate of all of them together, over a long time.
    pub load: Rate,
    /// Their sizes; those of the web if left out.
    pub sizes: TransferSizes,
    /// The rate that a transfer grows to; a quarter of the link's if left out. Nothing makes it
    /// slower, so one at the link's own rate would leave others nothing.
    pub peak: Option<Rate>,
}

/// Packets that someone captured.
///
/// The file has a line for each packet: its time in seconds since the first, in order, and the
/// bytes of its IP packet, as `tshark -T fields -E separator=, -e frame.time_relative -e ip.len`
/// prints them. A relative path is relative to the scenario file. In JSON the content travels along
/// as `packets`, and the file is not read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The file.
    pub trace: String,
    /// The time and size of each packet.
    pub packets: Vec<(Span, u32)>,
}

const KINDS: &str = "\"cbr\", \"on-off\", \"web\" or \"replay\"";
const EXAMPLE: &str = "[{ kind = \"cbr\", rate = \"5 Mbit/s\", stop = \"60 s\" }]";
const MOST_FLOWS: u64 = 1000;
/// No mean period is shorter: each costs two draws, whether packets are sent in it or not.
const SHORTEST: Span = Span::from_millis(1);
/// An IP packet is no smaller than its header, and no larger than its length field can say.
const PACKET_BYTES: std::ops::RangeInclusive<u64> = 20..=65_535;

impl Source {
    /// Reads a list of sources.
    pub(crate) fn read_all(
        entry: Entry,
        folder: &Path,
        mtu: Option<Size>,
    ) -> Result<Vec<Self>, Problem> {
        let wrong = entry.problem(&format!("sources are a list of tables; write {EXAMPLE}"));
        let entries = entry.items().ok_or(wrong)?;
        entries
            .into_iter()
            .map(|entry| Self::read(entry, folder, mtu))
            .collect()
    }

    fn read(entry: Entry, folder: &Path, mtu: Option<Size>) -> Result<Self, Problem> {
        let too_large = entry.problem("its packets exceed the link's mtu; write a smaller packet");
        let mut fields = entry.table()?;
        let kind = fields.required("kind", KINDS)?;
        let start = fields.optional("start")?.unwrap_or(Time::ZERO);
        let traffic = match kind.text()?.as_str() {
            "cbr" => Traffic::Constant(Stream::read(&mut fields)?),
            "on-off" => {
                let stream = Stream::read(&mut fields)?;
                Traffic::OnOff(stream, Periods::read(&mut fields)?)
            }
            "web" => Traffic::Web(Transfers::read(&mut fields)?),
            "replay" => Traffic::Replay(Replayed::read(&mut fields, folder)?),
            _ => return Err(kind.problem(&format!("no kind of source; write {KINDS}"))),
        };
        let stop = fields.required("stop", "\"60 s\", when it ends")?;
        let source = Self {
            traffic,
            start,
            stop: stop.parse()?,
        };
        if source.stop <= start {
            return Err(stop.problem(&format!("not after its start, {start}; write a later time")));
        }
        fields.finish()?;
        let packet = match &source.traffic {
            Traffic::Constant(stream) | Traffic::OnOff(stream, _) => u64::from(stream.ip_bytes),
            Traffic::Web(_) | Traffic::Replay(_) => 0,
        };
        if mtu.is_some_and(|mtu| packet > mtu.bytes()) {
            return Err(too_large);
        }
        Ok(source)
    }
}

impl Traffic {
    /// Its name in scenario files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Constant(_) => "cbr",
            Self::OnOff(..) => "on-off",
            Self::Web(_) => "web",
            Self::Replay(_) => "replay",
        }
    }

    /// Its keys and values in scenario files, without its kind and the packets of a file.
    fn parameters(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Constant(stream) => stream.parameters(),
            Self::OnOff(stream, Periods { on, off }) => {
                let periods = [("on", on.to_string()), ("off", off.to_string())];
                stream.parameters().into_iter().chain(periods).collect()
            }
            Self::Web(transfers) => {
                let peak = transfers.peak.map(|peak| ("peak", peak.to_string()));
                let own = [
                    ("load", transfers.load.to_string()),
                    ("sizes", transfers.sizes.to_string()),
                ];
                own.into_iter().chain(peak).collect()
            }
            Self::Replay(replayed) => vec![("trace", replayed.trace.clone())],
        }
    }
}

impl Stream {
    fn read(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self {
            rate: some_rate(&fields.required("rate", "\"5 Mbit/s\"")?)?,
            ip_bytes: fields.take("packet").map_or(Ok(1500), |it| packet(&it))?,
            flows: fields.take("flows").map_or(Ok(1), |it| flows(&it))?,
        })
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![
            ("rate", self.rate.to_string()),
            ("packet", Size::from_bytes(self.ip_bytes.into()).to_string()),
            ("flows", self.flows.to_string()),
        ]
    }

    /// How long `packets` packets take at the rate, rounded down to a nanosecond.
    pub(super) fn time_of(&self, packets: u64) -> Span {
        self.time_of_half(2 * packets)
    }

    /// How long `halves` half packets take.
    pub(super) fn time_of_half(&self, halves: u64) -> Span {
        let bits = u128::from(halves) * u128::from(self.ip_bytes) * 4;
        let nanos = bits * 1_000_000_000 / u128::from(self.rate.bps());
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Periods {
    fn read(fields: &mut Fields) -> Result<Self, Problem> {
        let mut period = |name| {
            let entry = fields.required(name, "\"1 s\"")?;
            let mean: Span = entry.parse()?;
            if mean < SHORTEST {
                let why = format!("too short; write a mean of {SHORTEST} or more, like \"1 s\"");
                return Err(entry.problem(&why));
            }
            Ok(mean)
        };
        Ok(Self {
            on: period("on")?,
            off: period("off")?,
        })
    }
}

impl Transfers {
    fn read(fields: &mut Fields) -> Result<Self, Problem> {
        let peak = fields.take("peak").map(|it| some_rate(&it)).transpose()?;
        Ok(Self {
            load: some_rate(&fields.required("load", "\"5 Mbit/s\"")?)?,
            sizes: fields.optional("sizes")?.unwrap_or(TransferSizes::Web),
            peak,
        })
    }
}

impl Replayed {
    fn read(fields: &mut Fields, folder: &Path) -> Result<Self, Problem> {
        let file = fields.required("trace", "\"packets.csv\"")?;
        let trace = file.text()?;
        let packets = match fields.take("packets") {
            Some(entry) => packets(&entry)?,
            None => read_file(&folder.join(&trace)).map_err(|wrong| file.problem(&wrong))?,
        };
        Ok(Self { trace, packets })
    }
}

fn some_rate(entry: &Entry) -> Result<Rate, Problem> {
    let rate: Rate = entry.parse()?;
    if rate.bps() == 0 {
        return Err(entry.problem("a source sends something; write a rate above 0 bit/s"));
    }
    Ok(rate)
}

fn packet(entry: &Entry) -> Result<u32, Problem> {
    let size: Size = entry.parse()?;
    if !PACKET_BYTES.contains(&size.bytes()) {
        return Err(entry.problem("an IP packet has 20 to 65535 bytes; write \"1500 B\""));
    }
    Ok(u32::try_from(size.bytes()).expect("it was looked at"))
}

fn flows(entry: &Entry) -> Result<u64, Problem> {
    let number: u64 = entry.parse()?;
    if !(1..=MOST_FLOWS).contains(&number) {
        return Err(entry.problem(&format!("a source has 1 to {MOST_FLOWS} flows")));
    }
    Ok(number)
}

fn packets(entry: &Entry) -> Result<Vec<(Span, u32)>, Problem> {
    let wrong = || entry.problem("packets are pairs like [\"0.5 ms\", 1500]");
    let rows = entry.value().as_array().ok_or_else(wrong)?;
    let row = |row: &Value| match row.as_array()?.as_slice() {
        [Value::String(after), Value::Integer(bytes)] => {
            Some((after.parse().ok()?, u32::try_from(*bytes).ok()?))
        }
        _ => None,
    };
    rows.iter().map(|it| row(it).ok_or_else(wrong)).collect()
}

fn read_file(path: &Path) -> Result<Vec<(Span, u32)>, String> {
    let text =
        file_text(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut packets: Vec<(Span, u32)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |what: &str| format!("line {}: {line}: {what}", index + 1);
        let packet = line.split_once(',').and_then(|(after, bytes)| {
            let after = format!("{}s", after.trim()).parse().ok()?;
            let bytes: u32 = bytes.trim().parse().ok()?;
            PACKET_BYTES
                .contains(&bytes.into())
                .then_some((after, bytes))
        });
        let packet = packet.ok_or_else(|| {
            wrong("a line is a time in seconds and the bytes of an IP packet, like 0.0125,1500")
        })?;
        if packets.last().is_some_and(|(before, _)| *before > packet.0) {
            return Err(wrong("times must not go back"));
        }
        packets.push(packet);
    }
    if packets.is_empty() {
        return Err("no packet in it".to_owned());
    }
    Ok(packets)
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.traffic.name())?;
        for (name, value) in self.traffic.parameters() {
            map.serialize_entry(name, &value)?;
        }
        if let Traffic::Replay(replayed) = &self.traffic {
            map.serialize_entry("packets", &replayed.packets)?;
        }
        map.serialize_entry("start", &self.start)?;
        map.serialize_entry("stop", &self.stop)?;
        map.end()
    }
}
