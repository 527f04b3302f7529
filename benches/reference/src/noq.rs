//! A transfer between two noqs in one process.

#[path = "both.rs"]
mod both;

use bentpipe_noq_adapter as adapter;
use bentpipe_noq_options::Noq as Chosen;
use bentpipe_reference::Failure;

fn main() -> Result<(), Failure> {
    both::transfer()
}
