//! Where the randomness of links comes from.

use bentpipe_units::{Ratio, Span};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::direction::{Direction, SegmentName};

/// The seed of one link, which names its random streams.
///
/// A generator is `ChaCha8`. Its 256-bit key is the trial's seed (8 bytes, little-endian), the
/// ASCII text `bentpipe link` and zeros; its 64-bit stream number is `6 * direction + 2 * segment +
/// use`, with forward 0, return 1; access 0, satellite 1, ground 2; queue 0, loss 1, rate 12, delay
/// 13, sources 24, reordering 36, bit errors 37, capacity requests 49, udp 60, duplication 61,
/// phase 72, gaps of handovers 73. A source's streams have its number, from 1 on (3 bytes), and the
/// flow's (8 bytes) in place of the key's zeros; those of the queue and the requests of a terminal
/// that shares the link have the terminal's number (3 bytes); a phase has the length of its
/// intervals in nanoseconds (8 bytes) there; what is drawn within an interval has its number, from
/// 1 on (8 bytes). Phases and gaps have the number of the forward direction in both. No stream
/// moves when another draws more or less: with the same seed, the third packet over the satellite
/// gets the same random draw whatever the queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSeed {
    /// The trial's seed.
    pub seed: u64,
    /// The link's direction.
    pub direction: Direction,
    /// The link's segment.
    pub segment: SegmentName,
}

/// The purpose of a random stream.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Queue = 0,
    Loss = 1,
    Rate = 12,
    Delay = 13,
    Source = 24,
    Udp = 60,
    Reorder = 36,
    BitErrors = 37,
    Requests = 49,
    Phase = 72,
    Gaps = 73,
    Duplicate = 61,
}

/// The seed of a path, by number, in the trial with this seed: the trial's for the first path, for
/// others one that is drawn from it. Its generator is `ChaCha8` whose key has the ASCII text
/// `bentpipe path` in place of `bentpipe link`; the stream is the number.
#[must_use]
pub fn path_seed(seed: u64, path: usize) -> u64 {
    if path == 0 {
        return seed;
    }
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..21].copy_from_slice(b"bentpipe path");
    let mut generator = ChaCha8Rng::from_seed(key);
    generator.set_stream(path as u64);
    generator.next_u64()
}

impl LinkSeed {
    pub(crate) fn stream(self, what: Purpose) -> Dice {
        self.keyed(what, [0; 11])
    }

    /// The stream of a flow of a source of the link.
    pub(crate) fn source(self, source: usize, flow: u64) -> Dice {
        let mut name = [0; 11];
        name[..3].copy_from_slice(&(source as u64 + 1).to_le_bytes()[..3]);
        name[3..].copy_from_slice(&flow.to_le_bytes());
        self.keyed(Purpose::Source, name)
    }

    /// The stream of the queue for a terminal that shares the link; the trial's is the number 0.
    pub(crate) fn terminal(self, number: usize) -> Dice {
        self.of_terminal(Purpose::Queue, number)
    }

    /// The stream of a terminal's requests for capacity.
    pub(crate) fn requests(self, number: usize) -> Dice {
        self.of_terminal(Purpose::Requests, number)
    }

    fn of_terminal(self, what: Purpose, number: usize) -> Dice {
        let mut name = [0; 11];
        name[..3].copy_from_slice(&(number as u64).to_le_bytes()[..3]);
        self.keyed(what, name)
    }

    /// The stream of what is drawn within the intervals of another draw.
    pub(crate) fn within(self, what: Purpose, number: usize) -> Dice {
        self.named(what, number as u64 + 1)
    }

    /// The stream of the phase of intervals of that length, the same in both directions.
    pub(crate) fn phase(self, every: Span) -> Dice {
        self.of_segment().named(Purpose::Phase, every.as_nanos())
    }

    /// The stream of the gaps of handovers, the same in both directions.
    pub(crate) fn gaps(self) -> Dice {
        self.of_segment().stream(Purpose::Gaps)
    }

    fn of_segment(self) -> Self {
        Self {
            direction: Direction::Forward,
            ..self
        }
    }

    fn named(self, what: Purpose, number: u64) -> Dice {
        let mut name = [0; 11];
        name[..8].copy_from_slice(&number.to_le_bytes());
        self.keyed(what, name)
    }

    fn keyed(self, what: Purpose, name: [u8; 11]) -> Dice {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..21].copy_from_slice(b"bentpipe link");
        key[21..].copy_from_slice(&name);
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(6 * self.direction as u64 + 2 * self.segment as u64 + what as u64);
        Dice(generator)
    }
}

/// A stream of chances and numbers.
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    /// True with the given probability. One 64-bit draw each, whatever the probability, held
    /// against `floor(2^64 * ratio)`: 0 % and 100 % are exact, the rest to 2^-64.
    pub fn chance(&mut self, ratio: Ratio) -> bool {
        self.chance_of((u128::from(ratio.ppb()) << 64) / u128::from(Ratio::ONE.ppb()))
    }

    /// True with a probability in units of 2^-64. One 64-bit draw each.
    pub fn chance_of(&mut self, limit: u128) -> bool {
        u128::from(self.0.next_u64()) < limit
    }

    /// A number of 64 bits, all alike. One 64-bit draw each.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 to `most`, all alike to 2^-64. One 64-bit draw each.
    pub fn up_to(&mut self, most: u64) -> u64 {
        let scaled = u128::from(self.0.next_u64()) * (u128::from(most) + 1);
        u64::try_from(scaled >> 64).expect("2^64 numbers at most")
    }
}
