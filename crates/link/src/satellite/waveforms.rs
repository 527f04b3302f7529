//! The reference waveforms of DVB-RCS2 with linear modulation, as terminals send bursts with them.
//!
//! Source: ETSI EN 301 545-2, annex A: payload and length of bursts, and Es/N0 for a packet error
//! ratio of 1e-5, as `OpenSAND` (thresholds) and SNS3 (payloads) have them; the standard's
//! own text was not compared. Left out: waveforms of logon and control bursts, of spread-spectrum,
//! and of CPM.

use bentpipe_units::Decibel;

use super::acm::Mode;

/// A waveform.
#[derive(Debug, PartialEq, Eq)]
pub struct Waveform {
    /// Its number in the standard.
    pub id: u64,
    /// Its modulation and the rate of its code, as in `QPSK 1/3`.
    pub name: &'static str,
    /// The bytes that a burst carries.
    pub payload_bytes: u64,
    /// The burst that it fills.
    pub burst: Burst,
    /// The least Es/N0 at which bursts are received.
    pub threshold: Decibel,
}

/// The length of a carrier's bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burst {
    /// 536 symbols.
    Short,
    /// 1616 symbols.
    Long,
}

impl Burst {
    /// Its symbols, with preamble, pilots and postamble.
    #[must_use]
    pub fn symbols(self) -> u64 {
        match self {
            Self::Short => 536,
            Self::Long => 1616,
        }
    }

    /// The waveforms that fill it, the most robust one first.
    pub(crate) fn waveforms(self) -> impl Iterator<Item = &'static Waveform> {
        WAVEFORMS.iter().filter(move |it| it.burst == self)
    }
}

impl Mode for Waveform {
    fn threshold(&self) -> Decibel {
        self.threshold
    }
}

const fn waveform(
    id: u64,
    name: &'static str,
    payload_bytes: u64,
    burst: Burst,
    threshold: i64,
) -> Waveform {
    Waveform {
        id,
        name,
        payload_bytes,
        burst,
        threshold: Decibel::from_thousandths(threshold),
    }
}

/// The waveforms for traffic.
#[rustfmt::skip]
pub static WAVEFORMS: [Waveform; 20] = [
    waveform(3, "QPSK 1/3", 38, Burst::Short, 220),
    waveform(4, "QPSK 1/2", 59, Burst::Short, 2340),
    waveform(5, "QPSK 2/3", 85, Burst::Short, 4290),
    waveform(6, "QPSK 3/4", 96, Burst::Short, 5360),
    waveform(7, "QPSK 5/6", 108, Burst::Short, 6680),
    waveform(8, "8PSK 2/3", 115, Burst::Short, 8080),
    waveform(9, "8PSK 3/4", 130, Burst::Short, 9310),
    waveform(10, "8PSK 5/6", 144, Burst::Short, 10820),
    waveform(11, "16QAM 3/4", 175, Burst::Short, 11170),
    waveform(12, "16QAM 5/6", 194, Burst::Short, 12560),
    waveform(13, "QPSK 1/3", 123, Burst::Long, -510),
    waveform(14, "QPSK 1/2", 188, Burst::Long, 1710),
    waveform(15, "QPSK 2/3", 264, Burst::Long, 3690),
    waveform(16, "QPSK 3/4", 298, Burst::Long, 4730),
    waveform(17, "QPSK 5/6", 333, Burst::Long, 5940),
    waveform(18, "8PSK 2/3", 355, Burst::Long, 7490),
    waveform(19, "8PSK 3/4", 400, Burst::Long, 8770),
    waveform(20, "8PSK 5/6", 444, Burst::Long, 10230),
    waveform(21, "16QAM 3/4", 539, Burst::Long, 10720),
    waveform(22, "16QAM 5/6", 599, Burst::Long, 12040),
];
