//! Who may come, and how much of anything there may be.

mod admission;
pub mod quota;
