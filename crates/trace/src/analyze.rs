//! `bentpipe-trace analyze`: the packets of captures as a table, and what they say as JSON.

use std::error::Error;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};

use bentpipe_analysis::connection::Connection;
use bentpipe_analysis::passive::{self, Spin};
use bentpipe_analysis::{AnalysisFile, ConnectionAnalysis, LinkFacts, SideInformation, Undecoded};

use crate::captures;
use crate::congestion_windows;
use crate::input;
use crate::progress::Progress;
use crate::tables::Table;

/// The task of `analyze`: files and secrets, and where the results go.
#[derive(Debug, PartialEq, Eq)]
pub struct Analyze {
    pub files: Vec<PathBuf>,
    pub key_log: Option<PathBuf>,
    /// The endpoints' logs.
    pub qlogs: Vec<PathBuf>,
    /// Link facts: JSON, or a file with it.
    pub link: Option<String>,
    pub out: PathBuf,
    /// Whether to say how far it has come.
    pub progress: bool,
}

/// Writes `packets.parquet` and `analysis.json`. Of a capture that cannot be read to its end, what
/// comes before that counts, and the exit code is 1.
pub fn run(job: &Analyze) -> Result<ExitCode, Box<dyn Error>> {
    let facts = job
        .link
        .as_deref()
        .map(link_facts)
        .transpose()?
        .unwrap_or_default();
    let names: Vec<String> = job.files.iter().map(|file| input::name(file)).collect();
    let progress = Progress::new(job.progress, &job.files);
    let (captured, errors) =
        captures::read(&job.files, job.key_log.as_deref(), &names, &|bytes| {
            progress.read(bytes);
        })?;
    let mut analysis = AnalysisFile::new(names, &captured, errors);
    let connections = captured.connections;
    if connections.is_empty() {
        analysis.errors.push(nothing(&analysis.undecoded));
    }
    let windows = congestion_windows::read(&job.qlogs, &connections, &mut analysis.errors)?;
    let facts = LinkFacts {
        // Of several connections, each carries a part: no one's share is known.
        size_bytes: facts.size_bytes.filter(|_| connections.len() == 1),
        ..facts
    };
    let known = SideInformation {
        link: facts,
        windows,
    };
    let results = Results {
        out: &job.out,
        known: &known,
        progress: &progress,
    };
    results.write(connections, &mut analysis)?;
    for error in &analysis.errors {
        eprintln!("error: {error}");
    }
    for Undecoded {
        count,
        what,
        first_frame,
    } in &analysis.undecoded
    {
        eprintln!("not decoded: {count} {what} (first in frame {first_frame})");
    }
    Ok(ExitCode::from(u8::from(!analysis.errors.is_empty())))
}

/// Where results go, and what is known beside the captures.
struct Results<'a> {
    out: &'a Path,
    known: &'a SideInformation,
    progress: &'a Progress,
}

impl Results<'_> {
    /// Writes the results, connection by connection, so that each one's ledger and packets are gone
    /// before the next.
    fn write(
        &self,
        connections: Vec<Connection>,
        analysis: &mut AnalysisFile,
    ) -> Result<(), Box<dyn Error>> {
        let (out, count) = (self.out, connections.len());
        fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
        replace(&out.join("packets.parquet"), |file| {
            let mut table = Table::new(file)?;
            for (number, connection) in connections.into_iter().enumerate() {
                self.progress.measured(number, count);
                let entries = connection.ledger();
                let spin = Spin::of(&connection, passive::handshake_rtt(&connection));
                table.add(i32::try_from(number)?, &connection, &entries, &spin)?;
                let analyzed =
                    ConnectionAnalysis::new(number, &connection, &entries, &spin, self.known);
                analysis.connections.push(analyzed);
            }
            table.finish()?;
            Ok(())
        })?;
        replace(&out.join("analysis.json"), |file| {
            let mut out = io::BufWriter::new(file);
            serde_json::to_writer(&mut out, analysis)?;
            Ok(io::Write::flush(&mut out)?)
        })
    }
}

/// Writes a file beside `path`, then puts it in its place: a reader sees the old one or the whole
/// new one.
fn replace(
    path: &Path,
    write: impl FnOnce(File) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", process::id()));
    let written = File::create(&beside)
        .map_err(Into::into)
        .and_then(write)
        .and_then(|()| Ok(fs::rename(&beside, path)?));
    written.map_err(|error| {
        // It may not even be there; what failed before is what counts.
        let _ = fs::remove_file(&beside);
        format!("{}: {error}", path.display()).into()
    })
}

fn link_facts(link: &str) -> Result<LinkFacts, String> {
    if link.trim_start().starts_with('{') {
        return serde_json::from_str(link).map_err(|error| format!("--link: {error}"));
    }
    let json = input::read(Path::new(link))?;
    serde_json::from_slice(&json).map_err(|error| format!("{link}: {error}"))
}

fn nothing(undecoded: &[Undecoded]) -> String {
    let most = undecoded.iter().max_by_key(|it| it.count);
    let why = most.map_or("the captures have no packets".to_owned(), |it| {
        format!("{} {}", it.count, it.what)
    });
    format!("no connection found: {why} (hint: a capture has to begin with the handshake)")
}
