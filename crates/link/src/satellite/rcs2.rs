//! A return carrier of DVB-RCS2 as scenario files describe it.

use std::fmt;
use std::sync::Arc;

use bentpipe_units::{Decibel, Rate, Ratio, Span, SymbolRate, Time};
use serde::ser::SerializeMap;

use super::acm::{Adaptation, Choice, Loop, Mode, Reception, choose, worth_choosing};
use super::groups::{self, TerminalGroup, WrittenTerminal};
use super::settings::on_or_off;
use super::waveforms::{Burst, Waveform};
use crate::sources::Source;

/// Carriers of DVB-RCS2 that terminals share: bursts in slots of superframes, assigned on demand.
///
/// Written `{ standard = "dvb-rcs2", symbol_rate = "1.2 MBd", es_n0 = "9 dB" }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rcs2 {
    /// The symbol rate of each carrier. Written so, or as `bandwidth` with `roll_off`, 20 % if left
    /// out.
    pub symbol_rate: SymbolRate,
    /// How many they are; 1 if left out.
    pub carriers: u64,
    /// `"short"` or `"long"`, which is what it is if left out.
    pub burst: Burst,
    /// For which slots are assigned; 26.5 ms if left out.
    pub superframe: Span,
    /// `margin`, 0.5 dB if left out; `hysteresis`, 0.3 dB; `loop_delay`, 600 ms.
    pub adaptation: Loop,
    /// Whether terminals get, in turn, what nobody has asked for; on if left out.
    pub fca: bool,
    /// The superframes for which a requested rate holds; 64 if left out.
    pub rbdc_timeout: u64,
    /// From a request to the superframe that it is granted in; 550 ms if left out.
    pub granted_after: Span,
    /// How terminals ask.
    pub signalling: Signalling,
    /// The trial's terminal.
    pub own: ReturnTerminal,
    /// The terminals that share the carriers with it.
    pub others: Vec<TerminalGroup<ReturnTerminal>>,
}

/// The way of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signalling {
    /// Whether bursts of traffic carry them, at most one in a superframe; on if left out.
    pub piggyback: bool,
    /// The channel for requests of a terminal that has no burst of traffic to carry them.
    pub channel: ControlChannel,
    /// The share of them that is lost; none if left out.
    pub loss: Ratio,
    /// The share of the others that is denied; none if left out.
    pub denial: Ratio,
}

/// Slots for requests alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlChannel {
    /// `request_every`: each terminal has a separate slot, at these intervals.
    Dedicated(Span),
    /// Slotted ALOHA.
    Contention {
        /// `contention_slots` of a superframe; 1 if left out, 0: there are none.
        slots: u64,
        /// `backoff`: the most superframes before one tries again; 16 if left out.
        backoff: u64,
    },
}

/// A terminal that shares return carriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnTerminal {
    /// `es_n0` and `attenuation` of its bursts.
    pub reception: Reception,
    /// The waveform of all of its bursts; None: ACM.
    pub waveform: Option<&'static Waveform>,
    /// The rate that it always has; none if left out.
    pub cra: Rate,
    /// The highest rate that it may request besides; none if left out.
    pub rbdc: Rate,
    /// How it requests volumes: `vbdc`, on if left out, or `avbdc = "on"`.
    pub volume: Volume,
}

/// Requests for a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// There are none.
    Off,
    /// Each adds to those before (VBDC).
    Adds,
    /// Each replaces those before (AVBDC).
    Replaces,
}

impl Rcs2 {
    /// The slots of a superframe on each carrier.
    pub(crate) fn slots_of_a_carrier(&self) -> u64 {
        let symbols = u128::from(self.superframe.as_nanos()) * u128::from(self.symbol_rate.baud());
        let slots = symbols / 1_000_000_000 / u128::from(self.burst.symbols());
        u64::try_from(slots).unwrap_or(u64::MAX)
    }

    /// From the beginning of a superframe to that of a slot, rounded up to nanoseconds. `slot`
    /// counts those of one carrier.
    pub(crate) fn slot_begins(&self, slot: u64) -> Span {
        let nanos = u128::from(slot) * u128::from(self.burst.symbols()) * 1_000_000_000;
        let nanos = nanos.div_ceil(u128::from(self.symbol_rate.baud()));
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The terminals: the trial's, and then the others.
    pub(crate) fn terminals(&self) -> impl Iterator<Item = &ReturnTerminal> {
        groups::terminals(&self.own, &self.others)
    }

    /// The traffic of the other terminals: each source with the terminal's number, from 1 on.
    pub(crate) fn sources(&self) -> Vec<(usize, Source)> {
        groups::sources(&self.others)
    }

    pub(crate) fn choice(&self, terminal: &ReturnTerminal) -> Choice<Waveform> {
        match terminal.waveform {
            Some(waveform) => Arc::new([waveform]),
            None => worth_choosing(self.burst.waveforms(), |it| it.payload_bytes),
        }
    }

    /// The threshold of the most robust waveform of its bursts.
    pub(crate) fn least_threshold(&self) -> Decibel {
        let each = self.burst.waveforms().map(Mode::threshold);
        each.min().expect("there are waveforms")
    }

    pub(crate) fn adaptation(&self, terminal: &ReturnTerminal) -> Adaptation<Waveform> {
        let choice = self.choice(terminal);
        Adaptation::new(choice, self.adaptation, terminal.reception.clone())
    }

    /// The waveform of a terminal with an Es/N0.
    pub(crate) fn waveform_at(
        &self,
        terminal: &ReturnTerminal,
        es_n0: Decibel,
    ) -> &'static Waveform {
        let choice = self.choice(terminal);
        choice[choose(&choice, None, es_n0, self.adaptation)]
    }

