//! Refused policers, shapers, outages and other nodes: file, key, value and what to write.

use crate::parse;

/// The error for keys of the forward direction.
#[track_caller]
fn refused(keys: &str, message: &str) {
    let error = parse(&format!("delay = \"1 ms\"\n{keys}"))
        .unwrap_err()
        .to_string();
    assert_eq!(error, format!("test.toml: satellite.forward.{message}"));
}

#[test]
fn token_buckets() {
    for name in ["policer", "shaper"] {
        let bad = |table: &str, message: &str| {
            refused(&format!("{name} = {table}"), &format!("{name}{message}"));
        };
        bad("\"10 Mbit/s\"", ": 10 Mbit/s: a table is needed here");
        bad(
            "{ burst = \"9 kB\" }",
            ".rate: missing; write rate = \"10 Mbit/s\"",
        );
        bad(
            "{ rate = \"9 Mbit/s\" }",
            ".burst: missing; write burst = \"64 kB\"",
        );
        bad(
            "{ rate = \"0 Mbit/s\", burst = \"9 kB\" }",
            ".rate: 0 Mbit/s: lets nothing through; write \"10 Mbit/s\"",
        );
        bad(
            "{ rate = \"9 Mbit/s\", burst = \"1 kB\" }",
            ".burst: 1 kB: lets no full-sized packet through; write 1500 B or more, as in \
             \"64 kB\"",
        );
    }
    refused(
        "policer = { rate = \"9 Mbit/s\", burst = \"9 kB\", queue = \"1 BDP\" }",
        "policer.queue: 1 BDP: unknown key; known here: rate, burst",
    );
    refused(
        "shaper = { rate = \"9 Mbit/s\", burst = \"9 kB\", queue = 25 }",
        "shaper.queue: 25: not a queue size; write it like \"25 packets\", \"36 MB\", \"200 ms\" \
         or \"1 BDP\"",
    );
}

#[test]
fn outages() {
    let bad = |value: &str, message: &str| {
        let keys = format!("rate = \"9 Mbit/s\"\noutages = {value}");
        refused(&keys, &format!("outages{message}"));
    };
    let like = "write outages like [{ at = \"10 s\", for = \"2 s\" }] or { every = \"15 s\", for = \
                \"100 ms\" }";
    bad("[]", &format!(": []: {like}"));
    bad("\"10 s\"", &format!(": 10 s: {like}"));
    bad("[\"10 s\"]", ".0: 10 s: a table is needed here");
    bad(
        "[{ at = \"10 s\" }]",
        ".0.for: missing; write for = \"2 s\"",
    );
    bad(
        "[{ at = \"9 s\", for = \"2 s\" }, { at = \"10 s\", for = \"2 s\" }]",
        ".1.at: 10 s: begins before the one before it has ended, at 11 s",
    );
    bad(
        "[{ at = \"9 s\", for = \"0 s\" }]",
        ".0.for: 0 s: an outage takes time; write \"100 ms\"",
    );
    bad(
        "{ every = \"1 s\", for = \"1 s\" }",
        ".for: 1 s: must be shorter than from one to the next, 1 s",
    );
    bad(
        "{ for = \"1 s\" }",
        ".every: missing; write every = \"15 s\"",
    );
    bad(
        "{ every = \"2 s\", for = \"1 s\", queue = \"drop\" }",
        ".queue: drop: write \"keep\" or \"flush\"",
    );
    refused(
        "outages = [{ at = \"9 s\", for = \"1 s\" }]",
        "outages: [{ at = \"9 s\", for = \"1 s\" }]: a link without a rate sends at once; write a \
         rate beside it",
    );
}

#[test]
fn orders() {
    let keys = "rate = \"9 Mbit/s\"\npolicer = { rate = \"9 Mbit/s\", burst = \"9 kB\" }\n";
    let bad = |order: &str, message: &str| {
        refused(
            &format!("{keys}order = {order}"),
            &format!("order{message}"),
        );
    };
    bad(
        "\"usual\"",
        ": usual: write the nodes in their order, as in [\"policer\", \"queue\", \"loss\", \
         \"delay\"]",
    );
    bad("[3]", ".0: 3: a text is needed here; put it in quotes");
    bad(
        "[\"queue\", \"polcer\"]",
        ".1: polcer: unknown node; did you mean \"policer\"? Known: mtu, udp, policer, shaper, \
         queue, loss, bit_errors, delay, aggregate, duplicate, reorder",
    );
    bad(
        "[\"queue\", \"delay\", \"queue\"]",
        ".2: queue: stands here twice; a packet meets each node once",
    );
    bad(
        "[\"queue\", \"delay\"]",
        ": [\"queue\", \"delay\"]: leaves out \"policer\", which this direction has; add it",
    );
    bad(
        "[\"policer\", \"queue\"]",
        ": [\"policer\", \"queue\"]: leaves out \"delay\", which this direction has; add it",
    );
    // Keys that a direction does not have may be named.
    let order = "order = [\"shaper\", \"policer\", \"queue\", \"loss\", \"delay\"]";
    parse(&format!("delay = \"1 ms\"\n{keys}{order}")).unwrap();
}

