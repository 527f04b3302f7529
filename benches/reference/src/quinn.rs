//! A transfer between two quinns in one process.

#[path = "both.rs"]
mod both;
#[path = "../../../endpoints/quinn/src/library.rs"]
mod library;

use bentpipe_quinn_adapter as adapter;
use bentpipe_reference::Failure;

use self::library::Quinn as Chosen;

fn main() -> Result<(), Failure> {
    both::transfer()
}
