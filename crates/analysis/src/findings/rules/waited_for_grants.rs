//! Packets waited for capacity that a terminal requests.

use super::super::quantities::{Count, Percent, Short, float};
use super::super::signals::Signals;
use super::super::span::{Span, percent_of, union};
use super::super::transfer::{Missing, direction};
use super::{Judgement, Rule, cut_of, link_events};
use crate::connection::{Nanos, Vantage};
use crate::durations::seconds;
use crate::link_events::{LinkDirection, LinkEvents};

/// Packets waited for capacity that a terminal requests: what it has not got yet comes about a
/// round trip of the satellite link after the request, and after another one where the request is
/// lost or collides. Both data and acknowledgments wait, and the RTT swings.
///
/// - Yes: packets that waited for at least [`RTT_PERCENT`] % of an RTT while a request was open
///   did so for [`SHARE_PERCENT`] % of the time until all data had been sent. A packet waits for
///   as long as its one-way delay is above the least of its direction. While it was under way, its
///   direction carried less than [`FULL_PERCENT`] % of what it carried in its best RTT: else it
///   waited in the queue of a full link.
/// - Not sure: if nobody knows the requests, or not to the end; trials in virtual time keep them
///   ([link events](link-events.md)). If not both sides were captured.
pub(super) const RULE: Rule = Rule {
    id: "waited_for_grants",
    title: "Waited for capacity on request",
    judge,
};

/// Below this, packets wait for the next frame of the link, not for a grant.
const RTT_PERCENT: Nanos = 25;
/// Less than this share of the time costs less than the spread between two seeds.
const SHARE_PERCENT: Nanos = 5;

/// A direction that carries at least this share of its best has the capacity that there is.
const FULL_PERCENT: u64 = 80;

/// The requests for capacity of a direction, and the packets that waited meanwhile.
struct Waits {
    direction: LinkDirection,
    /// From each request that was granted to its grant.
    granted: Vec<Span>,
    /// The number of requests in vain.
    in_vain: u64,
    /// The time in which packets waited while a request was open.
    waited: Nanos,
    /// The wait of the packet for which it was longest.
    longest: Option<Span>,
}

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.transfer.needs_data_packets()?;
    let events = link_events(signals)?;
    let rtt = signals.transfer.needs_rtt()?;
    if events.requests.is_none() {
        return Missing::because("the requests for capacity were not seen");
    }
    let both = [LinkDirection::Return, LinkDirection::Forward];
    let both = both
        .into_iter()
        .filter_map(|it| of(signals, events, it, rtt));
    let Some(waits) = both.max_by_key(|it| it.waited) else {
        return Ok(Judgement::no(
            "No capacity was requested while data were sent.".to_owned(),
        ));
    };
    if signals.transfer.view.connection.vantage != Vantage::Both {
        return Missing::because(
            "how long packets waited is only seen where both sides were captured",
        );
    }
    let whole = transfer(signals);
    let is_long = waits.waited > percent_of(whole.length(), SHARE_PERCENT);
    if events.cut && !is_long {
        return Missing::because("only the first requests for capacity are known");
    }
    let share = seconds(waits.waited) / seconds(whole.length()).max(f64::MIN_POSITIVE);
    let is_data = waits.direction.sender() == signals.transfer.sender;
    let text = format!(
        "{} waited for {} capacity that had been requested for {} in all, {} of the time until \
         {}{}. {}{}",
        if is_data { "Data" } else { "ACKs" },
        direction(waits.direction.sender()),
        Short(waits.waited),
        Percent(share),
        signals.transfer.ended(),
        waits.longest.map_or(String::new(), |it| format!(
            ", a packet up to {}",
            Short(it.length())
        )),
        waits.grants(),
        cut_of(events),
    );
    let judgement = waits.evidence(Judgement::yes_if(is_long, text), whole);
    let place = waits.longest_grant().or(waits.longest);
    Ok(match place.filter(|_| is_long) {
        Some(place) => judgement.shown_in("delay", place),
        None => judgement,
    })
}

/// From the first packet to the last new data.
fn transfer(signals: &Signals<'_>) -> Span {
    Span {
        from: 0,
        until: signals.transfer.sending.until,
    }
}

impl Waits {
    fn longest_grant(&self) -> Option<Span> {
        self.granted.iter().max_by_key(|it| it.length()).copied()
    }

    fn median_grant(&self) -> Option<Nanos> {
        let mut lengths: Vec<Nanos> = self.granted.iter().map(|it| it.length()).collect();
        lengths.sort_unstable();
        lengths.get(lengths.len().checked_sub(1)? / 2).copied()
    }

    /// The outcome of the requests, in words.
    fn grants(&self) -> String {
        let requests = self.granted.len() as u64 + self.in_vain;
        let in_vain = match self.in_vain {
            0 => String::new(),
            count => format!("; {count} of them in vain"),
        };
        let (Some(longest), Some(median)) = (self.longest_grant(), self.median_grant()) else {
            return format!("None of {} was granted.", Count(requests, "request"));
        };
        format!(
            "The grant came {} after the request at {}, in the median {} after it, of {}{in_vain}.",
            Short(longest.length()),
            Short(longest.from),
            Short(median),
            Count(requests, "request"),
        )
    }

    fn evidence(&self, mut judgement: Judgement, whole: Span) -> Judgement {
        if let (Some(longest), Some(median)) = (self.longest_grant(), self.median_grant()) {
            let what = "longest wait for a grant";
            judgement = judgement
                .over(longest, what, seconds(longest.length()), "s")
                .over(whole, "median wait for a grant", seconds(median), "s");
        }
        if let Some(longest) = self.longest {
            let what = "longest wait of a packet";
            judgement = judgement.over(longest, what, seconds(longest.length()), "s");
        }
        let requests = self.granted.len() as u64 + self.in_vain;
        let judgement = judgement
            .over(whole, "packets waited", seconds(self.waited), "s")
            .over(whole, "requests", float(requests), "requests");
        match self.in_vain {
            0 => judgement,
            count => judgement.over(whole, "requests in vain", float(count), "requests"),
        }
    }
}

