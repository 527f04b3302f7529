//! The comparisons: a discipline in each side's configuration, and packets that make it act.

use crate::traffic::Flow;

/// A comparison.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// The discipline for `tc`.
    pub linux: &'static str,
    /// The same as a queue of a scenario.
    pub ours: &'static str,
    /// The flows that arrive.
    pub flows: Vec<Flow>,
    /// For how long, in milliseconds.
    pub duration_ms: u64,
}

/// The rate of the link in bit/s: a byte takes 800 ns.
pub const RATE: u64 = 10_000_000;

const CODEL: &str = "codel limit 1000 target 5ms interval 100ms ecn";
const OUR_CODEL: &str = "{ size = \"1000 packets\", aqm = \"codel\" }";
const FQ_CODEL: &str = "fq_codel limit 10240 quantum 1514 target 5ms interval 100ms ecn";
const OUR_FQ_CODEL: &str = "{ size = \"10240 packets\", aqm = \"fq-codel\" }";

/// A flow of full packets that cannot be marked, with a mean gap in microseconds. The link sends
/// one in 1200.
fn bulk(gap_us: u64) -> Flow {
    Flow {
        bytes: 1500..=1500,
        gap_ns: gap_us * 1000,
        ecn: 0,
        on_off_ms: None,
    }
}

fn sized(from: u64, to: u64, gap_us: u64) -> Flow {
    Flow {
        bytes: from..=to,
        ..bulk(gap_us)
    }
}

fn capable(flow: Flow) -> Flow {
    Flow { ecn: 2, ..flow }
}

fn bursts(on: u64, off: u64, flow: Flow) -> Flow {
    Flow {
        on_off_ms: Some((on, off)),
        ..flow
    }
}

/// All comparisons.
pub fn all() -> Vec<Case> {
    let case = |name, linux, ours, flows| Case {
        name,
        linux,
        ours,
        flows,
        duration_ms: 20_000,
    };
    let sparse = || sized(100, 300, 20_000);
    vec![
        case("codel", CODEL, OUR_CODEL, vec![bulk(1100)]),
        case(
            "codel, bursts",
            CODEL,
            OUR_CODEL,
            vec![bursts(300, 200, bulk(900))],
        ),
        case("codel, marks", CODEL, OUR_CODEL, vec![capable(bulk(1150))]),
        case(
            "codel, sizes and both",
            CODEL,
            OUR_CODEL,
            vec![
                bursts(700, 300, sized(40, 1500, 1000)),
                bursts(500, 250, capable(sized(40, 1500, 1000))),
            ],
        ),
        case(
            "codel, full",
            "codel limit 50 target 5ms interval 100ms noecn",
            "{ size = \"50 packets\", aqm = \"codel\", ecn = \"off\" }",
            vec![bursts(300, 200, bulk(600))],
        ),
        case(
            "fq-codel",
            FQ_CODEL,
            OUR_FQ_CODEL,
            vec![bulk(2000), capable(bulk(2400)), sparse(), sparse()],
        ),
        case(
            "fq-codel, bursts of sizes",
            FQ_CODEL,
            OUR_FQ_CODEL,
            vec![
                bursts(700, 300, sized(40, 1500, 1200)),
                bursts(500, 250, capable(sized(40, 1500, 1500))),
                bursts(300, 600, sized(500, 1500, 1500)),
                sparse(),
            ],
        ),
        case(
            "fq-codel, small quantum",
            "fq_codel limit 10240 quantum 300 target 5ms interval 100ms ecn",
            "{ size = \"10240 packets\", aqm = \"fq-codel\", quantum = \"300 B\" }",
            vec![bulk(2000), sized(40, 400, 500), sized(40, 1500, 1500)],
        ),
        case(
            "fq-codel, full",
            "fq_codel limit 100 quantum 1514 target 5ms interval 100ms noecn",
            "{ size = \"100 packets\", aqm = \"fq-codel\", ecn = \"off\" }",
            vec![bulk(500), bulk(3000), sparse()],
        ),
        case(
            "fq-codel, many flows",
            FQ_CODEL,
            OUR_FQ_CODEL,
            (0..20).map(|_| bulk(23_000)).collect(),
        ),
        case(
            "pie",
            "pie limit 1000 target 15ms tupdate 15ms noecn",
            "{ size = \"1000 packets\", aqm = \"pie\", ecn = \"off\" }",
            vec![bulk(1000)],
        ),
        case(
            "pie, marks",
            "pie limit 1000 target 15ms tupdate 15ms ecn",
            "{ size = \"1000 packets\", aqm = \"pie\" }",
            vec![capable(bulk(1100))],
        ),
    ]
}

/// The commands that give `tt1` a discipline: at its root, or below one that takes no part.
/// Linux's devices hand packets past a discipline at the root that is empty.
pub fn commands(discipline: &str, is_below: bool) -> String {
    if is_below {
        format!(
            "tc qdisc replace dev tt1 root handle 1: prio bands 2 \
             priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0; \
             tc qdisc replace dev tt1 parent 1:1 {discipline}"
        )
    } else {
        format!("tc qdisc replace dev tt1 root {discipline}")
    }
}
