//! Rates, times, sizes and ratios with their units.
//!
//! Each type is one integer in its smallest unit: bits per second, nanoseconds, bytes, parts per
//! billion, symbols per second, thousandths of a decibel, which alone may be negative. Its text
//! form is a decimal number and a unit (`"20 Mbit/s"`, `"600 ms"`, `"36 MB"`, `"1 %"`; the space
//! may be left out). Text is parsed exactly, without floats: a value finer than the smallest unit
//! is an error and not rounded. [`Display`](std::fmt::Display) prints a form that parses back to
//! the same value, and serde uses that form. A bare number is an error that
//! says what to write.

mod decibel;
mod error;
mod rate;
mod ratio;
mod size;
mod symbol_rate;
mod text;
mod time;

pub use decibel::Decibel;
pub use error::UnitError;
pub use rate::Rate;
pub use ratio::Ratio;
pub use size::Size;
pub use symbol_rate::{Bandwidth, SymbolRate};

pub use time::{Span, Time};
