//! quinn against itself, by the contract.

use bentpipe_endpoint_tests::{Subject, contract_tests};

const QUINN: Subject = Subject {
    program: env!("CARGO_BIN_EXE_bentpipe-endpoint-quinn"),
    controls: &["newreno", "cubic", "bbr"],
};

contract_tests!(QUINN);
