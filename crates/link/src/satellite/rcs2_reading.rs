//! Reads return carriers of DVB-RCS2.

use std::path::Path;

use bentpipe_units::{Rate, Ratio, Size, Span};

use super::acm::{Loop, Reception};
use super::dvb_s2::read_symbol_rate;
use super::groups::{GroupReading, TerminalGroup};
use super::rcs2::{ControlChannel, Rcs2, ReturnTerminal, Signalling, Volume};
use super::settings::{read_count, read_switch, switch};
use super::waveforms::{Burst, Waveform};
use crate::fields::{Entry, Fields, Problem};

const TERMINALS: &str = "[{ count = \"7\", sources = [{ kind = \"web\", load = \"100 kbit/s\", \
                         stop = \"60 s\" }] }]";
const SUPERFRAME: Span = Span::from_nanos(26_500_000);
const GRANTED_AFTER: Span = Span::from_millis(550);
const RBDC_TIMEOUT: u64 = 64;
const BACKOFF: u64 = 16;
const MOST_CARRIERS: u64 = 100;
/// The most slots of a superframe on a carrier.
const MOST_SLOTS: u64 = 10_000;
/// Billionths of a slot.
const PART: u128 = 1_000_000_000;

impl Rcs2 {
    pub(crate) fn read(
        fields: &mut Fields,
        folder: &Path,
        mtu: Option<Size>,
        standard: &Entry,
    ) -> Result<Self, Problem> {
        let superframe = fields.take("superframe");
        let burst = read_burst(fields)?;
        let fca = read_switch(fields, "fca")?.unwrap_or(true);
        let mut carrier = Self {
            symbol_rate: read_symbol_rate(fields)?,
            carriers: read_count(fields, "carriers", 1, 1..=MOST_CARRIERS)?,
            burst,
            superframe: superframe.as_ref().map_or(Ok(SUPERFRAME), Entry::parse)?,
            adaptation: Loop::read(fields)?,
            fca,
            rbdc_timeout: read_count(fields, "rbdc_timeout", RBDC_TIMEOUT, 1..=1_000_000)?,
            granted_after: fields.optional("granted_after")?.unwrap_or(GRANTED_AFTER),
            signalling: Signalling::read(fields)?,
            own: ReturnTerminal::read(fields, folder, burst, None)?,
            others: Vec::new(),
        };
        carrier.check_superframe(superframe.as_ref().unwrap_or(standard))?;
        carrier.check_terminal(standard.problem(""), &carrier.own)?;
        let terminals = fields.take("terminals");
        let place = terminals.as_ref().unwrap_or(standard).problem("");
        if let Some(entry) = terminals {
            let reading = GroupReading {
                folder,
                mtu,
                example: TERMINALS,
            };
            let terminal = |fields: &mut Fields| {
                ReturnTerminal::read(fields, folder, burst, Some(&carrier.own))
            };
            let check = |place, terminal: &ReturnTerminal| carrier.check_terminal(place, terminal);
            carrier.others = TerminalGroup::read_all(entry, &reading, terminal, check)?;
        }
        carrier.check_cra(place)?;
        Ok(carrier)
    }

    /// A superframe has slots, and not too many of them.
    fn check_superframe(&self, entry: &Entry) -> Result<(), Problem> {
        let slots = self.slots_of_a_carrier();
        if slots == 0 {
            let (symbols, takes) = (self.burst.symbols(), self.slot_begins(1));
            return Err(entry.problem(&format!(
                "no room for a burst of {symbols} symbols, which takes {takes} at {}; write a \
                 longer superframe",
                self.symbol_rate
            )));
        }
        if slots > MOST_SLOTS {
            return Err(entry.problem(&format!(
                "{slots} bursts on a carrier, more than {MOST_SLOTS}; write a shorter superframe"
            )));
        }
        Ok(())
    }

    /// A terminal is received at some time, and gets capacity.
    fn check_terminal(&self, at: Problem, terminal: &ReturnTerminal) -> Result<(), Problem> {
        let (highest, _) = terminal.reception.extremes();
        let waveform = self.choice(terminal)[0];
        let (id, name, threshold) = (waveform.id, waveform.name, waveform.threshold);
        if highest < threshold {
            let message = format!(
                "Es/N0 is never above {highest}, and {name}, the most robust waveform here \
                 ({id}), needs {threshold}; raise es_n0, or lower attenuation"
            );
            return Err(at.because(&message));
        }
        let has_own = self.fca || terminal.cra.bps() > 0;
        let asks = terminal.volume != Volume::Off || terminal.rbdc.bps() > 0;
        if !has_own && !asks {
            let message = "the terminal never gets capacity; write vbdc = \"on\", or give it a \
                           cra or rbdc";
            return Err(at.because(message));
        }
        let is_mute = match self.signalling.channel {
            ControlChannel::Contention { slots: 0, .. } => !has_own || !self.signalling.piggyback,
            _ => false,
        };
        if asks && is_mute {
            let message = "the terminal has no way to ask for capacity; write \
                           contention_slots = \"1\", or request_every = \"1 s\"";
            return Err(at.because(message));
        }
        Ok(())
    }

