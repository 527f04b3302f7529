//! A DVB-S2 or DVB-S2X carrier as scenario files describe it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bentpipe_units::{Bandwidth, Decibel, Rate, Ratio, Size, Span, SymbolRate, Time};
use serde::ser::SerializeMap;

use super::acm::{Adaptation, Choice, Loop, Reception, choose, worth_choosing};
use super::groups::{self, GroupReading, TerminalGroup, WrittenTerminal};
use super::modcod::{DVB_S2, DVB_S2X, FrameLength, Framing, Modcod};
use super::settings::{on_or_off, read_switch};
use crate::fields::{Entry, Fields, Problem, nearest};
use crate::sources::Source;

/// A carrier of DVB-S2 or DVB-S2X with adaptive coding and modulation.
///
/// Written `{ standard = "dvb-s2", symbol_rate = "40 MBd", es_n0 = "12 dB" }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DvbS2 {
    /// Whether the MODCODs of DVB-S2X are there, too.
    pub is_s2x: bool,
    /// Written so, or as `bandwidth = "54 MHz"` with `roll_off`, 20 % if left out.
    pub symbol_rate: SymbolRate,
    /// `fecframe = "normal"` or `"short"`; `pilots = "on"` or `"off"`. Normal, on if left out.
    pub framing: Framing,
    /// `margin`, 0.5 dB if left out; `hysteresis`, 0.3 dB; `loop_delay`, 600 ms.
    pub adaptation: Loop,
    /// The trial's terminal.
    pub own: Terminal,
    /// The terminals that share the carrier with it.
    pub others: Vec<TerminalGroup<Terminal>>,
}

/// A terminal that a carrier serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// `es_n0` and `attenuation`.
    pub reception: Reception,
    /// The MODCOD of all of its frames; None: ACM.
    pub modcod: Option<&'static Modcod>,
    /// Its claim to the carrier's time; 1 if left out.
    pub weight: u64,
}

/// An example of a carrier, for errors.
pub(crate) const EXAMPLE: &str =
    "{ standard = \"dvb-s2\", symbol_rate = \"40 MBd\", es_n0 = \"12 dB\" }";
const TERMINALS: &str = "[{ count = \"7\", sources = [{ kind = \"web\", load = \"2 Mbit/s\", \
                         stop = \"60 s\" }] }]";
const ROLL_OFF: Ratio = Ratio::from_ppb(200_000_000);

impl DvbS2 {
    pub(crate) fn read(
        fields: &mut Fields,
        folder: &Path,
        mtu: Option<Size>,
        standard: &Entry,
    ) -> Result<Self, Problem> {
        let is_s2x = match standard.text()?.as_str() {
            "dvb-s2" => false,
            "dvb-s2x" => true,
            _ => {
                let known = "not known; write \"dvb-s2\", \"dvb-s2x\" or \"dvb-rcs2\"";
                return Err(standard.problem(known));
            }
        };
        let symbol_rate = read_symbol_rate(fields)?;
        let framing = Framing {
            length: read_length(fields)?,
            has_pilots: read_switch(fields, "pilots")?.unwrap_or(true),
        };
        let modcods = Modcods { is_s2x, framing };
        let own = Terminal::read(fields, folder, &modcods, None)?;
        let mut carrier = Self {
            is_s2x,
            symbol_rate,
            framing,
            adaptation: Loop::read(fields)?,
            own,
            others: Vec::new(),
        };
        carrier.check(standard.problem(""), &carrier.own)?;
        if let Some(entry) = fields.take("terminals") {
            let reading = GroupReading {
                folder,
                mtu,
                example: TERMINALS,
            };
            let terminal =
                |fields: &mut Fields| Terminal::read(fields, folder, &modcods, Some(&carrier.own));
            let check = |place, terminal: &Terminal| carrier.check(place, terminal);
            carrier.others = TerminalGroup::read_all(entry, &reading, terminal, check)?;
        }
        Ok(carrier)
    }

    /// Checks that a terminal receives some MODCOD at some time.
    fn check(&self, at: Problem, terminal: &Terminal) -> Result<(), Problem> {
        let (highest, _) = terminal.reception.extremes();
        let modcod = self.choice(terminal)[0];
        if highest >= modcod.threshold {
            return Ok(());
        }
        let (name, threshold) = (modcod.name, modcod.threshold);
        let message = format!(
            "Es/N0 is never above {highest}, and {name}, the most robust MODCOD here, needs \
             {threshold}; raise es_n0, or lower attenuation"
        );
        Err(Problem { message, ..at })
    }

