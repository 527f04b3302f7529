//! Refused scenarios, and the error messages: file, key, value and what to write.

use bentpipe_link::Scenario;

use crate::file;

/// The keys of a direction.
const KEYS: &str = "rate, delay, queue, loss, frame, mtu, sources, udp, policer, shaper, outages, \
                    handovers, order, bit_errors, aggregate, duplicate, reorder";

const SAT: &str = "rate = \"20 Mbit/s\"\ndelay = \"300 ms\"";

#[track_caller]
fn refused(text: &str, message: &str) {
    let error = Scenario::parse(text, "scenarios/sat.toml", &[]).unwrap_err();
    assert_eq!(error.to_string(), format!("scenarios/sat.toml: {message}"));
}

#[track_caller]
fn forward_refused(forward: &str, message: &str) {
    refused(&file(forward), &format!("satellite.forward{message}"));
}

#[track_caller]
fn set_refused(key: &str, value: &str, message: &str) {
    let sets = [
        ("timeout".to_owned(), "9s".to_owned()),
        (key.to_owned(), value.to_owned()),
    ];
    let error = Scenario::parse(&file(SAT), "scenarios/sat.toml", &sets).unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_bare_number() {
    forward_refused(
        "rate = 20",
        ".rate: 20: a rate needs a unit; write \"20 Mbit/s\"",
    );
    forward_refused(
        "rate = 1.5",
        ".rate: 1.5: a rate needs a unit; write \"1.5 Mbit/s\"",
    );
    forward_refused(
        "rate = \"20\"",
        ".rate: 20: a rate needs a unit; write \"20 Mbit/s\"",
    );
    forward_refused(
        "delay = 300",
        ".delay: 300: a time needs a unit; write \"300 ms\" or \"300 s\"",
    );
    forward_refused(
        "loss = 0.01",
        ".loss: 0.01: a ratio needs a unit; write \"0.01 %\"",
    );
    forward_refused(
        "queue = 25",
        ".queue: 25: not a queue size; write it like \"25 packets\", \"36 MB\", \"200 ms\" or \"1 \
         BDP\"",
    );
    forward_refused(
        "loss = { model = \"periodic\", every = 100 }",
        ".loss.every: 100: needs a unit; write \"100 packets\"",
    );
    let text = file(SAT).replace("\"60 s\"", "60");
    refused(
        &text,
        "timeout: 60: a time needs a unit; write \"60 ms\" or \"60 s\"",
    );
}

#[test]
fn a_negative_or_empty_value() {
    forward_refused(
        "rate = \"-20 Mbit/s\"",
        ".rate: -20 Mbit/s: a rate cannot be negative; write it like \"20 Mbit/s\"",
    );
    forward_refused(
        "rate = -20",
        ".rate: -20: a rate cannot be negative; write it like \"20 Mbit/s\"",
    );
    forward_refused(
        "rate = \"0 Mbit/s\"",
        ".rate: 0 Mbit/s: lets nothing through; write \"20 Mbit/s\" or \"unlimited\"",
    );
    forward_refused(
        "rate = \"\"",
        ".rate: : a rate is a number with a unit; write it like \"20 Mbit/s\"",
    );
    forward_refused(
        "queue = \"-1 BDP\"",
        ".queue: -1 BDP: not a number of BDP; write it like \"0.25 BDP\"",
    );
    forward_refused(
        "queue = \"2.5 packets\"",
        ".queue: 2.5 packets: a number of packets is a whole number; write \"25 packets\"",
    );
    forward_refused(
        "loss = \"101 %\"",
        ".loss: 101 %: more than 100 %, the most that a ratio can be; write a smaller number",
    );
}

#[test]
fn an_unknown_key() {
    forward_refused(
        "rte = \"20 Mbit/s\"",
        &format!(".rte: 20 Mbit/s: unknown key; did you mean \"rate\"? Known here: {KEYS}"),
    );
    forward_refused(
        "jitter = \"5 ms\"",
        &format!(".jitter: 5 ms: unknown key; known here: {KEYS}"),
    );
    forward_refused(
        "queue = { size = \"1 MB\", aqm = \"blue\" }",
        ".queue.aqm: blue: unknown queue discipline; write one of \"codel\", \"dualpi2\", \
         \"fq\", \"fq-codel\", \"head-drop\", \"pi2\", \"pie\", \"red\", \"step\"",
    );
    forward_refused(
        "queue = { size = \"1 MB\", aqm = \"red\", min = \"9 packets\" }",
        ".queue.min: 9 packets: write it in the unit of the queue's size, 1 MB",
    );
    forward_refused(
        "queue = { size = \"1 MB\", aqm = \"red\", min = \"9 kB\", max = \"9 kB\" }",
        ".queue.max: 9 kB: not valid: max is above min",
    );
    forward_refused(
        "queue = { size = \"1 MB\", aqm = \"pie\", update = \"0 ms\" }",
        ".queue.update: 0 ms: not valid: update is above 0 ms",
    );
    forward_refused(
        "queue = { size = \"1 MB\", aqm = \"pi2\", rtt_max = \"1 us\" }",
        ".queue.rtt_max: 1 us: not valid: rtt_max is from 10 us to 100 s",
    );
    forward_refused(
        "queue = { size = \"1 MB\", aqm = \"pi2\", update = \"0 ms\" }",
        ".queue.update: 0 ms: not valid: update is from 1 us to 100 s",
    );
    forward_refused(
        "queue = { size = \"1 MB\", aqm = \"pi2\", coupling = 2 }",
        ".queue.coupling: 2: unknown key; known here: size, drop_above, drop_ratio, aqm, target, \
         rtt_max, update, ecn",
    );
    forward_refused(
        "queue = { size = \"1 MB\", aqm = \"dualpi2\", coupling = 0 }",
        ".queue.coupling: 0: not valid: coupling is from 1 to 255",
    );
    forward_refused(
        "queue = { size = \"1 MB\", aqm = \"dualpi2\", mark_above = \"200 s\" }",
        ".queue.mark_above: 200 s: not valid: mark_above is from 0 ms to 100 s",
    );
    forward_refused(
        "queue = { size = \"1 MB\", aqm = \"step\" }",
        ".queue.mark_above: missing; write mark_above = \"5 ms\"",
    );
    forward_refused(
        "queue = { size = \"1 MB\", aqm = \"codel\", interval = \"5 ms\" }",
        ".queue.interval: 5 ms: not valid: interval is above the target",
    );
    forward_refused(
        "queue = { size = \"1 MB\", aqm = \"fq-codel\", flows = 0 }",
        ".queue.flows: 0: not valid: flows is from 1 to 65536",
    );
    forward_refused(
        "queue = { size = \"1 MB\", aqm = \"codel\", ecn = \"yes\" }",
        ".queue.ecn: yes: write \"on\" or \"off\"",
    );
    forward_refused(
        "queue = { size = \"1 MB\", drop_above = \"1 kB\", drop_ratio = \"1 %\", aqm = \"codel\" }",
        ".queue.aqm: codel: stands in place of drop_above and drop_ratio",
    );
    forward_refused(
        "queue = { size = \"1 MB\", drop_abov = \"1 kB\" }",
        ".queue.drop_abov: 1 kB: unknown key; did you mean \"drop_above\"? \
         Known here: size, drop_above, drop_ratio, aqm",
    );
    forward_refused(
        "loss = { model = \"periodic\", every = \"9 packets\", brst = \"2 packets\" }",
        ".loss.brst: 2 packets: unknown key; did you mean \"burst\"? Known here: model, every, \
         burst",
    );
    refused(
        &(file(SAT) + "[satelite.forward]\nrate = \"1 Mbit/s\"\n"),
        "satelite: { forward = { rate = \"1 Mbit/s\" } }: unknown key; did you mean \"satellite\"? \
         Known here: name, title, source, notes, timeout, access, satellite, ground, \
         paths, path",
    );
    refused(
        &(file(SAT) + "[ground.up]\n"),
        "ground.up: {}: unknown key; known here: forward, return",
    );
}

#[test]
fn a_missing_key() {
    refused("", "title: missing; write title = \"GEO, 20/2 Mbit/s\"");
    let without = |line: &str| file(SAT).replace(line, "");
    refused(
        &without("timeout = \"60 s\"\n"),
        "timeout: missing; write timeout = \"120 s\"",
    );
    refused(
        "title = \"t\"\nsource = \"s\"\ntimeout = \"1 s\"",
        "satellite: missing; write satellite = { forward = { delay = \"300 ms\" }, return = { \
         delay = \"300 ms\" } }",
    );
    forward_refused(
        "queue = { drop_above = \"1 MB\" }",
        ".queue.size: missing; write size = \"25 packets\", \"36 MB\", \"200 ms\" or \"1 BDP\"",
    );
    forward_refused(
        "queue = { size = \"2 MB\", drop_above = \"1 MB\" }",
        ".queue.drop_above: 1 MB: needs a drop_ratio beside it",
    );
    forward_refused(
        "queue = { size = \"2 MB\", drop_ratio = \"1 %\" }",
        ".queue.drop_ratio: 1 %: needs a drop_above beside it",
    );
    forward_refused(
        "loss = { model = \"gilbert-elliott\", p_bad_given_good = \"1 %\" }",
        ".loss.p_bad_given_bad: missing; write p_bad_given_bad = \"6.5 %\"",
    );
}

#[test]
fn a_value_of_the_wrong_kind() {
    forward_refused(
        "rate = true",
        ".rate: true: a value with a unit is needed here; put it in quotes",
    );
    forward_refused(
        "delay = [\"1 ms\"]",
        ".delay: [\"1 ms\"]: a value with a unit is needed here; put it in quotes",
    );
    forward_refused(
        "loss = { model = \"rain\" }",
        ".loss.model: rain: unknown model of loss; write \"none\", \"1 %\" or { model = \
         \"gilbert-elliott\", p_bad_given_good = \"1.7 %\", p_bad_given_bad = \"6.5 %\" }",
    );
    forward_refused(
        "loss = { model = \"periodic\", every = \"2 packets\", burst = \"3 packets\" }",
        ".loss.every: 2 packets: a period has at least 1 packet, and as many as the burst",
    );
    forward_refused(
        "loss = \"much\"",
        ".loss: much: a ratio is a number with a unit; write it like \"1 %\"",
    );
    refused(
        &("satellite = 3\n".to_owned() + &file(SAT).replace("[satellite", "[ground")),
        "satellite: 3: a table is needed here",
    );
    refused(
        &file(SAT).replace("\"t\"", "7"),
        "title: 7: a text is needed here; put it in quotes",
    );
}

#[test]
fn a_rate_that_changes() {
    let table = "not a rate; write \"20 Mbit/s\", { steps = [[\"0 s\", \"50 Mbit/s\"], [\"5 s\", \
                 \"10 Mbit/s\"]] }, { mean = \"150 Mbit/s\", spread = \"20 %\", every = \"1 s\" }, \
                 { full = \"2 Mbit/s\", floor = \"128 kbit/s\", request_every = \"1 s\", \
                 granted_after = \"550 ms\", hold = \"2 s\" }, or { standard = \"dvb-s2\", \
                 symbol_rate = \"40 MBd\", es_n0 = \"12 dB\" }";
    let demand = |text: &str| {
        let whole = "{ full = \"2 Mbit/s\", floor = \"1 Mbit/s\", request_every = \"1 s\", \
                     granted_after = \"550 ms\", hold = \"2 s\" }";
        let key = text.split(' ').next().unwrap();
        let fields = whole.trim_matches(['{', '}', ' ']).split(", ");
        let others = fields.filter(|field| !field.starts_with(key));
        format!("{{ {}, {text} }}", others.collect::<Vec<_>>().join(", "))
    };
    for (rate, message) in [
        ("{ }", format!(": {{}}: {table}")),
        (
            "{ steps = [] }",
            ".steps: []: write steps like [[\"0 s\", \"50 Mbit/s\"], [\"15 s\", \"10 Mbit/s\"]]"
                .to_owned(),
        ),
        (
            "{ steps = [[\"0 s\", 5]] }",
            ".steps: [[\"0 s\", 5]]: write steps like [[\"0 s\", \"50 Mbit/s\"], [\"15 s\", \"10 \
             Mbit/s\"]]"
                .to_owned(),
        ),
        (
            "{ steps = [[\"1 s\", \"1 Mbit/s\"]] }",
            ".steps: [[\"1 s\", \"1 Mbit/s\"]]: the first time must be 0".to_owned(),
        ),
        (
            "{ steps = [[\"0 s\", \"0 bit/s\"]] }",
            ".steps: [[\"0 s\", \"0 bit/s\"]]: the last rate holds for ever, so it must be above 0"
            .to_owned(),
        ),
        (
            "{ steps = [[\"0 s\", \"0 bit/s\"]], period = \"1 s\" }",
            ".steps: [[\"0 s\", \"0 bit/s\"]]: lets nothing through; one rate must be above 0"
            .to_owned(),
        ),
        (
            "{ steps = [[\"0 s\", \"1 bit/s\"], [\"5 s\", \"2 bit/s\"]], period = \"5 s\" }",
            ".period: 5 s: must be longer than the time of the last step, 5 s".to_owned(),
        ),
        (
            "{ steps = [[\"0 s\", \"1 bit/s\"]], perod = \"5 s\" }",
            ".perod: 5 s: unknown key; did you mean \"period\"? Known here: trace, steps, period"
                .to_owned(),
        ),
        (
            "{ trace = \"no.mahi\" }",
            ".trace: no.mahi: cannot read scenarios/no.mahi: No such file or directory (os error 2)"
            .to_owned(),
        ),
        (
            "{ mean = \"0 bit/s\" }",
            ".mean: 0 bit/s: lets nothing through; write \"150 Mbit/s\"".to_owned(),
        ),
        (
            "{ mean = \"1 Mbit/s\", spread = \"20 %\" }",
            ".every: missing; write every = \"1 s\"".to_owned(),
        ),
        (
            "{ mean = \"1 Mbit/s\", spread = \"101 %\", every = \"1 s\" }",
            ".spread: 101 %: more than 100 %, the most that a ratio can be; write a smaller number"
                .to_owned(),
        ),
        (
            "{ mean = \"1 Mbit/s\", spread = \"20 %\", every = \"1 us\" }",
            ".every: 1 us: too short; write 1 ms or more, as in \"1 s\"".to_owned(),
        ),
        (
            &demand("floor = \"3 Mbit/s\""),
            ".floor: 3 Mbit/s: above the full rate, 2 Mbit/s".to_owned(),
        ),
        (
            &demand("request_every = \"0 s\""),
            ".request_every: 0 s: too short; write 1 ms or more, as in \"1 s\"".to_owned(),
        ),
        (
            "{ full = \"2 Mbit/s\" }",
            ".floor: missing; write floor = \"128 kbit/s\"".to_owned(),
        ),
    ] {
        let forward = format!("delay = \"1 ms\"\nrate = {rate}");
        forward_refused(&forward, &format!(".rate{message}"));
    }
}

#[test]
fn steps_of_a_delay_and_of_a_loss() {
    forward_refused(
        "delay = { steps = [[\"0 s\", \"2 ms\"], [\"1 s\", \"3 ms\"]], period = \"1 s\" }",
        ".delay.period: 1 s: must be longer than the time of the last step, 1 s",
    );
    forward_refused(
        "delay = { steps = [[\"1 s\", \"2 ms\"]] }",
        ".delay.steps: [[\"1 s\", \"2 ms\"]]: the first time must be 0",
    );
    for (steps, why) in [
        (
            "[[\"0 s\", \"2\"]]",
            "write steps like [[\"0 s\", \"0 %\"], [\"15 s\", \"100 %\"]]",
        ),
        (
            "[[\"0 s\", \"1 %\"], [\"0 s\", \"2 %\"]]",
            "times must increase",
        ),
    ] {
        forward_refused(
            &format!("delay = \"1 ms\"\nloss = {{ model = \"steps\", steps = {steps} }}"),
            &format!(".loss.steps: {steps}: {why}"),
        );
    }
    forward_refused(
        "delay = \"1 ms\"\nloss = { model = \"steps\" }",
        ".loss.steps: missing; write steps = [[\"0 s\", \"0 %\"], [\"5 s\", \"100 %\"]]",
    );
}

#[test]
fn jitter_frames_and_handovers() {
    forward_refused(
        "delay = { jitter = \"2 ms\" }",
        ".delay: { jitter = \"2 ms\" }: not a delay; write \"300 ms\", { base = \"300 ms\", jitter \
         = \"20 ms\" }, { steps = [[\"0 s\", \"300 ms\"], [\"15 s\", \"280 ms\"]] } or { trace = \
         \"file.csv\" }",
    );
    forward_refused(
        "delay = { base = \"2 ms\" }",
        ".delay.jitter: missing; write jitter = \"20 ms\"",
    );
    forward_refused(
        "delay = { base = \"2 ms\", jitter = \"1 ms\", first = \"1 s\" }",
        ".delay.first: 1 s: needs an every beside it",
    );
    forward_refused(
        "delay = { base = \"0 ms\", jitter = \"1 ms\" }",
        ".delay: a path needs a delay above 0 in each direction, at all times; write delay = \"300 \
         ms\"",
    );
    forward_refused(
        "delay = \"1 ms\"\nframe = \"0 ms\"",
        ".frame: 0 ms: a frame takes time; write \"10 ms\", or leave it out",
    );
    forward_refused(
        "loss = { model = \"handover\", every = \"1 s\", lasts = \"2 s\" }",
        ".loss.lasts: 2 s: longer than from one handover to the next, 1 s",
    );
    forward_refused(
        "loss = { model = \"handover\", lasts = \"2 s\" }",
        ".loss.every: missing; write every = \"15 s\"",
    );
}

#[test]
fn a_path_without_delay() {
    forward_refused(
        "rate = \"1 Mbit/s\"",
        ".delay: a path needs a delay above 0 in each direction, at all times; write delay = \"300 \
         ms\"",
    );
}

#[test]
fn a_timeout_that_nothing_can_meet() {
    let sets = [("timeout".to_owned(), "602 ms".to_owned())];
    let error = Scenario::parse(&file(SAT), "scenarios/sat.toml", &sets)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "scenarios/sat.toml with --set timeout=602 ms: timeout: 602 ms: nothing can be transferred \
         within it; handshake and request alone take 602 ms on this path"
    );
}

