//! The surroundings of a command in its guest: as much as can be of what it would find outside.

use std::collections::BTreeMap;
use std::env;
use std::net::IpAddr;
use std::path::Path;

use crate::task::{Part, Surroundings};

const CLIENT: &str = "client";
const SERVER: &str = "server";

/// All its environment: that of this process, but for what is elsewhere in a guest.
pub fn environment(folder: &Path) -> BTreeMap<String, String> {
    // A variable that is not UTF-8 cannot be part of a task, and is of no use to most programs.
    let own = env::vars_os().filter_map(|(name, value)| {
        let text = (name.into_string().ok()?, value.into_string().ok()?);
        Some(text)
    });
    let mut all: BTreeMap<String, String> = own.collect();
    all.insert("TMPDIR".to_owned(), "/run/tmp".to_owned());
    all.insert("PWD".to_owned(), folder.display().to_string());
    all.entry("PATH".to_owned())
        .or_insert_with(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
    all
}

/// Its host, and who has which address: its own, then its partner's.
pub fn of(folder: &Path, part: &Part, [own, other]: [IpAddr; 2]) -> Surroundings {
    let (host, partner) = if *part == Part::Server {
        (SERVER, CLIENT)
    } else {
        (CLIENT, SERVER)
    };
    Surroundings {
        host: host.to_owned(),
        hosts: format!("127.0.0.1 localhost\n::1 localhost\n{own} {host}\n{other} {partner}\n"),
        folder: folder.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_hosts_know_each_other() {
        let addresses = ["198.51.100.1", "192.0.2.1"].map(|it| it.parse().unwrap());
        let found = of(Path::new("/srv"), &Part::Server, addresses);
        assert_eq!(found.host, "server");
        assert!(
            found
                .hosts
                .ends_with("\n198.51.100.1 server\n192.0.2.1 client\n")
        );
    }
}
