//! The text form: what is read, what is printed, what is refused and how.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use bentpipe_units::{Rate, Ratio, Size, Span, Time, UnitError};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

fn comes_back<T>(value: &T) -> Result<(), TestCaseError>
where
    T: Display + Debug + PartialEq + FromStr<Err = UnitError> + Serialize + DeserializeOwned,
{
    let text = value.to_string();
    prop_assert_eq!(&text.parse::<T>().unwrap(), value, "through {}", text);
    let compact = text.replace(' ', "");
    prop_assert_eq!(&compact.parse::<T>().unwrap(), value, "through {}", compact);
    let json = serde_json::to_string(value).unwrap();
    prop_assert_eq!(&json, &format!("\"{text}\""));
    prop_assert_eq!(
        &serde_json::from_str::<T>(&json).unwrap(),
        value,
        "through {}",
        json
    );
    Ok(())
}

/// All magnitudes alike, and multiples of powers of two and ten as often as others.
fn value() -> impl Strategy<Value = u64> {
    let shifted = (any::<u64>(), 0_u32..64).prop_map(|(value, bits)| value >> bits);
    let decimal = (0_u64..10_000, 0_u32..16).prop_map(|(value, digits)| value * 10_u64.pow(digits));
    let binary = (0_u64..10_000, 0_u32..50).prop_map(|(value, bits)| value << bits);
    prop_oneof![shifted, decimal, binary, Just(0), Just(u64::MAX)]
}

proptest! {
    #[test]
    fn every_value_comes_back(value in value()) {
        comes_back(&Rate::from_bps(value))?;
        comes_back(&Span::from_nanos(value))?;
        comes_back(&Time::from_nanos(value))?;
        comes_back(&Size::from_bytes(value))?;
        comes_back(&Ratio::from_ppb(value % 1_000_000_001))?;
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,24}", number in "-?[0-9.]{0,40} ?[a-zA-Z%/]{0,6}") {
        for text in [text, number] {
            let _ = text.parse::<Rate>();
            let _ = text.parse::<Ratio>();
            let _ = text.parse::<Size>();
            let _ = text.parse::<Span>();
        }
    }
}

#[test]
fn units_are_exact() {
    let rate = |text: &str| text.parse::<Rate>().unwrap().bps();
    assert_eq!(rate("20 Mbit/s"), 20_000_000);
    assert_eq!(rate("20Mbit/s"), 20_000_000);
    assert_eq!(rate("1.89 Mbit/s"), 1_890_000);
    assert_eq!(rate("0.5 kbit/s"), 500);
    assert_eq!(rate("1.000000001 Gbit/s"), 1_000_000_001);
    assert_eq!(rate("7 bit/s"), 7);
    assert_eq!(rate("18446744073709551615 bit/s"), u64::MAX);

    let span = |text: &str| text.parse::<Span>().unwrap().as_nanos();
    assert_eq!(span("600 ms"), 600_000_000);
    assert_eq!(span("1us"), 1_000);
    assert_eq!(span("1\u{b5}s"), 1_000);
    assert_eq!(span("1 \u{3bc}s"), 1_000);
    assert_eq!(span("0.000000001 s"), 1);
    assert_eq!(span("1.5000000000000000000000 s"), 1_500_000_000);
    assert_eq!(span("1.5 min"), 90_000_000_000);

    let size = |text: &str| text.parse::<Size>().unwrap().bytes();
    assert_eq!(size("36 MB"), 36_000_000);
    assert_eq!(size("10 MiB"), 10_485_760);
    assert_eq!(size("0.5 KiB"), 512);

    let ratio = |text: &str| text.parse::<Ratio>().unwrap().ppb();
    assert_eq!(ratio("1 %"), 10_000_000);
    assert_eq!(ratio("0.01 %"), 100_000);
    assert_eq!(ratio("0.0000001%"), 1);
    assert_eq!(ratio("100 %"), 1_000_000_000);
}

