//! The options of the tunnel.

use std::time::Duration;

use bentpipe_endpoint::{EndpointError, Options};

use crate::coefficients::MOST_OF_BLOCK;
use crate::packet::{MOST_OVERHEAD, MOST_SYMBOLS};
use crate::store;

/// The largest packet that is sent: an Ethernet frame's, without headers of IPv6 and UDP.
const MOST_PACKET: usize = 1500 - 48;

/// The symbols of a block, if nothing else is asked for.
const BLOCK: usize = 50;

/// The pause that closes blocks, if nothing else is asked for. Blocks that are closed early repair
/// less: that of a window would close one behind each frame of a video.
const BLOCK_FLUSH: Duration = Duration::from_millis(100);

/// The number of repairs that are sent for each datagram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CodeRate {
    /// This share.
    Fixed(f64),
    /// One that follows the loss that the receiver reports.
    Adaptive,
}

/// The code that repairs are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Random linear codes over a sliding window (RFC 8681).
    Sliding,
    /// Reed-Solomon codes over blocks.
    ReedSolomon {
        /// The number of blocks that are interleaved.
        stride: u8,
    },
}

/// The settings of one end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The share of repairs.
    pub rate: CodeRate,
    /// The code of repairs.
    pub code: Code,
    /// The most source symbols that a repair is of.
    pub window: usize,
    /// The age at which a symbol is no longer in repairs.
    pub age: Duration,
    /// After a pause of this length a repair that is due in part is sent.
    pub flush: Duration,
    /// Whether the receiver asks for what is missing, and the sender keeps it.
    pub asks: bool,
    /// For this long the receiver holds what comes behind a gap, so that order is kept.
    pub hold: Duration,
    /// The largest datagram that goes through.
    pub most_payload: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rate: CodeRate::Fixed(0.2),
            code: Code::Sliding,
            window: 100,
            age: Duration::from_millis(250),
            flush: Duration::from_millis(5),
            asks: false,
            hold: Duration::from_millis(20),
            most_payload: MOST_PACKET - MOST_OVERHEAD,
        }
    }
}

impl Settings {
    /// The defaults where losses are repaired by asking: no repairs without, and what comes behind
    /// a gap is held for as long as an answer takes over a geostationary satellite, and a half.
    #[must_use]
    pub fn asking() -> Self {
        Self {
            rate: CodeRate::Fixed(0.0),
            asks: true,
            hold: Duration::from_millis(900),
            ..Self::default()
        }
    }

    /// The settings that options ask for, the others as in `defaults`.
    pub fn take(options: &mut Options, defaults: Self) -> Result<Self, EndpointError> {
        let mut settings = defaults;
        if let Some(text) = options.take("rate") {
            settings.rate = rate(&text)?;
        }
        let mut most = MOST_SYMBOLS;
        let codes = [("rlc", false), ("reed-solomon", true)];
        if options.take_word("code", &codes)? == Some(true) {
            let stride = options.take_number("interleave", 1..=255)?.unwrap_or(1);
            settings.code = Code::ReedSolomon { stride };
            (settings.window, most) = (BLOCK, MOST_OF_BLOCK / 2);
            settings.flush = BLOCK_FLUSH;
        } else if let Some(text) = options.take("interleave") {
            let problem = "blocks are interleaved: write code=reed-solomon too";
            return Err(EndpointError::option("interleave", &text, problem));
        }
        if let Some(window) = options.take_number("window", 1..=most)? {
            settings.window = window;
        }
        if let Code::ReedSolomon { stride } = settings.code
            && settings.window * usize::from(stride) > store::MOST
        {
            let most = store::MOST / settings.window;
            let problem =
                format!("write at most {most}, or a smaller window: symbols are forgotten");
            return Err(EndpointError::option(
                "interleave",
                &stride.to_string(),
                &problem,
            ));
        }
        for (name, place, most) in [
            ("age_ms", &mut settings.age, 60_000),
            ("flush_ms", &mut settings.flush, 1000),
            ("hold_ms", &mut settings.hold, 5000),
        ] {
            if let Some(millis) = options.take_number(name, 0..=most)? {
                *place = Duration::from_millis(millis);
            }
        }
        Ok(settings)
    }
}

fn rate(text: &str) -> Result<CodeRate, EndpointError> {
    if text == "adaptive" {
        return Ok(CodeRate::Adaptive);
    }
    let number = text.strip_suffix('%').and_then(|it| it.trim().parse().ok());
    match number {
        Some(share) if (0.0..=100.0).contains(&share) => Ok(CodeRate::Fixed(share / 100.0)),
        _ => {
            let problem = "write a share from 0% to 100%, or adaptive";
            Err(EndpointError::option("rate", text, problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Settings, String> {
        let mut options = Options::parse(text).unwrap();
        let settings =
            Settings::take(&mut options, Settings::default()).map_err(|error| error.to_string())?;
        options.finish().map_err(|error| error.to_string())?;
        Ok(settings)
    }

    #[test]
    fn options_are_those_of_the_table() {
        assert_eq!(of(""), Ok(Settings::default()));
        let given = of("rate=12.5% window=64 age_ms=100 flush_ms=0 hold_ms=0").unwrap();
        assert_eq!((given.rate, given.window), (CodeRate::Fixed(0.125), 64));
        assert_eq!((given.flush, given.hold), (Duration::ZERO, Duration::ZERO));
        let blocks = of("code=reed-solomon interleave=8").unwrap();
        let code = Code::ReedSolomon { stride: 8 };
        assert_eq!((blocks.code, blocks.window), (code, 50));
        assert_eq!(blocks.flush, Duration::from_millis(100));
        assert_eq!(of("rate=adaptive").unwrap().rate, CodeRate::Adaptive);
    }

    #[test]
    fn others_are_refused_with_words() {
        for (text, words) in [
            ("rate=0.2", "write a share from 0% to 100%, or adaptive"),
            ("rate=101%", "write a share from 0% to 100%, or adaptive"),
            ("rate=NaN%", "write a share from 0% to 100%, or adaptive"),
            ("window=4096", "write a whole number from 1 to 4095"),
            ("hold_ms=-1", "write a whole number from 0 to 5000"),
            ("code=rs", "write rlc or reed-solomon"),
            ("interleave=4", "write code=reed-solomon too"),
            ("code=rlc interleave=4", "write code=reed-solomon too"),
            ("code=reed-solomon interleave=0", "from 1 to 255"),
            ("code=reed-solomon window=129", "from 1 to 128"),
            (
                "code=reed-solomon window=128 interleave=129",
                "write at most 128, or a smaller window",
            ),
            ("stride=1", "unknown"),
        ] {
            let said = of(text).unwrap_err();
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
