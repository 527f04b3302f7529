//! HELLO, to an endpoint or to a proxy, as a guest's task.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use bentpipe_endpoint::contract::{CONTRACT, Hello, HelloPath, ProxyHello, SharedMemory};
use bentpipe_endpoint::{EndpointError, LiveStream, Resource};
use serde::Deserialize;

use crate::cli::Wanted;
use crate::inside::SHARED;
use crate::surroundings;
use crate::task::{BYE, DOWNLOADS, KEYLOG, LIVE, PAGE, Part, QLOG, Task};

/// Folders of the host, by where a guest has them.
type Folders = BTreeMap<PathBuf, PathBuf>;

/// Where a guest has the folder of its program, the certificates, and what a server serves.
const PROGRAM_HERE: &str = "/run/program";
const BIN_HERE: &str = "/run/program/bin";
const CERTS_HERE: &str = "/run/certs";
const WWW_HERE: &str = "/run/www";

/// A greeting: HELLO, to an endpoint or to a proxy.
#[derive(Debug)]
pub enum Greeting {
    Endpoint(Hello),
    Proxy(ProxyHello),
}

/// The keys that tell one kind of HELLO from the other.
#[derive(Deserialize)]
struct Head {
    contract: u32,
    role: String,
}

impl Greeting {
    pub fn read(body: &[u8]) -> Result<Self, EndpointError> {
        let head: Head = serde_json::from_slice(body)?;
        if head.contract != CONTRACT {
            let what = format!("version {} of the contract", head.contract);
            return Err(EndpointError::Unsupported(what));
        }
        Ok(if head.role == "proxy" {
            Self::Proxy(serde_json::from_slice(body)?)
        } else {
            Self::Endpoint(serde_json::from_slice(body)?)
        })
    }

    /// 64 bits in hexadecimal.
    pub fn seed(&self) -> &str {
        match self {
            Self::Endpoint(hello) => &hello.seed,
            Self::Proxy(hello) => &hello.seed,
        }
    }

    /// The memory for bodies of messages.
    pub fn shared_memory(&self) -> Option<SharedMemory> {
        match self {
            Self::Endpoint(hello) => hello.shared_memory,
            Self::Proxy(hello) => hello.shared_memory,
        }
    }

    pub fn is_proxy(&self) -> bool {
        matches!(self, Self::Proxy(_))
    }

    /// The files that the program may write, by their names in the guest's folder, and where they
    /// belong.
    pub fn outputs(&self) -> Vec<(&'static str, &Path)> {
        let (downloads, keylog, qlog) = match self {
            Self::Endpoint(hello) => (&hello.downloads, &hello.keylog, &hello.qlog),
            // A proxy that relays packets has no secrets of their connections.
            Self::Proxy(_) => (&None, &None, &None),
        };
        let all: [(&str, &Option<PathBuf>); 3] =
            [(DOWNLOADS, downloads), (KEYLOG, keylog), (QLOG, qlog)];
        let wanted = all.into_iter();
        wanted
            .filter_map(|(name, place)| Some((name, place.as_deref()?)))
            .collect()
    }

    /// The page that the program is to load; nothing for any other test case.
    pub fn page(&self) -> &[Resource] {
        match self {
            Self::Endpoint(hello) => &hello.page,
            Self::Proxy(_) => &[],
        }
    }

    /// The live stream that the program is to play.
    pub fn live(&self) -> Option<&LiveStream> {
        match self {
            Self::Endpoint(hello) => hello.live.as_ref(),
            Self::Proxy(_) => None,
        }
    }

    /// Refuses what lies in folders of the host that a guest has its own of.
    fn check(&self, wanted: &Wanted) -> Result<(), EndpointError> {
        if wanted.folder.is_some() {
            return Ok(()); // its starter names the folder
        }
        let mut named = vec![Path::new(&wanted.command[0])];
        if let Self::Endpoint(hello) = self {
            named.push(&hello.certs);
            named.extend(hello.www.as_deref());
        }
        let own = ["/dev", "/proc", "/run", "/sys"];
        let hidden = named
            .into_iter()
            .find(|path| own.iter().any(|it| path.starts_with(it)));
        hidden.map_or(Ok(()), |path| {
            Err(EndpointError::Field {
                field: "HELLO",
                value: path.display().to_string(),
                problem: format!(
                    "a guest has folders of its own below {} (hint: choose another TMPDIR)",
                    own.join(", ")
                ),
            })
        })
    }