#[test]
fn duplicates() {
    refused(
        "duplicate = \"0.1\"",
        "duplicate: 0.1: a ratio needs a unit; write \"0.1 %\"",
    );
    refused(
        "duplicate = [\"0.1 %\"]",
        "duplicate: [\"0.1 %\"]: a value with a unit is needed here; put it in quotes",
    );
    refused(
        "duplicate = { after = \"1 ms\" }",
        "duplicate.share: missing; write share = \"0.1 %\"",
    );
    refused(
        "duplicate = { share = \"1 %\", afer = \"1 ms\" }",
        "duplicate.afer: 1 ms: unknown key; did you mean \"after\"? Known here: share, after",
    );
}

#[test]
fn mtus() {
    for value in ["67 B", "65536 B"] {
        let message =
            format!("mtu: {value}: no MTU of IP; write 68 B to 65535 B, as in \"1400 B\"");
        refused(&format!("mtu = \"{value}\""), &message);
    }
    refused(
        "mtu = 1400",
        "mtu: 1400: a size needs a unit; write \"1400 MB\"",
    );
}

#[test]
fn udp() {
    let bad = |keys: &str, value: &str, message: &str| {
        refused(&format!("{keys}udp = {value}"), &format!("udp{message}"));
    };
    bad("", "\"low\"", ": low: a table is needed here");
    bad(
        "",
        "{ }",
        ": {}: does nothing; write a rate and burst, a drop, or a priority",
    );
    bad(
        "",
        "{ rate = \"1 Mbit/s\" }",
        ".burst: missing; write burst = \"64 kB\"",
    );
    bad(
        "",
        "{ dorp = \"1 %\" }",
        ".dorp: 1 %: unknown key; did you mean \"drop\"? Known here: drop, priority, rate, burst",
    );
    let low = "{ priority = \"low\" }";
    bad(
        "",
        low,
        ".priority: low: a link without a rate has no queue; write a rate beside udp",
    );
    let rate = "rate = \"1 Mbit/s\"\n";
    bad(
        rate,
        "{ priority = \"lowest\" }",
        ".priority: lowest: write \"low\" or \"high\"",
    );
    for more in [
        "aqm = \"fq\"",
        "drop_above = \"1 packet\", drop_ratio = \"5 %\"",
    ] {
        bad(
            &format!("{rate}queue = {{ size = \"9 packets\", {more} }}\n"),
            low,
            ".priority: low: needs a drop-tail queue; leave out aqm and drop_above of the queue",
        );
    }
}

#[test]
fn sources_that_cannot_be() {
    let bad = |sources: &str, message: &str| {
        refused(
            &format!("rate = \"20 Mbit/s\"\nsources = {sources}"),
            message,
        );
    };
    bad(
        "[{ kind = \"cbr\", rate = \"5 Mbit/s\" }]",
        "sources.0.stop: missing; write stop = \"60 s\", when it ends",
    );
    bad(
        "[{ kind = \"cbr\", rate = \"5 Mbit/s\", start = \"9 s\", stop = \"8 s\" }]",
        "sources.0.stop: 8 s: not after its start, 9 s; write a later time",
    );
    bad(
        "[{ kind = \"cbr\", rate = \"5 Mbit/s\", stop = \"8 s\" }, { kind = \"poisson\" }]",
        "sources.1.kind: poisson: no kind of source; write \"cbr\", \"on-off\", \"web\" or \
         \"replay\"",
    );
    bad(
        "[{ kind = \"cbr\", rate = \"0 bit/s\", stop = \"8 s\" }]",
        "sources.0.rate: 0 bit/s: a source sends something; write a rate above 0 bit/s",
    );
    bad(
        "[{ kind = \"cbr\", rate = \"5 Mbit/s\", packet = \"70 kB\", stop = \"8 s\" }]",
        "sources.0.packet: 70 kB: an IP packet has 20 to 65535 bytes; write \"1500 B\"",
    );
    bad(
        "[{ kind = \"cbr\", rate = \"5 Mbit/s\", flows = 0, stop = \"8 s\" }]",
        "sources.0.flows: 0: a source has 1 to 1000 flows",
    );
    bad(
        "[{ kind = \"on-off\", rate = \"5 Mbit/s\", on = \"1 s\", off = \"0 s\", stop = \"8 s\" }]",
        "sources.0.off: 0 s: too short; write a mean of 1 ms or more, like \"1 s\"",
    );
    bad(
        "[{ kind = \"web\", load = \"5 Mbit/s\", sizes = \"pareto\", stop = \"8 s\" }]",
        "sources.0.sizes: pareto: no distribution of sizes; write \"web\", or one size like \
         \"100 kB\"",
    );
    bad(
        "{ kind = \"web\" }",
        "sources: { kind = \"web\" }: sources are a list of tables; write \
         [{ kind = \"cbr\", rate = \"5 Mbit/s\", stop = \"60 s\" }]",
    );
    refused(
        "sources = []",
        "sources: []: needs a rate beside it: where nothing waits, sources are in nobody's way",
    );
}
