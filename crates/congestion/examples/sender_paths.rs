//! Bentpipe's sender over a fixed set of paths of the tests' path model, for
//! `tools/sender/sweep.py`.
//!
//! ```sh
//! cargo run --release -p bentpipe-congestion --example sender_paths -- [--smallest] [--seeds N]
//! ```
//!
//! A line for each transfer: the path, the nanoseconds from the sender's start until everything had
//! arrived, the packets that a queue dropped, and those sent, separated by tabs. Where something is
//! random, all three are medians over five seeds, or three where two senders share a queue; `N` is
//! the set of seeds, 0 by default. A transfer that panics has `failed` and the panic's text in
//! place of the numbers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bentpipe_units::{Rate, Span, Time};

#[expect(
    dead_code,
    reason = "the tests look at more of a run than this program does"
)]
#[path = "../tests/suite/model.rs"]
mod model;

use model::{History, Model};

/// From the first seed of a set to that of the next one.
const SET: u64 = 5;
/// When a path changes, or a second sender starts.
const CHANGE: Time = Time::from_nanos(10_000_000_000);

/// The sender of a server: `cc` and `ss`.
const SERVER: (&str, &str) = ("bentpipe", "flight");
/// That of a client, which has no flight.
const CLIENT: (&str, &str) = ("bentpipe", "trains");
/// Packet trains before an avoidance that has no pacing of its own.
const TRAINS: (&str, &str) = ("cubic", "trains");
const CUBIC: (&str, &str) = ("cubic", "hystart++");

struct Path {
    name: String,
    model: Model,
    senders: Senders,
}

enum Senders {
    Alone((&'static str, &'static str)),
    /// Both of its own, the second one later.
    Two,
    /// One other, which comes first or later.
    Beside {
        first: bool,
    },
}

impl Path {
    /// The model's bytes from a server.
    fn new(name: &str, model: Model) -> Self {
        Self {
            name: name.to_owned(),
            model,
            senders: Senders::Alone(SERVER),
        }
    }

    fn from(mut self, sender: (&'static str, &'static str)) -> Self {
        self.senders = Senders::Alone(sender);
        self
    }

    fn is_random(&self) -> bool {
        let model = &self.model;
        model.jitter > Span::ZERO || model.loss_one_in > 0 || model.cross_traffic.bps() > 0
    }

    /// A name of each transfer, and what became of it.
    fn run(&self, seed: u64) -> Vec<(String, [u64; 3])> {
        let model = &Model {
            seed,
            ..self.model.clone()
        };
        let name = self.name.clone();
        let figures = |history: &History, start: Time| {
            let taken = (history.completion - start).as_nanos();
            [taken, history.drops, history.sent]
        };
        match self.senders {
            Senders::Alone((cc, ss)) => {
                vec![(name, figures(&model.run(cc, ss), Time::ZERO))]
            }
            Senders::Two => {
                let [first, second] = model.run_two([SERVER, SERVER], CHANGE);
                vec![
                    (format!("{name}, the first"), figures(&first, Time::ZERO)),
                    (format!("{name}, the second"), figures(&second, CHANGE)),
                ]
            }
            Senders::Beside { first: true } => {
                let [own, _] = model.run_two([SERVER, CUBIC], CHANGE);
                vec![(name, figures(&own, Time::ZERO))]
            }
            Senders::Beside { first: false } => {
                let [_, own] = model.run_two([CUBIC, SERVER], CHANGE);
                vec![(name, figures(&own, CHANGE))]
            }
        }
    }
}

fn mbit(rate: u64) -> Rate {
    Rate::from_bps(rate * 1_000_000)
}

/// Some Mbit/s over some ms, a queue of as many hundredths of a BDP, and so many bytes.
fn path(rate: u64, rtt: u64, percent: u64, bytes: u64) -> Model {
    let model = Model {
        rate: mbit(rate),
        rtt: Span::from_millis(rtt),
        bytes,
        ack_as_asked: true,
        ..Model::sat(25)
    };
    let queue = (model.bdp_packets() * percent / 100).max(25);
    Model { queue, ..model }
}

const KB: u64 = 1000;
const MB: u64 = 1000 * KB;
/// 10 MiB.
const FILE: u64 = 10 << 20;

