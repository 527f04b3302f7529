//! Has the pieces of a capture decoded by several threads, and prints their lines in the order of
//! the file.

use std::io::{self, Write};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use bentpipe_wire::KeyLog;
use bentpipe_wire::capture::{Input, Piece, ReadError};

use super::decoder::{DecodedPiece, Decoder, InterfaceShare};
use crate::summary::Summary;

/// How many pieces may be under way: enough that no thread waits for another that is a little
/// slower.
const UNDER_WAY: usize = 5;
/// How many threads decode at most. Traces have two sides.
const THREADS: usize = 2;

/// The outcome of printing a capture.
#[derive(Debug)]
pub struct Printed {
    /// Why not all of it could be read.
    pub unread: Option<ReadError>,
    /// The decoded packets.
    pub summary: Summary,
}

/// Prints the packets of a capture. The error is that of writing.
///
/// Every interface has its observer; they are shared out among as many threads as there are cores.
pub fn print(
    input: &Input<'_>,
    prefix: &str,
    secrets: &KeyLog,
    out: impl Write,
) -> io::Result<Printed> {
    let of = thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(THREADS);
    thread::scope(|scope| {
        let (mut workers, mut threads) = (Vec::new(), Vec::new());
        for first in 0..of {
            let (todo, work) = channel();
            let (results, done) = channel();
            let decoder = Decoder::new(secrets, InterfaceShare { first, of }, prefix.to_owned());
            threads.push(scope.spawn(move || decoder.run(&work, &results)));
            workers.push(Worker { todo, done });
        }
        let printer = Printer {
            workers,
            under_way: 0,
            spare_pieces: Vec::new(),
            spare_works: Vec::new(),
            lines: Vec::new(),
            out,
        };
        let unread = printer.print(input)?;
        let mut summary = Summary::default();
        for thread in threads {
            summary.add(thread.join().expect("a thread panicked"));
        }
        Ok(Printed { unread, summary })
    })
}

/// Where pieces go out and lines come in.
struct Printer<O> {
    workers: Vec<Worker>,
    under_way: usize,
    spare_pieces: Vec<Piece>,
    spare_works: Vec<DecodedPiece>,
    /// The lines of a piece, in the order of the file.
    lines: Vec<u8>,
    out: O,
}

/// The ends of a thread that are held here.
struct Worker {
    todo: Sender<DecodedPiece>,
    done: Receiver<DecodedPiece>,
}

impl<O: Write> Printer<O> {
    fn print(mut self, input: &Input<'_>) -> io::Result<Option<ReadError>> {
        let mut pieces = match input.pieces() {
            Ok(pieces) => pieces,
            Err(error) => return Ok(Some(ReadError::Io(error))),
        };
        loop {
            let mut piece = self.spare_pieces.pop().unwrap_or_default();
            if !pieces.next(&mut piece, |_| {}) {
                break;
            }
            self.deal(piece);
            if self.under_way == UNDER_WAY {
                self.collect()?;
            }
        }
        while self.under_way > 0 {
            self.collect()?;
        }
        Ok(pieces.failure())
    }

    fn deal(&mut self, piece: Piece) {
        let piece = Arc::new(piece);
        for worker in &self.workers {
            let mut work = self.spare_works.pop().unwrap_or_default();
            work.piece = Arc::clone(&piece);
            let sent = worker.todo.send(work);
            sent.expect("a thread ends when this end is dropped");
        }
        self.under_way += 1;
    }

    /// Prints the lines of the oldest piece.
    fn collect(&mut self) -> io::Result<()> {
        self.under_way -= 1;
        let workers = self.workers.iter();
        let works = workers.map(|worker| worker.done.recv().expect("a thread answers every piece"));
        let works: Vec<_> = works.collect();
        self.lines.clear();
        merge(&works, &mut self.lines);
        for mut work in works {
            work.text.clear();
            work.ends.clear();
            let piece = std::mem::take(&mut work.piece);
            self.spare_pieces.extend(Arc::into_inner(piece));
            self.spare_works.push(work);
        }
        self.out.write_all(&self.lines)
    }
}

/// Adds the lines of all to `lines`, by the numbers of their captured packets.
fn merge(works: &[DecodedPiece], lines: &mut Vec<u8>) {
    let mut rest: Vec<_> = works.iter().map(|work| (0, &work.ends[..])).collect();
    loop {
        let fronts = rest.iter().enumerate();
        let fronts = fronts.filter_map(|(at, (_, ends))| Some((ends.first()?.0, at)));
        let Some((_, first)) = fronts.min() else {
            return;
        };
        let (start, ends) = &mut rest[first];
        let end = ends[0].1;
        lines.extend_from_slice(&works[first].text[*start..end]);
        (*start, *ends) = (end, &ends[1..]);
    }
}
