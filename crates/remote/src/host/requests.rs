//! The requests that a host answers.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use rustix::system::uname;
use serde_json::{Value, json};

use super::files;
use super::message::{Message, Outgoing};
use super::program::{Running, Start, start};
use crate::clock::now_unix_ns;

/// Programs of hosts that are of use.
const TOOLS: [&str; 6] = [
    "dumpcap",
    "ip",
    "ping",
    "tcpdump",
    "tracepath",
    "traceroute",
];
/// Where programs are that are not on the PATH of users.
const FURTHER: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// A host.
pub struct HostState {
    folder: PathBuf,
    cache: PathBuf,
    ahead_ns: i64,
    out: Outgoing,
    running: HashMap<String, Running>,
}

type Answer = Result<(Value, Vec<u8>), Box<dyn Error>>;

impl HostState {
    /// A host whose files for this connection are in `folder`.
    pub fn new(folder: PathBuf, ahead_ns: i64, out: Outgoing) -> Result<Self, Box<dyn Error>> {
        let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
        let named = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = named.filter(|it| it.is_absolute()).or_else(home);
        let cache = cache.ok_or("there is no HOME")?.join("bentpipe-remote");
        for place in [&folder, &cache] {
            // Answers name both.
            if place.to_str().is_none() {
                return Err(format!("the path {} is not UTF-8", place.display()).into());
            }
        }
        Ok(Self {
            folder,
            cache,
            ahead_ns,
            out,
            running: HashMap::new(),
        })
    }

    /// Answers a request. An error is that of sending the answer.
    pub fn answer(&mut self, message: &Message) -> io::Result<()> {
        let received = now_unix_ns() + self.ahead_ns;
        let id = message.said["id"].clone();
        let (mut said, bytes) = match self.carry_out(message, received) {
            Ok(answer) => answer,
            Err(error) => (json!({"error": error.to_string()}), Vec::new()),
        };
        said["id"] = id;
        self.out.send(said, &bytes)
    }

    fn carry_out(&mut self, message: &Message, received: i64) -> Answer {
        let said = &message.said;
        let text = |key: &str| {
            let value = said[key].as_str();
            value.ok_or_else(|| format!("the request has no {key}"))
        };
        let nothing = Ok((json!({}), Vec::new()));
        match text("do")? {
            "time" => {
                let sent = now_unix_ns() + self.ahead_ns;
                let both = json!({"received_unix_ns": received, "sent_unix_ns": sent});
                Ok((both, Vec::new()))
            }
            "facts" => Ok((self.facts(), Vec::new())),
            "absent" => Ok((
                json!({"absent": self.absent(text("bundle")?, said)?}),
                Vec::new(),
            )),
            "program" => {
                self.keep(said, &message.bytes)?;
                nothing
            }
            "put" => {
                let path = files::within(&self.folder, text("path")?)?;
                files::append(&path, &message.bytes, said["first"] == true)?;
                nothing
            }
            "make" => {
                files::make_private(&files::within(&self.folder, text("path")?)?)?;
                nothing
            }
            "remove" => {
                let path = files::within(&self.folder, text("path")?)?;
                if path.exists() {
                    fs::remove_dir_all(path)?;
                }
                nothing
            }
            "list" => {
                let found = files::list(&files::within(&self.folder, text("path")?)?)?;
                let both = json!({"files": found.files, "unreadable": found.unreadable});
                Ok((both, Vec::new()))
            }
            "get" => Ok((
                json!({}),
                fs::read(files::within(&self.folder, text("path")?)?)?,
            )),
            "start" => {
                let at = self.start(serde_json::from_value(said["program"].clone())?)?;
                Ok((json!({"at_unix_ns": at}), Vec::new()))
            }
            "signal" => {
                self.signal(text("name")?, text("signal")?)?;
                nothing
            }
            "clean" => {
                let bytes = files::size(&self.cache);
                if self.cache.exists() {
                    fs::remove_dir_all(&self.cache)?;
                }
                Ok((json!({"removed_bytes": bytes}), Vec::new()))
            }
            other => Err(format!("nothing is known of {other:?}").into()),
        }
    }

