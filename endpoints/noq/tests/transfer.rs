//! noq against itself, by the contract: the same cases as for quinn.

#[path = "../../quinn/tests/cases/mod.rs"]
mod cases;
#[path = "../../quinn/tests/harness/mod.rs"]
mod harness;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bentpipe-endpoint-noq");
/// Every congestion control, since each may draw randomness of its own.
const CONTROLS: [&str; 3] = ["newreno", "cubic", "bbr3"];
