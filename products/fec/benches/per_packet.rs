//! CPU time per datagram of the tunnel, at both its ends, and of `cu-fec`, another implementation
//! of RFC 8681: one datagram in a hundred is lost, a fifth more packets are repairs over a window
//! of 100.

use std::hint::black_box;
use std::time::Duration;

use bentpipe_fec::{Departure, Settings, Side, Tunnel};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use cu_fec::{DensityThreshold, EncodingSymbolId, Field};
use cu_fec::{RepairParameters, RlcConfig, RlcDecoder, RlcEncoder};

const DATAGRAMS: u32 = 2000;
const SIZE: usize = 1400;
const WINDOW: usize = 100;

fn is_lost(number: u32) -> bool {
    number % 100 == 57
}

fn through_the_tunnel(payload: &[u8]) -> usize {
    let mut ends = [Settings::default(), Settings::default()].map(Tunnel::new);
    let (mut sent, mut out, mut packets) = (Vec::<Departure>::new(), Vec::new(), 0);
    for number in 0..DATAGRAMS {
        let now = Duration::from_micros(u64::from(number) * 600);
        ends[0].arrive(now, (Side::Plain, 0, payload), &mut sent);
        for packet in sent.drain(..) {
            packets += 1;
            if packet.side == Side::Tunnel && !is_lost(packets) {
                ends[1].arrive(now, (Side::Tunnel, 0, &packet.payload), &mut out);
            }
        }
    }
    out.len()
}

fn through_cu_fec(payload: &[u8]) -> usize {
    let config = RlcConfig::new(SIZE, WINDOW, Field::Gf256).expect("it is valid");
    let start = EncodingSymbolId::new(0);
    let encoder = RlcEncoder::<SIZE, WINDOW>::new(config, start).expect("it fits");
    let decoder = RlcDecoder::<SIZE, WINDOW, 32>::new(config, 32).expect("it fits");
    let (mut encoder, mut decoder) = (Box::new(encoder), Box::new(decoder));
    let (mut repair, mut known) = (vec![0; SIZE], 0);
    for number in 0..DATAGRAMS {
        let esi = encoder.push_source(payload).expect("its size is right");
        if !is_lost(number) {
            let report = decoder.receive_source(esi, payload).expect("it is known");
            known += 1 + report.recovered();
        }
        if number % 5 == 4 {
            let key = u16::try_from(number).expect("it is small");
            let parameters = RepairParameters::new(key, DensityThreshold::FULL);
            let id = encoder
                .encode_repair(parameters, &mut repair)
                .expect("there are symbols");
            let report = decoder
                .receive_repair(id, &repair)
                .expect("it is in the window");
            known += report.recovered();
        }
    }
    known
}

fn repairs(criterion: &mut Criterion) {
    let payload = vec![0x5a; SIZE];
    let mut group = criterion.benchmark_group("repair");
    group.throughput(Throughput::Elements(DATAGRAMS.into()));
    group.sample_size(10);
    group.bench_function("tunnel", |it| {
        it.iter(|| black_box(through_the_tunnel(black_box(&payload))));
    });
    group.bench_function("cu-fec", |it| {
        it.iter(|| black_box(through_cu_fec(black_box(&payload))));
    });
    group.finish();
}

criterion_group!(benches, repairs);
criterion_main!(benches);
