//! Scenarios with more than one path between client and server.

use std::path::Path;

use bentpipe_units::{Rate, Size, Span};

use crate::direction::Direction;
use crate::fields::{Entry, Fields, Problem};
use crate::scenario::{FurtherPath, Scenario, Segment};

/// The most paths that a scenario has.
pub const PATH_LIMIT: usize = 4;
/// The name of the only path of a scenario that names none.
const ONLY: &str = "path";
const LONGEST_NAME: usize = 16;
/// The example in the error about a missing satellite.
pub(crate) const SATELLITE: &str =
    "{ forward = { delay = \"300 ms\" }, return = { delay = \"300 ms\" } }";

impl Scenario {
    /// How many paths there are: 1 to [`PATH_LIMIT`].
    #[must_use]
    pub fn path_count(&self) -> usize {
        1 + self.paths.len()
    }

    /// The names of all paths, the first path's first. A path's number is its place here.
    #[must_use]
    pub fn path_names(&self) -> Vec<&str> {
        let first = self.path.as_deref().unwrap_or(ONLY);
        let others = self.paths.iter().map(|it| it.name.as_str());
        std::iter::once(first).chain(others).collect()
    }

    /// Each path as a scenario with this path alone, by number. All but their links is the same.
    #[must_use]
    pub fn each_path(&self) -> Vec<Self> {
        let alone = |access: &Option<_>, satellite: &Segment, ground: &Option<_>| Self {
            name: self.name.clone(),
            title: self.title.clone(),
            source: self.source.clone(),
            notes: self.notes.clone(),
            timeout: self.timeout,
            path: None,
            access: access.clone(),
            satellite: satellite.clone(),
            ground: ground.clone(),
            paths: Vec::new(),
        };
        let first = alone(&self.access, &self.satellite, &self.ground);
        let others = self.paths.iter();
        let others = others.map(|it| alone(&it.access, &it.satellite, &it.ground));
        std::iter::once(first).chain(others).collect()
    }

    /// The sum of the rates of all paths in a direction; None if nothing limits one of them.
    #[must_use]
    pub fn rate_of_all_paths(&self, direction: Direction) -> Option<Rate> {
        let each = self.each_path();
        let rates = each.iter().map(|it| it.rate(direction));
        let sum: Option<u64> = rates.map(|it| it.map(Rate::bps)).sum();
        sum.map(Rate::from_bps)
    }

    /// The smallest delay of a direction, over the path that has the smallest.
    #[must_use]
    pub fn min_one_way_of_all_paths(&self, direction: Direction) -> Span {
        let each = self.each_path();
        let delays = each.iter().map(|it| it.min_one_way(direction));
        delays.min().unwrap_or(Span::ZERO)
    }

    /// Whether no rate of any path ever changes in a direction.
    #[must_use]
    pub fn are_all_steady(&self, direction: Direction) -> bool {
        self.each_path().iter().all(|it| it.is_steady(direction))
    }

    /// The largest packet that the links of every path carry; None if none has an MTU.
    #[must_use]
    pub fn mtu_of_all_paths(&self) -> Option<Size> {
        let each = self.each_path();
        each.iter().filter_map(|it| it.whole().mtu()).min()
    }
}

/// Reads the name of the first path, which is there where others are.
pub(crate) fn read_first_name(
    name: Option<&Entry>,
    others: &[FurtherPath],
) -> Result<Option<String>, Problem> {
    match (name, others) {
        (None, []) => Ok(None),
        (Some(entry), []) => Err(entry.problem(
            "there is one path, which needs no name; leave it out, or describe another in \
             [paths.NAME.satellite.forward]",
        )),
        (None, _) => Err(Problem {
            key: "path".to_owned(),
            message: "missing; where there are several paths, the first one, that of \
                      [satellite], needs a name, too: write path = \"geo\""
                .to_owned(),
        }),
        (Some(entry), _) => {
            let name = entry.text()?;
            check_name(&name).map_err(|what| entry.problem(&what))?;
            if others.iter().any(|it| it.name == name) {
                return Err(entry.problem("another path has this name"));
            }
            Ok(Some(name))
        }
    }
}

/// Reads the paths beside the first, in the order of their names.
pub(crate) fn read_others(
    entry: Option<Entry>,
    folder: &Path,
) -> Result<Vec<FurtherPath>, Problem> {
    let Some(entry) = entry else {
        return Ok(Vec::new());
    };
    let key = entry.problem("").key;
    let wrong = |message| Err(Problem { key, message });
    let mut each = entry.entries()?;
    each.sort_by(|(one, _), (other, _)| one.cmp(other));
    if each.is_empty() {
        return wrong("no path is in it; leave it out".to_owned());
    }
    if each.len() >= PATH_LIMIT {
        return wrong(format!("a scenario has at most {PATH_LIMIT} paths"));
    }
    each.into_iter()
        .map(|(name, entry)| {
            check_name(&name).map_err(|what| entry.problem(&what))?;
            FurtherPath::read(name, entry.table()?, folder)
        })
        .collect()
}

impl FurtherPath {
    fn read(name: String, mut fields: Fields, folder: &Path) -> Result<Self, Problem> {
        let segment = |entry| Segment::read(entry, folder);
        let path = Self {
            name,
            access: fields.take("access").map(segment).transpose()?,
            satellite: segment(fields.required("satellite", SATELLITE)?)?,
            ground: fields.take("ground").map(segment).transpose()?,
        };
        fields.finish()?;
        Ok(path)
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let is_short = (1..=LONGEST_NAME).contains(&name.len());
    let fits = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
    if is_short && name.bytes().all(fits) {
        return Ok(());
    }
    Err(format!(
        "a path's name has 1 to {LONGEST_NAME} letters, digits and -"
    ))
}
