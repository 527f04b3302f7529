//! Transfers in virtual time, and what is refused.

use std::fs;
use std::path::Path;
use std::time::Duration;

use bentpipe_endpoint::contract::Hello;

use crate::Subject;
use crate::coordinator::{Outcome, Program, content, folder, hello, pair, trial};

const SIZE: usize = 1 << 20;

fn transfer(subject: &Subject, folder: &Path, change: impl Fn(&mut Hello)) -> Outcome {
    let (mut client, mut server) = pair("transfer", folder, &[SIZE]);
    change(&mut client);
    change(&mut server);
    trial(subject.program, &client, &server)
}

fn option(hello: &mut Hello, name: &str, value: &str) {
    hello.options.insert(name.into(), value.into());
}

pub fn a_file_arrives_whole_and_the_report_is_right(subject: &Subject) {
    let folder = folder(SIZE);
    let outcome = transfer(subject, folder.path(), |_| {});
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

pub fn the_same_seed_gives_the_same_bytes_whatever_the_congestion_control(subject: &Subject) {
    let folder = folder(SIZE);
    for cc in subject.controls {
        let run = || transfer(subject, folder.path(), |hello| option(hello, "cc", cc)).log;
        assert!(run() == run(), "cc={cc}");
    }
}

pub fn another_seed_gives_other_bytes(subject: &Subject) {
    let folder = folder(SIZE);
    let run = |seed: &str| transfer(subject, folder.path(), |hello| hello.seed = seed.into()).log;
    assert!(run("0000000000000001") != run("0000000000000002"));
}

pub fn an_initial_window_shortens_the_transfer(subject: &Subject) {
    let folder = folder(SIZE);
    let last = |iw: &str| {
        let outcome = transfer(subject, folder.path(), |hello| option(hello, "iw", iw));
        outcome.client.requests[0].last_byte_ns.unwrap()
    };
    assert!(
        last("100") + 100_000_000 <= last("10"),
        "a round trip at least"
    );
}

pub fn a_flow_control_window_lengthens_the_transfer(subject: &Subject) {
    let folder = folder(SIZE);
    let last = |change: &dyn Fn(&mut Hello)| {
        transfer(subject, folder.path(), change).client.requests[0]
            .last_byte_ns
            .unwrap()
    };
    let narrow = last(&|hello| option(hello, "window", "65536"));
    // 16 windows, a round trip of 100 ms each, less the first half.
    assert!(narrow > 1_500_000_000, "{narrow}");
    assert!(last(&|_| {}) < narrow);
}

pub fn full_packets_have_the_size_that_is_asked_for(subject: &Subject) {
    let folder = folder(SIZE);
    let sizes = |mtu: Option<&str>| {
        let outcome = transfer(subject, folder.path(), |hello| {
            if let Some(mtu) = mtu {
                option(hello, "mtu", mtu);
            }
        });
        outcome.by_server.sizes
    };
    assert_eq!(sizes(None).into_iter().max(), Some(1452), "discovered");
    for mtu in [1200, 1400, 1472] {
        let sizes = sizes(Some(&mtu.to_string()));
        assert_eq!(sizes.iter().max(), Some(&mtu));
        let full = sizes.iter().filter(|size| **size == mtu).count();
        assert!(full >= SIZE / 1472, "{full} packets of {mtu} bytes");
    }
}

pub fn a_server_that_asks_for_fewer_acks_gets_fewer(subject: &Subject) {
    let folder = folder(SIZE);
    let acks = |ack: Option<&str>| {
        let (client, mut server) = pair("transfer", folder.path(), &[SIZE]);
        if let Some(ack) = ack {
            option(&mut server, "ack", ack);
        }
        trial(subject.program, &client, &server)
            .by_client
            .sizes
            .len()
    };
    let (usual, few) = (acks(None), acks(Some("10")));
    assert!(3 * few < 2 * usual, "{few} of {usual}");
}

pub fn several_replies_come_at_once_and_a_missing_one_hides_no_other(subject: &Subject) {
    let folder = folder(SIZE);
    fs::write(folder.path().join("www/small"), "little").unwrap();
    fs::write(folder.path().join("www/empty"), "").unwrap();
    let paths = [&SIZE.to_string(), "absent", "small", "empty"];
    let (client, server) = pair("transfer", folder.path(), &paths);
    let outcome = trial(subject.program, &client, &server);
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

pub fn logs_are_complete_and_in_virtual_time(subject: &Subject) {
    let folder = folder(SIZE);
    let qlog = folder.path().join("qlog");
    fs::create_dir(&qlog).unwrap();
    let outcome = transfer(subject, folder.path(), |hello| {
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

pub fn what_is_not_supported_is_127_before_ready(subject: &Subject) {
    let folder = folder(1);
    let changes: [&dyn Fn(&mut Hello); 13] = [
        &|hello| hello.testcase = "q8x2".into(),
        &|hello| hello.role = "proxy".into(),
        &|hello| hello.contract = 2,
        &|hello| option(hello, "speed", "high"),
        &|hello| option(hello, "cc", "vegas"),
        &|hello| option(hello, "iw", "0"),
        &|hello| option(hello, "iw", "many"),
        &|hello| option(hello, "window", "-1"),
        &|hello| option(hello, "window", "4611686018427387904"),
        &|hello| option(hello, "mtu", "1199"),
        &|hello| option(hello, "mtu", "1473"),
        &|hello| option(hello, "ack", "0"),
        // Neither library can switch it off.
        &|hello| option(hello, "pacing", "off"),
    ];
    for (index, change) in changes.iter().enumerate() {
        for role in ["client", "server"] {
            let mut hello = hello(role, folder.path());
            change(&mut hello);
            let answer = Program::start(subject.program, &hello).ready();
            assert_eq!(answer, Err(Some(127)), "change {index} of the {role}");
        }
    }
}

pub fn a_program_whose_coordinator_goes_away_exits(subject: &Subject) {
    let folder = folder(1);
    let mut program = Program::start(subject.program, &hello("server", folder.path()));
    program.ready().unwrap();
    assert!(program.abandon().success());
}

pub fn a_missing_certificate_is_named(subject: &Subject) {
    let folder = folder(1);
    let mut hello = hello("server", folder.path());
    folder.path().clone_into(&mut hello.certs);
    assert_eq!(
        Program::start(subject.program, &hello).ready(),
        Err(Some(1))
    );
}
