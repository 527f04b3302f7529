//! Saved paths: kept between connections, and between programs in a file.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use bentpipe_units::Span;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::acks::per_second;
use crate::path::Rtt;

/// For so long a path is remembered. RFC 9959, section 4.3.1, leaves it open: minutes where paths
/// change, hours where they don't.
pub const LIFETIME: Duration = Duration::from_secs(3600);

/// Initial windows that a path must have carried in a round trip to be worth remembering (RFC 9959,
/// section 3.1).
const LEAST_WINDOWS: u64 = 4;

/// Paths that are remembered at once. A server has no say in how many clients it meets.
const MOST: usize = 4096;

/// The version of the file.
const VERSION: u32 = 1;

/// The knowledge of a path that an earlier connection had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedPath {
    /// `saved_cwnd`: bytes that it carried in a round trip.
    pub window: u64,
    /// `saved_rtt`: its smallest round-trip time.
    pub rtt: Span,
}

impl SavedPath {
    /// Bytes per second.
    #[must_use]
    pub fn rate(&self) -> u64 {
        per_second(self.window, self.rtt)
    }

    /// Whether these may be round-trip times of this path.
    #[must_use]
    pub fn fits(&self, rtt: &Rtt) -> bool {
        // The smallest round-trip time, if it is half of the saved one or less, ends Careful Resume
        // (RFC 9959, section 3.2).
        let longer = u128::from(rtt.min.as_nanos()) * 2 > u128::from(self.rtt.as_nanos());
        // > A current RTT that is more than ten times the saved_rtt is indicative of a path change.
        // > (section 4.2.1)
        let shorter = rtt.latest.as_nanos() <= self.rtt.as_nanos().saturating_mul(10);
        longer && shorter
    }

    /// Whether it is worth to be saved, and to be resumed. Slow start comes as far in two round
    /// trips; to end it there, on a path that carries more, would take longer than to know nothing.
    #[must_use]
    pub fn is_worthwhile(&self, initial_window: u64) -> bool {
        self.window >= initial_window.saturating_mul(LEAST_WINDOWS)
    }
}

/// An error of a file of saved paths.
#[derive(Debug, Error)]
pub enum SavedError {
    /// It cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It says something else than saved paths.
    #[error("{}: no saved paths: {problem}", path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
}

/// The paths to all peers, by a key that names the peer: its IP address, at a client with the
/// server's name.
///
/// A path is handed out once: while a connection uses it, nobody else does. There is no clock:
/// `now` is the time since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SavedPaths(BTreeMap<String, Entry>);

/// A path in the memory of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RememberedPath {
    /// The path.
    pub path: SavedPath,
    /// Whether its window is what the path carries, and not only what there was to send
    /// ([`Controller::fills`](crate::Controller::fills)).
    pub filled: bool,
    /// When it was seen so, since 1970.
    pub seen: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    window_bytes: u64,
    rtt_ns: u64,
    saved_unix_s: u64,
    #[serde(default)]
    filled: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    paths: BTreeMap<String, Entry>,
}

impl SavedPaths {
    /// Takes out what is known of the path to `peer`, unless it is too old.
    pub fn take(&mut self, peer: &str, now: Duration) -> Option<RememberedPath> {
        let entry = self.0.remove(peer)?;
        let seen = Duration::from_secs(entry.saved_unix_s);
        // From the future: clocks were set, and its age is not known.
        let age = now.checked_sub(seen)?;
        (age <= LIFETIME).then_some(RememberedPath {
            path: SavedPath {
                window: entry.window_bytes,
                rtt: Span::from_nanos(entry.rtt_ns),
            },
            filled: entry.filled,
            seen,
        })
    }

    /// Remembers the path to `peer`, and forgets the oldest if there are too many.
    pub fn put(&mut self, peer: &str, remembered: RememberedPath) {
        self.0.remove(peer);
        while self.0.len() >= MOST {
            let oldest = self.0.iter().min_by_key(|(_, entry)| entry.saved_unix_s);
            let oldest = oldest.map(|(peer, _)| peer.clone());
            oldest.map(|peer| self.0.remove(&peer));
        }
        let entry = Entry {
            window_bytes: remembered.path.window,
            rtt_ns: remembered.path.rtt.as_nanos(),
            saved_unix_s: remembered.seen.as_secs(),
            filled: remembered.filled,
        };
        self.0.insert(peer.to_owned(), entry);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// It is no such text; says why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let content: Content = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if content.version != VERSION {
            let version = content.version;
            return Err(format!(
                "it has version {version}, and this program knows {VERSION}"
            ));
        }
        Ok(Self(content.paths))
    }

    /// The text of a file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let content = Content {
            version: VERSION,
            paths: self.0.clone(),
        };
        serde_json::to_string_pretty(&content).expect("numbers and texts have a form in JSON")
    }

    /// Reads `file`. One that does not exist holds no paths.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is no file of saved paths.
    pub fn load(file: &Path) -> Result<Self, SavedError> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(failed(file, error)),
        };
        Self::parse(&text).map_err(|problem| SavedError::Content {
            path: file.to_owned(),
            problem,
        })
    }

    /// Writes `file` as a whole: who reads it meanwhile sees the old one or the new one.
    ///
    /// # Errors
    ///
    /// It cannot be written; the old one is still there.
    pub fn store(&self, file: &Path) -> Result<(), SavedError> {
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let new = PathBuf::from(name);
        let write = || {
            let mut handle = fs::File::create(&new)?;
            handle.write_all(self.to_text().as_bytes())?;
            handle.sync_all()?;
            fs::rename(&new, file)
        };
        write().map_err(|error| {
            // Whether or not it was made, it is of no use.
            let _ = fs::remove_file(&new);
            failed(file, error)
        })
    }
}

