//! The commands beside `trial`.

mod link_meters;
pub mod probe;
pub mod shell;
