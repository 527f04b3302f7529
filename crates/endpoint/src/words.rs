//! Words and numbers that every application says.

use std::time::Duration;

use crate::error::EndpointError;
use crate::stack::Closing;

/// The error of a field that a side cannot do without.
pub(crate) fn missing(field: &'static str) -> EndpointError {
    EndpointError::Field {
        field,
        value: String::new(),
        problem: "this side needs it (endpoints/CONTRACT.md)".into(),
    }
}

/// The words of `Bye::error`.
pub(crate) fn describe(closing: &Closing) -> String {
    match closing {
        Closing::Application { code, reason } if reason.is_empty() => {
            format!("closed by peer: application error {code}")
        }
        Closing::Application { code, reason } => {
            format!("closed by peer: application error {code}, {reason}")
        }
        Closing::IdleTimeout => "idle timeout".into(),
        Closing::Error(words) => words.clone(),
    }
}

/// Whole nanoseconds.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("a trial ends within 584 years")
}

/// The path of a URL, with its leading slash.
pub(crate) fn path_of(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://")?;
    rest.find('/').map(|start| &rest[start..])
}

/// The error of a request that cannot be sent.
pub(crate) fn wrong_request(url: &str, problem: &str) -> EndpointError {
    EndpointError::Field {
        field: "requests",
        value: url.to_owned(),
        problem: format!("write a URL such as https://server:443/1024; {problem}"),
    }
}