    /// Checks that the carriers have the constant rates of all terminals.
    fn check_cra(&self, at: Problem) -> Result<(), Problem> {
        let slots = self.slots_of_a_carrier();
        let mut all = 0;
        for terminal in self.terminals() {
            let (highest, _) = terminal.reception.extremes();
            let payload = self.waveform_at(terminal, highest).payload_bytes;
            let bit_nanos = u128::from(terminal.cra.bps()) * u128::from(self.superframe.as_nanos());
            let parts = (bit_nanos / 8).div_ceil(u128::from(payload));
            if parts > u128::from(slots) * PART {
                let message = format!(
                    "a cra of {} is more than the {slots} bursts of {payload} bytes that a \
                     terminal can send in a superframe; lower it",
                    terminal.cra
                );
                return Err(at.because(&message));
            }
            all += parts;
        }
        let there = slots * self.carriers;
        if all > u128::from(there) * PART {
            let needed = all.div_ceil(PART);
            let message = format!(
                "the cra of all terminals need {needed} slots of a superframe, and it has {there}; \
                 lower them, or raise symbol_rate or carriers"
            );
            return Err(at.because(&message));
        }
        Ok(())
    }
}

impl Problem {
    /// The same, with what is wrong behind the value.
    fn because(mut self, what: &str) -> Self {
        self.message.push_str(what);
        self
    }
}

impl Signalling {
    fn read(fields: &mut Fields) -> Result<Self, Problem> {
        let dedicated = fields.take("request_every");
        let no_use = "terminals that have slots of their own do not contend; leave it out";
        let mut contention = |name, usual, least| match &dedicated {
            Some(_) => match fields.take(name) {
                Some(entry) => Err(entry.problem(no_use)),
                None => Ok(usual),
            },
            None => read_count(fields, name, usual, least..=1_000),
        };
        let (slots, backoff) = (
            contention("contention_slots", 1, 0)?,
            contention("backoff", BACKOFF, 1)?,
        );
        let channel = match dedicated {
            None => ControlChannel::Contention { slots, backoff },
            Some(entry) => match entry.parse()? {
                every if every < Span::from_millis(1) => {
                    return Err(entry.problem("too short; write 1 ms or more, as in \"1 s\""));
                }
                every => ControlChannel::Dedicated(every),
            },
        };
        Ok(Self {
            piggyback: read_switch(fields, "piggyback")?.unwrap_or(true),
            channel,
            loss: fields.optional("request_loss")?.unwrap_or(Ratio::ZERO),
            denial: fields.optional("request_denial")?.unwrap_or(Ratio::ZERO),
        })
    }
}

impl ReturnTerminal {
    /// Reads a terminal; `usual` is what it is if it says nothing else.
    fn read(
        fields: &mut Fields,
        folder: &Path,
        burst: Burst,
        usual: Option<&Self>,
    ) -> Result<Self, Problem> {
        let reception = Reception::read(fields, folder, usual.map(|it| &it.reception))?;
        let waveform = fields.take("waveform");
        let waveform = waveform.map(|it| read_waveform(&it, burst)).transpose()?;
        let mut rate = |name, usual: Option<Rate>| {
            let given = fields.optional(name)?;
            Ok(given.or(usual).unwrap_or(Rate::from_bps(0)))
        };
        Ok(Self {
            reception,
            waveform: waveform.or(usual.and_then(|it| it.waveform)),
            cra: rate("cra", usual.map(|it| it.cra))?,
            rbdc: rate("rbdc", usual.map(|it| it.rbdc))?,
            volume: Volume::read(fields, usual.map_or(Volume::Adds, |it| it.volume))?,
        })
    }
}

impl Volume {
    fn read(fields: &mut Fields, usual: Self) -> Result<Self, Problem> {
        let vbdc = read_switch(fields, "vbdc")?;
        let both = fields.take("avbdc");
        let avbdc = both.as_ref().map(switch).transpose()?;
        Ok(match (vbdc, avbdc) {
            (Some(true), Some(true)) => {
                let entry = both.expect("it has a value");
                return Err(entry.problem("stands in place of vbdc; write vbdc = \"off\""));
            }
            (_, Some(true)) => Self::Replaces,
            (Some(true), _) => Self::Adds,
            (Some(false), None) if usual == Self::Replaces => usual,
            (Some(false), _) => Self::Off,
            (None, Some(false)) if usual == Self::Replaces => Self::Off,
            (None, _) => usual,
        })
    }
}

fn read_waveform(entry: &Entry, burst: Burst) -> Result<&'static Waveform, Problem> {
    let id: u64 = entry.parse()?;
    let found = burst.waveforms().find(|it| it.id == id);
    found.ok_or_else(|| {
        let ids = match burst {
            Burst::Short => "3 to 12",
            Burst::Long => "13 to 22",
        };
        entry.problem(&format!(
            "no waveform of this carrier's bursts; they have {ids}"
        ))
    })
}

fn read_burst(fields: &mut Fields) -> Result<Burst, Problem> {
    match fields.take("burst") {
        None => Ok(Burst::Long),
        Some(entry) if entry.is_text("long") => Ok(Burst::Long),
        Some(entry) if entry.is_text("short") => Ok(Burst::Short),
        Some(entry) => Err(entry.problem("write \"short\" or \"long\"")),
    }
}
