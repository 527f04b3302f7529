//! Rates, times, sizes and ratios with their units.
//!
//! Each type is one unsigned integer in its smallest unit: bits per second, nanoseconds, bytes,
//! parts per billion. Its text form is a decimal number and a unit (`"20 Mbit/s"`, `"600 ms"`, `"36
//! MB"`, `"1 %"`; the space may be left out). Text is parsed exactly, without floats: a value finer
//! than the smallest unit is an error and not rounded. [`Display`](std::fmt::Display) prints a form
//! that parses back to the same value, and serde uses that form. A bare number is an error that
//! says what to write.

mod error;
mod rate;
mod ratio;
mod size;
mod text;
mod time;

pub use error::UnitError;
pub use rate::Rate;
pub use ratio::Ratio;
pub use size::Size;

pub use time::{Span, Time};
