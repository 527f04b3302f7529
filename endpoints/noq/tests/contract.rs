//! noq against itself and quinn, by the contract: the same cases as for quinn.

#[path = "../../../crates/endpoint/quinn-family/tests/cases.rs"]
mod cases;
#[path = "../../../crates/endpoint/quinn-family/tests/harness.rs"]
mod harness;
#[path = "../../../crates/endpoint/quinn-family/tests/packets.rs"]
mod packets;
#[path = "../../../crates/endpoint/quinn-family/tests/pairs.rs"]
mod pairs;
#[path = "../../../crates/endpoint/quinn-family/tests/socket_cases.rs"]
mod socket_cases;
#[path = "../../../crates/endpoint/quinn-family/tests/test_cases.rs"]
mod test_cases;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bentpipe-endpoint-noq");
/// Every congestion control, since each may draw randomness of its own.
const CONTROLS: [&str; 3] = ["newreno", "cubic", "bbr3"];
