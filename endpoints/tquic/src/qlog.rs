//! tquic's qlog, with the time at which its own starts.

use std::io::{self, Write};
use std::time::Duration;

use bentpipe_endpoint::LogFile;

/// Adds to the first record what tquic leaves out: that times are relative, and to which.
pub struct QlogFile {
    file: LogFile,
    reference: Duration,
    /// The first record, until it is complete.
    head: Option<Vec<u8>>,
}

impl QlogFile {
    /// A file whose times count from `reference`, which is a wall-clock time.
    pub fn new(file: LogFile, reference: Duration) -> Self {
        Self {
            file,
            reference,
            head: Some(Vec::new()),
        }
    }

    fn complete(&self, head: &str) -> String {
        let nanos = self.reference.as_nanos();
        let (whole, fraction) = (nanos / 1_000_000, nanos % 1_000_000);
        let fields = format!(
            r#""common_fields":{{"time_format":"relative","reference_time":{whole}.{fraction:06}}},"#
        );
        head.replacen("\"vantage_point\"", &(fields + "\"vantage_point\""), 1)
    }
}

impl Write for QlogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(head) = &mut self.head else {
            return self.file.write(bytes);
        };
        head.extend_from_slice(bytes);
        if head.ends_with(b"\n") {
            let head = String::from_utf8_lossy(head).into_owned();
            self.head = None;
            self.file.write_all(self.complete(&head).as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
