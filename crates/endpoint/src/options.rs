//! The options of a variant, such as `cc=cubic iw=100`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::error::EndpointError;

/// Flow control windows in bytes: QUIC variable-length integers (RFC 9000, section 16).
pub const FLOW_CONTROL_WINDOWS: RangeInclusive<u64> = 1..=(1 << 62) - 1;

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
    pub fn take_number<T: FromStr + PartialOrd + Display>(
        &mut self,
        name: &str,
        range: RangeInclusive<T>,
    ) -> Result<Option<T>, EndpointError> {
        let Some(text) = self.take(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => {
                let (first, last) = range.into_inner();
                let problem = format!("write a whole number from {first} to {last}");
                Err(EndpointError::option(name, &text, &problem))
            }
        }
    }

    /// Takes the value of `name` as one of `words`, of which there are two or more; returns the
    /// meaning that stands beside it.
    pub fn take_word<T: Copy>(
        &mut self,
        name: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, EndpointError> {
        let Some(text) = self.take(name) else {
            return Ok(None);
        };
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(Some(*meaning));
        }
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let (last, others) = known.split_last().expect("there are words to choose from");
        let problem = format!("write {} or {last}", others.join(", "));
        Err(EndpointError::option(name, &text, &problem))
    }

    /// Takes the value of `name` as `on` or `off`.
    pub fn take_switch(&mut self, name: &str) -> Result<Option<bool>, EndpointError> {
        self.take_word(name, &[("on", true), ("off", false)])
    }

    /// Refuses what is left.
    pub fn finish(self) -> Result<(), EndpointError> {
        match self.left.first_key_value() {
            None => Ok(()),
            Some((name, value)) => Err(EndpointError::option(name, value, "unknown")),
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
    fn words_mean_what_stands_beside_them_and_others_are_unsupported() {
        let words = [("cubic", 1), ("bbr", 2), ("copa", 3)];
        let mut options = Options::parse("cc=bbr ss=off pacing=yes reno=1").unwrap();
        assert_eq!(options.take_word("cc", &words).unwrap(), Some(2));
        assert_eq!(options.take_word("cc", &words).unwrap(), None);
        assert_eq!(options.take_switch("ss").unwrap(), Some(false));
        let error = options.take_switch("pacing").unwrap_err();
        let words_of_it = "not supported: option pacing = \"yes\": write on or off";
        assert_eq!(
            (error.to_string(), error.exit_code()),
            (words_of_it.into(), 127)
        );
        let error = options.take_word("reno", &words).unwrap_err().to_string();
        assert!(error.ends_with("write cubic, bbr or copa"), "{error}");
    }

    #[test]
    fn a_word_without_value_is_an_error() {
        assert_eq!(Options::parse("cc").unwrap_err().exit_code(), 1);
    }
}
