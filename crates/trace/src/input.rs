//! The files that commands read.

use std::path::Path;

use bentpipe_unpack::{self as unpack, Unpacking};
use bentpipe_wire::KeyLog;

/// The most bytes that a packed log may hold.
const MOST: u64 = 1 << 30;

/// The content of a file, unpacked.
pub fn read(file: &Path) -> Result<Vec<u8>, String> {
    unpack::read(file, MOST).map_err(|error| format!("{}: {error}", file.display()))
}

/// The content of a file, as far as it can be unpacked.
pub fn read_part(file: &Path) -> Result<Unpacking, String> {
    unpack::read_part(file, MOST).map_err(|error| format!("{}: {error}", file.display()))
}

/// Its name without folders, for results that may be moved.
pub fn name(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The TLS secrets of a file in NSS format; none without a file.
pub fn key_log(file: Option<&Path>) -> Result<KeyLog, String> {
    let mut secrets = KeyLog::default();
    if let Some(file) = file {
        secrets.add(&read(file)?);
        if secrets.connections() == 0 {
            let hint = "hint: run an endpoint with SSLKEYLOGFILE=KEYS";
            return Err(format!(
                "{}: no TLS 1.3 secrets in it ({hint})",
                file.display()
            ));
        }
    }
    Ok(secrets)
}
