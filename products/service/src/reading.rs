//! From text to settings.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::SettingsError;
use crate::settings::Problem;

/// How alike two words are, from 0 to 1, of which one may have been meant for the other.
const ALIKE: f64 = 0.8;

/// A configuration file.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Its path, which errors name, and to whose folder the paths in it are relative.
    pub file: &'a Path,
    /// Its contents.
    pub text: &'a str,
}

/// A flag, and the keys that it sets.
#[derive(Debug, Clone)]
pub struct Override {
    /// As it was written.
    pub flag: String,
    /// As a file would have them.
    pub keys: Table,
}

impl Override {
    /// One key, by its path.
    pub fn new(flag: impl Into<String>, path: &[&str], value: impl Into<Value>) -> Self {
        let mut value = value.into();
        for name in path.iter().rev() {
            value = Value::Table([((*name).to_owned(), value)].into_iter().collect());
        }
        let Value::Table(keys) = value else {
            unreachable!("a path has a name at least");
        };
        Self {
            flag: flag.into(),
            keys,
        }
    }
}

/// Settings that a program reads: what may be written, with defaults.
pub trait SettingsFile: Default + Serialize + DeserializeOwned {
    /// The file that shows all keys.
    const EXAMPLE: &'static str;
    /// The command that says how a file is understood.
    const CHECK: &'static str;

    /// Checks across settings: whether the values go together.
    fn check(&self) -> Result<(), Problem>;

    /// The paths in it, which are relative to the file's folder.
    fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf>;

    /// Reads a file, if one is given, makes the changes, and checks the whole.
    fn load(file: Option<&Path>, overrides: &[Override]) -> Result<Self, SettingsError> {
        let Some(file) = file else {
            return Self::parse(None, overrides);
        };
        let text = fs::read_to_string(file).map_err(|error| {
            let hint = format!(
                "name a file that there is, as in --config {}",
                Self::EXAMPLE
            );
            SettingsError::new(file.display().to_string(), error.to_string(), hint)
        })?;
        Self::parse(Some(Source { file, text: &text }), overrides)
    }

    /// As [`Self::load`], with the text at hand.
    fn parse(source: Option<Source<'_>>, overrides: &[Override]) -> Result<Self, SettingsError> {
        let mut settings = match source {
            Some(source) => read(source)?,
            None => Self::default(),
        };
        let mut place = source.map_or("the command line".to_owned(), |source| {
            source.file.display().to_string()
        });
        for change in overrides {
            settings = change.apply(&settings)?;
        }
        if let (Some(_), Some(change)) = (source, overrides.last()) {
            place = format!("{place} with {}", change.flag);
        }
        settings
            .check()
            .map_err(|(what, hint)| SettingsError::new(place, what, hint))?;
        Ok(settings)
    }

    /// As a file would say it, with all defaults.
    fn to_toml(&self) -> String {
        toml::to_string(self).expect("all that was read can be written")
    }
}

impl Override {
    fn apply<S: SettingsFile>(&self, settings: &S) -> Result<S, SettingsError> {
        let mut all = Table::try_from(settings).expect("all that was read can be written");
        merge(&mut all, &self.keys);
        all.try_into().map_err(|error: toml::de::Error| {
            let what = error.to_string().trim().replace('\n', " ");
            SettingsError::new(self.flag.clone(), what, hint::<S>(error.message()))
        })
    }
}

/// Reads the text; its paths are relative to where the file is.
fn read<S: SettingsFile>(source: Source<'_>) -> Result<S, SettingsError> {
    let mut settings: S =
        toml::from_str(source.text).map_err(|error| blame::<S>(source, &error))?;
    let folder = source.file.parent().unwrap_or(Path::new(""));
    for path in settings.paths() {
        if !path.as_os_str().is_empty() {
            *path = folder.join(&path);
        }
    }
    Ok(settings)
}

/// Names the line, with the key and the value that are on it.
fn blame<S: SettingsFile>(source: Source<'_>, error: &toml::de::Error) -> SettingsError {
    let before = |at: usize| source.text.get(..at).unwrap_or(source.text);
    let at = error.span().map(|span| before(span.start));
    let number = at.map(|before| before.matches('\n').count());
    let line = number.and_then(|number| source.text.lines().nth(number));
    let (mut place, mut what) = (source.file.display().to_string(), String::new());
    if let (Some(number), Some(line)) = (number, line.map(str::trim)) {
        place = format!("{place}, line {}", number + 1);
        if !line.is_empty() {
            what = format!("{line}: ");
        }
    }
    what += error.message();
    SettingsError::new(place, what, hint::<S>(error.message()))
}

/// The hint for an error: where it names an unknown word and the known ones, the most similar of
/// these.
fn hint<S: SettingsFile>(message: &str) -> String {
    let (example, check) = (S::EXAMPLE, S::CHECK);
    let all = format!("{example} shows all keys; {check} tells what is understood");
    let mut named = message.split('`').skip(1).step_by(2);
    let unknown = named.next().filter(|_| message.starts_with("unknown "));
    let alike = unknown.and_then(|unknown| {
        let likeness = |known: &str| (strsim::jaro_winkler(unknown, known), known.to_owned());
        named
            .map(likeness)
            .filter(|(likeness, _)| *likeness > ALIKE)
            .max_by(|one, other| one.0.total_cmp(&other.0))
    });
    alike.map_or_else(
        || all.clone(),
        |(_, known)| format!("did you mean {known}? {all}"),
    )
}

/// Tables are merged; everything else is replaced.
fn merge(into: &mut Table, from: &Table) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Table(into)), Value::Table(from)) => merge(into, from),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}