    /// The guest's task.
    pub fn task(&self, wanted: &Wanted) -> Result<Task, EndpointError> {
        self.check(wanted)?;
        let mut folders = Folders::new();
        let (part, variables, local, epoch_unix_s) = match self {
            Self::Endpoint(hello) => {
                let part = if hello.role == "server" {
                    Part::Server
                } else {
                    Part::Client
                };
                if let Some(folder) = &wanted.folder {
                    return command(hello, part, wanted, folder);
                }
                let variables = self.variables(hello, &mut folders)?;
                let local = address("local", &hello.local)?;
                (part, variables, local, hello.epoch_unix_s)
            }
            Self::Proxy(hello) => {
                let part = Part::Proxy {
                    hello: serde_json::to_string(hello)?,
                    client: address("local", &hello.local)?.ip(),
                };
                let server = address("next_hop", &hello.next_hop)?;
                (part, Vec::new(), server, hello.epoch_unix_s)
            }
        };
        Ok(Task {
            part,
            command: moved_command(&wanted.command, &mut folders),
            environment: environment(variables),
            folders,
            local: local.ip(),
            further: self.further_addresses()?,
            epoch_unix_s,
            surroundings: None,
        })
    }

    /// The client's addresses on the paths beside the first.
    fn further_addresses(&self) -> Result<Vec<IpAddr>, EndpointError> {
        let Self::Endpoint(hello) = self else {
            return Ok(Vec::new());
        };
        if hello.role == "server" {
            return Ok(Vec::new()); // it has one for all
        }
        let further = hello.paths.iter().skip(1);
        let further = further.map(|path| Ok(address("paths.local", &path.local)?.ip()));
        further.collect()
    }

    /// HELLO to an endpoint as socket mode says it (`endpoints/contract/socket-mode.md`).
    fn variables(
        &self,
        hello: &Hello,
        folders: &mut Folders,
    ) -> Result<Vec<(&'static str, String)>, EndpointError> {
        let remote = address("remote", &hello.remote)?;
        let of_remote = |url: &String| url.replacen("server:443", &remote.to_string(), 1);
        let requests: Vec<String> = hello.requests.iter().map(of_remote).collect();
        let options = hello.options.iter();
        let options: Vec<String> = options
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mut given = vec![
            ("ROLE", hello.role.clone()),
            ("TESTCASE", hello.testcase.clone()),
            ("BENTPIPE_OPTIONS", options.join(" ")),
            ("BENTPIPE_ALPN", hello.alpn.clone()),
            ("CERTS", at(CERTS_HERE, &hello.certs, folders)),
        ];
        given.push(if hello.role == "server" {
            ("BENTPIPE_LISTEN", hello.local.clone())
        } else {
            ("REQUESTS", requests.join(" "))
        });
        if !hello.paths.is_empty() {
            given.push(("BENTPIPE_PATHS", paths(hello)?));
        }
        if !hello.page.is_empty() {
            given.push(("PAGE", format!("{SHARED}/{PAGE}")));
        }
        if hello.live.is_some() {
            given.push(("LIVE", format!("{SHARED}/{LIVE}")));
        }
        if !hello.page.is_empty() || hello.live.is_some() {
            given.push(("REPORT", format!("{SHARED}/{BYE}")));
        }
        if let Some(www) = &hello.www {
            given.push(("WWW", at(WWW_HERE, www, folders)));
        }
        for (name, _) in self.outputs() {
            let variable = match name {
                DOWNLOADS => "DOWNLOADS",
                KEYLOG => "SSLKEYLOGFILE",
                _ => "QLOGDIR",
            };
            given.push((variable, format!("{SHARED}/{name}")));
        }
        Ok(given)
    }
}

/// The client's address on each path, with the path's name, for either end.
fn paths(hello: &Hello) -> Result<String, EndpointError> {
    let pair = |path: &HelloPath| {
        let client = if hello.role == "server" {
            address("paths.remote", &path.remote)
        } else {
            address("paths.local", &path.local)
        };
        let address = client?.ip();
        Ok(format!("{}={address}", path.name))
    };
    let pairs: Result<Vec<String>, EndpointError> = hello.paths.iter().map(pair).collect();
    Ok(pairs?.join(" "))
}

/// The task of a command, a program that knows nothing of the contract.
fn command(
    hello: &Hello,
    part: Part,
    wanted: &Wanted,
    folder: &Path,
) -> Result<Task, EndpointError> {
    let ends = [
        address("local", &hello.local)?.ip(),
        address("remote", &hello.remote)?.ip(),
    ];
    Ok(Task {
        surroundings: Some(surroundings::of(folder, &part, ends)),
        part,
        command: wanted.command.clone(),
        environment: surroundings::environment(folder),
        folders: Folders::new(),
        local: ends[0],
        further: Vec::new(),
        epoch_unix_s: hello.epoch_unix_s,
    })
}

