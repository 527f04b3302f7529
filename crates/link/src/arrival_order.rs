//! Whether packets arrive in the order in which they were sent: RFC 4737.
//!
//! A packet is reordered if one of its flow that was sent later arrived before it (section 3). Its
//! extent is the number of packets that arrived from the earliest of these on, itself left out
//! (section 4.2): the packets that a receiver would have had to buffer while it waited. Order is
//! looked at flow by flow, since a queue may well serve a flow before another. Of a packet that
//! arrives more than once the first arrival counts alone.

use std::collections::HashMap;

/// The order of the packets of one direction, flow by flow.
#[derive(Debug, Default)]
pub struct ArrivalOrder {
    flows: HashMap<u64, FlowOrder>,
}

#[derive(Debug, Default)]
struct FlowOrder {
    /// How many packets have arrived.
    arrived: u64,
    /// The largest number of these.
    highest: Option<u64>,
    /// Where numbers were left out: the number behind the gap, and how many had arrived before it.
    gaps: Vec<(u64, u64)>,
}

impl ArrivalOrder {
    /// The next packet of a flow arrives. Numbers are in the order of sending. Returns its extent
    /// in packets, which is 1 or more, if it is reordered.
    pub fn arrive(&mut self, flow: u64, number: u64) -> Option<u64> {
        let flow = self.flows.entry(flow).or_default();
        let position = flow.arrived;
        flow.arrived += 1;
        match flow.highest {
            Some(highest) if number < highest => {
                // The first that was sent later ended the gap in which this one was missing.
                let gap = flow.gaps.partition_point(|(behind, _)| *behind <= number);
                Some(position - flow.gaps[gap].1)
            }
            highest => {
                if highest.is_none_or(|highest| number > highest + 1) {
                    flow.gaps.push((number, position));
                }
                flow.highest = Some(number);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The extents of packets that arrive in this order: number and extent.
    fn extents(arrivals: &[u64]) -> Vec<(u64, u64)> {
        let mut order = ArrivalOrder::default();
        let reordered = |number: &u64| Some((*number, order.arrive(0, *number)?));
        arrivals.iter().filter_map(reordered).collect()
    }

    /// Sequences reckoned by hand, by the definition of RFC 4737, section 4.2.
    #[test]
    fn extents_by_hand() {
        let one = [1, 2, 3, 5, 6, 7, 8, 4, 9, 10];
        assert_eq!(extents(&one), [(4, 4)]);
        let two = [1, 2, 3, 4, 7, 5, 6, 8, 9, 10];
        assert_eq!(extents(&two), [(5, 1), (6, 2)]);
        let three = [1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11];
        assert_eq!(extents(&three), [(4, 4), (5, 5), (6, 6)]);
    }

    #[test]
    fn a_loss_is_no_reordering_and_flows_do_not_count_for_each_other() {
        assert_eq!(extents(&[3, 4, 7, 8]), []);
        assert_eq!(extents(&[3, 7, 8, 5]), [(5, 2)]);
        assert_eq!(extents(&[3, 1]), [(1, 1)], "the first one may be missing");
        let mut order = ArrivalOrder::default();
        assert_eq!(order.arrive(1, 5), None);
        assert_eq!(order.arrive(2, 4), None);
        assert_eq!(order.arrive(1, 3), Some(1));
    }

    proptest! {
        #[test]
        fn extents_are_those_of_the_definition(
            arrivals in Just((0..60_u64).collect::<Vec<_>>()).prop_shuffle(),
            lost in 0..60_usize,
        ) {
            let arrivals = &arrivals[lost..];
            let by_definition = |index: usize| {
                let earliest = arrivals[..index].iter().position(|it| *it > arrivals[index])?;
                Some((arrivals[index], (index - earliest) as u64))
            };
            let expected: Vec<_> = (0..arrivals.len()).filter_map(by_definition).collect();
            prop_assert_eq!(extents(arrivals), expected);
        }
    }
}
