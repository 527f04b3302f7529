//! The text of scenario and trace files, which may be packed.

use std::io;
use std::path::Path;

/// The most bytes that a packed scenario or trace may hold. A day of a trace's milliseconds is a
/// third of it.
const MOST: u64 = 1 << 30;

/// The text of a scenario or trace, unpacked.
pub(crate) fn file_text(path: &Path) -> io::Result<String> {
    bentpipe_unpack::read_to_string(path, MOST)
}
