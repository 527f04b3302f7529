//! noq against itself, by the contract: the same cases as for quinn.

#[path = "../../../crates/endpoint/quinn-family/cases.rs"]
mod cases;
#[path = "../../../crates/endpoint/quinn-family/harness.rs"]
mod harness;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bentpipe-endpoint-noq");
/// Every congestion control, since each may draw randomness of its own.
const CONTROLS: [&str; 3] = ["newreno", "cubic", "bbr3"];
