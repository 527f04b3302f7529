//! `bentpipe-trace qlog`: what qlog files hold; with an output file, converted to what qvis opens.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bentpipe_qlog::convert::Converter;
use bentpipe_qlog::{
    Clock, Format, Generation, Outline, Phase, QlogError, Reader, Trace, milliseconds,
};
use bentpipe_unpack::Unpacking;

use crate::input;

/// Problems of a file that are shown in words; the rest is counted.
const MOST_PROBLEMS_SHOWN: usize = 20;

/// The task of `qlog`: files, and what to do with them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Job {
    pub files: Vec<PathBuf>,
    pub out: Option<PathBuf>,
    /// The origin of times in files that do not give it, in nanoseconds since the Unix epoch.
    pub epoch: Option<i64>,
    /// Also list the phases of congestion control.
    pub explain: bool,
    /// Print the summaries as JSON.
    pub json: bool,
}

/// The content of a file, in its JSON form.
#[derive(serde::Serialize)]
struct Summary {
    file: String,
    generation: &'static str,
    /// As the file says it; none: it says none, and the generation is what its events look like.
    version: Option<String>,
    format: &'static str,
    traces: Vec<TraceSummary>,
    /// The unreadable parts.
    problems: Vec<String>,
}

#[derive(serde::Serialize)]
struct TraceSummary {
    title: Option<String>,
    name: Option<String>,
    vantage_point: &'static str,
    /// The file does not say the vantage point; the first packet does.
    vantage_point_inferred: bool,
    clock: &'static str,
    /// Milliseconds on that clock, in text: a JSON number would not hold the nanoseconds.
    first_ms: Option<String>,
    last_ms: Option<String>,
    /// Counts by name.
    events: BTreeMap<String, usize>,
    /// In order; none: not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    phases: Option<Vec<PhaseSummary>>,
}

/// A phase of congestion control, and why the one before ended.
#[derive(serde::Serialize)]
struct PhaseSummary {
    /// Milliseconds on the trace's clock, in text.
    from_ms: String,
    name: String,
    old: Option<String>,
    trigger: Option<String>,
    window_bytes: Option<u64>,
}

/// A file that was read once.
struct LogFile<'a> {
    bytes: &'a [u8],
    outlines: Vec<Outline>,
    summary: Summary,
}

