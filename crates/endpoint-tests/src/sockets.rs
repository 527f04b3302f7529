//! Socket mode, over the loopback interface.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use crate::Subject;
use crate::coordinator::{certs, content, folder};

const SIZE: usize = 1 << 20;

fn socket_mode(program: &str, role: &str, test_case: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs([("ROLE", role), ("TESTCASE", test_case)])
        .env("WWW", folder.join("www"))
        .env("DOWNLOADS", folder.join("downloads"))
        .env("CERTS", certs());
    command
}

/// An address that nobody else has: of this process alone, with a port that the kernel gives to
/// nobody who asks for any.
fn free_address() -> String {
    static NEXT_PORT: AtomicU16 = AtomicU16::new(10_000);
    let [_, a, b, c] = std::process::id().to_be_bytes();
    let port = NEXT_PORT.fetch_add(1, Ordering::Relaxed);
    format!("127.{a}.{b}.{c}:{port}")
}

/// Runs a test case over the loopback interface, for the files in `www`.
pub fn cross([client, server]: [&str; 2], test_case: &str, folder: &Path) {
    let address = free_address();
    let mut server = socket_mode(server, "server", test_case, folder)
        .env("BENTPIPE_LISTEN", &address)
        .env("SSLKEYLOGFILE", folder.join("keys"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    let mut names: Vec<_> = fs::read_dir(folder.join("www"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let urls: Vec<_> = names
        .iter()
        .map(|name| format!("https://{address}/{name}"))
        .collect();
    let client = socket_mode(client, "client", test_case, folder)
        .env("REQUESTS", urls.join(" "))
        .env("BENTPIPE_OPTIONS", "cc=cubic iw=20")
        .status()
        .unwrap();
    assert!(client.success(), "{test_case}");
    let id = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
    for name in names {
        let read = |side: &str| fs::read(folder.join(side).join(&name)).unwrap();
        assert!(read("downloads") == read("www"), "{test_case}: {name}");
    }
}

pub fn every_test_case_crosses_real_sockets(subject: &Subject) {
    for test_case in crate::test_cases::ALL {
        let folder = folder(SIZE);
        fs::write(folder.path().join("www/small"), content(1000)).unwrap();
        fs::write(folder.path().join("www/empty"), "").unwrap();
        cross([subject.program, subject.program], test_case, folder.path());
        let keys = fs::read_to_string(folder.path().join("keys")).unwrap();
        let handshakes = keys.matches("SERVER_TRAFFIC_SECRET_0 ").count();
        let expected = if ["resumption", "zerortt"].contains(&test_case) {
            2
        } else {
            1
        };
        assert_eq!(handshakes, expected, "{test_case}");
    }
}

pub fn socket_mode_refuses_with_127_too(subject: &Subject) {
    let folder = folder(1);
    let url = "https://127.0.0.1:9/1";
    for (name, value) in [
        ("TESTCASE", "q8x2"),
        ("ROLE", "proxy"),
        ("BENTPIPE_OPTIONS", "a=b"),
    ] {
        let mut command = socket_mode(subject.program, "client", "transfer", folder.path());
        let status = command
            .env("REQUESTS", url)
            .env(name, value)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(127), "{name}={value}");
    }
}