    fn facts(&self) -> Value {
        let system = uname();
        let words = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let tools = TOOLS.map(|tool| (tool.to_owned(), json!(find(tool))));
        json!({
            "system": words(system.sysname()),
            "kernel": words(system.release()),
            "machine": words(system.machine()),
            "name": words(system.nodename()),
            "cores": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
            "root": rustix::process::geteuid().is_root(),
            "folder": self.folder,
            "cache": self.cache,
            "cache_bytes": files::size(&self.cache),
            "receive_buffer_bytes": limit("rmem_max"),
            "send_buffer_bytes": limit("wmem_max"),
            "tools": serde_json::Map::from_iter(tools),
        })
    }

    /// Which files of a bundle are not here, or are not what they should be.
    fn absent(&self, bundle: &str, said: &Value) -> Result<Vec<String>, Box<dyn Error>> {
        let folder = files::within(&self.cache, bundle)?;
        files::make_private(&folder)?;
        files::check_private(&self.cache)?;
        files::check_private(&folder)?;
        let wanted = said["files"].as_array().ok_or("the request has no files")?;
        let mut absent = Vec::new();
        for file in wanted {
            let path = file["path"].as_str().ok_or("a file has no path")?;
            let here = files::within(&folder, path)?;
            if files::sha256(&here).ok().as_deref() != file["sha256"].as_str() {
                absent.push(path.to_owned());
            }
        }
        Ok(absent)
    }

    /// Keeps a file of a bundle, if it is the one that was announced.
    fn keep(&self, said: &Value, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
        let word = |key: &str| {
            said[key]
                .as_str()
                .ok_or(format!("the request has no {key}"))
        };
        let path = files::within(&files::within(&self.cache, word("bundle")?)?, word("path")?)?;
        files::write(&path, bytes, said["executable"] == true)?;
        if files::sha256(&path)? != word("sha256")? {
            fs::remove_file(&path)?;
            return Err(format!("{} did not come as it was sent", path.display()).into());
        }
        Ok(())
    }

    /// Starts a program; when.
    fn start(&mut self, wanted: Start) -> Result<i64, Box<dyn Error>> {
        let program = wanted.command.first().cloned().unwrap_or_default();
        if let Some(expected) = &wanted.sha256
            && files::sha256(Path::new(&program))? != *expected
        {
            return Err(format!("{program} is not what was brought here: it is not run").into());
        }
        let name = wanted.name.clone();
        // Before it is there: on a busy host it sends its first packet before this goes on.
        let at = now_unix_ns() + self.ahead_ns;
        let running = start(wanted, self.ahead_ns, &self.out)
            .map_err(|error| format!("cannot start {program}: {error}"))?;
        self.running.insert(name, running);
        Ok(at)
    }

    fn signal(&self, name: &str, signal: &str) -> Result<(), Box<dyn Error>> {
        let signal = match signal {
            "INT" => Signal::INT,
            "TERM" => Signal::TERM,
            "KILL" => Signal::KILL,
            other => return Err(format!("no signal is called {other:?}").into()),
        };
        // One that was never started gets no signal.
        if let Some(running) = self.running.get(name) {
            running.signal(signal);
        }
        Ok(())
    }
}

fn find(tool: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let further = FURTHER.iter().map(PathBuf::from);
    let mut places = env::split_paths(&path).chain(further);
    places.find_map(|folder| {
        let is_there = |it: &PathBuf| it.is_file() && it.to_str().is_some();
        Some(folder.join(tool)).filter(is_there)
    })
}

fn limit(name: &str) -> Option<u64> {
    let text = fs::read_to_string(Path::new("/proc/sys/net/core").join(name)).ok()?;
    text.trim().parse().ok()
}
