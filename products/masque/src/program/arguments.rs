//! The command lines.

use bentpipe_service::SettingsError;
use bentpipe_service::command_line::{CommandLine, PLACE, Placed, flag, last, option};
use bentpipe_service::settings::Override;
use clap::{Arg, ArgMatches};
use toml::Table;

/// The options of a proxy.
pub const PROXY: CommandLine = CommandLine {
    name: "bentpipe masque proxy",
    help: include_str!("proxy/help.txt"),
    version: crate::VERSION,
    texts: &[
        ("tokens", &["clients", "tokens"]),
        ("client-ca", &["clients", "ca"]),
    ],
    pairs: &[("tunnel", &["tunnel"])],
    lists: &[
        ("listen", &["listen"]),
        ("allow", &["targets", "allow"]),
        ("ip-pool", &["ip", "pool"]),
    ],
    letters: &[("listen", 'l'), ("allow", 'a')],
    workers: true,
    tasks: &[],
    own: own_of_proxy,
    own_overrides: overrides_of_proxy,
};

/// The options of a client.
pub const CLIENT: CommandLine = CommandLine {
    name: "bentpipe masque client",
    help: include_str!("client/help.txt"),
    version: crate::VERSION,
    texts: &[
        ("listen", &["listen"]),
        ("target", &["target"]),
        ("tun", &["tun", "name"]),
        ("proxy", &["proxy", "address"]),
        ("template", &["proxy", "template"]),
        ("token", &["proxy", "token"]),
        ("ca", &["proxy", "ca"]),
        ("cert", &["proxy", "certificate"]),
        ("key", &["proxy", "key"]),
    ],
    pairs: &[("tunnel", &["tunnel"])],
    lists: &[("route", &["tun", "routes"])],
    letters: &[("listen", 'l'), ("target", 't'), ("proxy", 'p')],
    workers: false,
    tasks: &[],
    own: own_of_client,
    own_overrides: overrides_of_client,
};

fn own_of_proxy() -> Vec<Arg> {
    vec![flag("anybody"), option("cert"), option("key")]
}

fn own_of_client() -> Vec<Arg> {
    vec![flag("no-verify")]
}

fn overrides_of_proxy(matches: &ArgMatches) -> Placed {
    let mut found = Vec::new();
    let anybody = ("anybody", &["clients", "anybody"][..]);
    found.extend(switch(matches, anybody));
    match (last(matches, "cert"), last(matches, "key")) {
        (None, None) => {}
        (Some(chain), Some(key)) => {
            let one: Table = [("chain", chain), ("key", key)]
                .map(|(name, path)| (name.to_owned(), path.into()))
                .into_iter()
                .collect();
            let change = Override::new("--cert", &["certificate"], vec![one]);
            found.push((usize::MAX, change));
        }
        _ => {
            let what = "--cert and --key belong together";
            let hint = "bentpipe masque proxy --help lists all options";
            return Err(SettingsError::new(PLACE, what, hint));
        }
    }
    Ok(found)
}

#[expect(clippy::unnecessary_wraps, reason = "those of others may be mistaken")]
fn overrides_of_client(matches: &ArgMatches) -> Placed {
    let no_verify = ("no-verify", &["proxy", "any-certificate"][..]);
    Ok(switch(matches, no_verify).into_iter().collect())
}

/// A flag that turns a key on.
fn switch(matches: &ArgMatches, (name, path): (&str, &[&str])) -> Option<(usize, Override)> {
    matches.get_flag(name).then(|| {
        let place = matches.index_of(name).unwrap_or_default();
        (place, Override::new(format!("--{name}"), path, true))
    })
}

#[cfg(test)]
mod tests {
    use bentpipe_service::command_line::assert_help_is_complete;

    use super::*;

    #[test]
    fn clap_knows_every_option_of_the_helps_and_no_other() {
        assert_help_is_complete(&PROXY);
        assert_help_is_complete(&CLIENT);
    }
}
