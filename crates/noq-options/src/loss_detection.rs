//! The options of loss detection: how much reordering a sender allows before it takes a packet for
//! lost (RFC 9002, section 6.1).

use std::ops::RangeInclusive;

use bentpipe_endpoint::{EndpointError, Options};
use noq_proto::TransportConfig;

/// The packets that a later one may be ahead of one that is not acknowledged. RFC 9002, section
/// 6.1.1, has no less than 3; noq begins with that.
const PACKETS: RangeInclusive<u32> = 3..=1_000_000;
/// The round-trip times after which a packet is lost in any case. RFC 9002, section 6.1.2, has 9/8;
/// less than 1 would come before the ACK.
const ROUND_TRIPS: RangeInclusive<f32> = 1.0..=10.0;

/// Takes the options `packet-threshold` and `time-threshold`.
pub fn take(transport: &mut TransportConfig, options: &mut Options) -> Result<(), EndpointError> {
    match options.take("packet-threshold").as_deref() {
        None => {}
        Some("off") => {
            transport.packet_threshold(u32::MAX);
        }
        Some(text) => {
            transport.packet_threshold(packets(text)?);
        }
    }
    if let Some(text) = options.take("time-threshold") {
        transport.time_threshold(round_trips(&text)?);
    }
    Ok(())
}

fn packets(text: &str) -> Result<u32, EndpointError> {
    let number = text.parse().ok().filter(|it| PACKETS.contains(it));
    number.ok_or_else(|| {
        let (least, most) = PACKETS.into_inner();
        let problem = format!("write a whole number of packets from {least} to {most}, or off");
        EndpointError::option("packet-threshold", text, &problem)
    })
}

fn round_trips(text: &str) -> Result<f32, EndpointError> {
    let number = text.parse().ok().filter(|it| ROUND_TRIPS.contains(it));
    number.ok_or_else(|| {
        let (least, most) = ROUND_TRIPS.into_inner();
        let problem =
            format!("write a number of round-trip times from {least} to {most}, such as 1.125");
        EndpointError::option("time-threshold", text, &problem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thresholds that options lead to, as noq shows its settings.
    fn read(text: &str) -> Result<String, String> {
        let mut transport = TransportConfig::default();
        let mut options = Options::parse(text).expect("pairs");
        take(&mut transport, &mut options).map_err(|error| error.to_string())?;
        options.finish().expect("both are taken");
        let shown = format!("{transport:?}");
        let (_, rest) = shown.split_once("packet_threshold: ").expect("it is shown");
        let (thresholds, _) = rest.split_once(", initial_rtt").expect("what follows");
        Ok(thresholds.to_owned())
    }

    #[test]
    fn each_threshold_is_what_is_asked_for_or_that_of_rfc_9002() {
        for (text, is) in [
            ("", "3, time_threshold: 1.125"),
            ("packet-threshold=100", "100, time_threshold: 1.125"),
            ("time-threshold=2.25", "3, time_threshold: 2.25"),
            (
                "packet-threshold=off time-threshold=2.5",
                "4294967295, time_threshold: 2.5",
            ),
        ] {
            assert_eq!(read(text).as_deref(), Ok(is), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, says) in [
            ("packet-threshold=2", "from 3 to 1000000, or off"),
            ("packet-threshold=never", "option packet-threshold"),
            ("time-threshold=0.9", "from 1 to 10"),
            ("time-threshold=11", "from 1 to 10"),
            ("time-threshold=nan", "option time-threshold"),
            ("time-threshold=2s", "such as 1.125"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(says), "{error}");
        }
    }
}
