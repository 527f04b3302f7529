//! What holds for both programs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bentpipe_endpoint::contract::Hello;

use crate::harness::{Outcome, Program, certs, content, folder, hello, trial};
use crate::{CONTROLS, PROGRAM};

const SIZE: usize = 1 << 20;

fn pair(folder: &Path) -> (Hello, Hello) {
    let mut client = hello("client", folder);
    client.requests = vec![format!("https://server:443/{SIZE}")];
    (client, hello("server", folder))
}

fn transfer(folder: &Path, change: impl Fn(&mut Hello)) -> Outcome {
    let (mut client, mut server) = pair(folder);
    change(&mut client);
    change(&mut server);
    trial(PROGRAM, &client, &server)
}

fn option(hello: &mut Hello, name: &str, value: &str) {
    hello.options.insert(name.into(), value.into());
}

#[test]
fn a_file_arrives_whole_and_the_report_is_right() {
    let folder = folder(SIZE);
    let outcome = transfer(folder.path(), |_| {});
    let downloaded = fs::read(folder.path().join("downloads").join(SIZE.to_string())).unwrap();
    assert!(downloaded == content(SIZE));
    assert_eq!(
        (&outcome.client.error, &outcome.server.error),
        (&None, &None)
    );
    let handshake = outcome.client.handshake_ns.unwrap();
    assert!(
        (100_000_000..110_000_000).contains(&handshake),
        "one round trip, not {handshake}"
    );
    assert!(outcome.server.handshake_ns.is_some() && outcome.server.requests.is_empty());
    let [request] = &outcome.client.requests[..] else {
        panic!("one request")
    };
    assert_eq!(
        (request.path.as_str(), request.bytes),
        ("/1048576", SIZE as u64)
    );
    let (first, last) = (
        request.first_byte_ns.unwrap(),
        request.last_byte_ns.unwrap(),
    );
    assert!(handshake + 100_000_000 <= first && first < last);
}

#[test]
fn the_same_seed_gives_the_same_bytes_whatever_the_congestion_control() {
    let folder = folder(SIZE);
    for cc in CONTROLS {
        let run = || transfer(folder.path(), |hello| option(hello, "cc", cc)).log;
        assert!(run() == run(), "cc={cc}");
    }
}

#[test]
fn another_seed_gives_other_bytes() {
    let folder = folder(SIZE);
    let run = |seed: &str| transfer(folder.path(), |hello| hello.seed = seed.into()).log;
    assert!(run("0000000000000001") != run("0000000000000002"));
}

#[test]
fn an_initial_window_shortens_the_transfer() {
    let folder = folder(SIZE);
    let last = |iw: &str| {
        let outcome = transfer(folder.path(), |hello| option(hello, "iw", iw));
        outcome.client.requests[0].last_byte_ns.unwrap()
    };
    assert!(
        last("100") + 100_000_000 <= last("10"),
        "a round trip at least"
    );
}

#[test]
fn a_flow_control_window_lengthens_the_transfer() {
    let folder = folder(SIZE);
    let last = |change: &dyn Fn(&mut Hello)| {
        transfer(folder.path(), change).client.requests[0]
            .last_byte_ns
            .unwrap()
    };
    let narrow = last(&|hello| option(hello, "window", "65536"));
    // 16 windows, a round trip of 100 ms each, less the first half.
    assert!(narrow > 1_500_000_000, "{narrow}");
    assert!(last(&|_| {}) < narrow);
}

#[test]
fn several_replies_come_at_once_and_a_missing_one_hides_no_other() {
    let folder = folder(SIZE);
    fs::write(folder.path().join("www/small"), "little").unwrap();
    fs::write(folder.path().join("www/empty"), "").unwrap();
    let (mut client, server) = pair(folder.path());
    for path in ["absent", "small", "empty"] {
        client.requests.push(format!("https://server:443/{path}"));
    }
    let outcome = trial(PROGRAM, &client, &server);
    let downloads = folder.path().join("downloads");
    assert!(fs::read(downloads.join(SIZE.to_string())).unwrap() == content(SIZE));
    assert_eq!(fs::read(downloads.join("small")).unwrap(), b"little");
    assert_eq!(fs::read(downloads.join("empty")).unwrap(), b"");
    assert!(!downloads.join("absent").exists());
    let error = outcome.client.error.unwrap();
    assert!(error.starts_with("/absent: reset by the server"), "{error}");
    let bytes: Vec<_> = outcome
        .client
        .requests
        .iter()
        .map(|request| request.bytes)
        .collect();
    assert_eq!(bytes, [SIZE as u64, 0, 6, 0]);
}