/// The requests of a direction until all data had been sent; None if there were none.
fn of(
    signals: &Signals<'_>,
    events: &LinkEvents,
    direction: LinkDirection,
    rtt: Nanos,
) -> Option<Waits> {
    let view = signals.transfer.view;
    let until = transfer(signals).until;
    let (mut granted, mut in_vain) = (Vec::new(), Vec::new());
    let requests = events.requests.iter().flatten();
    for request in requests.filter(|it| it.direction == direction) {
        let span = Span {
            from: events.time_in(view.connection, request.sent_ns),
            until: events.time_in(view.connection, request.answered_ns),
        };
        if span.until > 0 && span.from < until {
            let all = if request.granted {
                &mut granted
            } else {
                &mut in_vain
            };
            all.push(span);
        }
    }
    if granted.is_empty() && in_vain.is_empty() {
        return None;
    }
    let open = union([granted.as_slice(), in_vain.as_slice()].concat());
    let waited = packets(signals, direction, &open, rtt);
    let longest = waited.iter().max_by_key(|it| it.length()).copied();
    Some(Waits {
        direction,
        in_vain: in_vain.len() as u64,
        granted,
        waited: union(waited).into_iter().map(Span::length).sum(),
        longest,
    })
}

/// The times for which packets waited long enough while a request was open, and the direction was
/// not full.
fn packets(
    signals: &Signals<'_>,
    direction: LinkDirection,
    open: &[Span],
    rtt: Nanos,
) -> Vec<Span> {
    let least = percent_of(rtt, RTT_PERCENT);
    let until = transfer(signals).until;
    let all = signals.transfer.view.packets();
    let own = all.filter(|(packet, _)| packet.sender == direction.sender());
    let passed: Vec<(Nanos, Nanos, u64)> = own
        .filter_map(|(packet, _)| {
            let bytes = u64::from(packet.ip_size.unwrap_or(0));
            Some((packet.sent()?, packet.received()?, bytes))
        })
        .collect();
    let carried = Carried::new(passed.iter().map(|it| (it.1, it.2)).collect(), rtt);
    let fastest = passed.iter().map(|it| it.1 - it.0).min();
    let Some(fastest) = fastest else {
        return Vec::new();
    };
    let mut waited = Vec::new();
    for (sent, received, _) in passed {
        let under_way = Span {
            from: sent,
            until: received,
        };
        if received - sent - fastest < least || carried.is_full(under_way) {
            continue;
        }
        let waiting = Span {
            from: sent,
            until: (received - fastest).min(until),
        };
        let first = open.partition_point(|it| it.until <= waiting.from);
        let during = open[first..].iter();
        let during = during.take_while(|it| it.from < waiting.until);
        let parts = during.map(|it| Span {
            from: it.from.max(waiting.from),
            until: it.until.min(waiting.until),
        });
        waited.extend(parts.filter(|it| it.length() >= least));
    }
    waited
}

/// Bytes that a direction carried over time.
struct Carried {
    /// Arrivals in their order, each with the bytes that had arrived before it.
    arrivals: Vec<(Nanos, u64)>,
    /// The bytes of all.
    all: u64,
    /// The most bytes that arrived in a window.
    most: u64,
    window: Nanos,
}

impl Carried {
    fn new(mut arrivals: Vec<(Nanos, u64)>, window: Nanos) -> Self {
        arrivals.sort_unstable();
        let mut all = 0;
        for (_, bytes) in &mut arrivals {
            all += *bytes;
            *bytes = all - *bytes;
        }
        let mut carried = Self {
            arrivals,
            all,
            most: 0,
            window,
        };
        let begins = carried.arrivals.iter().map(|(at, _)| *at);
        let windows = begins.map(|from| {
            carried.in_span(Span {
                from,
                until: from + window,
            })
        });
        carried.most = windows.max().unwrap_or(0);
        carried
    }

    fn in_span(&self, span: Span) -> u64 {
        let before = |time: Nanos| {
            let at = self
                .arrivals
                .partition_point(|(arrived, _)| *arrived < time);
            self.arrivals.get(at).map_or(self.all, |(_, bytes)| *bytes)
        };
        before(span.until) - before(span.from)
    }

    /// Whether the direction carried almost as much as it ever did.
    fn is_full(&self, span: Span) -> bool {
        let nanos = |length: Nanos| u128::from(length.cast_unsigned());
        let share = u128::from(self.in_span(span)) * 100 * nanos(self.window);
        let best = u128::from(self.most) * nanos(span.length().max(1));
        share >= best * u128::from(FULL_PERCENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 bytes every 10 ns for 1000 ns, then every 20 ns.
    #[test]
    fn a_direction_is_full_where_it_carries_what_it_can() {
        let fast = (0..100).map(|it| (10 * it, 100));
        let slow = (0..50).map(|it| (1000 + 20 * it, 100));
        let carried = Carried::new(fast.chain(slow).collect(), 100);
        assert_eq!(carried.most, 1000);
        let is_full = |from, until| carried.is_full(Span { from, until });
        assert!(is_full(200, 700) && is_full(0, 100));
        assert!(!is_full(1200, 1700) && !is_full(2500, 2600));
        // Of 500 ns, 300 at the full rate and 200 at half of it: 80 %.
        assert!(is_full(700, 1200) && !is_full(750, 1250));
    }
}
