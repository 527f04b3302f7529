//! The configuration file, and what it comes to.

use std::path::Path;

use bentpipe_endpoint::Clock;
use bentpipe_masque::Purpose;
use bentpipe_service::SettingsError;
use bentpipe_service::settings::{SettingsFile as _, Source};
use proptest::prelude::*;

use super::file::ClientFile;
use super::resolved;

const EXAMPLE: &str = include_str!("../../../../../examples/masque-client.toml");

fn parse(text: &str) -> Result<ClientFile, SettingsError> {
    let file = Path::new("etc/masque-client.toml");
    ClientFile::parse(Some(Source { file, text }), &[])
}

#[test]
fn the_example_says_what_holds_without_it_and_names_every_key() {
    let example = parse(EXAMPLE).unwrap();
    let plain = ClientFile {
        target: example.target.clone(),
        proxy: example.proxy.clone(),
        metrics: example.metrics.clone(),
        ..ClientFile::default()
    };
    assert_eq!(example, plain);
    let mut full = example;
    full.tun.name = Some("x".to_owned());
    full.tun.routes = Some(Vec::new());
    let proxy = &mut full.proxy;
    proxy.template = Some("x".to_owned());
    for path in [
        &mut proxy.token,
        &mut proxy.certificate,
        &mut proxy.key,
        &mut proxy.keylog,
    ] {
        *path = Some("x".into());
    }
    let all: toml::Table = full.to_toml().parse().unwrap();
    for (key, value) in &all {
        assert!(EXAMPLE.contains(key.as_str()), "{key}");
        for name in value.as_table().into_iter().flat_map(toml::Table::keys) {
            assert!(EXAMPLE.contains(name.as_str()), "{name}");
        }
    }
}

#[test]
fn what_is_wrong_is_named_with_a_hint() {
    let proxy = "[proxy]\naddress = \"127.0.0.1:1\"\n";
    for (text, words) in [
        (proxy.to_owned(), "target: there is none"),
        (format!("target = \"host\"\n{proxy}"), "HOST:PORT"),
        (format!("[tun]\nname = \"a/b\"\n{proxy}"), "tun.name"),
        (
            format!("[tun]\nroutes = []\n{proxy}"),
            "tun.routes: there is no device",
        ),
        (
            format!("[tun]\nname = \"t\"\nroutes = [\"10.0.0.1/8\"]\n{proxy}"),
            "write 10.0.0.0/8",
        ),
        (
            format!("target = \"h:1\"\n[tun]\nname = \"t\"\n{proxy}"),
            "tun.name and target",
        ),
        (
            format!("listen = \"[::1]:5\"\n[tun]\nname = \"t\"\n{proxy}"),
            "packets come by a device",
        ),
        (
            format!("[tun]\nname = \"t\"\n{proxy}template = \"https://{{target}}/\"\n"),
            "proxy.template",
        ),
        ("target = \"h:1\"\n".to_owned(), "proxy: there is none"),
        (format!("target = \"h:1\"\n{proxy}"), "proxy.ca: missing"),
        (
            format!("target = \"h:1\"\n{proxy}ca = \"c\"\nany-certificate = true\n"),
            "proxy.any-certificate",
        ),
        (
            format!("target = \"h:1\"\n{proxy}ca = \"c\"\nkey = \"k\"\n"),
            "proxy.certificate",
        ),
        (
            format!("target = \"h:1\"\n{proxy}ca = \"c\"\ntemplate = \"http://x/\"\n"),
            "proxy.template",
        ),
        (
            format!("target = \"h:1\"\n{proxy}ca = \"c\"\n[limits]\nqueue = \"1 B\"\n"),
            "limits.queue",
        ),
    ] {
        let problem = parse(&text).expect_err(&text);
        assert!(problem.what.contains(words), "{text}: {problem:?}");
        assert!(!problem.hint.is_empty());
    }
}

#[test]
fn a_template_says_where_the_proxy_is_and_what_its_certificate_is_for() {
    let any = "any-certificate = true\n";
    for (proxy, address, name) in [
        ("address = \"127.0.0.1:7\"", "127.0.0.1:7", "127.0.0.1"),
        ("address = \"[::1]:7\"", "[::1]:7", "::1"),
        (
            "template = \"https://127.0.0.2/u{?target_host,target_port}\"",
            "127.0.0.2:443",
            "127.0.0.2",
        ),
        (
            "address = \"127.0.0.1:7\"\n\
             template = \"https://proxy.example:9/{target_host}/{target_port}/\"",
            "127.0.0.1:7",
            "proxy.example",
        ),
    ] {
        let text = format!("target = \"h:1\"\n[proxy]\n{proxy}\n{any}");
        let settings = resolved::settings(&parse(&text).unwrap(), &Clock::start_now()).unwrap();
        assert_eq!(settings.proxy.to_string(), address, "{proxy}");
        assert_eq!(settings.proxy_name, name, "{proxy}");
    }
    let text = format!(
        "[tun]\nname = \"t\"\n[proxy]\n\
         template = \"https://127.0.0.3:9/ip{{?target,ipproto}}\"\n{any}"
    );
    let settings = resolved::settings(&parse(&text).unwrap(), &Clock::start_now()).unwrap();
    assert_eq!(settings.proxy.to_string(), "127.0.0.3:9");
    let Purpose::Ip { template, clients } = settings.wanted else {
        panic!("packets");
    };
    assert_eq!(
        template.expand().to_string(),
        "https://127.0.0.3:9/ip?target=*&ipproto=*"
    );
    assert_eq!(clients, None);
    let text = format!("target = \"h:1\"\n[proxy]\naddress = \"127.0.0.1:7\"\n{any}");
    let wrong = format!("{text}[tunnel]\ncc = \"vegas\"\n");
    let problem = resolved::settings(&parse(&wrong).unwrap(), &Clock::start_now()).unwrap_err();
    assert_eq!(problem.place, "tunnel");
    assert!(problem.what.contains("vegas"), "{problem}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let refused = parse(&text).err();
        prop_assert!(refused.is_none_or(|it| !it.what.is_empty() && !it.hint.is_empty()));
    }
}
