//! Modulations with their codes (MODCODs) of DVB-S2 and DVB-S2X, and the frames that they fill.
//!
//! Sources: ETSI EN 302 307-1, tables 5 and 13 (DVB-S2: bits of a BBFRAME, Es/N0 for a packet error
//! ratio of 1e-7 without a demodulator's losses), and EN 302 307-2, table 20a (DVB-S2X: Es/N0 over
//! a linear channel, a frame error ratio of 1e-5), from public copies of the tables. Efficiencies
//! follow from the frames (EN 302 307-1, section 5.5.2) and are those that the tables print, to
//! their sixth decimal.
//!
//! Left out: DVB-S2X has short and medium frames with more codes, which are not here.

use bentpipe_units::{Decibel, Rate, SymbolRate};

use super::acm::Mode;

/// Bits of the header of a BBFRAME.
const BBHEADER: u64 = 80;
/// Symbols of a slot, and of the header of a PLFRAME.
const SLOT: u64 = 90;
/// Slots from one block of pilots to the next.
const SLOTS_BETWEEN_PILOTS: u64 = 16;
/// Symbols of a block of pilots.
const PILOTS: u64 = 36;
/// Symbols of a frame without content, which fills the carrier where nothing waits.
pub(crate) const DUMMY_FRAME: u64 = 37 * SLOT;

/// A modulation with its code.
#[derive(Debug, PartialEq, Eq)]
pub struct Modcod {
    /// Its name in the standard, as in `8PSK 3/4`.
    pub name: &'static str,
    bits_per_symbol: u64,
    /// Bits of a BBFRAME with its header (Kbch) in a normal and in a short frame; 0: there is none.
    bbframe_bits: [u64; 2],
    /// The least Es/N0 at which frames are received.
    pub threshold: Decibel,
}

/// The length of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameLength {
    /// 64800 coded bits.
    Normal,
    /// 16200 coded bits.
    Short,
}

/// The frames of a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Their length.
    pub length: FrameLength,
    /// Whether they have pilots.
    pub has_pilots: bool,
}

impl FrameLength {
    fn coded_bits(self) -> u64 {
        match self {
            Self::Normal => 64_800,
            Self::Short => 16_200,
        }
    }
}

impl Mode for Modcod {
    fn threshold(&self) -> Decibel {
        self.threshold
    }
}

impl Modcod {
    /// Bytes that a BBFRAME carries behind its header; 0: there is no frame of that length.
    #[must_use]
    pub fn payload_bytes(&self, length: FrameLength) -> u64 {
        self.bbframe_bits[length as usize].saturating_sub(BBHEADER) / 8
    }

    /// Symbols of a PLFRAME: its header, its slots, and its pilots.
    #[must_use]
    pub fn symbols(&self, framing: Framing) -> u64 {
        let slots = framing
            .length
            .coded_bits()
            .div_ceil(self.bits_per_symbol * SLOT);
        let blocks = (slots - 1) / SLOTS_BETWEEN_PILOTS;
        let pilots = if framing.has_pilots {
            blocks * PILOTS
        } else {
            0
        };
        (slots + 1) * SLOT + pilots
    }

    /// The rate that a carrier's BBFRAMEs carry behind their headers, rounded down.
    #[must_use]
    pub fn rate(&self, framing: Framing, symbols: SymbolRate) -> Rate {
        let bits = u128::from(self.payload_bytes(framing.length)) * 8 * u128::from(symbols.baud());
        let bps = bits / u128::from(self.symbols(framing));
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
    }
}

const fn modcod(
    name: &'static str,
    bits_per_symbol: u64,
    bbframe_bits: [u64; 2],
    threshold: i64,
) -> Modcod {
    Modcod {
        name,
        bits_per_symbol,
        bbframe_bits,
        threshold: Decibel::from_thousandths(threshold),
    }
}

/// The MODCODs of DVB-S2.
#[rustfmt::skip]
pub static DVB_S2: [Modcod; 28] = [
    modcod("QPSK 1/4", 2, [16008, 3072], -2350),
    modcod("QPSK 1/3", 2, [21408, 5232], -1240),
    modcod("QPSK 2/5", 2, [25728, 6312], -300),
    modcod("QPSK 1/2", 2, [32208, 7032], 1000),
    modcod("QPSK 3/5", 2, [38688, 9552], 2230),
    modcod("QPSK 2/3", 2, [43040, 10632], 3100),
    modcod("QPSK 3/4", 2, [48408, 11712], 4030),
    modcod("QPSK 4/5", 2, [51648, 12432], 4680),
    modcod("QPSK 5/6", 2, [53840, 13152], 5180),
    modcod("QPSK 8/9", 2, [57472, 14232], 6200),
    modcod("QPSK 9/10", 2, [58192, 0], 6420),
    modcod("8PSK 3/5", 3, [38688, 9552], 5500),
    modcod("8PSK 2/3", 3, [43040, 10632], 6620),
    modcod("8PSK 3/4", 3, [48408, 11712], 7910),
    modcod("8PSK 5/6", 3, [53840, 13152], 9350),
    modcod("8PSK 8/9", 3, [57472, 14232], 10690),
    modcod("8PSK 9/10", 3, [58192, 0], 10980),
    modcod("16APSK 2/3", 4, [43040, 10632], 8970),
    modcod("16APSK 3/4", 4, [48408, 11712], 10210),
    modcod("16APSK 4/5", 4, [51648, 12432], 11030),
    modcod("16APSK 5/6", 4, [53840, 13152], 11610),
    modcod("16APSK 8/9", 4, [57472, 14232], 12890),
    modcod("16APSK 9/10", 4, [58192, 0], 13130),
    modcod("32APSK 3/4", 5, [48408, 11712], 12730),
    modcod("32APSK 4/5", 5, [51648, 12432], 13640),
    modcod("32APSK 5/6", 5, [53840, 13152], 14280),
    modcod("32APSK 8/9", 5, [57472, 14232], 15690),
    modcod("32APSK 9/10", 5, [58192, 0], 16050),
];

