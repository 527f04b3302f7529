//! The coordinator of virtual time.
fn main() {}
