//! The columns of a record on a tunnel.

use bentpipe_link::Counters;

use crate::evidence::TestbedObservation;
use crate::job::Job;
use crate::numbers::float;
use crate::schema::TunnelResult;

/// The tunnel; None where there is none, and of a trial that did not begin.
pub fn tunnel(job: &Job, observation: Option<&TestbedObservation>) -> Option<TunnelResult> {
    let (asked, observation) = (job.tunnel.as_ref()?, observation?);
    let seen = observation.tunnel.as_ref()?;
    let inside = &observation.hops[0];
    let outside = observation.on_links()[job.satellite_link_hop()];
    let bytes = |ways: [Counters; 2]| ways.iter().map(|way| way.bytes).sum();
    let (overhead_bytes, overhead_share) =
        overhead(bytes([inside.forward, inside.back]), bytes(outside));
    let [client, far] = &seen.exits;
    Some(TunnelResult {
        kind: asked.kind.clone(),
        to: asked.to,
        version: asked.version.clone(),
        mtu_bytes: u64::from(asked.mtu_bytes),
        congestion_control: seen.congestion_control.clone(),
        setup_s: seen.setup.as_secs_f64(),
        forward_packets: inside.forward.packets,
        forward_bytes: inside.forward.bytes,
        return_packets: inside.back.packets,
        return_bytes: inside.back.bytes,
        lost_packets: inside.forward.losses + inside.back.losses,
        overhead_bytes,
        overhead_share,
        cpu_client_s: client.cpu.as_secs_f64(),
        cpu_far_s: far.cpu.as_secs_f64(),
    })
}

/// Bytes on the link that are not those of packets in the tunnel, and their share of all. It is
/// negative where the tunnel did not send all that it was given. No share of nothing.
fn overhead(inside: u64, outside: u64) -> (i64, Option<f64>) {
    let more = outside.cast_signed() - inside.cast_signed();
    #[expect(clippy::cast_precision_loss, reason = "for a record")]
    let share = more as f64 / float(outside);
    (more, Some(share).filter(|_| outside > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overhead_is_what_is_not_inside() {
        assert_eq!(overhead(900, 1000), (100, Some(0.1)));
        assert_eq!(overhead(1100, 1000), (-100, Some(-0.1)));
        assert_eq!(overhead(0, 0), (0, None));
    }
}