/// The MODCODs that DVB-S2X adds, in normal frames.
#[rustfmt::skip]
pub static DVB_S2X: [Modcod; 39] = [
    modcod("QPSK 2/9", 2, [14208, 0], -2850),
    modcod("QPSK 13/45", 2, [18528, 0], -2030),
    modcod("QPSK 9/20", 2, [28968, 0], 220),
    modcod("QPSK 11/20", 2, [35448, 0], 1450),
    modcod("8APSK 5/9-L", 3, [35808, 0], 4730),
    modcod("8APSK 26/45-L", 3, [37248, 0], 5130),
    modcod("8PSK 23/36", 3, [41208, 0], 6120),
    modcod("8PSK 25/36", 3, [44808, 0], 7020),
    modcod("8PSK 13/18", 3, [46608, 0], 7490),
    modcod("16APSK 1/2-L", 4, [32208, 0], 5970),
    modcod("16APSK 8/15-L", 4, [34368, 0], 6550),
    modcod("16APSK 5/9-L", 4, [35808, 0], 6840),
    modcod("16APSK 26/45", 4, [37248, 0], 7510),
    modcod("16APSK 3/5", 4, [38688, 0], 7800),
    modcod("16APSK 3/5-L", 4, [38688, 0], 7410),
    modcod("16APSK 28/45", 4, [40128, 0], 8100),
    modcod("16APSK 23/36", 4, [41208, 0], 8380),
    modcod("16APSK 2/3-L", 4, [43008, 0], 8430),
    modcod("16APSK 25/36", 4, [44808, 0], 9270),
    modcod("16APSK 13/18", 4, [46608, 0], 9710),
    modcod("16APSK 7/9", 4, [50208, 0], 10650),
    modcod("16APSK 77/90", 4, [55248, 0], 11990),
    modcod("32APSK 2/3-L", 5, [43040, 0], 11100),
    modcod("32APSK 32/45", 5, [45888, 0], 11750),
    modcod("32APSK 11/15", 5, [47328, 0], 12170),
    modcod("32APSK 7/9", 5, [50208, 0], 13050),
    modcod("64APSK 32/45-L", 6, [45888, 0], 13980),
    modcod("64APSK 11/15", 6, [47328, 0], 14810),
    modcod("64APSK 7/9", 6, [50208, 0], 15470),
    modcod("64APSK 4/5", 6, [51648, 0], 15870),
    modcod("64APSK 5/6", 6, [53840, 0], 16550),
    modcod("128APSK 3/4", 7, [48408, 0], 17730),
    modcod("128APSK 7/9", 7, [50208, 0], 18530),
    modcod("256APSK 29/45-L", 8, [41568, 0], 16980),
    modcod("256APSK 2/3-L", 8, [43008, 0], 17240),
    modcod("256APSK 31/45-L", 8, [44448, 0], 18100),
    modcod("256APSK 32/45", 8, [45888, 0], 18590),
    modcod("256APSK 11/15-L", 8, [47328, 0], 18840),
    modcod("256APSK 3/4", 8, [48408, 0], 19570),
];

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Framing = Framing {
        length: FrameLength::Normal,
        has_pilots: false,
    };

    /// The spectral efficiencies, in millionths of a bit per symbol, that EN 302 307-1 prints in
    /// table 13 and EN 302 307-2 in table 20a.
    #[test]
    fn efficiencies_are_those_of_the_standards() {
        let printed = [
            ("QPSK 1/4", 490_243),
            ("QPSK 1/2", 988_858),
            ("QPSK 9/10", 1_788_612),
            ("8PSK 3/5", 1_779_991),
            ("8PSK 9/10", 2_679_207),
            ("16APSK 2/3", 2_637_201),
            ("16APSK 9/10", 3_567_342),
            ("32APSK 3/4", 3_703_295),
            ("32APSK 9/10", 4_453_027),
            ("QPSK 2/9", 434_841),
            ("8APSK 26/45-L", 1_713_601),
            ("16APSK 2/3-L", 2_635_236),
            ("32APSK 2/3-L", 3_291_954),
            ("64APSK 5/6", 4_936_639),
            ("128APSK 3/4", 5_163_248),
            ("256APSK 3/4", 5_900_855),
        ];
        for (name, expected) in printed {
            let all = DVB_S2.iter().chain(&DVB_S2X);
            let found = all.clone().find(|it| it.name == name).expect(name);
            let bits = found.bbframe_bits[0] - BBHEADER;
            let millionths = (bits * 1_000_000).div_ceil(found.symbols(PLAIN));
            assert!(millionths.abs_diff(expected) <= 1, "{name}: {millionths}");
        }
    }

    /// EN 302 307-1, section 5.5.2: 90 (S + 1) symbols without pilots, and 36 more for each 16
    /// slots but the last ones.
    #[test]
    fn frames_have_the_symbols_of_the_standard() {
        let framing = |length, has_pilots| Framing { length, has_pilots };
        let qpsk = &DVB_S2[0];
        assert_eq!(qpsk.symbols(PLAIN), 32_490);
        assert_eq!(qpsk.symbols(framing(FrameLength::Normal, true)), 33_282);
        assert_eq!(qpsk.symbols(framing(FrameLength::Short, true)), 8_370);
        assert_eq!(
            DVB_S2[27].symbols(framing(FrameLength::Normal, true)),
            13_338
        );
        assert_eq!(DVB_S2[10].payload_bytes(FrameLength::Short), 0);
    }
}
