//! Whether packets took as long, and were lost as often, as the scenario says: looked at hop by
//! hop, by what passed both ends.
//!
//! The link model decides both, so what is found here is what the model is not the cause of: hosts
//! between segments that drop or hold up packets, and mistakes of the testbed.

use bentpipe_link::{Delay, Direction, DirectionConfig, Fate, Hop, InFlight, LinkRate, Loss};
use bentpipe_trial::Packet;
use bentpipe_units::{Rate, Ratio, Size, Span};

/// The most by which the fastest packet of a direction may exceed the scenario's delay.
const SLACK: Span = Span::from_millis(1);
/// ln 10^6: fewer than two trials in a million are found fault with although their losses are as
/// the scenario says.
const CONFIDENCE: f64 = 13.8;

/// The flaws of the packets of a hop in a direction, each in words.
pub fn flaws(hop: Hop, direction: Direction, packets: &[&Packet]) -> Vec<String> {
    let own = packets.iter().copied();
    let own: Vec<&Packet> = own.filter(|it| it.direction == direction).collect();
    let flaws = [
        delay_flaw(hop, direction, &own),
        loss_flaw(hop, direction, &own),
    ];
    let way = match direction {
        Direction::Forward => "forward",
        Direction::Return => "return",
    };
    let flaws = flaws.into_iter().flatten();
    flaws.map(|what| format!("{way}: {what}")).collect()
}

/// No packet is faster than the smallest delay. One at least is not slower than delay and
/// transmission, where these are the same for all: the first of a direction finds an empty queue.
fn delay_flaw(hop: Hop, direction: Direction, packets: &[&Packet]) -> Option<String> {
    let least = hop.min_one_way(direction);
    let fixed = hop.links(direction).map(|(_, config)| fixed_rate(config));
    let fixed: Option<Vec<_>> = fixed.collect();
    let took = packets.iter().filter_map(|packet| match packet.fate {
        Fate::Delivered { at } => Some((packet, at - packet.sent)),
        _ => None,
    });
    let took: Vec<_> = took.collect();
    let fastest = took.iter().map(|(_, took)| *took).min()?;
    if fastest < least {
        return Some(format!("a packet took {fastest}, less than {least}"));
    }
    let over = |(packet, took): &(&&Packet, Span)| {
        let bytes = Size::from_bytes(u64::from(packet.ip.bytes));
        let rates = fixed.iter().flatten().flatten();
        let transmission: Span = rates.map(|rate| rate.time_for(bytes)).sum();
        let said = least + transmission;
        Span::from_nanos(took.as_nanos().saturating_sub(said.as_nanos()))
    };
    let over = took.iter().map(over).min()?;
    (fixed.is_some() && over > SLACK)
        .then(|| format!("every packet took at least {over} longer than the scenario says"))
}

/// The rate, if there is one, of a link whose delay and rate do not change; None if they do.
fn fixed_rate(config: &DirectionConfig) -> Option<Vec<Rate>> {
    let held = [
        config.frame.is_some(),
        config.shaper.is_some(),
        config.outages.is_some(),
        config.handovers.is_some(),
        config.aggregate.is_some(),
        config.reorder.is_some(),
        // Not even the first packet finds an empty queue.
        !config.sources.is_empty(),
    ];
    let is_held = held.contains(&true);
    let steady = matches!(config.delay, Delay::Fixed(_)) && !is_held;
    match &config.rate {
        None => steady.then(Vec::new),
        Some(LinkRate::Fixed(rate)) => steady.then(|| vec![*rate]),
        Some(_) => None,
    }
}

/// Where links lose packets independently of each other, the losses keep to Bernstein's inequality.
/// Other models, links that lose packets for their size or their protocol, with a frame of their
/// carrier or at handovers, links whose order is not the usual one, and those behind one that
/// duplicates, are not checked.
fn loss_flaw(hop: Hop, direction: Direction, packets: &[&Packet]) -> Option<String> {
    let mut survive = 1.0;
    // ln of the probability that a bit is not wrong.
    let mut right = 0.0;
    let mut are_duplicated = false;
    for (_, config) in hop.links(direction) {
        let drops_udp = config.udp.is_some_and(|it| it.drop > Ratio::ZERO);
        let is_other = config.order.is_some() || config.mtu.is_some() || drops_udp;
        if is_other || loses_together(config) || are_duplicated {
            return None;
        }
        are_duplicated = config.duplicate.is_some();
        survive *= match config.loss {
            Loss::None => 1.0,
            Loss::Uniform(ratio) => 1.0 - float(ratio.ppb()) / 1e9,
            _ => return None,
        };
        let wrong = config.bit_errors.map_or(0.0, |rate| float(rate.attos()));
        right += (-wrong / 1e18).ln_1p();
    }
    // A packet that a queue dropped was not exposed to loss, at least not there.
    let met = packets.iter().filter(|it| it.fate != Fate::QueueDrop);
    let met: Vec<&Packet> = met.copied().collect();
    let losses = met.iter().filter(|it| it.fate == Fate::Loss).count() as u64;
    let (mut mean, mut variance) = (0.0, 0.0);
    for packet in &met {
        let survive = survive * (8.0 * f64::from(packet.ip.bytes) * right).exp();
        mean += 1.0 - survive;
        variance += survive * (1.0 - survive);
    }
    let off = (float(losses) - mean).abs();
    let third = CONFIDENCE / 3.0;
    let most = third + (third * third + 2.0 * CONFIDENCE * variance).sqrt();
    let none = mean <= 0.0;
    (off > most || (none && losses > 0)).then(|| {
        let met = met.len();
        let percent = 100.0 * mean / float(met.max(1) as u64);
        format!("{losses} of {met} packets were lost, where the scenario says {percent} %")
    })
}

