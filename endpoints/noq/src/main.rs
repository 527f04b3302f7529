//! noq as an endpoint program (`endpoints/CONTRACT.md`).

use std::process::ExitCode;

use bentpipe_noq_adapter::Adapter;
use bentpipe_noq_options::Noq;

fn main() -> ExitCode {
    bentpipe_endpoint::run::<Adapter<Noq>>()
}

#[cfg(test)]
mod tests {
    use bentpipe_endpoint_tests::reading;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        reading::what_is_written_is_read::<Adapter<Noq>>();
    }

    #[test]
    fn small_pieces_that_are_sent_again_together_arrive() {
        reading::small_pieces_that_are_sent_again_together_arrive::<Adapter<Noq>>();
    }
}