#[test]
fn more_requests_than_streams_are_all_answered() {
    let folder = folder(SIZE);
    let (mut client, server) = pair(folder.path());
    client.requests.clear();
    for index in 0..250 {
        fs::write(
            folder.path().join(format!("www/{index}")),
            index.to_string(),
        )
        .unwrap();
        client.requests.push(format!("https://server:443/{index}"));
    }
    assert_eq!(trial(PROGRAM, &client, &server).client.error, None);
    for index in 0..250 {
        let reply = fs::read(folder.path().join(format!("downloads/{index}"))).unwrap();
        assert_eq!(reply, index.to_string().as_bytes());
    }
}

#[test]
fn logs_are_complete_and_in_virtual_time() {
    let folder = folder(SIZE);
    let qlog = folder.path().join("qlog");
    fs::create_dir(&qlog).unwrap();
    let outcome = transfer(folder.path(), |hello| {
        hello.keylog = Some(folder.path().join(format!("{}.keys", hello.role)));
        hello.qlog = Some(qlog.clone());
    });
    let secrets = |role: &str| fs::read_to_string(folder.path().join(role)).unwrap();
    assert!(secrets("client.keys").contains("SERVER_TRAFFIC_SECRET_0 "));
    assert_eq!(secrets("client.keys"), secrets("server.keys"));
    for role in ["client", "server"] {
        let text = fs::read_to_string(qlog.join(format!("{role}.sqlog"))).unwrap();
        let records: Vec<serde_json::Value> = text
            .split('\u{1e}')
            .filter(|record| !record.trim().is_empty())
            .map(|record| serde_json::from_str(record).unwrap())
            .collect();
        let times: Vec<_> = records
            .iter()
            .filter_map(|record| record["time"].as_f64())
            .collect();
        assert!(times.len() > 100, "{role} has {} events", times.len());
        let last = *times.last().unwrap();
        let end = outcome.client.requests[0].last_byte_ns.unwrap();
        let end = Duration::from_nanos(end).as_secs_f64() * 1e3;
        assert!(
            (end - 100.0..end + 100.0).contains(&last),
            "{role}: {last} ms, not {end} ms"
        );
    }
}

#[test]
fn what_is_not_supported_is_127_before_ready() {
    let folder = folder(1);
    let changes: [&dyn Fn(&mut Hello); 9] = [
        &|hello| hello.testcase = "q8x2".into(),
        &|hello| hello.role = "proxy".into(),
        &|hello| hello.contract = 2,
        &|hello| option(hello, "speed", "high"),
        &|hello| option(hello, "cc", "vegas"),
        &|hello| option(hello, "iw", "0"),
        &|hello| option(hello, "iw", "many"),
        &|hello| option(hello, "window", "-1"),
        &|hello| option(hello, "window", "4611686018427387904"),
    ];
    for (index, change) in changes.iter().enumerate() {
        for role in ["client", "server"] {
            let mut hello = hello(role, folder.path());
            change(&mut hello);
            let answer = Program::start(PROGRAM, &hello).ready();
            assert_eq!(answer, Err(Some(127)), "change {index} of the {role}");
        }
    }
}

#[test]
fn a_program_whose_coordinator_goes_away_exits() {
    let folder = folder(1);
    let mut program = Program::start(PROGRAM, &hello("server", folder.path()));
    program.ready().unwrap();
    assert!(program.abandon().success());
}

#[test]
fn a_missing_certificate_is_named() {
    let folder = folder(1);
    let mut hello = hello("server", folder.path());
    hello.certs = folder.path().to_owned();
    assert_eq!(Program::start(PROGRAM, &hello).ready(), Err(Some(1)));
}

fn socket_mode(role: &str, folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .env_clear()
        .envs([("ROLE", role), ("TESTCASE", "transfer")])
        .env("WWW", folder.join("www"))
        .env("DOWNLOADS", folder.join("downloads"))
        .env("CERTS", certs());
    command
}

#[test]
fn a_file_crosses_real_sockets() {
    let folder = folder(SIZE);
    let probe = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = probe.local_addr().unwrap().to_string();
    drop(probe);
    let mut server = socket_mode("server", folder.path())
        .env("BENTPIPE_LISTEN", &address)
        .env("SSLKEYLOGFILE", folder.path().join("keys"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    let client = socket_mode("client", folder.path())
        .env("REQUESTS", format!("https://{address}/{SIZE}"))
        .env("BENTPIPE_OPTIONS", "cc=cubic iw=20")
        .status()
        .unwrap();
    assert!(client.success());
    let id = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
    let downloaded = fs::read(folder.path().join("downloads").join(SIZE.to_string())).unwrap();
    assert!(downloaded == content(SIZE));
    assert!(
        fs::read_to_string(folder.path().join("keys"))
            .unwrap()
            .contains("SECRET_0 ")
    );
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
        let mut command = socket_mode("client", folder.path());
        let status = command
            .env("REQUESTS", url)
            .env(name, value)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(127), "{name}={value}");
    }
}
