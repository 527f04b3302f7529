//! Says on standard output how far an analysis has come, for a program that shows it: lines of what
//! is done, how much of it, and of how much.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Mutex;

use bentpipe_wire::capture::Input;

/// Lines that reading has.
const LINES: u64 = 200;

/// The progress of an analysis.
#[derive(Debug)]
pub struct Progress {
    is_wanted: bool,
    /// Bytes of all files.
    size: u64,
    reading: Mutex<Reading>,
}

#[derive(Debug)]
struct Reading {
    /// Bytes that were read.
    done: u64,
    /// How many of them the last line told.
    told: u64,
}

impl Progress {
    /// Of the analysis of some files; says nothing unless that `is_wanted`.
    pub fn new(is_wanted: bool, files: &[PathBuf]) -> Self {
        let size = |file: &PathBuf| Input::open(file).and_then(|it| it.size()).unwrap_or(0);
        Self {
            is_wanted,
            size: if is_wanted {
                files.iter().map(size).sum()
            } else {
                0
            },
            reading: Mutex::new(Reading { done: 0, told: 0 }),
        }
    }

    /// Takes note of bytes that have been read. What is read twice makes it no more than all.
    pub fn read(&self, bytes: u64) {
        if !self.is_wanted {
            return;
        }
        let mut reading = self.reading.lock().expect("no thread panics with it");
        reading.done = (reading.done + bytes).min(self.size);
        if reading.done - reading.told >= self.size / LINES {
            reading.told = reading.done;
            tell("reading", reading.done, self.size);
        }
    }

    /// Says how many of the connections have been measured.
    pub fn measured(&self, done: usize, all: usize) {
        if self.is_wanted {
            tell("measuring", done as u64, all as u64);
        }
    }
}

fn tell(what: &str, done: u64, all: u64) {
    // One that does not read on does not want to know.
    let _ = writeln!(io::stdout(), "{what} {done} {all}");
}
