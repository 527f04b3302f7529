//! The captures that commands read, and which of them could not be read to their ends.

use std::error::Error;
use std::path::{Path, PathBuf};

use bentpipe_analysis::{CaptureFile, Captured};
use bentpipe_unpack::UnpackError;
use bentpipe_wire::capture::{CaptureError, Input, ReadError};

use crate::input;

/// Reads captures, and says which could not be read to their ends. One that is none ends it all.
/// `progress` is told of bytes as they are read.
pub fn read(
    paths: &[PathBuf],
    key_log: Option<&Path>,
    names: &[String],
    progress: &(impl Fn(u64) + Sync),
) -> Result<(Captured, Vec<String>), Box<dyn Error>> {
    let secrets = input::key_log(key_log)?;
    let mut files = Vec::new();
    for (path, name) in paths.iter().zip(names) {
        let input = Input::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        files.push(CaptureFile { name, input });
    }
    let captured = Captured::read(&files, secrets, progress);
    for (path, error) in paths.iter().zip(&captured.errors) {
        if let Some(
            error @ (ReadError::Capture(CaptureError::NotACapture)
            | ReadError::Packed(UnpackError::Refused(_))
            | ReadError::Io(_)),
        ) = error
        {
            return Err(format!("{}: {error}", path.display()).into());
        }
    }
    let errors = names.iter().zip(&captured.errors);
    let errors = errors.filter_map(|(name, error)| Some(format!("{name}: {}", error.as_ref()?)));
    let errors = errors.collect();
    Ok((captured, errors))
}
