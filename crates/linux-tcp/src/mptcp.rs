//! MPTCP (RFC 8684): what the kernel's path manager and scheduler do.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use bentpipe_endpoint::EndpointError;
use bentpipe_netlink::{MptcpEndpoint, MptcpPathManager};

const SETTINGS: &str = "/proc/sys/net/mptcp";
/// The most subflows beyond the first that Linux's path manager takes.
const MOST_SUBFLOWS: u32 = 8;

/// The subflows that a client opens beside a connection's first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Subflows {
    /// None.
    None,
    /// One from each further address to the address of the first.
    #[default]
    FromEach,
    /// One from each address to each address of the server.
    FullMesh,
}

/// A path that leads from one of a client's addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalPath {
    /// The name of the path.
    pub name: String,
    /// The address.
    pub address: IpAddr,
}

/// MPTCP as a host uses it.
#[derive(Debug, Clone, Default)]
pub struct Mptcp {
    /// The subflows that it opens.
    pub subflows: Subflows,
    /// All paths of a client; empty: it has one address, or is a server.
    pub paths: Vec<LocalPath>,
    /// The names of those that carry data only when no other can.
    pub backups: Vec<String>,
}

impl Mptcp {
    /// Reads paths as `BENTPIPE_PATHS` has them: `geo=192.0.2.1 leo=192.0.2.2`.
    pub fn read_paths(text: &str) -> Result<Vec<LocalPath>, EndpointError> {
        let read = |pair: &str| {
            let (name, address) = pair.split_once('=')?;
            let address = address.parse().ok()?;
            (!name.is_empty()).then(|| LocalPath {
                name: name.to_owned(),
                address,
            })
        };
        let pairs = text.split_whitespace();
        pairs
            .map(|pair| {
                read(pair).ok_or_else(|| EndpointError::Field {
                    field: "BENTPIPE_PATHS",
                    value: pair.to_owned(),
                    problem: "write a path's name and the client's address on it, such as \
                              leo=192.0.2.2"
                        .to_owned(),
                })
            })
            .collect()
    }

    /// An error if a path is named that there is none of, or no path is left that is no backup.
    pub fn check(&self) -> Result<(), EndpointError> {
        let names: Vec<&str> = self.paths.iter().map(|it| it.name.as_str()).collect();
        let given = self.backups.join("+");
        for name in &self.backups {
            if !names.contains(&name.as_str()) {
                let problem = match &names[..] {
                    [] => "this scenario has one path, which has no name".to_owned(),
                    _ => format!("{name} is no path; there are {}", names.join(", ")),
                };
                return Err(EndpointError::option("backup", &given, &problem));
            }
        }
        if !names.is_empty() && names.iter().all(|name| self.is_backup(name)) {
            let problem = "all paths are backups; leave one out";
            return Err(EndpointError::option("backup", &given, problem));
        }
        Ok(())
    }

    /// Tells the kernel of the paths, and how many subflows a connection may have. It does so for
    /// all connections of the network namespace.
    pub fn apply(&self) -> Result<(), EndpointError> {
        let failed = EndpointError::io("setting up MPTCP's path manager");
        let set_up = || {
            let mut manager = MptcpPathManager::open()?;
            if self.subflows == Subflows::None {
                return manager.set_limits(0);
            }
            manager.set_limits(MOST_SUBFLOWS)?;
            self.endpoints().try_for_each(|it| manager.add(it))
        };
        set_up().map_err(failed)
    }

    fn endpoints(&self) -> impl Iterator<Item = MptcpEndpoint> {
        self.paths.iter().map(|path| MptcpEndpoint {
            address: path.address,
            is_full_mesh: self.subflows == Subflows::FullMesh,
            is_backup: self.is_backup(&path.name),
        })
    }

    fn is_backup(&self, path: &str) -> bool {
        self.backups.iter().any(|it| it == path)
    }
}

/// An error if this kernel has no MPTCP.
pub fn check_mptcp() -> Result<(), EndpointError> {
    if Path::new(SETTINGS).exists() {
        return Ok(());
    }
    Err(EndpointError::Unsupported(
        "option mptcp = \"on\": this kernel has no MPTCP (hint: it takes Linux 5.6 or newer with \
         CONFIG_MPTCP; `sysctl net.mptcp.enabled` shows it)"
            .to_owned(),
    ))
}

/// The kernel's name of a scheduler. Where it is missing, the error names those that are there.
pub fn mptcp_scheduler(name: &str) -> Result<String, EndpointError> {
    // Older kernels have `default` alone, and no list.
    let list = Path::new(SETTINGS).join("available_schedulers");
    let available = fs::read_to_string(list).unwrap_or_else(|_| "default".to_owned());
    if available.split_whitespace().any(|it| it == name) {
        return Ok(name.to_owned());
    }
    let there = available.trim().replace(' ', ", ");
    Err(EndpointError::Unsupported(format!(
        "option scheduler = {name:?}: this kernel has {there} (hint: others are programs of BPF \
         that an administrator loads)"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mptcp(paths: &str, backups: &[&str]) -> Mptcp {
        Mptcp {
            paths: Mptcp::read_paths(paths).expect("paths"),
            backups: backups.iter().map(|&it| it.to_owned()).collect(),
            ..Mptcp::default()
        }
    }

    #[test]
    fn each_path_is_an_endpoint() {
        let found = mptcp("geo=192.0.2.1 leo=2001:db8:1::2", &["geo"]);
        found.check().expect("names of paths");
        let endpoints: Vec<_> = found.endpoints().collect();
        let seen = endpoints
            .iter()
            .map(|it| (it.address.to_string(), it.is_backup))
            .collect::<Vec<_>>();
        assert_eq!(
            seen,
            [
                ("192.0.2.1".to_owned(), true),
                ("2001:db8:1::2".to_owned(), false)
            ]
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (paths, backups, says) in [
            ("", &["leo"][..], "has one path"),
            ("a=192.0.2.1 b=192.0.2.2", &["c"], "there are a, b"),
            ("a=192.0.2.1", &["a"], "all paths are backups"),
        ] {
            let error = mptcp(paths, backups).check().expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
        for wrong in ["192.0.2.1", "=192.0.2.1", "leo=", "leo=192.0.2"] {
            let error = Mptcp::read_paths(wrong).expect_err(wrong).to_string();
            assert!(error.contains("BENTPIPE_PATHS"), "{error}");
        }
    }
}
