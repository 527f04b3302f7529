//! Where links lie: on which hop of the path, and whether at an end of it.

use bentpipe_link::{Direction, HostName, SegmentName};

/// The place of a link on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkPosition {
    /// The number of its path.
    pub path: usize,
    /// The number of its hop, from the client on.
    pub hop: usize,
    pub direction: Direction,
    /// Its packets come from the host at an end of the hop.
    pub from_end: bool,
    /// Its packets go to the host at an end of the hop.
    pub to_end: bool,
}

/// The positions of the links of these segments of a path, if programs on the hosts of `stops`
/// take what comes, and send packets themselves.
pub(crate) fn link_positions(
    path: usize,
    segments: &[SegmentName],
    stops: &[HostName],
) -> Vec<LinkPosition> {
    let hop = |segment: SegmentName| {
        let [near, _] = segment.ends();
        stops.iter().filter(|stop| **stop <= near).count()
    };
    let of = |number: usize| {
        let own = hop(segments[number]);
        let is_own = |other: Option<&SegmentName>| other.is_some_and(|it| hop(*it) == own);
        let first = !is_own(
            number
                .checked_sub(1)
                .and_then(|before| segments.get(before)),
        );
        let last = !is_own(segments.get(number + 1));
        Direction::BOTH.map(|direction| {
            let (from_end, to_end) = match direction {
                Direction::Forward => (last, first),
                Direction::Return => (first, last),
            };
            LinkPosition {
                path,
                hop: own,
                direction,
                from_end,
                to_end,
            }
        })
    };
    (0..segments.len()).flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hop_ends_where_a_program_takes_the_packets() {
        let ends = |segments: &[SegmentName], stops: &[HostName]| -> Vec<(usize, bool, bool)> {
            let positions = link_positions(0, segments, stops).into_iter();
            let back = positions.filter(|it| it.direction == Direction::Return);
            back.map(|it| (it.hop, it.from_end, it.to_end)).collect()
        };
        let all = SegmentName::ALL;
        assert_eq!(
            ends(&all, &[]),
            [(0, true, false), (0, false, false), (0, false, true)]
        );
        assert_eq!(
            ends(&all, &[HostName::Terminal]),
            [(0, true, true), (1, true, false), (1, false, true)]
        );
        assert_eq!(
            ends(&all, &[HostName::Gateway]),
            [(0, true, false), (0, false, true), (1, true, true)]
        );
        assert_eq!(
            ends(&all, &[HostName::Terminal, HostName::Gateway]),
            [(0, true, true), (1, true, true), (2, true, true)]
        );
        // A transparent segment is not emulated: packets of the hop are seen in the others.
        let two = [SegmentName::Access, SegmentName::Satellite];
        assert_eq!(
            ends(&two, &[HostName::Terminal]),
            [(0, true, true), (1, true, true)]
        );
        let forward = link_positions(0, &all, &[HostName::Terminal]);
        let forward: Vec<_> = forward
            .iter()
            .filter(|it| it.direction == Direction::Forward)
            .collect();
        assert_eq!((forward[1].from_end, forward[1].to_end), (false, true));
    }
}
