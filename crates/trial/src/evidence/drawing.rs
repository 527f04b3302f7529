//! A browser's own account of a page: when it drew which part.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use bentpipe_units::Time;
use serde::Deserialize;

use crate::schema::FilmFrame;

/// The moments of a page in a browser, in nanoseconds of the trial; null for what it does not say.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(
    clippy::struct_field_names,
    reason = "the contract's names, with their unit"
)]
pub struct Moments {
    /// First contentful paint.
    pub first_paint_ns: Option<u64>,
    /// Largest contentful paint.
    pub largest_paint_ns: Option<u64>,
    /// The end of `DOMContentLoaded`.
    pub content_loaded_ns: Option<u64>,
    /// The mean of when all that was to be seen was drawn: the Speed Index behind the page's start.
    pub speed_index_ns: Option<u64>,
}

impl Moments {
    /// Whether a browser said anything: then what it did not say is not known.
    #[must_use]
    pub fn are_said(self) -> bool {
        self != Self::default()
    }

    fn earlier(self, zero: Duration) -> Self {
        let earlier = |time: Option<u64>| {
            let since = Duration::from_nanos(time?).saturating_sub(zero);
            u64::try_from(since.as_nanos()).ok()
        };
        Self {
            first_paint_ns: earlier(self.first_paint_ns),
            largest_paint_ns: earlier(self.largest_paint_ns),
            content_loaded_ns: earlier(self.content_loaded_ns),
            speed_index_ns: earlier(self.speed_index_ns),
        }
    }
}

/// A picture of a page, and from when on that was to be seen, in nanoseconds of the trial.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    at_ns: i64,
    jpeg: String,
}

/// The account that a browser gives of how it drew its page. Of a client that says nothing there is
/// nothing in it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Drawing {
    /// The moments of the page, as the browser saw them.
    pub moments: Moments,
    /// For each request the protocol that it came over, by its ALPN. Empty: it does not say.
    protocols: Vec<Option<String>>,
    /// The pictures of the page, in order.
    film: Vec<Picture>,
}

impl Drawing {
    /// The account in the report of a client in socket mode (`endpoints/contract/browsers.md`),
    /// where time zero is `zero` later than in the report.
    pub fn read(report: &Path, zero: Duration) -> io::Result<Self> {
        let mut said: Self = serde_json::from_slice(&fs::read(report)?)?;
        said.moments = said.moments.earlier(zero);
        let zero_ns = i64::try_from(zero.as_nanos()).unwrap_or(i64::MAX);
        for picture in &mut said.film {
            picture.at_ns = picture.at_ns.saturating_sub(zero_ns);
        }
        Ok(said)
    }

    /// The protocol that each of the last `count` requests came over; None where it does not say.
    #[must_use]
    pub fn protocols_of_last(&self, count: usize) -> Vec<Option<String>> {
        let of_earlier = self.protocols.len().saturating_sub(count);
        let mut said = self.protocols[of_earlier..].to_vec();
        said.resize(count, None);
        said
    }

    /// The pictures of the page, in seconds since `start`.
    #[must_use]
    pub fn film_since(&self, start: Time) -> Vec<FilmFrame> {
        let since = |at_ns: i64| at_ns.saturating_sub(start.as_nanos().cast_signed());
        let frames = self.film.iter().map(|it| FilmFrame {
            at_s: Duration::from_nanos(since(it.at_ns).unsigned_abs()).as_secs_f64()
                * if since(it.at_ns) < 0 { -1.0 } else { 1.0 },
            jpeg: it.jpeg.clone(),
        });
        frames.collect()
    }
}
