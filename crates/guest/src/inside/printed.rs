//! The output of a command, on its way to the files in which the host finds it.
//!
//! It prints into pipes, as in life where its output is read by another program: what reopens
//! `/dev/stdout` must not cut a file off.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::Child;
use std::thread;

use super::SHARED;
use crate::task::PRINTED;

/// The bytes that are read from a pipe at once.
const PIECE_BYTES: usize = 1 << 16;

/// Has threads of their own take what a command prints.
pub fn take(program: &mut Child) {
    let [output, error] = PRINTED;
    if let Some(pipe) = program.stdout.take() {
        thread::spawn(move || copy(pipe, output));
    }
    if let Some(pipe) = program.stderr.take() {
        thread::spawn(move || copy(pipe, error));
    }
}

/// Says something in a separate line on what is the command's standard error.
pub fn note(text: &str) {
    // If it cannot be said, there is nobody to tell.
    let _ = append(PRINTED[1], format!("{text}\n").as_bytes());
}

fn copy(mut pipe: impl Read, name: &str) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = pipe.read(&mut piece)?;
        if count == 0 {
            return Ok(());
        }
        append(name, &piece[..count])?;
    }
}

/// The host has it when the file is closed.
fn append(name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = Path::new(SHARED).join(name);
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(bytes)
}
