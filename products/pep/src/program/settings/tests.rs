//! The configuration file: the example is complete, what is wrong is named, and nothing that
//! anybody writes makes the program fall over.

use std::path::Path;

use bentpipe_service::SettingsError;
use bentpipe_service::settings::{Override, SettingsFile as _, Source};
use proptest::prelude::*;

use super::{Auto, Settings};

const EXAMPLE: &str = include_str!("../../../../../examples/pep.toml");
const HOP: &str = "[next-hop]\naddress = \"127.0.0.1:1\"\nverify = false\n";

fn parse(text: &str) -> Result<Settings, SettingsError> {
    let file = Path::new("etc/pep.toml");
    Settings::parse(Some(Source { file, text }), &[])
}

fn problem(text: &str) -> SettingsError {
    parse(text).expect_err(text)
}

#[test]
fn the_example_says_what_holds_without_it() {
    let example = parse(EXAMPLE).unwrap();
    let plain = Settings {
        next_hop: example.next_hop.clone(),
        certificate: example.certificate.clone(),
        metrics: example.metrics.clone(),
        ..Settings::default()
    };
    assert_eq!(example, plain);
    assert_eq!(
        example.certificate[0].key,
        Path::new("etc/../endpoints/certs/p256/priv.key")
    );
}

/// Every key that can be written, so that the example can be trusted to have all.
#[test]
fn the_example_names_every_key() {
    let mut full = parse(EXAMPLE).unwrap();
    full.next_hop.certificate = Some("a".into());
    full.next_hop.key = Some("b".into());
    full.next_hop.keylog = Some("c".into());
    full.clients.ca = Some("d".into());
    full.next_hop
        .allow
        .insert("x".into(), "h:1".parse().unwrap());
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
fn what_is_understood_can_be_read_again() {
    let example = parse(EXAMPLE).unwrap();
    let file = Path::new("pep.toml");
    let text = example.to_toml();
    let again = Settings::parse(Some(Source { file, text: &text }), &[]);
    assert_eq!(again.unwrap(), example);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (text, line, words) in [
        (
            "colour = 1\n",
            1,
            &["colour = 1", "unknown field", "next-hop"][..],
        ),
        (
            "\nmode = \"fast\"\n",
            2,
            &["mode = \"fast\"", "unknown variant", "warm"],
        ),
        (
            "[limits]\nstreams = \"many\"\n",
            2,
            &["streams = \"many\"", "u32"],
        ),
        (
            "[limits]\nstream-buffer = \"1 apple\"\n",
            2,
            &["1 apple", "kB"],
        ),
        ("[times]\nidle = 5\n", 2, &["idle = 5"]),
        ("auto = 3\n", 1, &["auto = 3", "round-trip time"]),
        ("listen = [\"here\"]\n", 1, &["here"]),
        (
            "[next-hop]\naddress = \"gateway\"\n",
            2,
            &["\"gateway\"", "HOST:PORT"],
        ),
        (
            "[client-side]\niw = 1.5\n",
            2,
            &["iw = 1.5", "whole number"],
        ),
        (
            "[[certificate]]\nchain = \"c\"\n",
            1,
            &["missing field `key`"],
        ),
        ("mode = \n", 1, &["mode ="]),
    ] {
        let problem = problem(text);
        assert_eq!(
            problem.place,
            format!("etc/pep.toml, line {line}"),
            "{text}"
        );
        for word in words {
            assert!(problem.what.contains(word), "{word}: {problem:?}");
        }
        assert!(!problem.hint.is_empty());
    }
}

#[test]
fn what_was_probably_meant_is_suggested() {
    for (text, hint) in [
        ("[limit]\n", "did you mean limits? "),
        ("mode = \"wram\"\n", "did you mean warm? "),
        (
            "[limits]\nstream-bufer = 1\n",
            "did you mean stream-buffer? ",
        ),
        ("colour = 1\n", "examples/pep.toml"),
    ] {
        let problem = problem(text);
        assert!(problem.hint.starts_with(hint), "{problem:?}");
    }
    let change = Override::new("--set", &["times", "idel"], "1 s");
    let error = Settings::parse(None, &[change]).unwrap_err();
    assert!(error.hint.starts_with("did you mean idle? "), "{error:?}");
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (text, words) in [
        ("", "next-hop: there is none"),
        (
            "[next-hop]\naddress = \"h:1\"\nallow = { a = \"h:1\" }",
            "exclude",
        ),
        ("[next-hop]\naddress = \"h:1\"", "next-hop.ca: missing"),
        (
            "[next-hop]\naddress = \"h:1\"\nverify = false\nca = \"c\"",
            "next-hop.verify",
        ),
        (
            "[next-hop]\naddress = \"h:1\"\nverify = false\nkey = \"c\"",
            "next-hop.certificate: missing",
        ),
        (
            "[next-hop]\nallow = { \"*.example\" = \"h:1\" }",
            "no server name",
        ),
        (&format!("listen = []\n{HOP}"), "listen = []"),
        (
            &format!("listen = [\"[::]:1\", \"[::1]:2\"]\n{HOP}"),
            "same address",
        ),
        (&format!("workers = 65\n{HOP}"), "workers = 65"),
        (
            &format!("{HOP}[limits]\nconnections = 0"),
            "limits.connections = 0",
        ),
        (
            &format!("{HOP}[limits]\nstream-buffer = \"1 B\""),
            "limits.stream-buffer",
        ),
        (
            &format!("{HOP}[limits]\nstream-buffer = \"65 MiB\""),
            "is more than",
        ),
        (&format!("{HOP}[times]\nidle = \"2 ms\""), "times.idle"),
    ] {
        let problem = problem(text);
        assert_eq!(problem.place, "etc/pep.toml");
        assert!(problem.what.contains(words), "{text}: {problem:?}");
        assert!(!problem.hint.is_empty());
    }
    let both = format!("auto = true\n{HOP}[clients]\nca = \"c\"");
    assert!(problem(&both).what.contains("auto and clients.ca"));
    let large = format!("{HOP}[limits]\nconnection-buffer = \"1 GiB\"");
    assert!(problem(&large).what.contains("limits.connection-buffer"));
    let twice = "[[certificate]]\nnames = [\"a\"]\nchain = \"c\"\nkey = \"k\"\n".repeat(2);
    let problem = problem(&format!("{HOP}{twice}"));
    assert!(problem.what.contains("two certificates"), "{problem:?}");
}

#[test]
fn flags_change_what_the_file_says_and_are_named() {
    let change = |path: &[&str], value: toml::Value| Override::new("--flag", path, value);
    let read = |change: Override| {
        let file = Path::new("pep.toml");
        Settings::parse(
            Some(Source {
                file,
                text: EXAMPLE,
            }),
            &[change],
        )
    };
    let settings = read(change(&["auto"], true.into())).unwrap();
    assert_eq!(settings.auto, Auto::Below(Auto::USUAL));
    let settings = read(change(&["server-side", "iw"], "10".into())).unwrap();
    assert_eq!(settings.server_side["iw"].0, "10");
    let problem = read(change(&["limits", "streams"], "x".into())).unwrap_err();
    assert_eq!(problem.place, "--flag");
    assert!(problem.what.contains("limits.streams"), "{problem:?}");
    let problem = read(change(&["limits", "streams"], 0.into())).unwrap_err();
    assert_eq!(problem.place, "pep.toml with --flag");
}

/// An edit of the example: a range of it is replaced.
fn edit() -> impl Strategy<Value = (prop::sample::Index, usize, String)> {
    let word = prop_oneof![
        Just(String::new()),
        Just("\"".to_owned()),
        Just("[".to_owned()),
        Just("0".to_owned()),
        Just("-9223372036854775808".to_owned()),
        Just("\"9 ns\"".to_owned()),
        "[ -~\\n]{0,12}",
        "\\PC{0,6}",
    ];
    (any::<prop::sample::Index>(), 0..40_usize, word)
}

fn mutated(edits: Vec<(prop::sample::Index, usize, String)>) -> String {
    // Without comments, so that edits hit what counts.
    let lines = EXAMPLE.lines().filter(|line| !line.starts_with('#'));
    let mut text: Vec<char> = lines.flat_map(|line| line.chars().chain(['\n'])).collect();
    for (at, length, word) in edits {
        let start = at.index(text.len() + 1);
        let end = (start + length).min(text.len());
        text.splice(start..end, word.chars());
    }
    text.into_iter().collect()
}

/// Read, or refused with words; what was read can be written and read again.
fn holds(text: &str) -> Result<(), TestCaseError> {
    match parse(text) {
        Ok(settings) => {
            let file = Path::new("again.toml");
            let again = settings.to_toml();
            let source = Source { file, text: &again };
            prop_assert_eq!(Settings::parse(Some(source), &[]).unwrap(), settings);
        }
        Err(problem) => {
            prop_assert!(problem.place.starts_with("etc/pep.toml"));
            prop_assert!(!problem.what.is_empty() && !problem.hint.is_empty());
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        holds(&text)?;
    }

    #[test]
    fn any_edit_of_the_example_is_read_or_refused(edits in prop::collection::vec(edit(), 1..6)) {
        holds(&mutated(edits))?;
    }
}