#[test]
fn a_missing_file() {
    let error = Scenario::load("no/such.toml".as_ref(), &[])
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "no/such.toml: cannot read the scenario: No such file or directory (os error 2)"
    );
    forward_refused(
        "delay = { trace = \"no.csv\" }",
        ".delay.trace: no.csv: cannot read scenarios/no.csv: No such file or directory (os error \
         2)",
    );
}

#[test]
fn what_is_no_toml() {
    let error = Scenario::parse("rate 20", "sat.toml", &[])
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("sat.toml: not TOML: TOML parse error at line 1, column 6"),
        "{error}"
    );
}

#[test]
fn a_change_that_cannot_be_made() {
    let file = "scenarios/sat.toml with --set";
    set_refused(
        "forward.quue",
        "1BDP",
        &format!(
            "{file} forward.quue=1BDP: satellite.forward.quue: 1BDP: unknown key; \
             did you mean \"queue\"? Known here: {KEYS}"
        ),
    );
    set_refused(
        "forward.rate",
        "20",
        &format!(
            "{file} forward.rate=20: satellite.forward.rate: 20: a rate needs a unit; write \"20 \
             Mbit/s\""
        ),
    );
    set_refused(
        "forwrd.rate",
        "1Mbit/s",
        &format!(
            "{file} forwrd.rate=1Mbit/s: forwrd: {{ rate = \"1Mbit/s\" }}: unknown key; \
             known here: name, title, source, notes, timeout, access, satellite, ground, \
             paths, path"
        ),
    );
    set_refused(
        "forward",
        "1Mbit/s",
        &format!("{file} forward=1Mbit/s: satellite.forward: 1Mbit/s: a table is needed here"),
    );
    set_refused(
        "forward.rate.max",
        "1Mbit/s",
        "--set forward.rate.max=1Mbit/s: rate is not a table in this scenario; set it as a whole",
    );
    set_refused(
        "forward..rate",
        "1Mbit/s",
        "--set forward..rate=1Mbit/s: not a key; write it like forward.queue=1BDP",
    );
    set_refused(
        "",
        "1",
        "--set =1: not a key; write it like forward.queue=1BDP",
    );
    let sets = [("forward.loss".to_owned(), "{ model = ".to_owned())];
    let error = Scenario::parse(&crate::file(SAT), "s.toml", &sets)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("--set forward.loss={ model = : not a TOML value: "),
        "{error}"
    );
}

