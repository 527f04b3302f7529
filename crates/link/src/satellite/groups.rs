//! Terminals that share a carrier with the trial's.

use std::path::Path;

use bentpipe_units::Size;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::settings::read_count;
use crate::fields::{Entry, Fields, Problem};
use crate::sources::Source;

const MOST_TERMINALS: u64 = 1000;

/// Terminals of one kind, each with its own traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalGroup<T> {
    /// How many they are; 1 if left out.
    pub count: u64,
    /// The description of each of them; what it leaves out is as of the trial's.
    pub terminal: T,
    /// The traffic to each of them, or of each.
    pub sources: Vec<Source>,
}

/// A terminal, as scenario files describe it.
pub(crate) trait WrittenTerminal {
    fn serialize_into<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

/// Where groups are read.
pub(crate) struct GroupReading<'a> {
    pub folder: &'a Path,
    pub mtu: Option<Size>,
    /// A list of groups.
    pub example: &'a str,
}

impl<T> TerminalGroup<T> {
    /// Reads a list of groups. `terminal` reads what is of the terminal itself, and `check` refuses
    /// one at its place.
    pub(crate) fn read_all(
        entry: Entry,
        reading: &GroupReading,
        terminal: impl Fn(&mut Fields) -> Result<T, Problem>,
        check: impl Fn(Problem, &T) -> Result<(), Problem>,
    ) -> Result<Vec<Self>, Problem> {
        let GroupReading {
            folder,
            mtu,
            example,
        } = reading;
        let wrong = entry.problem(&format!("terminals are a list of tables; write {example}"));
        let read = |entry: Entry| {
            let place = entry.problem("");
            let mut fields = entry.table()?;
            let count = read_count(&mut fields, "count", 1, 1..=MOST_TERMINALS)?;
            let terminal = terminal(&mut fields)?;
            let sources = fields.required("sources", "[{ kind = \"web\", … }]")?;
            let sources = Source::read_all(sources, folder, *mtu)?;
            fields.finish()?;
            check(place, &terminal)?;
            Ok(Self {
                count,
                terminal,
                sources,
            })
        };
        entry.items().ok_or(wrong)?.into_iter().map(read).collect()
    }
}

/// The terminals of a carrier: the trial's, and then the others.
pub(crate) fn terminals<'a, T>(
    own: &'a T,
    others: &'a [TerminalGroup<T>],
) -> impl Iterator<Item = &'a T> {
    let others = others.iter().flat_map(|group| {
        let count = usize::try_from(group.count).expect("checked when it was read");
        std::iter::repeat_n(&group.terminal, count)
    });
    std::iter::once(own).chain(others)
}

/// The sources of the others, each with its terminal's number, from 1 on.
pub(crate) fn sources<T>(others: &[TerminalGroup<T>]) -> Vec<(usize, Source)> {
    let each = others
        .iter()
        .flat_map(|group| (0..group.count).map(|_| &group.sources));
    let numbered = (1..).zip(each);
    numbered
        .flat_map(|(number, sources)| sources.iter().map(move |it| (number, it.clone())))
        .collect()
}

impl<T: WrittenTerminal> Serialize for TerminalGroup<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("count", &self.count.to_string())?;
        self.terminal.serialize_into(&mut map)?;
        map.serialize_entry("sources", &self.sources)?;
        map.end()
    }
}
