//! Reads the events of a file one by one.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::clock::TimeFormat;
use crate::error::QlogError;
use crate::event::{Event, RawEvent};
use crate::frame::{Frame, FrameProblem, is_header, reason};
use crate::names;
use crate::records::{Format, RECORD_SEPARATOR, Records};
use crate::scan::{ScanError, Scanner};
use crate::trace::{Generation, Trace};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The reader of a qlog file in memory, in place.
#[derive(Debug)]
pub struct Reader<'a> {
    file: &'a [u8],
    format: Format,
    over_lines: bool,
    generation: Generation,
    version: Option<String>,
    traces: Vec<Trace>,
    /// Where the events of each trace begin; none if it has no events.
    sections: Vec<Option<usize>>,
    /// The trace whose events are being read, and where.
    place: EventPosition,
    /// An error in what surrounds the events, reported after all of them.
    frame_error: Option<QlogError>,
    lines: Lines,
}

#[derive(Debug, Clone, Copy)]
struct EventPosition {
    trace: usize,
    at: usize,
    times: TimeFormat,
}

/// Counts lines up to an offset, each byte once.
#[derive(Debug, Default)]
struct Lines {
    offset: usize,
    before: usize,
}

impl Lines {
    fn of(&mut self, file: &[u8], offset: usize) -> usize {
        let offset = offset.min(file.len());
        if offset < self.offset {
            *self = Self::default();
        }
        let lines = file[self.offset..offset].split(|byte| *byte == b'\n');
        self.before += lines.count() - 1;
        self.offset = offset;
        self.before + 1
    }
}

impl<'a> Reader<'a> {
    /// Begins to read a file. One that is cut short anywhere behind its version can be read up to
    /// there.
    pub fn new(file: &'a [u8]) -> Result<Self, QlogError> {
        let start = file
            .strip_prefix(BYTE_ORDER_MARK)
            .map_or(0, |_| BYTE_ORDER_MARK.len());
        let mut scanner = Scanner::new(file, start);
        let first = scanner.peek();
        let not_qlog = |why: &str| QlogError::NotQlog {
            line: Lines::default().of(file, scanner.at),
            why: why.to_owned(),
        };
        let mut reader = match first {
            None => return Err(not_qlog("it is empty")),
            Some(RECORD_SEPARATOR) => Self::sequence(Records {
                file,
                at: start,
                format: Format::JsonSeq,
                over_lines: false,
            })?,
            Some(b'{') if is_header(Scanner::new(file, start)) => {
                Self::sequence(Records::lines(file, start))?
            }
            Some(b'{' | b'[') => Self::contained(file, start)?,
            Some(_) => return Err(not_qlog("it does not begin with a JSON object")),
        };
        if reader.version.is_none() {
            reader.guess_generation()?;
        }
        reader.learn_clocks();
        reader.enter(0);
        Ok(reader)
    }

    /// The traces of the file. A sequence has one.
    #[must_use]
    pub fn traces(&self) -> &[Trace] {
        &self.traces
    }

    /// How the file is written.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The schema that the file says it keeps; if it says none, that of what its first event looks
    /// like. Its events may be of another.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The file's version; none if it does not have it.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// A file of records. The first is a header with `trace` in it, or an event of a file that has
    /// no header.
    fn sequence(mut records: Records<'a>) -> Result<Self, QlogError> {
        let file = records.file;
        let start = records.at;
        let not_qlog = |offset, why: String| QlogError::NotQlog {
            line: Lines::default().of(file, offset),
            why,
        };
        let (offset, header) = records
            .next()
            .ok_or_else(|| not_qlog(start, "it is empty".to_owned()))?;
        let mut header: Map<String, Value> = serde_json::from_slice(header).map_err(|error| {
            let why = reason(&error);
            let offset = place_of(&error, file, offset);
            not_qlog(offset, format!("its first record is no JSON object: {why}"))
        })?;
        let generation = Generation::of(&header);
        let mut events = records.at;
        if generation.is_none() && !header.contains_key("trace") {
            header.clear();
            events = offset;
        }
        let none = Map::new();
        let trace = match header.get("trace") {
            Some(Value::Object(trace)) => trace,
            _ => &none,
        };
        Ok(Self {
            file,
            format: records.format,
            over_lines: records.over_lines,
            generation: generation.unwrap_or(Generation::Current),
            version: generation.map(|_| version(&header)),
            traces: vec![Trace::of(trace, &header)],
            sections: vec![Some(events)],
            place: EventPosition::nowhere(),
            frame_error: None,
            lines: Lines::default(),
        })
    }