#[test]
fn an_error_of_the_file_is_not_blamed_on_a_change() {
    let sets = [("forward.queue".to_owned(), "1BDP".to_owned())];
    let error = Scenario::parse(&file("rate = 20"), "s.toml", &sets)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "s.toml: satellite.forward.rate: 20: a rate needs a unit; write \"20 Mbit/s\""
    );
}

#[test]
fn json_is_as_strict() {
    let scenario = Scenario::parse(&file(SAT), "sat.toml", &[]).unwrap();
    let json = serde_json::to_string(&scenario).unwrap();
    let message = |json: &str| {
        serde_json::from_str::<Scenario>(json)
            .unwrap_err()
            .to_string()
    };
    assert!(
        message(&json.replace("\"20 Mbit/s\"", "20"))
            .starts_with("satellite.forward.rate: 20: a rate needs a unit; write \"20 Mbit/s\"")
    );
    assert!(message(&json.replace("\"rate\"", "\"rte\"")).starts_with("satellite.forward.rte: "));
    assert!(message(&json.replace("\"name\":\"sat\",", "")).starts_with("name: missing"));
}

#[test]
fn reordering_aggregation_and_bit_errors() {
    forward_refused(
        "delay = \"1 ms\"\nreorder = \"1 %\"",
        ".reorder: 1 %: not reordering; write { share = \"1 %\", distance = \"3 packets\" } or \
         { share = \"1 %\", by = \"5 ms\" }",
    );
    forward_refused(
        "delay = \"1 ms\"\nreorder = { share = \"1 %\" }",
        ".reorder.distance: missing; write distance = \"3 packets\", or by = \"5 ms\"",
    );
    forward_refused(
        "delay = \"1 ms\"\nreorder = { share = \"1 %\", by = \"5 ms\", distance = \"1 packet\" }",
        ".reorder.by: 5 ms: either distance or by, not both; leave one out",
    );
    forward_refused(
        "delay = \"1 ms\"\nreorder = { share = \"1 %\", by = \"5 ms\", wait = \"1 s\" }",
        ".reorder.wait: 1 s: unknown key; known here: share, distance, by",
    );
    forward_refused(
        "delay = \"1 ms\"\nreorder = { share = \"1 %\", distance = \"0 packets\" }",
        ".reorder.distance: 0 packets: nothing passes it; write \"3 packets\"",
    );
    forward_refused(
        "delay = \"1 ms\"\nbit_errors = \"1 %\"",
        ".bit_errors: 1 %: not a rate of bit errors; write it like \"1e-6\"",
    );
    forward_refused(
        "delay = \"1 ms\"\naggregate = { hold = \"5 ms\", packets = 1 }",
        ".aggregate.packets: 1: at least two go on together; write 16",
    );
    forward_refused(
        "delay = \"1 ms\"\naggregate = { packets = 16 }",
        ".aggregate.hold: missing; write hold = \"5 ms\"",
    );
    forward_refused(
        "delay = \"1 ms\"\nbit_errors = 2.0",
        ".bit_errors: 2: every bit would be wrong; write it like \"1e-6\"",
    );
}
