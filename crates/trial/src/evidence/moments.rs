//! What a browser alone knows of a page: when it drew what.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

/// The moments of a page in a browser, in nanoseconds of the trial; null for what it does not say.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Moments {
    /// First contentful paint.
    pub first_paint_ns: Option<u64>,
    /// Largest contentful paint.
    pub largest_paint_ns: Option<u64>,
    /// The end of `DOMContentLoaded`.
    pub content_loaded_ns: Option<u64>,
}

impl Moments {
    /// Whether a browser said anything: then what it did not say is not known.
    #[must_use]
    pub fn are_said(self) -> bool {
        self != Self::default()
    }

    /// Those of the report that a client in socket mode has left (contract, section 3), where time zero is `zero` later
    /// than in the report. Of a client that says nothing there are none.
    pub fn read(report: &Path, zero: Duration) -> io::Result<Self> {
        #[derive(Deserialize)]
        struct Report {
            #[serde(default)]
            moments: Moments,
        }
        let said: Report = serde_json::from_slice(&fs::read(report)?)?;
        let earlier = |time: Option<u64>| {
            let since = Duration::from_nanos(time?).saturating_sub(zero);
            u64::try_from(since.as_nanos()).ok()
        };
        let of = said.moments;
        Ok(Self {
            first_paint_ns: earlier(of.first_paint_ns),
            largest_paint_ns: earlier(of.largest_paint_ns),
            content_loaded_ns: earlier(of.content_loaded_ns),
        })
    }
}
