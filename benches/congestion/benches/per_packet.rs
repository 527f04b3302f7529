//! CPU time per packet of our controllers beside noq's own, through the interface by which noq uses
//! both.
//!
//! The script is the same for all: a flight of a number of packets; then as many are sent as an ACK
//! acknowledges, and one packet in a thousand is lost. As noq does it, the window and the metrics
//! are asked for before each packet.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bentpipe_congestion::{Algorithms, Settings};
use bentpipe_noq_options::Factory;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, CubicConfig, NewRenoConfig};

const DATAGRAM: u16 = 1452;
const RTT: Duration = Duration::from_millis(600);
/// Packets in a measurement.
const PACKETS: u64 = 10_000;
const ONE_LOST_IN: u64 = 1000;

#[derive(Clone)]
struct Script {
    now: Instant,
    next: u64,
    flight: VecDeque<(u64, Instant)>,
    gap: Duration,
    batch: u64,
}

impl Script {
    fn new(flight: u32, batch: u64, controller: &mut dyn Controller, origin: Instant) -> Self {
        let mut script = Self {
            now: origin,
            next: 0,
            flight: VecDeque::new(),
            gap: RTT / flight,
            batch,
        };
        for _ in 0..flight {
            script.send(controller);
        }
        script
    }

    fn send(&mut self, controller: &mut dyn Controller) {
        self.now += self.gap;
        black_box((controller.window(), controller.metrics()));
        controller.on_packet_sent(self.now, DATAGRAM, self.next);
        self.flight.push_back((self.next, self.now));
        self.next += 1;
    }

    fn run(&mut self, controller: &mut dyn Controller, rtt: &RttEstimator) {
        for _ in 0..PACKETS / self.batch {
            let in_flight = self.flight.len() as u64 * u64::from(DATAGRAM);
            let mut lost = None;
            let mut largest = 0;
            for _ in 0..self.batch {
                let (number, sent) = self.flight.pop_front().expect("there is a flight");
                if number % ONE_LOST_IN == ONE_LOST_IN - 1 {
                    lost = Some((number, sent));
                } else {
                    let bytes = DATAGRAM.into();
                    controller.on_ack(self.now, sent, bytes, number, false, rtt);
                    largest = number;
                }
            }
            controller.on_end_acks(self.now, in_flight, false, Some(largest));
            if let Some((number, sent)) = lost {
                let bytes = DATAGRAM.into();
                controller.on_packet_lost(DATAGRAM, number, self.now);
                controller.on_congestion_event(self.now, sent, false, false, bytes, number);
            }
            for _ in 0..self.batch {
                self.send(controller);
            }
        }
    }
}

fn ours(cc: &str, origin: Instant) -> Arc<dyn ControllerFactory> {
    Arc::new(Factory {
        algorithms: Algorithms::new(cc, "standard").expect("both exist"),
        settings: Settings::default(),
        origin,
        resume: None,
        log: None,
    })
}

fn per_packet(criterion: &mut Criterion) {
    let rtt = bentpipe_benches::estimator_of_a_real_connection();
    #[expect(
        clippy::disallowed_methods,
        reason = "std has no other way to make an Instant"
    )]
    let origin = Instant::now();
    let controllers: [(&str, Arc<dyn ControllerFactory>); 7] = [
        ("noq newreno", Arc::new(NewRenoConfig::default())),
        ("noq cubic", Arc::new(CubicConfig::default())),
        ("newreno", ours("newreno", origin)),
        ("cubic", ours("cubic", origin)),
        ("hybla", ours("hybla", origin)),
        ("pico", ours("pico", origin)),
        ("tolerant", ours("tolerant", origin)),
    ];
    for flight in [1_500, 17_000] {
        for batch in [2, 10] {
            let mut group =
                criterion.benchmark_group(format!("{flight} in flight, ACK of {batch}"));
            group.throughput(Throughput::Elements(PACKETS));
            for (name, factory) in &controllers {
                let mut controller = Arc::clone(factory).build(origin, DATAGRAM);
                let mut script = Script::new(flight, batch, &mut *controller, origin);
                script.run(&mut *controller, &rtt);
                group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                    bencher.iter_batched_ref(
                        || (controller.clone_box(), script.clone()),
                        |(controller, script)| script.run(&mut **controller, &rtt),
                        BatchSize::SmallInput,
                    );
                });
            }
            group.finish();
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(30);
    targets = per_packet
}
criterion_main!(benches);