    fn modcods(&self) -> Modcods {
        Modcods {
            is_s2x: self.is_s2x,
            framing: self.framing,
        }
    }

    /// The terminals: the trial's, and then the others.
    pub(crate) fn terminals(&self) -> impl Iterator<Item = &Terminal> {
        groups::terminals(&self.own, &self.others)
    }

    /// The traffic to the other terminals: each source with the terminal's number, from 1 on.
    pub(crate) fn sources(&self) -> Vec<(usize, Source)> {
        groups::sources(&self.others)
    }

    fn choice(&self, terminal: &Terminal) -> Choice<Modcod> {
        match terminal.modcod {
            Some(modcod) => Arc::new([modcod]),
            None => worth_choosing(self.modcods().all(), |it| self.rate(it).bps()),
        }
    }

    fn rate(&self, modcod: &Modcod) -> Rate {
        modcod.rate(self.framing, self.symbol_rate)
    }

    pub(crate) fn adaptation(&self, terminal: &Terminal) -> Adaptation<Modcod> {
        let choice = self.choice(terminal);
        Adaptation::new(choice, self.adaptation, terminal.reception.clone())
    }

    /// The rate of the carrier for the trial's terminal, with the MODCOD for an Es/N0.
    pub(crate) fn rate_at(&self, es_n0: Decibel) -> Rate {
        let choice = self.choice(&self.own);
        self.rate(choice[choose(&choice, None, es_n0, self.adaptation)])
    }

    /// The least that it gives it: nothing where no frame is received.
    pub(crate) fn lowest(&self) -> Rate {
        let (_, lowest) = self.own.reception.extremes();
        let choice = self.choice(&self.own);
        let modcod = choice[choose(&choice, None, lowest, self.adaptation)];
        if lowest < modcod.threshold {
            return Rate::from_bps(0);
        }
        self.rate(modcod)
    }

    /// Whether it always uses the same MODCOD for it, and all frames are received.
    pub(crate) fn is_steady(&self) -> bool {
        self.own.reception.is_steady()
    }
}

/// The rate of the carrier for the trial's terminal over time while nobody else uses it.
pub(crate) struct CarrierRate {
    carrier: DvbS2,
    adaptation: Adaptation<Modcod>,
}

impl CarrierRate {
    pub fn new(carrier: &DvbS2) -> Self {
        Self {
            adaptation: carrier.adaptation(&carrier.own),
            carrier: carrier.clone(),
        }
    }

    /// The bit/s that hold at a time, and until when. Times must not go back by a change.
    pub fn at(&mut self, at: Time) -> (u64, Time) {
        let (modcod, is_received, until) = self.adaptation.received_at(at);
        let bps = self.carrier.rate(modcod).bps();
        (if is_received { bps } else { 0 }, until)
    }
}

impl DvbS2 {
    /// How long each MODCOD is used for the trial's terminal from time 0 on, the most robust first.
    #[must_use]
    pub fn modcods_in(&self, length: Span) -> Vec<(&'static str, Span)> {
        let mut adaptation = self.adaptation(&self.own);
        let mut used: Vec<(&'static Modcod, Span)> = Vec::new();
        let (mut now, end) = (Time::ZERO, Time::ZERO + length);
        while now < end {
            let (modcod, until) = adaptation.at(now);
            let until = until.min(end);
            match used.iter_mut().find(|(known, _)| *known == modcod) {
                Some((_, span)) => *span = *span + (until - now),
                None => used.push((modcod, until - now)),
            }
            now = until;
        }
        used.sort_by_key(|(modcod, _)| self.rate(modcod));
        used.into_iter().map(|(it, span)| (it.name, span)).collect()
    }
}

/// The MODCODs that a carrier may use.
struct Modcods {
    is_s2x: bool,
    framing: Framing,
}

impl Modcods {
    fn all(&self) -> impl Iterator<Item = &'static Modcod> + Clone + use<> {
        let (is_s2x, length) = (self.is_s2x, self.framing.length);
        let more = DVB_S2X.iter().filter(move |_| is_s2x);
        let all = DVB_S2.iter().chain(more);
        all.filter(move |it| it.payload_bytes(length) > 0)
    }

