//! noq as an endpoint program.
fn main() {}
