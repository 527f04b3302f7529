//! `bentpipe-trace packets`: a JSON object per packet.

mod decoder;
mod json;
mod printer;

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bentpipe_wire::KeyLog;
use bentpipe_wire::capture::Input;

/// Prints the packets of `files`. Of one that cannot be read to its end, those before that.
pub fn print(files: &[PathBuf], key_log: Option<&Path>) -> Result<(), Box<dyn Error>> {
    let mut inputs = Vec::new();
    for file in files {
        inputs.push(Input::open(file).map_err(|error| named(file, &error))?);
    }
    let mut secrets = crate::input::key_log(key_log)?;
    add_secrets(files, &inputs, &mut secrets)?;
    let mut out = io::stdout().lock();
    let mut failed = Vec::new();
    for (file, input) in files.iter().zip(&inputs) {
        let name = file.display();
        let prefix = if files.len() > 1 {
            format!("{name}:")
        } else {
            String::new()
        };
        let printed = match printer::print(input, &prefix, &secrets, &mut out) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(()); // nobody wants to read on
            }
            printed => printed?,
        };
        printed.summary.print(&name);
        failed.extend(printed.unread.map(|error| named(file, &error)));
    }
    out.flush()?;
    if failed.is_empty() {
        return Ok(());
    }
    Err(failed.join("\nerror: ").into())
}

/// Takes the secrets out of captures first, wherever in them they stand. A single one that begins
/// with secrets is spared that: its own are taken when they are met.
fn add_secrets(
    files: &[PathBuf],
    inputs: &[Input<'_>],
    secrets: &mut KeyLog,
) -> Result<(), String> {
    let named = |(file, error): (&PathBuf, io::Error)| named(file, &error);
    if let ([file], [input]) = (files, inputs)
        && input
            .begins_with_secrets()
            .map_err(|error| named((file, error)))?
    {
        return Ok(());
    }
    for (file, input) in files.iter().zip(inputs) {
        input
            .add_secrets(secrets)
            .map_err(|error| named((file, error)))?;
    }
    Ok(())
}

fn named(file: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", file.display())
}
