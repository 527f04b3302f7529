//! Times as qlog writes them: decimal numbers of milliseconds, and dates (RFC 3339).
//!
//! Decimal digits become nanoseconds without a detour over floating point, which cannot hold
//! milliseconds since 1970 to the nanosecond. What is below a nanosecond is cut off.

/// Nanoseconds in a millisecond.
pub const MILLISECOND: i64 = 1_000_000;
/// Nanoseconds in a microsecond.
pub const MICROSECOND: i64 = 1_000;
/// Nanoseconds in a second.
pub const SECOND: i64 = 1_000_000_000;

/// A JSON number, or a number in quotes as draft-01 allowed, times `unit` nanoseconds; none if it
/// is no number or beyond 292 years.
pub fn nanoseconds(number: &str, unit: i64) -> Option<i64> {
    let text = number.trim_matches('"');
    if text.contains(['e', 'E']) {
        return from_float(text, unit);
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let mut value = whole.parse::<i64>().ok()?.checked_mul(unit)?;
    let mut weight = unit;
    for digit in fraction.bytes() {
        weight /= 10;
        value = value.checked_add(i64::from(digit - b'0') * weight)?;
    }
    Some(if negative { -value } else { value })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the range is checked; a number with an exponent is no exact one"
)]
fn from_float(text: &str, unit: i64) -> Option<i64> {
    let value = text.parse::<f64>().ok()? * unit as f64;
    (value.abs() < i64::MAX as f64).then_some(value as i64)
}

/// Nanoseconds as a decimal number of milliseconds, with as many digits as it needs.
#[must_use]
pub fn milliseconds(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let (whole, rest) = (
        nanoseconds.unsigned_abs() / MILLISECOND.unsigned_abs(),
        nanoseconds.unsigned_abs() % MILLISECOND.unsigned_abs(),
    );
    if rest == 0 {
        return format!("{sign}{whole}");
    }
    let fraction = format!("{rest:06}");
    format!("{sign}{whole}.{}", fraction.trim_end_matches('0'))
}

/// Nanoseconds from the Unix epoch to a date like `2000-01-01T00:00:00.5Z`; none if it is not in
/// that form.
#[must_use]
pub fn of_date(text: &str) -> Option<i64> {
    let text = text.trim();
    let (date, clock) = text.split_once(['T', 't', ' '])?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if !(0..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let zone_at = clock.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = clock.split_at(zone_at);
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (two_digits(parts.next()?)?, two_digits(parts.next()?)?);
    let second = nanoseconds(parts.next()?, SECOND)?;
    let minutes = days(year, month, day) * 1440 + hour * 60 + minute - offset(zone)?;
    (minutes * 60).checked_mul(SECOND)?.checked_add(second)
}

fn two_digits(text: &str) -> Option<i64> {
    (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

/// Minutes that local time is ahead of UTC, from `Z` or `+01:00`.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let minutes = two_digits(hours)? * 60 + two_digits(minutes)?;
    Some(if zone.starts_with('-') {
        -minutes
    } else {
        minutes
    })
}

/// Days from 1 January 1970 in the Gregorian calendar. The year is taken to begin in March, so that
/// a leap day is its last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    365 * year + leap_days + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_exact() {
        for (text, expected) in [
            ("0", 0),
            ("304.912", 304_912_000),
            ("946684805105.5641", 946_684_805_105_564_100),
            ("12339.8468869", 12_339_846_886),
            ("-1.5", -1_500_000),
            ("\"17.25\"", 17_250_000),
            ("1.5e3", 1_500_000_000),
        ] {
            assert_eq!(nanoseconds(text, MILLISECOND), Some(expected), "{text}");
        }
        assert_eq!(nanoseconds("1500", MICROSECOND), Some(1_500_000));
        for text in [
            "",
            "x",
            "1.2.3",
            "--1",
            "-",
            ".5",
            "null",
            "99999999999999",
            "1e99",
            "1e999",
            "NaN",
        ] {
            assert_eq!(nanoseconds(text, MILLISECOND), None, "{text}");
        }
    }

    #[test]
    fn milliseconds_are_written_as_they_were_read() {
        for text in ["0", "304.912", "946684805105.5641", "-1.5", "0.000001"] {
            let value = nanoseconds(text, MILLISECOND).unwrap();
            assert_eq!(milliseconds(value), text);
        }
    }

    #[test]
    fn dates_are_read() {
        for (text, expected) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2000-01-01T00:00:00.304911999Z", 946_684_800_304_911_999),
            ("2000-03-01T00:00:00Z", 951_868_800 * SECOND),
            ("2024-02-29T12:30:00+01:30", 1_709_204_400 * SECOND),
            ("1969-12-31T23:59:59-00:01", 59 * SECOND),
        ] {
            assert_eq!(of_date(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "unknown",
            "2000-01-01",
            "2000-13-01T00:00:00Z",
            "2000-01-01T00:00:00",
            "2000-01-01T0:00:00Z",
            "2000-01-01T00:00:00+1",
            "a-b-cT00:00:00Z",
            "9999-01-01T00:00:00Z",
        ] {
            assert_eq!(of_date(text), None, "{text}");
        }
    }
}