/// Runs the command. The exit code is 1 if a file could not be read to its end.
pub fn run(job: &Job) -> Result<ExitCode, Box<dyn Error>> {
    let files: Vec<_> = job
        .files
        .iter()
        .map(|file| input::read_part(file))
        .collect::<Result<_, _>>()?;
    let mut logs = Vec::new();
    let mut failed = Vec::new();
    for (file, content) in job.files.iter().zip(&files) {
        let name = file.display();
        match LogFile::of(file, content, job.explain) {
            Ok(file) => {
                failed.extend(
                    file.summary
                        .problems
                        .iter()
                        .map(|problem| format!("{name}: {problem}")),
                );
                logs.push(file);
            }
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    if let Some(out) = &job.out {
        convert(out, job, &logs)?;
    }
    if job.out.is_none() || job.json {
        match print(job, &logs) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(ExitCode::SUCCESS);
            } // nobody wants to read on
            result => result?,
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let failed = failed.join("\nerror: ");
    if logs.is_empty() {
        return Err(failed.into());
    }
    eprintln!("error: {failed}");
    Ok(ExitCode::FAILURE)
}

fn convert(out: &Path, job: &Job, files: &[LogFile<'_>]) -> Result<(), String> {
    let name = out.display();
    if let Ok(place) = fs::canonicalize(out)
        && job
            .files
            .iter()
            .any(|file| fs::canonicalize(file).is_ok_and(|file| file == place))
    {
        return Err(format!(
            "--out {name}: is one of the files to be read (hint: name another)"
        ));
    }
    let outlines: Vec<_> = files.iter().flat_map(|file| &file.outlines).collect();
    if outlines.iter().all(|outline| outline.span.is_none()) {
        return Err(format!(
            "--out {name}: not written: there is no event in what could be read"
        ));
    }
    let write = || {
        let out = BufWriter::with_capacity(1 << 16, File::create(out)?);
        let mut converter = Converter::new(out, outlines.iter().copied(), job.epoch)?;
        for file in files {
            file.write_traces(&mut converter)?;
        }
        converter.finish()
    };
    write().map_err(|error: io::Error| format!("--out {name}: {error}"))
}

fn print(job: &Job, files: &[LogFile<'_>]) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for LogFile { summary, .. } in files {
        if job.json {
            writeln!(out, "{}", serde_json::to_string(summary)?)?;
        } else {
            summary.print(&mut out)?;
        }
    }
    out.flush()
}

impl<'a> LogFile<'a> {
    fn of(file: &Path, content: &'a Unpacking, explain: bool) -> Result<Self, String> {
        let bytes = &content.bytes[..];
        if let (true, Some(error)) = (bytes.is_empty(), &content.error) {
            return Err(error.to_string());
        }
        let reader = Reader::new(bytes).map_err(|error| error.to_string())?;
        let traces = reader.traces().to_vec();
        let mut outlines: Vec<_> = traces.iter().map(Outline::new).collect();
        let mut counts = vec![BTreeMap::<String, usize>::new(); traces.len()];
        let mut phases: Vec<_> = traces.iter().map(|_| Vec::new()).collect();
        let mut problems = Problems::default();
        let (generation, format) = (generation(&reader), format(&reader));
        let version = reader.version().map(str::to_owned);
        for event in reader {
            match event {
                Ok(event) => {
                    outlines[event.trace].add(&event);
                    phases[event.trace].extend(Phase::of(&event).map(PhaseSummary::of));
                    count(&mut counts[event.trace], &event.name);
                }
                Err(error) => problems.add(&error),
            }
        }
        let phases = phases.into_iter().map(|them| explain.then_some(them));
        let parts = traces.iter().zip(&outlines).zip(counts).zip(phases);
        let unpacking = content.error.iter().map(ToString::to_string);
        let summary = Summary {
            file: file.display().to_string(),
            generation,
            version,
            format,
            traces: parts
                .map(|(((trace, outline), events), phases)| TraceSummary {
                    phases,
                    ..TraceSummary::of(trace, outline, events)
                })
                .collect(),
            problems: unpacking.chain(problems.texts()).collect(),
        };
        Ok(Self {
            bytes,
            outlines,
            summary,
        })
    }

    /// Writes the traces that have events: qvis fails on one without.
    fn write_traces<W: Write>(&self, converter: &mut Converter<W>) -> io::Result<()> {
        let reader = Reader::new(self.bytes).map_err(io::Error::other)?;
        let traces = reader.traces().to_vec();
        let mut current = None;
        for event in reader.flatten() {
            if current != Some(event.trace) {
                converter.begin_trace(&traces[event.trace], &self.outlines[event.trace])?;
                current = Some(event.trace);
            }
            converter.event(&event)?;
        }
        Ok(())
    }
}

fn count(counts: &mut BTreeMap<String, usize>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => {
            counts.insert(name.to_owned(), 1);
        }
    }
}

/// The unreadable parts: the first ones in words, all by number.
#[derive(Default)]
struct Problems {
    count: usize,
    shown: Vec<String>,
}

impl Problems {
    fn add(&mut self, error: &QlogError) {
        self.count += 1;
        if self.shown.len() < MOST_PROBLEMS_SHOWN {
            self.shown.push(error.to_string());
        }
    }

    fn texts(mut self) -> Vec<String> {
        let more = self.count - self.shown.len();
        if more > 0 {
            self.shown
                .push(format!("{more} more that could not be read"));
        }
        self.shown
    }
}

fn generation(reader: &Reader<'_>) -> &'static str {
    match reader.generation() {
        Generation::Draft => "qlog before 0.3",
        Generation::V03 => "qlog 0.3",
        Generation::Current => "qlog of the current schema",
    }
}

fn format(reader: &Reader<'_>) -> &'static str {
    match reader.format() {
        Format::Json => "JSON",
        Format::JsonSeq => "JSON-SEQ",
        Format::Ndjson => "lines of JSON",
    }
}

impl Summary {
    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Self {
            file,
            generation,
            version,
            format,
            traces,
            ..
        } = self;
        let read_as = match version.as_deref() {
            None => format!("says no version, read as {generation}"),
            Some(version) if generation.ends_with(version) || version.contains(':') => {
                (*generation).to_owned()
            }
            Some(version) => format!("{generation} ({version})"),
        };
        writeln!(out, "{file}: {read_as}, {format}")?;
        for trace in traces {
            trace.print(out)?;
        }
        Ok(())
    }
}

impl TraceSummary {
    fn of(trace: &Trace, outline: &Outline, events: BTreeMap<String, usize>) -> Self {
        Self {
            title: trace.title.clone(),
            name: trace.name.clone(),
            vantage_point: outline.vantage.name(),
            vantage_point_inferred: outline.vantage_inferred,
            clock: match outline.clock {
                Clock::Unix => "unix",
                Clock::Unknown => "unknown",
            },
            first_ms: outline.span.map(|(first, _)| milliseconds(first)),
            last_ms: outline.span.map(|(_, last)| milliseconds(last)),
            events,
            phases: None,
        }
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let inferred = if self.vantage_point_inferred {
            " (inferred)"
        } else {
            ""
        };
        let title = self
            .title
            .as_deref()
            .or(self.name.as_deref())
            .unwrap_or("no title");
        write!(out, "  {title}, {}{inferred}: ", self.vantage_point)?;
        let total: usize = self.events.values().sum();
        match (&self.first_ms, &self.last_ms) {
            (Some(first), Some(last)) => {
                writeln!(
                    out,
                    "{total} events from {first} to {last} ms ({} clock)",
                    self.clock
                )?;
            }
            _ => writeln!(out, "no events")?,
        }
        for (name, count) in &self.events {
            writeln!(out, "  {count:>9} {name}")?;
        }
        let Some(phases) = &self.phases else {
            return Ok(());
        };
        if phases.is_empty() {
            writeln!(out, "  no event says a phase of congestion control")?;
        }
        for phase in phases {
            phase.print(out)?;
        }
        Ok(())
    }
}

impl PhaseSummary {
    fn of(phase: Phase) -> Self {
        Self {
            from_ms: milliseconds(phase.time),
            name: phase.name,
            old: phase.old,
            trigger: phase.trigger,
            window_bytes: phase.window,
        }
    }

    /// A line such as `12043.2 ms  alone -> draining (ack), window 1499916 bytes`.
    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "  {:>13} ms  ", self.from_ms)?;
        if let Some(old) = &self.old {
            write!(out, "{old} -> ")?;
        }
        write!(out, "{}", self.name)?;
        if let Some(trigger) = &self.trigger {
            write!(out, " ({trigger})")?;
        }
        if let Some(window) = self.window_bytes {
            write!(out, ", window {window} bytes")?;
        }
        writeln!(out)
    }
}