/// A queue of 25 packets, in percent of any BDP.
const SHORT: u64 = 0;

fn paths() -> Vec<Path> {
    let mut all = Vec::new();
    for rate in [2, 10, 50, 250] {
        for (queue, percent) in [("25 packets", SHORT), ("1 BDP", 100), ("4 BDP", 400)] {
            let name = format!("{rate} Mbit/s, {queue}, 10 MiB");
            all.push(Path::new(&name, path(rate, 600, percent, FILE)));
        }
    }
    for (size, bytes) in [("100 kB", 100 * KB), ("1 MB", MB), ("50 MB", 50 * MB)] {
        for (queue, percent) in [("25 packets", SHORT), ("1 BDP", 100)] {
            let name = format!("20 Mbit/s, {queue}, {size}");
            all.push(Path::new(&name, path(20, 600, percent, bytes)));
        }
    }
    all.push(Path::new(
        "250 Mbit/s, 1 BDP, 50 MB",
        path(250, 600, 100, 50 * MB),
    ));
    all.extend(on_the_ground());
    all.extend(changing());
    all.extend(random());
    all.extend(shared());
    all
}

/// Shorter round trips, and other receivers.
fn on_the_ground() -> Vec<Path> {
    let every_tenth = Model {
        ack_as_asked: false,
        ack_every: 10,
        ..path(50, 600, 25, 50 * MB)
    };
    vec![
        Path::new("10 Mbit/s, 30 ms, 1 BDP, 1 MB", path(10, 30, 100, MB)),
        Path::new("10 Mbit/s, 30 ms, 1 BDP, 10 MiB", path(10, 30, 100, FILE)),
        Path::new(
            "100 Mbit/s, 30 ms, 1 BDP, 50 MB",
            path(100, 30, 100, 50 * MB),
        ),
        Path::new("50 Mbit/s, 80 ms, 1 BDP, 10 MiB", path(50, 80, 100, FILE)),
        Path::new("50 Mbit/s, 120 ms, 1 BDP, 10 MiB", path(50, 120, 100, FILE)),
        Path::new(
            "50 Mbit/s, 1200 ms, 1 BDP, 10 MiB",
            path(50, 1200, 100, FILE),
        ),
        Path::new(
            "50 Mbit/s, 0.25 BDP, every tenth acknowledged, 50 MB",
            every_tenth,
        ),
        Path::new(
            "20 Mbit/s, 1 BDP, 10 MiB, a client's",
            path(20, 600, 100, FILE),
        )
        .from(CLIENT),
        Path::new(
            "20 Mbit/s, 25 packets, 10 MiB, cc=cubic:ss=trains",
            path(20, 600, SHORT, FILE),
        )
        .from(TRAINS),
    ]
}

/// Paths that become others at 10 s.
fn changing() -> Vec<Path> {
    let to = |rate, percent, bytes| Model {
        change: Some((CHANGE, mbit(rate))),
        ..path(20, 600, percent, bytes)
    };
    let longer = |ms| Model {
        longer: Some((CHANGE, Span::from_millis(ms))),
        ..path(20, 600, 100, 60 * MB)
    };
    vec![
        Path::new("20 to 10 Mbit/s, 1 BDP, 40 MB", to(10, 100, 40 * MB)),
        Path::new("20 to 5 Mbit/s, 25 packets, 40 MB", to(5, SHORT, 40 * MB)),
        Path::new("20 to 5 Mbit/s, 4 BDP, 40 MB", to(5, 400, 40 * MB)),
        Path::new("20 to 40 Mbit/s, 1 BDP, 60 MB", to(40, 100, 60 * MB)),
        Path::new("20 to 100 Mbit/s, 1 BDP, 60 MB", to(100, 100, 60 * MB)),
        Path::new("20 Mbit/s, 600 to 640 ms, 1 BDP, 60 MB", longer(40)),
        Path::new("20 Mbit/s, 600 to 750 ms, 1 BDP, 60 MB", longer(150)),
    ]
}

