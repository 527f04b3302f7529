//! The configuration file: the example is complete, what is wrong is named, and nothing that
//! anybody writes makes the program fall over.

use std::path::Path;

use bentpipe_service::SettingsError;
use bentpipe_service::settings::{Override, SettingsFile as _, Source};
use proptest::prelude::*;

use super::file::ProxyFile;
use super::keep;
use super::resolved::ResolvedProxy;

const EXAMPLE: &str = include_str!("../../../../../examples/masque.toml");
const ANYBODY: &str = "[clients]\nanybody = true\n";

fn parse(text: &str) -> Result<ProxyFile, SettingsError> {
    let file = Path::new("etc/masque.toml");
    ProxyFile::parse(Some(Source { file, text }), &[])
}

fn problem(text: &str) -> SettingsError {
    parse(text).expect_err(text)
}

#[test]
fn the_example_says_what_holds_without_it() {
    let example = parse(EXAMPLE).unwrap();
    let plain = ProxyFile {
        certificate: example.certificate.clone(),
        clients: example.clients.clone(),
        metrics: example.metrics.clone(),
        ..ProxyFile::default()
    };
    assert_eq!(example, plain);
}

/// Every key that can be written, so that the example can be trusted to have all.
#[test]
fn the_example_names_every_key() {
    let mut full = parse(EXAMPLE).unwrap();
    full.clients.ca = Some("a".into());
    full.clients.tokens = Some("b".into());
    let all: toml::Table = full.to_toml().parse().unwrap();
    let check = |key: &str| assert!(EXAMPLE.contains(key), "{key}");
    for (key, value) in &all {
        check(key);
        for name in value.as_table().into_iter().flat_map(toml::Table::keys) {
            check(name);
        }
    }
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_a_hint() {
    for (text, place, words) in [
        ("colour = 1\n", "etc/masque.toml, line 1", "unknown field"),
        (
            "[targets]\nallow = [\"everything\"]\n",
            "etc/masque.toml, line 2",
            "HOSTS:PORTS",
        ),
        ("", "etc/masque.toml", "who may come"),
        (
            &format!("{ANYBODY}tokens = \"t\"\n"),
            "etc/masque.toml",
            "clients.anybody = true",
        ),
        (
            &format!("listen = []\n{ANYBODY}"),
            "etc/masque.toml",
            "listen = []",
        ),
        (
            &format!("{ANYBODY}[targets]\nallow = []\n"),
            "etc/masque.toml",
            "targets.allow = []",
        ),
        (
            &format!("{ANYBODY}[ip]\npool = [\"10.9.0.1/24\"]\n"),
            "etc/masque.toml, line 4",
            "write 10.9.0.0/24",
        ),
        (
            &format!("{ANYBODY}[ip]\npool = [\"10.9.0.0/24\", \"10.0.0.0/8\"]\n"),
            "etc/masque.toml",
            "overlap",
        ),
        (
            &format!("{ANYBODY}[ip]\npool = [\"10.9.0.0/24\", \"fe80::/64\"]\n"),
            "etc/masque.toml",
            "ip.pool: fe80::/64 has",
        ),
        (
            &format!("{ANYBODY}[ip]\npool = [\"0.0.0.0/1\"]\n"),
            "etc/masque.toml",
            "ip.pool: 0.0.0.0/1 has",
        ),
        (
            &format!("{ANYBODY}[ip]\ndevice = \"\"\n"),
            "etc/masque.toml",
            "ip.device",
        ),
        (
            &format!("{ANYBODY}[limits]\nip-requests-per-client = 0\n"),
            "etc/masque.toml",
            "limits.ip-requests-per-client = 0",
        ),
        (
            &format!("workers = 65\n{ANYBODY}"),
            "etc/masque.toml",
            "workers = 65",
        ),
        (
            &format!("{ANYBODY}[limits]\nrequests = 0\n"),
            "etc/masque.toml",
            "limits.requests = 0",
        ),
        (
            &format!("{ANYBODY}[limits]\nqueue = \"1 B\"\n"),
            "etc/masque.toml",
            "limits.queue",
        ),
        (
            &format!("{ANYBODY}[tunnel]\nqueue = 5000\n"),
            "etc/masque.toml",
            "tunnel.queue",
        ),
        (
            &format!("{ANYBODY}[times]\nidle = \"2 ms\"\n"),
            "etc/masque.toml",
            "times.idle",
        ),
    ] {
        let problem = problem(text);
        assert_eq!(problem.place, place, "{text}");
        assert!(problem.what.contains(words), "{text}: {problem:?}");
        assert!(!problem.hint.is_empty());
    }
}

#[test]
fn a_pool_needs_targets_with_addresses_and_room_for_ipv6() {
    let resolved = |text: String| ResolvedProxy::new(parse(&text).unwrap()).map(drop);
    let pool = "[ip]\npool = [\"10.9.0.0/24\", \"fd00:9::/64\"]\n";
    assert_eq!(resolved(format!("{ANYBODY}{pool}")), Ok(()));
    let named = format!("{ANYBODY}{pool}[targets]\nallow = [\"www.example.org:443\"]\n");
    let problem = resolved(named).unwrap_err();
    assert!(
        problem.place == "targets.allow" && problem.what.contains("ip.pool"),
        "{problem}"
    );
    let small = format!("{ANYBODY}{pool}[tunnel]\nmtu = 1300\n");
    let problem = resolved(small).unwrap_err();
    assert!(
        problem.place == "tunnel.mtu" && problem.what.contains("1260"),
        "{problem}"
    );
}

#[test]
fn the_size_of_packets_holds_as_long_as_the_device() {
    let file = |text: &str| parse(&format!("{ANYBODY}{text}")).unwrap();
    let pool = "[ip]\npool = [\"10.9.0.0/24\"]\n";
    let old = file(&format!("{pool}[tunnel]\nmtu = 1400\n"));
    let mut new = file(&format!("{pool}[tunnel]\ncarry = \"streams\"\niw = 20\n"));
    assert_eq!(keep(&old, &mut new), ["tunnel.mtu", "tunnel.carry"]);
    assert_eq!(new, file(&format!("{pool}[tunnel]\nmtu = 1400\niw = 20\n")));
    let (old, mut new) = (
        file("[tunnel]\nmtu = 1400\n"),
        file("[tunnel]\nmtu = 1300\n"),
    );
    assert_eq!(keep(&old, &mut new), [""; 0]);
    assert_eq!(new, file("[tunnel]\nmtu = 1300\n"));
}

#[test]
fn flags_change_what_the_file_says() {
    let change = Override::new("--allow", &["targets", "allow"], vec!["public:443"]);
    let file = Path::new("masque.toml");
    let source = Source {
        file,
        text: EXAMPLE,
    };
    let settings = ProxyFile::parse(Some(source), &[change]).unwrap();
    assert_eq!(settings.targets.allow[0].to_string(), "public:443");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let refused = parse(&text).err();
        prop_assert!(refused.is_none_or(|it| !it.what.is_empty() && !it.hint.is_empty()));
    }

    #[test]
    fn any_edit_of_the_example_is_read_or_refused(
        at: prop::sample::Index,
        length in 0..40_usize,
        word in "[ -~\\n]{0,12}",
    ) {
        let lines = EXAMPLE.lines().filter(|line| !line.starts_with('#'));
        let mut text: Vec<char> = lines.flat_map(|line| line.chars().chain(['\n'])).collect();
        let start = at.index(text.len() + 1);
        let end = (start + length).min(text.len());
        text.splice(start..end, word.chars());
        let text: String = text.into_iter().collect();
        match parse(&text) {
            Ok(settings) => {
                let (file, text) = (Path::new("again.toml"), settings.to_toml());
                let source = Source { file, text: &text };
                prop_assert_eq!(ProxyFile::parse(Some(source), &[]).unwrap(), settings);
            }
            Err(problem) => prop_assert!(!problem.what.is_empty() && !problem.hint.is_empty()),
        }
    }
}