/// Whether a link loses what is under way at a handover, or all packets of a carrier's frame.
fn loses_together(config: &DirectionConfig) -> bool {
    let handovers = config.handovers.as_ref();
    let on_carrier = matches!(config.rate, Some(LinkRate::DvbS2(_) | LinkRate::Rcs2(_)));
    on_carrier || handovers.is_some_and(|it| it.in_flight == InFlight::Lost)
}

#[expect(clippy::cast_precision_loss, reason = "counts, far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use bentpipe_link::Scenario;
    use bentpipe_trial::IpPacket;
    use bentpipe_units::Time;
    use bentpipe_wire::IpVersion;
    use bytes::Bytes;

    use super::*;

    const MS: u64 = 1_000_000;

    /// 10 ms, and 1 ms for 1250 bytes.
    fn scenario(loss: &str) -> Scenario {
        let way = "rate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n";
        let text = format!(
            "title = \"t\"\nsource = \"s\"\ntimeout = \"9 s\"\n[satellite.forward]\n{way}loss = \
             {loss}\n[satellite.return]\n{way}"
        );
        Scenario::parse(&text, "check.toml", &[]).unwrap()
    }

    fn packet(number: u64, fate: Fate) -> Packet {
        Packet {
            flow: 0,
            direction: Direction::Forward,
            path: 0,
            sent: Time::from_nanos(number * MS),
            ip: IpPacket::udp(IpVersion::V4, 0, Bytes::from(vec![0; 1250 - 28])),
            fate,
            marked: false,
            copies: Vec::new(),
        }
    }

    /// A packet that took `us` microseconds.
    fn took(number: u64, us: u64) -> Packet {
        let at = Time::from_nanos(number * MS + us * 1000);
        packet(number, Fate::Delivered { at })
    }

    fn found(loss: &str, packets: &[Packet]) -> Vec<String> {
        let packets: Vec<&Packet> = packets.iter().collect();
        flaws(scenario(loss).whole(), Direction::Forward, &packets)
    }

    #[test]
    fn delays_are_those_of_the_scenario() {
        assert_eq!(found("\"none\"", &[]), [""; 0]);
        assert_eq!(
            found("\"none\"", &[took(0, 11_900), took(1, 40_000)]),
            [""; 0]
        );
        assert_eq!(
            found("\"none\"", &[took(0, 11_000), took(1, 9_999)]),
            ["forward: a packet took 9.999 ms, less than 10 ms"]
        );
        assert_eq!(
            found("\"none\"", &[took(0, 12_500), took(1, 13_000)]),
            ["forward: every packet took at least 1.5 ms longer than the scenario says"]
        );
    }

    #[test]
    fn losses_are_those_of_the_scenario() {
        let lost = |count: u64| -> Vec<Packet> {
            let packets = 0..1000;
            let fate = |number| match number {
                number if number < count => packet(number, Fate::Loss),
                999 => packet(number, Fate::QueueDrop),
                number => took(number, 11_000),
            };
            packets.map(fate).collect()
        };
        assert_eq!(found("\"none\"", &lost(0)), [""; 0]);
        assert_eq!(
            found("\"none\"", &lost(1)),
            ["forward: 1 of 999 packets were lost, where the scenario says 0 %"]
        );
        for plausible in [70, 100, 130] {
            assert_eq!(found("\"10 %\"", &lost(plausible)), [""; 0], "{plausible}");
        }
        for other in [0, 30, 170] {
            assert_eq!(found("\"10 %\"", &lost(other)).len(), 1, "{other}");
        }
        let bursts = "{ model = \"periodic\", every = \"100 packets\" }";
        assert_eq!(found(bursts, &lost(500)), [""; 0], "not checked");
        let handovers = |in_flight| {
            format!(
                "\"none\"\nhandovers = {{ every = \"15 s\", gap = \"80 ms\", in_flight = \
                 \"{in_flight}\" }}"
            )
        };
        assert_eq!(found(&handovers("lost"), &lost(36)), [""; 0]);
        assert_eq!(found(&handovers("forwarded"), &lost(36)).len(), 1);
        // 1 - (1 - 10^-5)^10000 of 1250 bytes: 9.5 %.
        let bits = "\"none\"\nbit_errors = \"1e-5\"";
        assert_eq!(found(bits, &lost(95)), [""; 0]);
        assert_eq!(found(bits, &lost(30)).len(), 1);
        assert_eq!(found(bits, &lost(165)).len(), 1);
    }
}
