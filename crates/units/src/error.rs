//! The errors of parsing a quantity.

/// The reason for which a text is not a quantity. The message begins with the text itself and ends
/// with what to write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// A number without a unit.
    #[error("{text}: {what} needs a unit; write {}", either(text, units))]
    MissingUnit {
        /// The text that was read.
        text: String,
        /// The quantity, with its article.
        what: &'static str,
        /// The units to propose.
        units: &'static [&'static str],
    },
    /// A unit that the quantity does not have.
    #[error("{text}: \"{unit}\" is not a unit of {what}; write one of {known}")]
    UnknownUnit {
        /// The text that was read.
        text: String,
        /// The quantity, with its article.
        what: &'static str,
        /// The unit read.
        unit: String,
        /// The units there are, separated by commas.
        known: String,
    },
    /// No number where one is needed.
    #[error("{text}: {what} is a number with a unit; write it like \"{example}\"")]
    NotANumber {
        /// The text that was read.
        text: String,
        /// The quantity, with its article.
        what: &'static str,
        /// A good value.
        example: &'static str,
    },
    /// A number below zero.
    #[error("{text}: {what} cannot be negative; write it like \"{example}\"")]
    Negative {
        /// The text that was read.
        text: String,
        /// The quantity, with its article.
        what: &'static str,
        /// A good value.
        example: &'static str,
    },
    /// A value that is no whole number of the smallest unit.
    #[error("{text}: finer than {finest}, the finest step of {what}; write fewer decimals")]
    TooFine {
        /// The text that was read.
        text: String,
        /// The quantity, with its article.
        what: &'static str,
        /// The smallest value that can be told apart.
        finest: &'static str,
    },
    /// A value above the largest that can be held.
    #[error("{text}: more than {largest}, the most that {what} can be; write a smaller number")]
    TooLarge {
        /// The text that was read.
        text: String,
        /// The quantity, with its article.
        what: &'static str,
        /// The largest value.
        largest: String,
    },
}

/// The number with each of the units.
fn either(number: &str, units: &[&str]) -> String {
    let with_units: Vec<String> = units
        .iter()
        .map(|unit| format!("\"{number} {unit}\""))
        .collect();
    with_units.join(" or ")
}
