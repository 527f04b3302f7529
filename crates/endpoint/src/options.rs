//! The options of a variant, such as `cc=cubic iw=100`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::error::EndpointError;

/// Options that have not been taken yet. What nobody takes is unsupported.
#[derive(Debug, Clone)]
pub struct Options {
    left: BTreeMap<String, String>,
}

impl Options {
    /// All of `options`.
    #[must_use]
    pub fn new(options: BTreeMap<String, String>) -> Self {
        Self { left: options }
    }

    /// Reads `name=value` pairs separated by spaces.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let pair = |word: &str| match word.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(EndpointError::Field {
                field: "BENTPIPE_OPTIONS",
                value: text.to_owned(),
                problem: format!("{word:?} has no `=`; write name=value"),
            }),
        };
        Ok(Self {
            left: text
                .split_whitespace()
                .map(pair)
                .collect::<Result<_, _>>()?,
        })
    }

    /// The options that are left, by name.
    #[must_use]
    pub fn into_map(self) -> BTreeMap<String, String> {
        self.left
    }

    /// Takes the value of `name`, if there is one.
    pub fn take(&mut self, name: &str) -> Option<String> {
        self.left.remove(name)
    }

    /// Takes the value of `name` as a whole number within `range`.
    pub fn take_number(
        &mut self,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, EndpointError> {
        let Some(text) = self.take(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(EndpointError::Unsupported(format!(
                "option {name} = {text:?}: write a whole number from {} to {}",
                range.start(),
                range.end()
            ))),
        }
    }

    /// Refuses what is left.
    pub fn finish(self) -> Result<(), EndpointError> {
        match self.left.first_key_value() {
            None => Ok(()),
            Some((name, value)) => Err(EndpointError::Unsupported(format!(
                "option {name} = {value:?}: unknown"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_taken_or_refused() {
        let mut options = Options::parse(" cc=cubic  iw=100 ").unwrap();
        assert_eq!(options.take_number("iw", 1..=1000).unwrap(), Some(100));
        assert_eq!(options.take_number("window", 1..=1000).unwrap(), None);
        assert_eq!(options.clone().finish().unwrap_err().exit_code(), 127);
        assert_eq!(options.take("cc").as_deref(), Some("cubic"));
        options.finish().unwrap();
    }

    #[test]
    fn numbers_out_of_range_are_unsupported() {
        for text in ["iw=0", "iw=1001", "iw=-1", "iw=ten", "iw="] {
            let error = Options::parse(text)
                .unwrap()
                .take_number("iw", 1..=1000)
                .unwrap_err();
            assert_eq!(error.exit_code(), 127, "{text}");
        }
    }

    #[test]
    fn a_word_without_value_is_an_error() {
        assert_eq!(Options::parse("cc").unwrap_err().exit_code(), 1);
    }
}
