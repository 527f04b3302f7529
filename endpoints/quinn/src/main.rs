//! quinn as an endpoint program.
fn main() {}
