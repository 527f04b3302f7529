//! The configuration file: the example is complete, and what is wrong is named.

use std::path::Path;

use bentpipe_service::SettingsError;
use bentpipe_service::settings::{Override, SettingsFile as _, Source};

use super::{Intercept, Settings};

const EXAMPLE: &str = include_str!("../../../../../examples/tcp-pep.toml");
const DEVICES: &str = "[intercept]\nclients = \"a\"\nservers = \"b\"\nports = [1]\n";

fn parse(text: &str) -> Result<Settings, SettingsError> {
    let file = Path::new("etc/tcp-pep.toml");
    Settings::parse(Some(Source { file, text }), &[])
}

#[test]
fn the_example_says_what_holds_without_it() {
    let example = parse(EXAMPLE).unwrap();
    let plain = Settings {
        intercept: example.intercept.clone(),
        metrics: example.metrics.clone(),
        ..Settings::default()
    };
    assert_eq!(example, plain);
}

/// Every key that can be written, so that the example can be trusted to have all.
#[test]
fn the_example_names_every_key() {
    let mut full = parse(EXAMPLE).unwrap();
    full.next_hop = Some("h:1".parse().unwrap());
    full.pool.gateway = Some("h:1".parse().unwrap());
    full.client_side.iw = Some(1);
    full.client_side.rate = Some("1 Mbit/s".parse().unwrap());
    let all: toml::Table = full.to_toml().parse().unwrap();
    for (key, value) in &all {
        assert!(EXAMPLE.contains(key), "{key}");
        for name in value.as_table().into_iter().flat_map(toml::Table::keys) {
            assert!(EXAMPLE.contains(name), "{name}");
        }
    }
}

#[test]
fn what_is_understood_can_be_read_again() {
    let example = parse(EXAMPLE).unwrap();
    assert_eq!(parse(&example.to_toml()).unwrap(), example);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (text, place, words) in [
        ("colour = 1\n", ", line 1", "unknown field"),
        ("[limits]\nbuffer = \"1 apple\"\n", ", line 2", "1 apple"),
        ("", "", "nowhere that clients come from"),
        ("listen = [\"127.0.0.1:1\"]", "", "nowhere to go"),
        ("next-hop = \"h:1\"", "", "no connection goes there"),
        (
            &format!("listen = [\"127.0.0.1:1\"]\nnext-hop = \"h:1\"\n{DEVICES}"),
            "",
            "exclude",
        ),
        (
            "[intercept]\nclients = \"a\"\nservers = \"a\"\nports = [1]",
            "",
            "both \"a\"",
        ),
        (
            "[intercept]\nclients = \"a\"\nservers = \"a/b\"\nports = [1]",
            "",
            "intercept.servers = \"a/b\"",
        ),
        (
            "[intercept]\nclients = \"a\"\nservers = \"b\"",
            "",
            "intercept.ports = []",
        ),
        (
            "[pool]\nlisten = [\"[::]:1\"]",
            "",
            "pool.terminals is empty",
        ),
        (
            "[pool]\nlisten = [\"[::]:1\"]\ngateway = \"h:1\"\nterminals = [\"::1\"]",
            "",
            "exclude each other",
        ),
        (
            &format!("accept = \"late\"\n{DEVICES}[pool]\ngateway = \"h:1\""),
            "",
            "says nothing of the server",
        ),
        (
            &format!("accept = \"late\"\nworkers = 2\n{DEVICES}"),
            "",
            "workers = 2",
        ),
        (
            "accept = \"late\"\nlisten = [\"127.0.0.1:1\"]\nnext-hop = \"h:1\"",
            "",
            "only SYNs that are intercepted",
        ),
        (
            &format!("{DEVICES}[client-side]\ncc = \"vegan\""),
            "",
            "client-side.cc = \"vegan\": this kernel has",
        ),
        (
            &format!("{DEVICES}[server-side]\niw = 0"),
            "",
            "server-side.iw = 0",
        ),
        (
            "listen = [\"127.0.0.1:1\"]\nnext-hop = \"h:1\"\n[server-side]\niw = 9",
            "",
            "there is no device",
        ),
        (
            &format!("{DEVICES}[server-side]\nrate = \"1 bit/s\""),
            "",
            "server-side.rate",
        ),
        (
            &format!("{DEVICES}[server-side]\npacing = \"yes\""),
            ", line 6",
            "unknown variant `yes`, expected `on` or `off`",
        ),
        (
            &format!("{DEVICES}[limits]\nconnections = 0"),
            "",
            "limits.connections = 0",
        ),
        (
            &format!("{DEVICES}[limits]\nmemory = \"300 KiB\""),
            "",
            "less than two",
        ),
        (
            &format!("{DEVICES}[times]\nidle = \"2 ms\""),
            "",
            "times.idle",
        ),
    ] {
        let problem = parse(text).expect_err(text);
        assert_eq!(problem.place, format!("etc/tcp-pep.toml{place}"), "{text}");
        assert!(problem.what.contains(words), "{text}: {problem:?}");
        assert!(!problem.hint.is_empty(), "{problem:?}");
    }
}

#[test]
fn flags_alone_are_enough() {
    let of = |path: &[&str], value: toml::Value| Override::new("--flag", path, value);
    let flags = [
        of(&["intercept", "clients"], "a".into()),
        of(&["intercept", "servers"], "b".into()),
        of(&["intercept", "ports"], vec![443].into()),
        of(&["server-side", "iw"], "100".into()),
    ];
    let settings = Settings::parse(None, &flags).unwrap();
    let intercept = Intercept {
        clients: "a".to_owned(),
        servers: "b".to_owned(),
        ports: vec![443],
    };
    assert_eq!(settings.intercept, Some(intercept));
    assert_eq!(settings.server_side.iw, Some(100));
}
