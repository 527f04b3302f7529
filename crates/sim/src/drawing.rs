//! The nodes of a path, in the order of its packets, for a drawing.
//!
//! All comes from the scenario as it is written out: a key that is added to a direction appears
//! here by itself, with its value as a text. What does nothing is left out, as links do.

use bentpipe_link::{
    Direction, DirectionConfig, Handovers, HostName, LinkRate, Scenario, SegmentName,
};
use serde_json::{Map, Value, json};

/// The most parts of a list that are printed one by one.
const LISTED: usize = 6;

/// All paths, each as [`path`] draws it. Where there are several, the name of each stands before
/// its directions: `geo forward`.
pub fn all_paths(scenario: &Scenario) -> Value {
    if scenario.path_count() == 1 {
        return path(scenario);
    }
    let each = scenario.each_path();
    let named = scenario.path_names().into_iter().zip(&each);
    let drawn = named.flat_map(|(name, path)| {
        Direction::BOTH.map(|it| (format!("{name} {}", it.name()), direction(path, it)))
    });
    drawn.collect()
}

/// Both directions, each a list of hosts and of what is between them: `nodes` in the order in
/// which packets meet them, and `beside` what has no place among these.
fn path(scenario: &Scenario) -> Value {
    let each = Direction::BOTH.map(|it| (it.name().to_owned(), direction(scenario, it)));
    each.into_iter().collect()
}

fn direction(scenario: &Scenario, direction: Direction) -> Value {
    let mut links = scenario.whole().links(direction).peekable();
    let [from, to] = ends(direction, [HostName::Client, HostName::Server]);
    let (mut nodes, mut beside) = (vec![json!({ "host": from.name() })], Vec::new());
    while let Some((segment, link)) = links.next() {
        let (placed, others) = parts(segment, link, given(link));
        nodes.extend(placed);
        beside.extend(others);
        let [_, next] = ends(direction, segment.ends());
        let next = if links.peek().is_some() { next } else { to };
        nodes.push(json!({ "host": next.name() }));
    }
    json!({ "nodes": nodes, "beside": beside })
}

/// The source and the destination of packets, of hosts in the order from client to server.
fn ends(direction: Direction, [near, far]: [HostName; 2]) -> [HostName; 2] {
    match direction {
        Direction::Forward => [far, near],
        Direction::Return => [near, far],
    }
}

/// The keys of a link that have an effect.
fn given(link: &DirectionConfig) -> Map<String, Value> {
    let mut given = table(link);
    let transparent = table(&DirectionConfig::default());
    given.retain(|key, value| transparent.get(key) != Some(value));
    match &link.rate {
        // Nothing ever waits.
        None => drop(given.shift_remove("queue")),
        Some(_) => drop(given.insert("queue".to_owned(), json!(link.queue))),
    }
    given
}

/// The parts of a link that have a place among its nodes, in their order, and the others.
fn parts(
    segment: SegmentName,
    link: &DirectionConfig,
    mut given: Map<String, Value>,
) -> (Vec<Value>, Vec<Value>) {
    let mut placed = Vec::new();
    for key in link.keys_in_order() {
        if let Some(value) = given.shift_remove(key) {
            placed.push(part(segment, link, key, &value));
        }
    }
    let others = given.iter();
    let others = others.map(|(key, value)| part(segment, link, key, value));
    (placed, others.collect())
}

fn table(link: &DirectionConfig) -> Map<String, Value> {
    match serde_json::to_value(link) {
        Ok(Value::Object(table)) => table,
        _ => unreachable!("a direction is a table with texts as keys"),
    }
}

/// A part as a text, and the parameters that would make its box too large.
fn part(segment: SegmentName, link: &DirectionConfig, key: &str, value: &Value) -> Value {
    let (told, parameters) = match (key, value) {
        ("rate", _) => (link.rate.as_ref().map(LinkRate::to_string), None),
        ("delay", _) => (Some(link.delay.to_string()), None),
        ("loss", _) => (Some(link.loss.to_string()), None),
        ("handovers", _) => (link.handovers.as_ref().map(Handovers::to_string), None),
        ("queue", Value::Object(table)) => queue(table),
        _ => (None, None),
    };
    json!({
        "segment": segment.name(),
        "key": key,
        "text": told.unwrap_or_else(|| text(value)),
        "parameters": parameters,
    })
}