#[test]
fn the_largest_fitting_unit_is_printed() {
    assert_eq!(Rate::from_bps(20_000_000).to_string(), "20 Mbit/s");
    assert_eq!(Rate::from_bps(999).to_string(), "999 bit/s");
    assert_eq!(
        Rate::from_bps(1_500_000_001).to_string(),
        "1.500000001 Gbit/s"
    );
    assert_eq!(Rate::from_bps(0).to_string(), "0 Mbit/s");
    assert_eq!(Span::from_millis(600).to_string(), "600 ms");
    assert_eq!(Span::from_secs(120).to_string(), "120 s");
    assert_eq!(Span::ZERO.to_string(), "0 ms");
    assert_eq!(Time::from_nanos(1_001).to_string(), "1.001 us");
    assert_eq!(Size::from_bytes(36_000_000).to_string(), "36 MB");
    assert_eq!(Size::from_bytes(10_485_760).to_string(), "10 MiB");
    assert_eq!(Size::from_bytes(512).to_string(), "512 B");
    assert_eq!(Ratio::from_ppb(100_000).to_string(), "0.01 %");
    assert_eq!(Ratio::ZERO.to_string(), "0 %");
    assert_eq!(format!("{:>8}|", Span::from_millis(6)), "    6 ms|");
}

#[track_caller]
fn refused<T: FromStr<Err = UnitError> + Debug>(text: &str, message: &str) {
    assert_eq!(text.parse::<T>().unwrap_err().to_string(), message);
}

#[test]
fn errors_say_what_to_write() {
    refused::<Rate>("20", "20: a rate needs a unit; write \"20 Mbit/s\"");
    refused::<Span>(
        "0.3",
        "0.3: a time needs a unit; write \"0.3 ms\" or \"0.3 s\"",
    );
    refused::<Size>("36", "36: a size needs a unit; write \"36 MB\"");
    refused::<Ratio>("0.01", "0.01: a ratio needs a unit; write \"0.01 %\"");
    refused::<Rate>(
        "-20 Mbit/s",
        "-20 Mbit/s: a rate cannot be negative; write it like \"20 Mbit/s\"",
    );
    refused::<Rate>(
        "-20",
        "-20: a rate cannot be negative; write it like \"20 Mbit/s\"",
    );
    refused::<Rate>(
        "20 mbps",
        "20 mbps: \"mbps\" is not a unit of a rate; write one of bit/s, kbit/s, Mbit/s, Gbit/s",
    );
    let needs_number = ": a time is a number with a unit; write it like \"300 ms\"";
    for text in ["", "fast", "ms", ".5 s", "5. s", "1.2.3 s", "+1 s", "- 1 s"] {
        refused::<Span>(text, &format!("{text}{needs_number}"));
    }
    refused::<Span>(
        "0.5 ns",
        "0.5 ns: finer than 1 ns, the finest step of a time; write fewer decimals",
    );
    refused::<Ratio>(
        "0.00000001 %",
        "0.00000001 %: finer than 0.0000001 %, the finest step of a ratio; write fewer decimals",
    );
    refused::<Ratio>(
        "100.0000001 %",
        "100.0000001 %: more than 100 %, the most that a ratio can be; write a smaller number",
    );
    refused::<Rate>(
        "18446744073709551616 bit/s",
        "18446744073709551616 bit/s: more than 18446744073.709551615 Gbit/s, \
         the most that a rate can be; write a smaller number",
    );
}

#[test]
fn a_bare_number_in_a_file_is_told_its_unit() {
    let message = |json: &str| serde_json::from_str::<Rate>(json).unwrap_err().to_string();
    assert!(message("20").starts_with("20: a rate needs a unit; write \"20 Mbit/s\""));
    assert!(message("20.5").starts_with("20.5: a rate needs a unit; write \"20.5 Mbit/s\""));
    assert!(message("-3").starts_with("-3: a rate cannot be negative"));
    assert!(message("true").contains("expected a rate like \"20 Mbit/s\""));
}
