//! What is left of an endpoint program.

use std::time::Duration;

/// What a program used and said, known when it is gone.
#[derive(Debug, Default)]
pub struct Remains {
    /// User and system CPU time.
    pub cpu: Duration,
    /// Standard output and standard error.
    pub log: Vec<u8>,
    /// Every frame that it was sent, so that it can be replayed alone; none outside of virtual time.
    pub frames: Vec<Vec<u8>>,
}

impl Remains {
    /// The last line that it printed, if it printed any: where programs say why they fail.
    #[must_use]
    pub fn last_line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.log);
        text.lines()
            .rev()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .map(str::to_owned)
    }
}