    /// A file that is one JSON value.
    fn contained(file: &'a [u8], start: usize) -> Result<Self, QlogError> {
        let mut frame = Frame::default();
        let result = frame.read(Scanner::new(file, start));
        let generation = Generation::of(&frame.header);
        if generation.is_none() && frame.traces.is_empty() {
            let (line, why) = match result {
                Err(problem) => (
                    Lines::default().of(file, problem.offset()),
                    "it is no JSON object, or cut short before its version",
                ),
                Ok(()) => (1, "its object has neither a version nor traces"),
            };
            return Err(QlogError::NotQlog {
                line,
                why: why.to_owned(),
            });
        }
        let traces = frame
            .traces
            .iter()
            .map(|(members, _)| Trace::of(members, &frame.header))
            .collect();
        let sections = frame.traces.iter().map(|(_, events)| *events).collect();
        let mut reader = Self {
            file,
            format: Format::Json,
            over_lines: false,
            generation: generation.unwrap_or(Generation::Current),
            version: generation.map(|_| version(&frame.header)),
            traces,
            sections,
            place: EventPosition::nowhere(),
            frame_error: None,
            lines: Lines::default(),
        };
        if let Err(problem) = result {
            reader.frame_error = Some(match problem {
                FrameProblem::Scan(fault) => reader.explain(fault, "the file's object"),
                FrameProblem::Garbage { offset, what } => reader.garbage(offset, what),
            });
        }
        if frame.events_were_cut {
            reader.frame_error = None; // reading the events meets it again, and knows better where
        }
        Ok(reader)
    }

    /// The first event of a trace, as it stands there.
    fn first_text(&mut self, trace: usize) -> Option<(usize, &'a [u8])> {
        self.enter(trace);
        match self.format {
            Format::Json => {
                let mut scanner = Scanner::new(self.file, self.sections[trace]?);
                let text = scanner.element().ok()??;
                Some((scanner.at - text.len(), text))
            }
            Format::JsonSeq | Format::Ndjson => self.records().next(),
        }
    }

    /// Lets each trace see the time of its first event.
    fn learn_clocks(&mut self) {
        for trace in 0..self.traces.len() {
            if let Some((offset, text)) = self.first_text(trace)
                && let Ok(Some(event)) = self.event(offset, text)
            {
                self.traces[trace].learn_clock(event.time);
            }
        }
    }

    /// Takes a file that says no version for what its first event looks like.
    fn guess_generation(&mut self) -> Result<(), QlogError> {
        let mut first_line = 1;
        for trace in 0..self.traces.len() {
            let Some((offset, text)) = self.first_text(trace) else {
                continue;
            };
            first_line = self.lines.of(self.file, offset);
            let columns = &self.traces[trace].columns;
            if let Ok(mut event) = RawEvent::parse(text, columns)
                && event.time.is_some()
            {
                let has_category = event.name.is_none();
                if let Some(name) = event.full_name() {
                    let has_columns = !columns.is_empty();
                    self.generation = Generation::looks_like(&name, has_columns, has_category);
                    return Ok(());
                }
            }
        }
        Err(QlogError::NotQlog {
            line: first_line,
            why: "it has neither a version nor an event, an object with time and name".to_owned(),
        })
    }