fn failed(path: &Path, error: io::Error) -> SavedError {
    SavedError::File {
        path: path.to_owned(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATH: SavedPath = SavedPath {
        window: 1_500_000,
        rtt: Span::from_millis(600),
    };
    const NOW: Duration = Duration::from_secs(946_684_800);

    fn seen(now: Duration) -> RememberedPath {
        RememberedPath {
            path: PATH,
            filled: true,
            seen: now,
        }
    }

    #[test]
    fn what_is_saved_is_handed_out_once() {
        let mut paths = SavedPaths::default();
        paths.put("192.0.2.1", seen(NOW));
        assert_eq!(paths.take("192.0.2.2", NOW), None);
        assert_eq!(paths.take("192.0.2.1", NOW), Some(seen(NOW)));
        assert_eq!(paths.take("192.0.2.1", NOW), None);
    }

    #[test]
    fn what_is_old_or_from_the_future_is_forgotten() {
        let mut paths = SavedPaths::default();
        let second = Duration::from_secs(1);
        for (now, expected) in [
            (NOW + LIFETIME, Some(seen(NOW))),
            (NOW + LIFETIME + second, None),
            (Duration::from_secs(946_684_799), None),
        ] {
            paths.put("192.0.2.1", seen(NOW));
            assert_eq!(paths.take("192.0.2.1", now), expected);
            assert!(paths.is_empty());
        }
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut paths = SavedPaths::default();
        for second in 0..=MOST as u64 {
            let now = NOW + Duration::from_secs(second);
            paths.put(&second.to_string(), seen(now));
            paths.put(&second.to_string(), seen(now));
        }
        assert_eq!(paths.len(), MOST);
        let now = NOW + LIFETIME;
        assert_eq!(paths.take("0", now), None);
        let second = NOW + Duration::from_secs(1);
        assert_eq!(paths.take("1", now), Some(seen(second)));
    }

    #[test]
    fn a_file_keeps_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paths.json");
        assert!(SavedPaths::load(&file).unwrap().is_empty());
        let mut paths = SavedPaths::default();
        paths.put("server@192.0.2.1", seen(NOW));
        paths.store(&file).unwrap();
        paths.store(&file).unwrap();
        assert_eq!(SavedPaths::load(&file).unwrap(), paths);
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 1, "nothing is left beside it");
    }

    #[test]
    fn a_wrong_file_is_named_with_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paths.json");
        let entry = r#"{"window_bytes":1,"rtt_ns":2,"saved_unix_s":3}"#;
        for (text, problem) in [
            (String::new(), "EOF"),
            (r#"{"version":2,"paths":{}}"#.to_owned(), "version 2"),
            (r#"{"version":1}"#.to_owned(), "missing field `paths`"),
            (
                r#"{"version":1,"paths":{"a":{"window_bytes":-1}}}"#.to_owned(),
                "invalid value",
            ),
            (
                format!(r#"{{"version":1,"paths":{{"a":{entry}}},"more":0}}"#),
                "unknown field",
            ),
        ] {
            fs::write(&file, &text).unwrap();
            let error = SavedPaths::load(&file).unwrap_err().to_string();
            assert!(error.contains("paths.json"), "{error}");
            assert!(error.contains(problem), "{text}: {error}");
        }
        fs::write(&file, b"\xff").unwrap();
        assert!(SavedPaths::load(&file).is_err());
        let nowhere = folder.path().join("none").join("paths.json");
        let error = SavedPaths::default().store(&nowhere).unwrap_err();
        assert!(error.to_string().contains("none"), "{error}");
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in any::<String>()) {
            let _ = SavedPaths::parse(&text);
        }

        /// Near misses: a right file with some of its bytes changed.
        #[test]
        fn no_damage_breaks_the_parser(at in any::<prop::sample::Index>(), byte in 0..128_u8) {
            let mut paths = SavedPaths::default();
            paths.put("192.0.2.1", seen(NOW));
            let mut bytes = paths.to_text().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(mut paths) = SavedPaths::parse(std::str::from_utf8(&bytes).unwrap()) {
                let _ = paths.take("192.0.2.1", NOW);
            }
        }

        #[test]
        fn every_number_survives(
            window: u64,
            rtt: u64,
            at: u64,
            filled: bool,
            peer in any::<String>(),
        ) {
            let mut paths = SavedPaths::default();
            let path = SavedPath { window, rtt: Span::from_nanos(rtt) };
            let seen = Duration::from_secs(at);
            paths.put(&peer, RememberedPath { path, filled, seen });
            prop_assert_eq!(SavedPaths::parse(&paths.to_text()), Ok(paths));
        }
    }
}