/// A command whose program is in a folder of the guest's own, with what is beside it; and, where
/// that folder is a `bin`, with what is beside the folder. In a checkout and in a package folders
/// are called differently; here all are `bin`.
fn moved_command(command: &[String], folders: &mut Folders) -> Vec<String> {
    let mut moved = command.to_vec();
    let program = Path::new(&command[0]);
    let (true, Some(folder), Some(name)) = (
        program.is_absolute(),
        program.parent(),
        program.file_name().and_then(|it| it.to_str()),
    ) else {
        return moved;
    };
    match folder.parent() {
        Some(above) if folder.ends_with("bin") => at(PROGRAM_HERE, above, folders),
        _ => at(BIN_HERE, folder, folders),
    };
    moved[0] = format!("{BIN_HERE}/{name}");
    moved
}

/// The place in the guest where a folder of the host is to be.
fn at(place: &str, folder: &Path, folders: &mut Folders) -> String {
    folders.insert(place.into(), folder.to_owned());
    place.to_owned()
}

/// All that a program in a guest has of an environment.
fn environment(variables: Vec<(&str, String)>) -> BTreeMap<String, String> {
    let always = [
        ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/run/home"),
        ("TMPDIR", "/run/tmp"),
        ("BENTPIPE_OWN_NAMESPACE", "1"),
    ];
    let always = always.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let given = variables.into_iter();
    let given = given.map(|(name, value)| (name.to_owned(), value));
    always.into_iter().chain(given).collect()
}

fn address(field: &'static str, text: &str) -> Result<SocketAddr, EndpointError> {
    text.parse().map_err(|_| EndpointError::Field {
        field,
        value: text.to_owned(),
        problem: "write an address and a port, such as 192.0.2.1:443".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_an_address_on_each_path_and_a_server_one_for_all() {
        let paths = [1, 2].map(|host| {
            let (client, server) = (format!("192.0.2.{host}:50000"), "198.51.100.1:443");
            [client, server.to_owned()]
        });
        let of = |role: &str, ends: [usize; 2]| {
            let path = |name: &str, path: &[String; 2]| {
                let [local, remote] = ends.map(|end| path[end].clone());
                serde_json::json!({"name": name, "local": local, "remote": remote})
            };
            let hello = serde_json::json!({
                "contract": CONTRACT, "role": role, "testcase": "transfer", "requests": [],
                "options": {}, "seed": "00f1e2d3c4b5a697", "epoch_unix_s": 946_684_800,
                "local": paths[0][ends[0]], "remote": paths[0][ends[1]], "www": null,
                "downloads": null, "certs": "/srv/certs", "keylog": null, "qlog": null,
                "paths": [path("geo", &paths[0]), path("leo", &paths[1])],
            });
            let wanted = Wanted {
                kernel: "linux".into(),
                memory_mib: 1,
                folder: None,
                command: vec!["/srv/endpoint".to_owned()],
            };
            let greeting = Greeting::read(hello.to_string().as_bytes()).unwrap();
            greeting.task(&wanted).unwrap()
        };
        let client = of("client", [0, 1]);
        assert_eq!(client.further, ["192.0.2.2".parse::<IpAddr>().unwrap()]);
        let server = of("server", [1, 0]);
        assert_eq!(server.further, [] as [IpAddr; 0]);
        for end in [client, server] {
            let said = end.environment.get("BENTPIPE_PATHS").unwrap();
            assert_eq!(said, "geo=192.0.2.1 leo=192.0.2.2");
        }
    }

    fn task([of_host, bin]: [&str; 2]) -> Task {
        let hello = serde_json::json!({
            "contract": CONTRACT, "role": "server", "testcase": "transfer", "requests": [],
            "options": {}, "seed": "00f1e2d3c4b5a697", "epoch_unix_s": 946_684_800,
            "local": "198.51.100.1:443", "remote": "192.0.2.1:50000",
            "www": format!("{of_host}/www"), "downloads": null, "certs": format!("{of_host}/certs"),
            "keylog": null, "qlog": null,
        });
        let wanted = Wanted {
            kernel: "linux".into(),
            memory_mib: 1,
            folder: None,
            command: vec![format!("{of_host}/{bin}/endpoint"), "--loud".to_owned()],
        };
        let greeting = Greeting::read(hello.to_string().as_bytes()).unwrap();
        greeting.task(&wanted).unwrap()
    }

    #[test]
    fn a_program_is_told_the_same_on_every_machine() {
        let hosts = [
            ["/home/one", "mine/bin"],
            ["/srv/of/another/user", "target/release"],
        ];
        let [one, other] = hosts.map(task);
        assert_eq!(one.command, ["/run/program/bin/endpoint", "--loud"]);
        assert_eq!(
            (&one.command, &one.environment),
            (&other.command, &other.environment)
        );
        assert_eq!(
            other.program(),
            Path::new("/srv/of/another/user/target/release/endpoint")
        );
        assert_eq!(
            other.folders[Path::new("/run/certs")],
            Path::new("/srv/of/another/user/certs")
        );
    }
}