/// Losses, jitter and the traffic of others.
fn random() -> Vec<Path> {
    let loses = |one_in, rate, percent, bytes| Model {
        loss_one_in: one_in,
        ..path(rate, 600, percent, bytes)
    };
    let jitters = |ms, percent, bytes| Model {
        jitter: Span::from_millis(ms),
        ..path(20, 600, percent, bytes)
    };
    let others = Model {
        cross_traffic: mbit(5),
        ..path(20, 600, 100, 30 * MB)
    };
    vec![
        Path::new(
            "20 Mbit/s, 1 % lost, 1 BDP, 10 MiB",
            loses(100, 20, 100, FILE),
        ),
        Path::new(
            "20 Mbit/s, 1 % lost, 1 BDP, 30 MB",
            loses(100, 20, 100, 30 * MB),
        ),
        Path::new(
            "50 Mbit/s, 0.1 % lost, 25 packets, 30 MB",
            loses(1000, 50, SHORT, 30 * MB),
        ),
        Path::new(
            "20 Mbit/s, 1 % lost, 1 BDP, 10 MiB, a client's",
            loses(100, 20, 100, FILE),
        )
        .from(CLIENT),
        Path::new(
            "20 Mbit/s, 20 ms of jitter, 25 packets, 10 MiB",
            jitters(20, SHORT, FILE),
        ),
        Path::new(
            "20 Mbit/s, 20 ms of jitter, 1 BDP, 10 MiB",
            jitters(20, 100, FILE),
        ),
        Path::new(
            "20 Mbit/s, 20 ms of jitter, 1 BDP, 30 MB",
            jitters(20, 100, 30 * MB),
        ),
        Path::new(
            "20 Mbit/s, 2 ms of jitter, 1 BDP, 30 MB",
            jitters(2, 100, 30 * MB),
        ),
        Path::new("20 Mbit/s, 5 of them others', 1 BDP, 30 MB", others),
    ]
}

/// Two senders behind one queue, 10 s apart, with 0.2 ms of jitter.
fn shared() -> Vec<Path> {
    let mut all = Vec::new();
    for (queue, percent) in [("0.25 BDP", 25), ("1 BDP", 100), ("4 BDP", 400)] {
        let model = Model {
            jitter: Span::from_nanos(200_000),
            ..path(10, 600, percent, 30 * MB)
        };
        for (others, senders) in [
            ("two of its own", Senders::Two),
            ("first, beside CUBIC", Senders::Beside { first: true }),
            ("second, beside CUBIC", Senders::Beside { first: false }),
        ] {
            all.push(Path {
                name: format!("10 Mbit/s, {queue}, 30 MB, {others}"),
                model: model.clone(),
                senders,
            });
        }
    }
    all
}

/// The medians over the seeds, or the text of a panic.
fn measure(path: &Path, first_seed: u64) -> Result<Vec<(String, [u64; 3])>, String> {
    let seeds = match path.senders {
        _ if !path.is_random() => 1,
        Senders::Alone(_) => SET,
        Senders::Two | Senders::Beside { .. } => 3,
    };
    let runs = (first_seed..first_seed + seeds).map(|seed| {
        let run = catch_unwind(AssertUnwindSafe(|| path.run(seed)));
        run.map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
            let text = text.unwrap_or_default();
            text.lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(120)
                .collect()
        })
    });
    let runs = runs.collect::<Result<Vec<_>, String>>()?;
    let names = runs[0].iter().map(|(name, _)| name.clone()).enumerate();
    let medians = names.map(|(at, name)| {
        let median = |which: usize| {
            let mut figures: Vec<u64> = runs.iter().map(|run| run[at].1[which]).collect();
            figures.sort_unstable();
            figures[figures.len() / 2]
        };
        (name, [0, 1, 2].map(median))
    });
    Ok(medians.collect())
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let seeds = given.iter().skip_while(|word| *word != "--seeds").nth(1);
    let set: u64 = seeds.map_or(0, |text| text.parse().expect("a set of seeds is a number"));
    std::panic::set_hook(Box::new(|_| {}));
    let mut all = paths();
    if given.iter().any(|word| word == "--smallest") {
        all.retain(|path| path.model.bytes <= FILE && !path.is_random());
    }
    for path in all {
        match measure(&path, 1 + set * SET) {
            Ok(transfers) => {
                for (name, [taken, drops, sent]) in transfers {
                    println!("{name}\t{taken}\t{drops}\t{sent}");
                }
            }
            Err(text) => println!("{}\tfailed\t{text}", path.name),
        }
    }
}