    fn read(&self, entry: &Entry) -> Result<&'static Modcod, Problem> {
        let name = entry.text()?;
        if let Some(found) = self.all().find(|it| it.name == name) {
            return Ok(found);
        }
        let names: Vec<&str> = self.all().map(|it| it.name).collect();
        let near = nearest(&name, &names).unwrap_or(names[0]);
        let message = format!("no MODCOD of this carrier's frames; write one like \"{near}\"");
        Err(entry.problem(&message))
    }
}

impl Terminal {
    /// Reads a terminal; `usual` has what it does not name.
    fn read(
        fields: &mut Fields,
        folder: &Path,
        modcods: &Modcods,
        usual: Option<&Self>,
    ) -> Result<Self, Problem> {
        let reception = Reception::read(fields, folder, usual.map(|it| &it.reception))?;
        let modcod = fields.take("modcod");
        let weight = fields.take("weight");
        let modcod = modcod.map(|it| modcods.read(&it)).transpose()?;
        let terminal = Self {
            reception,
            modcod: modcod.or_else(|| usual?.modcod),
            weight: weight.as_ref().map_or(Ok(1), Entry::parse)?,
        };
        match weight.filter(|_| !(1..=1000).contains(&terminal.weight)) {
            Some(entry) => Err(entry.problem("a weight is from 1 to 1000")),
            None => Ok(terminal),
        }
    }
}

impl WrittenTerminal for Terminal {
    fn serialize_into<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.reception.serialize_into(map)?;
        if let Some(modcod) = self.modcod {
            map.serialize_entry("modcod", modcod.name)?;
        }
        map.serialize_entry("weight", &self.weight.to_string())
    }
}

pub(crate) fn read_symbol_rate(fields: &mut Fields) -> Result<SymbolRate, Problem> {
    let bandwidth = fields.take("bandwidth");
    let roll_off = fields.take("roll_off");
    let (symbols, entry): (SymbolRate, Entry) = match (fields.take("symbol_rate"), bandwidth) {
        (Some(entry), None) => match roll_off {
            None => (entry.parse()?, entry),
            Some(roll_off) => return Err(roll_off.problem("belongs beside a bandwidth")),
        },
        (None, Some(entry)) => {
            let roll_off = roll_off.map(|it| it.parse()).transpose()?;
            let bandwidth: Bandwidth = entry.parse()?;
            (bandwidth.symbol_rate(roll_off.unwrap_or(ROLL_OFF)), entry)
        }
        (Some(_), Some(entry)) => return Err(entry.problem("stands in place of symbol_rate")),
        (None, None) => return Err(fields.missing("symbol_rate", "\"40 MBd\"")),
    };
    if symbols.baud() < 1_000 {
        return Err(entry.problem("too slow; write 1 kBd or more, as in \"40 MBd\""));
    }
    Ok(symbols)
}

fn read_length(fields: &mut Fields) -> Result<FrameLength, Problem> {
    match fields.take("fecframe") {
        None => Ok(FrameLength::Normal),
        Some(entry) if entry.is_text("normal") => Ok(FrameLength::Normal),
        Some(entry) if entry.is_text("short") => Ok(FrameLength::Short),
        Some(entry) => Err(entry.problem("write \"normal\" or \"short\"")),
    }
}

impl DvbS2 {
    pub(crate) fn serialize_into<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let standard = if self.is_s2x { "dvb-s2x" } else { "dvb-s2" };
        let length = match self.framing.length {
            FrameLength::Normal => "normal",
            FrameLength::Short => "short",
        };
        let pilots = on_or_off(self.framing.has_pilots);
        map.serialize_entry("standard", standard)?;
        map.serialize_entry("symbol_rate", &self.symbol_rate)?;
        map.serialize_entry("fecframe", length)?;
        map.serialize_entry("pilots", pilots)?;
        self.adaptation.serialize_into(map)?;
        self.own.serialize_into(map)?;
        if !self.others.is_empty() {
            map.serialize_entry("terminals", &self.others)?;
        }
        Ok(())
    }
}

/// As the record names it.
impl fmt::Display for DvbS2 {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let standard = if self.is_s2x { "DVB-S2X" } else { "DVB-S2" };
        let (highest, lowest) = self.own.reception.extremes();
        write!(f, "{standard}, {}, Es/N0 ", self.symbol_rate)?;
        if highest == lowest {
            write!(f, "{highest}: {}", self.nominal())?;
        } else {
            let (least, most) = (self.lowest(), self.nominal());
            write!(f, "{lowest} to {highest}: {least} to {most}")?;
        }
        match self.terminals().count() {
            1 => Ok(()),
            count => write!(f, ", shared by {count} terminals"),
        }
    }
}
