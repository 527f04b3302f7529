//! The JSON around the events of a contained file.

use serde_json::{Map, Value};

use crate::scan::{ScanError, Scanner};

/// Whether an object is the first record of a sequence, and not a whole file: it ends, and has
/// neither `traces` nor `events`.
pub fn is_header(mut object: Scanner<'_>) -> bool {
    object.eat(b'{');
    while let Ok(key) = object.key() {
        match key {
            None | Some(b"trace") => return true,
            Some(b"traces" | b"events") => return false,
            Some(_) if object.value().is_err() => return false,
            Some(_) => {}
        }
    }
    false
}

/// A contained file without its events. An object that is but a trace has its members in the
/// header.
#[derive(Default)]
pub struct Frame {
    /// Members of the outermost object, `traces` left out.
    pub header: Map<String, Value>,
    /// Members, and where the events begin.
    pub traces: Vec<(Map<String, Value>, Option<usize>)>,
    /// The file ends inside a list of events.
    pub events_were_cut: bool,
}

/// The reason why a frame could not be read further.
pub enum FrameProblem {
    Scan(ScanError),
    Garbage { offset: usize, what: String },
}

impl FrameProblem {
    /// Where it is.
    pub fn offset(&self) -> usize {
        match self {
            Self::Scan(ScanError::CutShort { offset } | ScanError::NoValue { offset })
            | Self::Garbage { offset, .. } => *offset,
        }
    }
}

impl From<ScanError> for FrameProblem {
    fn from(fault: ScanError) -> Self {
        Self::Scan(fault)
    }
}

impl Frame {
    /// Reads the outermost value: an object, which may be but a trace, or a list of events. What
    /// was found before a problem stays.
    pub fn read(&mut self, mut scanner: Scanner<'_>) -> Result<(), FrameProblem> {
        if scanner.peek() == Some(b'[') {
            self.traces.push((Map::new(), Some(scanner.at + 1)));
            return self.events(&mut scanner);
        }
        scanner.eat(b'{');
        while let Some(key) = scanner.key()? {
            if key == b"traces" && scanner.eat(b'[') {
                while !scanner.eat(b']') {
                    self.trace(&mut scanner)?;
                }
            } else if key == b"events" && scanner.peek() == Some(b'[') {
                self.traces.push((Map::new(), Some(scanner.at + 1)));
                self.events(&mut scanner)?;
            } else {
                member(key, &mut scanner, &mut self.header)?;
            }
        }
        Ok(())
    }

    /// Goes behind a list of events.
    fn events(&mut self, scanner: &mut Scanner<'_>) -> Result<(), FrameProblem> {
        self.events_were_cut = true;
        scanner.value()?;
        self.events_were_cut = false;
        Ok(())
    }

    fn trace(&mut self, scanner: &mut Scanner<'_>) -> Result<(), FrameProblem> {
        if !scanner.eat(b'{') {
            scanner.value()?; // no trace, but maybe one follows
            return Ok(());
        }
        let (mut members, mut events) = (Map::new(), None);
        let result = self.trace_members(scanner, &mut members, &mut events);
        self.traces.push((members, events));
        result
    }

    fn trace_members(
        &mut self,
        scanner: &mut Scanner<'_>,
        members: &mut Map<String, Value>,
        events: &mut Option<usize>,
    ) -> Result<(), FrameProblem> {
        while let Some(key) = scanner.key()? {
            if key == b"events" && scanner.peek() == Some(b'[') {
                *events = Some(scanner.at + 1);
                self.events(scanner)?;
            } else {
                member(key, scanner, members)?;
            }
        }
        Ok(())
    }
}

/// Reads the value of a member into `members`.
fn member(
    key: &[u8],
    scanner: &mut Scanner<'_>,
    members: &mut Map<String, Value>,
) -> Result<(), FrameProblem> {
    scanner.peek();
    let offset = scanner.at;
    let value = scanner.value()?;
    let key = String::from_utf8_lossy(key).into_owned();
    match serde_json::from_slice(value) {
        Ok(value) => {
            members.insert(key, value);
            Ok(())
        }
        Err(error) => Err(FrameProblem::Garbage {
            offset,
            what: format!("{key}: {}", reason(&error)),
        }),
    }
}

/// Why a value is none, without the place in it: the place in the file is reported instead.
pub fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}
