//! What a proxy counts.

/// What becomes of a number in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It is what it is at the moment.
    Gauge,
}

/// Counters since the start, and gauges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Connections of clients so far.
    pub connections_total: u64,
    /// Connections of clients now.
    pub connections: u64,
}

impl Statistics {
    /// All of them by name, in a fixed order; with what they are.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, Kind, u64)> {
        [
            ("connections_total", Kind::Counter, self.connections_total),
            ("connections", Kind::Gauge, self.connections),
        ]
        .into_iter()
    }
}
