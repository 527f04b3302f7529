//! The state of the path, for slow start and avoidance to read.

use bentpipe_units::{Span, Time};

/// Round-trip times (RFC 9002, section 5), ACK delay included, since a plug-in is not told of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rtt {
    /// The first sample: that of the handshake.
    pub first: Span,
    /// The last sample.
    pub latest: Span,
    /// The smallest one.
    pub min: Span,
    /// Smoothed by 1/8.
    pub smoothed: Span,
    /// Their variation, smoothed by 1/4.
    pub variation: Span,
    /// How many there were. With 0, all of the above are zero.
    pub samples: u64,
}

impl Rtt {
    pub(crate) fn add(&mut self, sample: Span) {
        self.latest = sample;
        self.samples += 1;
        if self.samples == 1 {
            self.first = sample;
            self.min = sample;
            self.smoothed = sample;
            self.variation = Span::from_nanos(sample.as_nanos() / 2);
            return;
        }
        self.min = self.min.min(sample);
        let (smoothed, sample) = (self.smoothed.as_nanos(), sample.as_nanos());
        let moved = |old: u64, new: u64, part: u64| old - old / part + new / part;
        let deviation = smoothed.abs_diff(sample);
        self.variation = Span::from_nanos(moved(self.variation.as_nanos(), deviation, 4));
        self.smoothed = Span::from_nanos(moved(smoothed, sample, 8));
    }
}

/// The state of a path as its controller sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathState {
    /// The time of the event that is being handled.
    pub now: Time,
    /// Bytes of UDP payload in a full packet, `max_datagram_size` of RFC 9002.
    pub datagram: u64,
    /// Round-trip times.
    pub rtt: Rtt,
    /// The congestion window.
    pub window: u64,
    /// The initial congestion window.
    pub initial_window: u64,
    /// The slow start threshold; none: slow start has never ended.
    pub ssthresh: Option<u64>,
    /// Bytes on their way: sent, and neither acknowledged nor lost.
    pub in_flight: u64,
    /// Bytes of ack-eliciting packets sent so far.
    pub sent: u64,
    /// Bytes of them sent since nothing was on its way, until these are more than
    /// [`PathState::little`].
    pub burst: u64,
    /// Bytes acknowledged so far.
    pub delivered: u64,
    /// Bytes declared lost so far.
    pub lost: u64,
    /// Round trips that have passed, counted in packets: one ends when a packet that was sent after
    /// its beginning is acknowledged.
    pub round: u64,
    /// The sender had nothing to send, or no flow control credit, when the last ACK came; noq does
    /// not say which.
    pub limited: bool,
    /// Packets are paced; else a window leaves as fast as the stack can send it.
    pub paced: bool,
}

impl PathState {
    /// The smallest congestion window, `kMinimumWindow` of RFC 9002, section B.1.
    #[must_use]
    pub fn minimum_window(&self) -> u64 {
        2 * self.datagram
    }

    /// The most that a connection sends before anybody uses it: a handshake, path MTU discovery and
    /// keep-alives. Two initial windows.
    #[must_use]
    pub fn little(&self) -> u64 {
        2 * self.initial_window
    }

    /// Whether more has been sent at once than a handshake takes, or a keep-alive.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.burst > self.little()
    }

    /// Counts a packet that leaves.
    pub(crate) fn send(&mut self, bytes: u64) {
        if self.in_flight == 0 && !self.is_used() {
            self.burst = 0;
        }
        self.burst += bytes;
        self.sent += bytes;
        self.in_flight += bytes;
    }

    /// Bytes that `rate` (bytes per second) sends in `span`.
    #[must_use]
    pub fn bytes_in(rate: u64, span: Span) -> u64 {
        let bytes = u128::from(rate) * u128::from(span.as_nanos()) / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}
