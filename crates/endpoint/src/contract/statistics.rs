//! Statistics in BYE that only the endpoint knows: names, each with a number, a text or null
//! (`endpoints/CONTRACT.md`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most entries that a program may report.
pub const STATISTICS_LIMIT: usize = 64;

/// Statistics of a program: names and values, in the order of the names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, Value>")]
pub struct Statistics(BTreeMap<String, Value>);

impl Statistics {
    /// Says that `name`, which ends with its unit, is `value`: a number, a text, or an `Option` of
    /// one. A number that is not finite is said as null, not known.
    ///
    /// # Panics
    /// If the contract does not allow it.
    pub fn say(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
        if let Err(problem) = check(&self.0) {
            panic!("{problem}");
        }
    }

    /// The entries, in the order of the names.
    pub fn into_entries(self) -> impl Iterator<Item = (String, Value)> {
        self.0.into_iter()
    }

    /// Whether nothing was said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TryFrom<BTreeMap<String, Value>> for Statistics {
    type Error = String;

    fn try_from(said: BTreeMap<String, Value>) -> Result<Self, String> {
        check(&said).map(|()| Self(said))
    }
}

fn check(said: &BTreeMap<String, Value>) -> Result<(), String> {
    if said.len() > STATISTICS_LIMIT {
        let count = said.len();
        return Err(format!(
            "statistics has {count} entries, where {STATISTICS_LIMIT} may be"
        ));
    }
    let plain = |value: &Value| matches!(value, Value::Number(_) | Value::String(_) | Value::Null);
    match said.iter().find(|(_, value)| !plain(value)) {
        Some((name, value)) => Err(format!(
            "statistics: {name:?} is {value}, where a number, a text or null is due"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Statistics, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_said_comes_through() {
        let mut said = Statistics::default();
        said.say("slow_start_left_s", 1.25);
        said.say("slow_start_left_by", "loss");
        said.say("cwnd_before_bytes", Some(123_456_u64));
        said.say("ssthresh_bytes", None::<u64>);
        said.say("rate_bps", f64::NAN);
        let text = serde_json::to_string(&said).unwrap();
        assert_eq!(
            text,
            r#"{"cwnd_before_bytes":123456,"rate_bps":null,"slow_start_left_by":"loss","slow_start_left_s":1.25,"ssthresh_bytes":null}"#
        );
        assert_eq!(parse(&text), Ok(said));
    }

    #[test]
    fn what_a_record_has_no_place_for_is_refused() {
        for wrong in [r#"{"a":{}}"#, r#"{"a":[1]}"#, r#"{"a":true}"#] {
            let problem = parse(wrong).unwrap_err();
            assert!(problem.starts_with("statistics: \"a\" is "), "{problem}");
        }
        for wrong in [r#"{"a":NaN}"#, r#"{"a":1e400}"#, "[]", "null"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let of = |count: usize| {
            let entries: Vec<String> = (0..count).map(|i| format!("\"s{i}\":{i}")).collect();
            parse(&format!("{{{}}}", entries.join(",")))
        };
        assert!(of(64).is_ok());
        let problem = of(65).unwrap_err();
        assert!(
            problem.starts_with("statistics has 65 entries, where 64 may be"),
            "{problem}"
        );
    }
}
