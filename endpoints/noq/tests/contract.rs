//! noq against itself and quinn, by the contract.

use bentpipe_endpoint_tests::{Subject, contract_tests, tests};

const NOQ: Subject = Subject {
    program: env!("CARGO_BIN_EXE_bentpipe-endpoint-noq"),
    controls: &["newreno", "cubic", "bbr3"],
};

contract_tests!(NOQ);
tests! {
    NOQ;
    pairs: every_test_case_works_between_the_two,
        every_test_case_crosses_real_sockets_between_the_two;
}
