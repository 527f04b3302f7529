//! What holds for both programs over real sockets.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::PROGRAM;
use crate::harness::{certs, content, folder};

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

/// Runs a test case over the loopback interface, for the files in `www`.
pub fn cross([client, server]: [&str; 2], test_case: &str, folder: &Path) {
    let probe = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = probe.local_addr().unwrap().to_string();
    drop(probe);
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

#[test]
fn every_test_case_crosses_real_sockets() {
    for test_case in crate::test_cases::ALL {
        let folder = folder(SIZE);
        fs::write(folder.path().join("www/small"), content(1000)).unwrap();
        fs::write(folder.path().join("www/empty"), "").unwrap();
        cross([PROGRAM, PROGRAM], test_case, folder.path());
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

#[test]
fn socket_mode_refuses_with_127_too() {
    let folder = folder(1);
    let url = "https://127.0.0.1:9/1";
    for (name, value) in [
        ("TESTCASE", "q8x2"),
        ("ROLE", "proxy"),
        ("BENTPIPE_OPTIONS", "a=b"),
    ] {
        let mut command = socket_mode(PROGRAM, "client", "transfer", folder.path());
        let status = command
            .env("REQUESTS", url)
            .env(name, value)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(127), "{name}={value}");
    }
}
