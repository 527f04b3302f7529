//! The command line.

use bentpipe_service::SettingsError;
use bentpipe_service::command_line::{CommandLine, PLACE, Placed, option, values};
use bentpipe_service::settings::Override;
use clap::{Arg, ArgMatches};
use toml::Value;

/// The help that is printed, which `bentpipe tcp-pep` has without this program, too.
pub const HELP: &str = include_str!("help.txt");
/// The flag that has rules of routing removed.
pub const REMOVE_RULES: &str = "remove-rules";

/// The options of this program.
pub const COMMAND_LINE: CommandLine = CommandLine {
    name: "bentpipe tcp-pep",
    help: HELP,
    version: "", // the kernel's, which is asked for when it is wanted
    texts: &[
        ("clients", &["intercept", "clients"]),
        ("servers", &["intercept", "servers"]),
        ("next-hop", &["next-hop"]),
        ("accept", &["accept"]),
        ("gateway", &["pool", "gateway"]),
    ],
    pairs: &[
        ("client-side", &["client-side"]),
        ("server-side", &["server-side"]),
    ],
    lists: &[
        ("listen", &["listen"]),
        ("pool-listen", &["pool", "listen"]),
        ("terminal", &["pool", "terminals"]),
    ],
    letters: &[("listen", 'l'), ("next-hop", 'n')],
    workers: true,
    tasks: &[REMOVE_RULES],
    own,
    own_overrides,
};

fn own() -> Vec<Arg> {
    vec![option("port").short('p')]
}

fn own_overrides(matches: &ArgMatches) -> Placed {
    let read = |(_, text): (usize, &String)| {
        text.parse::<u16>().map(i64::from).map_err(|_| {
            let hint = "write a number from 1 to 65535, as in --port 443";
            SettingsError::new(PLACE, format!("--port {text:?} is no port"), hint)
        })
    };
    let ports: Vec<i64> = values(matches, "port")
        .map(read)
        .collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    if !ports.is_empty() {
        let change = Override::new("--port", &["intercept", "ports"], Value::from(ports));
        found.push((usize::MAX, change));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use bentpipe_service::command_line::{Command, assert_help_is_complete};

    use super::*;

    #[test]
    fn clap_knows_every_option_of_the_help_and_no_other() {
        assert_help_is_complete(&COMMAND_LINE);
    }

    #[test]
    fn ports_make_up_a_list() {
        let words = ["-p", "80", "--clients", "lan0", "--port", "443"];
        let read = COMMAND_LINE.parse(words.into_iter().map(str::to_owned));
        let Ok(Command::Run(arguments)) = read else {
            panic!("{read:?}");
        };
        let ports = &arguments.overrides[1].keys["intercept"]["ports"];
        assert_eq!(ports.as_array().unwrap().len(), 2);
        let error = COMMAND_LINE.parse(["--port", "https"].into_iter().map(str::to_owned));
        assert!(error.unwrap_err().what.contains("\"https\" is no port"));
    }
}
