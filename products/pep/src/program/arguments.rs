//! The command line.

use bentpipe_service::SettingsError;
use bentpipe_service::command_line::{CommandLine, PLACE, Placed, flag, last, option, values};
use bentpipe_service::settings::Override;
use clap::{Arg, ArgMatches};
use toml::{Table, Value};

/// The help that is printed, which `bentpipe pep` has without this program, too.
pub const HELP: &str = include_str!("help.txt");

/// The options of this program.
pub const COMMAND_LINE: CommandLine = CommandLine {
    name: "bentpipe pep",
    help: HELP,
    version: crate::VERSION,
    texts: &[
        ("next-hop", &["next-hop", "address"]),
        ("mode", &["mode"]),
        ("ca", &["next-hop", "ca"]),
        ("client-ca", &["clients", "ca"]),
    ],
    pairs: &[
        ("allow", &["next-hop", "allow"]),
        ("client-side", &["client-side"]),
        ("server-side", &["server-side"]),
    ],
    lists: &[("listen", &["listen"])],
    letters: &[("listen", 'l'), ("next-hop", 'n'), ("mode", 'm')],
    workers: true,
    tasks: &[],
    own,
    own_overrides,
};

fn own() -> Vec<Arg> {
    let auto = option("auto").num_args(0..=1).require_equals(true);
    vec![
        auto.default_missing_value("true"),
        flag("no-verify"),
        option("cert"),
        option("key"),
    ]
}

fn own_overrides(matches: &ArgMatches) -> Placed {
    let mut found = Vec::new();
    for (place, text) in values(matches, "auto") {
        let value = match text.as_str() {
            "true" => Value::from(true),
            text => Value::from(text),
        };
        found.push((place, Override::new("--auto", &["auto"], value)));
    }
    if matches.get_flag("no-verify") {
        let place = matches.index_of("no-verify").unwrap_or_default();
        let off = Override::new("--no-verify", &["next-hop", "verify"], false);
        found.push((place, off));
    }
    let certificate = certificate(last(matches, "cert"), last(matches, "key"))?;
    found.extend(certificate.map(|change| (usize::MAX, change)));
    Ok(found)
}

/// One certificate, for all server names.
fn certificate(
    chain: Option<String>,
    key: Option<String>,
) -> Result<Option<Override>, SettingsError> {
    let (chain, key) = match (chain, key) {
        (None, None) => return Ok(None),
        (Some(chain), Some(key)) => (chain, key),
        _ => {
            let what = "--cert and --key belong together";
            let hint = "bentpipe pep --help lists all options";
            return Err(SettingsError::new(PLACE, what, hint));
        }
    };
    let one: Table = [("chain", chain), ("key", key)]
        .map(|(name, path)| (name.to_owned(), path.into()))
        .into_iter()
        .collect();
    Ok(Some(Override::new("--cert", &["certificate"], vec![one])))
}

#[cfg(test)]
mod tests {
    use bentpipe_service::command_line::{Command, assert_help_is_complete};

    use super::*;

    fn read(words: &[&str]) -> Result<Command, SettingsError> {
        COMMAND_LINE.parse(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn clap_knows_every_option_of_the_help_and_no_other() {
        assert_help_is_complete(&COMMAND_LINE);
    }

    #[test]
    fn options_keep_their_order() {
        let words = [
            "--set",
            "mode=\"warm\"",
            "-m",
            "parallel",
            "--auto",
            "--auto=50 ms",
            "-l",
            "a",
            "--no-verify",
        ];
        let Command::Run(arguments) = read(&words).unwrap() else {
            panic!("{words:?}");
        };
        let flags: Vec<_> = arguments
            .overrides
            .iter()
            .map(|it| it.flag.as_str())
            .collect();
        let expected = [
            "--set mode=\"warm\"",
            "--mode parallel",
            "--auto",
            "--auto",
            "--no-verify",
            "--listen",
        ];
        assert_eq!(flags, expected);
    }

    #[test]
    fn what_looks_like_an_option_is_suggested() {
        let error = read(&["--worker", "2"]).unwrap_err();
        assert_eq!(error.what, "unknown option --worker");
        assert!(
            error.hint.starts_with("did you mean --workers? "),
            "{error:?}"
        );
        let error = read(&["--workers", "many"]).unwrap_err();
        assert!(error.what.contains("--workers"), "{error:?}");
        let error = read(&["--config"]).unwrap_err();
        assert!(error.what.contains("--config <FILE>"), "{error:?}");
    }
}