/// The size of a queue with its discipline, and the parameters of that.
fn queue(table: &Map<String, Value>) -> (Option<String>, Option<String>) {
    let size = table.get("size").map(text).unwrap_or_default();
    let mut rest = table.clone();
    rest.retain(|key, _| key != "size" && key != "aqm");
    let rest = Some(rest).filter(|it| !it.is_empty());
    let rest = rest.map(|it| text(&Value::Object(it)));
    match table.get("aqm").map(text) {
        Some(name) => {
            let parameters = rest.map(|it| format!("{name}: {it}"));
            (Some(format!("{size}, {name}")), parameters)
        }
        None => (
            Some(
                [Some(size), rest]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(", "),
            ),
            None,
        ),
    }
}

/// A field as people read it: a text as it is, a table as `key value, key value`, a list in its
/// order, or by its length if it is long.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(table) => {
            let fields: Vec<String> = table
                .iter()
                .map(|(key, value)| format!("{} {}", key.replace('_', " "), text(value)))
                .collect();
            fields.join(", ")
        }
        Value::Array(list) if list.len() > LISTED => format!("{} of them", list.len()),
        Value::Array(list) => {
            let inner = |it: &Value| match it {
                Value::Array(pair) => pair.iter().map(text).collect::<Vec<_>>().join(" "),
                other => text(other),
            };
            list.iter().map(inner).collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(rest: &str) -> Scenario {
        let head = "title = \"t\"\nsource = \"s\"\ntimeout = \"60 s\"\n";
        Scenario::parse(&format!("{head}{rest}"), "a.toml", &[]).expect("the scenario is valid")
    }

    /// A direction in a line: hosts, and parts as `key text`.
    fn line(path: &Value, direction: &str) -> String {
        let nodes = path[direction]["nodes"].as_array().expect("a list");
        let each = nodes.iter().map(|it| match it["host"].as_str() {
            Some(host) => host.to_owned(),
            None => format!("[{} {}]", text(&it["key"]), text(&it["text"])),
        });
        each.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn nodes_stand_in_the_order_in_which_packets_meet_them() {
        let path = path(&scenario(
            "[satellite.forward]\ndelay = \"300 ms\"\nloss = \"0.1 %\"\nrate = \"20 Mbit/s\"\n\
             frame = \"10 ms\"\nqueue = { size = \"1 BDP\", aqm = \"fq-codel\" }\n\
             [satellite.return]\ndelay = \"300 ms\"\nqueue = \"9 packets\"\n\
             duplicate = { share = \"2 %\", after = \"1 ms\" }\n\
             [ground.forward]\nrate = \"1 Gbit/s\"\n\
             queue = { size = \"9 MB\", drop_above = \"1 MB\", drop_ratio = \"5 %\" }\n",
        ));
        assert_eq!(
            line(&path, "forward"),
            "server [queue 9 MB, drop above 1 MB, drop ratio 5 %] [rate 1 Gbit/s] gateway \
             [queue 1 BDP, fq-codel] [rate 20 Mbit/s] \
             [frame 10 ms] [loss 0.1 %] [delay 300 ms] client"
        );
        assert_eq!(
            path["forward"]["nodes"][4]["parameters"],
            "fq-codel: target 5 ms, interval 100 ms, ecn on, flows 1024, quantum 1.514 kB"
        );
        // Without a rate nothing waits; ground, which is transparent this way, is passed.
        assert_eq!(
            line(&path, "return"),
            "client [delay 300 ms] [duplicate share 2 %, after 1 ms] gateway server"
        );
    }

    #[test]
    fn a_key_without_a_place_is_beside_the_others() {
        let scenario = scenario(
            "[satellite.forward]\ndelay = \"9 ms\"\n[satellite.return]\ndelay = \"9 ms\"\n",
        );
        let link = &scenario.satellite.forward;
        let mut given = given(link);
        let windows = json!({ "of": [["5 s", "1 s"], ["20 s", "2 s"]], "burst_size": "9 kB" });
        given.insert("windows".to_owned(), windows);
        let (placed, others) = parts(SegmentName::Satellite, link, given);
        assert_eq!(placed.len(), 1);
        assert_eq!(others[0]["key"], "windows");
        assert_eq!(others[0]["text"], "of 5 s 1 s; 20 s 2 s, burst size 9 kB");
        assert_eq!(text(&json!([1, 2, 3, 4, 5, 6, 7])), "7 of them");
    }
}