    /// The most that the trial's terminal may be assigned with a waveform: by its categories, and
    /// on one carrier at a time.
    fn most_with(&self, waveform: &Waveform) -> Rate {
        let bits = u128::from(self.slots_of_a_carrier()) * u128::from(waveform.payload_bytes) * 8;
        let bps = bits * 1_000_000_000 / u128::from(self.superframe.as_nanos());
        let bps = u64::try_from(bps).unwrap_or(u64::MAX);
        let own = &self.own;
        let is_open = self.fca || own.volume != Volume::Off;
        let categories = own.cra.bps().saturating_add(own.rbdc.bps());
        Rate::from_bps(if is_open { bps } else { bps.min(categories) })
    }

    /// The most that the trial's terminal may be assigned, with the waveform of its best reception:
    /// all slots of one carrier, for it sends on one at a time, unless it has only rates.
    #[must_use]
    pub fn nominal(&self) -> Rate {
        let (highest, _) = self.own.reception.extremes();
        self.most_with(self.waveform_at(&self.own, highest))
    }

    /// The rate that it has without a request.
    pub(crate) fn lowest(&self) -> Rate {
        let (_, lowest) = self.own.reception.extremes();
        let waveform = self.waveform_at(&self.own, lowest);
        if lowest < waveform.threshold {
            return Rate::from_bps(0);
        }
        self.most_with(waveform).min(self.own.cra)
    }
}

/// The rate over time of the trial's terminal while it requests all capacity.
pub(crate) struct ReturnRate {
    carrier: Rcs2,
    adaptation: Adaptation<Waveform>,
    /// From when on it is granted.
    granted: Time,
}

impl ReturnRate {
    /// `asked`: when it asks; None: long ago.
    pub fn new(carrier: &Rcs2, asked: Option<Time>) -> Self {
        Self {
            adaptation: carrier.adaptation(&carrier.own),
            granted: asked.map_or(Time::ZERO, |asked| asked + carrier.granted_after),
            carrier: carrier.clone(),
        }
    }

    /// The bit/s that hold at a time, and until when. Times must not go back by a change.
    pub fn at(&mut self, at: Time) -> (u64, Time) {
        let (waveform, is_received, until) = self.adaptation.received_at(at);
        if !is_received {
            return (0, until);
        }
        let most = self.carrier.most_with(waveform);
        if at < self.granted && !self.carrier.fca {
            let own = &self.carrier.own;
            // A rate may have been requested by what came before these bytes.
            let rates = own.cra.bps().saturating_add(own.rbdc.bps());
            return (most.bps().min(rates), until.min(self.granted));
        }
        (most.bps(), until)
    }
}

impl Rcs2 {
    pub(crate) fn serialize_into<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let burst = match self.burst {
            Burst::Short => "short",
            Burst::Long => "long",
        };
        map.serialize_entry("standard", "dvb-rcs2")?;
        map.serialize_entry("symbol_rate", &self.symbol_rate)?;
        map.serialize_entry("carriers", &self.carriers.to_string())?;
        map.serialize_entry("burst", burst)?;
        map.serialize_entry("superframe", &self.superframe)?;
        self.adaptation.serialize_into(map)?;
        map.serialize_entry("fca", on_or_off(self.fca))?;
        map.serialize_entry("rbdc_timeout", &self.rbdc_timeout.to_string())?;
        map.serialize_entry("granted_after", &self.granted_after)?;
        map.serialize_entry("piggyback", on_or_off(self.signalling.piggyback))?;
        match self.signalling.channel {
            ControlChannel::Dedicated(every) => map.serialize_entry("request_every", &every)?,
            ControlChannel::Contention { slots, backoff } => {
                map.serialize_entry("contention_slots", &slots.to_string())?;
                map.serialize_entry("backoff", &backoff.to_string())?;
            }
        }
        map.serialize_entry("request_loss", &self.signalling.loss)?;
        map.serialize_entry("request_denial", &self.signalling.denial)?;
        self.own.serialize_into(map)?;
        if !self.others.is_empty() {
            map.serialize_entry("terminals", &self.others)?;
        }
        Ok(())
    }
}

impl WrittenTerminal for ReturnTerminal {
    fn serialize_into<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.reception.serialize_into(map)?;
        if let Some(waveform) = self.waveform {
            map.serialize_entry("waveform", &waveform.id.to_string())?;
        }
        map.serialize_entry("cra", &self.cra)?;
        map.serialize_entry("rbdc", &self.rbdc)?;
        map.serialize_entry("vbdc", on_or_off(self.volume == Volume::Adds))?;
        map.serialize_entry("avbdc", on_or_off(self.volume == Volume::Replaces))
    }
}

/// As the record names it.
impl fmt::Display for Rcs2 {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (highest, lowest) = self.own.reception.extremes();
        if self.carriers == 1 {
            write!(f, "DVB-RCS2, {}, Es/N0 ", self.symbol_rate)?;
        } else {
            write!(
                f,
                "DVB-RCS2, {} x {}, Es/N0 ",
                self.carriers, self.symbol_rate
            )?;
        }
        if highest != lowest {
            write!(f, "{lowest} to ")?;
        }
        let (own, most) = (self.own.cra, self.nominal());
        write!(f, "{highest}: {own}, on demand up to {most}")?;
        match self.terminals().count() {
            1 => Ok(()),
            count => write!(f, ", shared by {count} terminals"),
        }
    }
}
