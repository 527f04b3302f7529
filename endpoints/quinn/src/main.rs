//! quinn as an endpoint program (`endpoints/CONTRACT.md`).

mod library;

use std::process::ExitCode;

use bentpipe_quinn_adapter::Adapter;

use crate::library::Quinn;

fn main() -> ExitCode {
    bentpipe_endpoint::run::<Adapter<Quinn>>()
}

#[cfg(test)]
mod tests {
    use bentpipe_endpoint_tests::reading;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        reading::what_is_written_is_read::<Adapter<Quinn>>();
    }

    #[test]
    fn small_pieces_that_are_sent_again_together_arrive() {
        reading::small_pieces_that_are_sent_again_together_arrive::<Adapter<Quinn>>();
    }
}