    /// The records behind the place that was reached.
    fn records(&self) -> Records<'a> {
        Records {
            file: self.file,
            at: self.place.at,
            format: self.format,
            over_lines: self.over_lines,
        }
    }

    /// Goes to the first event of a trace.
    fn enter(&mut self, trace: usize) {
        self.place.trace = trace;
        if let Some(known) = self.traces.get(trace) {
            self.place.times = known.times;
            self.place.at = self.sections[trace].unwrap_or(self.file.len());
        }
    }

    /// The next event's text, and where it stands.
    fn next_text(&mut self) -> Option<Result<(usize, &'a [u8]), QlogError>> {
        if self.format != Format::Json {
            let mut records = self.records();
            let record = records.next();
            self.place.at = records.at;
            return record.map(Ok);
        }
        let mut scanner = Scanner::new(self.file, self.place.at);
        while self.place.trace < self.traces.len() {
            if self.sections[self.place.trace].is_some() && self.place.at < self.file.len() {
                match scanner.element() {
                    Ok(Some(text)) => {
                        self.place.at = scanner.at;
                        return Some(Ok((scanner.at - text.len(), text)));
                    }
                    Ok(None) => {}
                    Err(fault) => {
                        let cut = matches!(fault, ScanError::CutShort { .. });
                        let what = if scanner.peek().is_none() {
                            "the list of events"
                        } else {
                            "an event"
                        };
                        let error = self.explain(fault, what);
                        let next = if cut {
                            self.traces.len()
                        } else {
                            self.place.trace + 1
                        };
                        self.enter(next);
                        return Some(Err(error));
                    }
                }
            }
            self.enter(self.place.trace + 1);
            scanner.at = self.place.at;
        }
        None
    }

    /// The event that stands at `offset`; none if it is but an empty object.
    fn event(&mut self, offset: usize, text: &'a [u8]) -> Result<Option<Event<'a>>, QlogError> {
        let trace = &self.traces[self.place.trace];
        let mut raw = match RawEvent::parse(text, &trace.columns) {
            Ok(raw) if raw.is_empty => return Ok(None),
            Ok(raw) => raw,
            Err(error) if error.is_eof() && offset + text.len() == self.file.len() => {
                return Err(self.explain(ScanError::CutShort { offset }, "an event"));
            }
            Err(error) => {
                let what = format!("an event is expected here: {}", reason(&error));
                return Err(self.garbage(place_of(&error, self.file, offset), what));
            }
        };
        let Some(name) = raw.full_name() else {
            let what = "an event without name (hint: name, or category and type)";
            return Err(self.garbage(offset, what.to_owned()));
        };
        let name = match name {
            Cow::Borrowed(name) => names::current(name),
            Cow::Owned(name) => Cow::Owned(names::current(&name).into_owned()),
        };
        let Some(time) = raw.time else {
            let what = format!("{name} without time (hint: a number)");
            return Err(self.garbage(offset, what));
        };
        let format = raw.others.iter().find(|(key, _)| key == "time_format");
        let format = format.map(|(_, value)| value.get().trim_matches('"'));
        let Some(time) = self.place.times.next(time.get(), format) else {
            let what = format!("{name}: its time is {time} (hint: a number)");
            return Err(self.garbage(offset, what));
        };
        Ok(Some(Event {
            trace: self.place.trace,
            time,
            name,
            data: raw.data,
            group: raw.group,
            others: raw.others,
        }))
    }

    fn explain(&mut self, fault: ScanError, what: &'static str) -> QlogError {
        match fault {
            ScanError::CutShort { offset } => QlogError::CutShort {
                line: self.lines.of(self.file, offset),
                offset,
                what,
            },
            ScanError::NoValue { offset } => {
                self.garbage(offset, format!("in {what}: this begins no JSON value"))
            }
        }
    }

    fn garbage(&mut self, offset: usize, what: String) -> QlogError {
        QlogError::Garbage {
            line: self.lines.of(self.file, offset),
            offset,
            what,
        }
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Event<'a>, QlogError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let found = match self.next_text() {
                Some(Ok((offset, text))) => self.event(offset, text),
                Some(Err(error)) => Err(error),
                None => return self.frame_error.take().map(Err),
            };
            if let Some(found) = found.transpose() {
                return Some(found);
            }
        }
    }
}

/// The version in a header.
fn version(header: &Map<String, Value>) -> String {
    let members = ["file_schema", "qlog_version"].into_iter();
    let mut said = members.filter_map(|key| header.get(key)?.as_str());
    said.next().unwrap_or_default().to_owned()
}

/// The line of the file in which a value that begins at `offset` is wrong: its beginning, or the
/// beginning of the line if that is another.
fn place_of(error: &serde_json::Error, file: &[u8], offset: usize) -> usize {
    let lines = file[offset..].split_inclusive(|byte| *byte == b'\n');
    let before = lines.take(error.line().saturating_sub(1));
    (offset + before.map(<[u8]>::len).sum::<usize>()).min(file.len())
}

impl EventPosition {
    fn nowhere() -> Self {
        Self {
            trace: 0,
            at: 0,
            times: TimeFormat::default(),
        }
    }
}
