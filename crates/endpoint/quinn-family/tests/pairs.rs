//! The two programs with each other.

use std::fs;
use std::path::Path;

use crate::PROGRAM;
use crate::harness::{Trial, content, folder, pair};
use crate::socket_cases::cross;
use crate::test_cases::{ALL, resumption, upload, zero_rtt};

const SIZE: usize = 1 << 20;

/// Both orders.
fn programs() -> [[String; 2]; 2] {
    let other = Path::new(PROGRAM).with_file_name("bentpipe-endpoint-quinn");
    assert!(
        other.exists(),
        "{} is missing; `cargo test --workspace` builds it",
        other.display()
    );
    let (this, other) = (PROGRAM.to_owned(), other.to_str().unwrap().to_owned());
    [[this.clone(), other.clone()], [other, this]]
}

#[test]
fn every_test_case_works_between_the_two() {
    for programs in &programs() {
        let programs = [&programs[0][..], &programs[1][..]];
        for test_case in ALL {
            match test_case {
                "resumption" => resumption(programs),
                "zerortt" => zero_rtt(programs),
                "upload" => upload(programs),
                _ => {
                    let folder = folder(SIZE);
                    let (client, server) = pair(test_case, folder.path(), &[SIZE]);
                    let outcome = Trial::new(programs, &client, &server).finish();
                    assert_eq!(outcome.client.error, None);
                    let file = folder.path().join("downloads").join(SIZE.to_string());
                    assert!(fs::read(file).unwrap() == content(SIZE));
                }
            }
        }
    }
}

#[test]
fn every_test_case_crosses_real_sockets_between_the_two() {
    for programs in &programs() {
        for test_case in ALL {
            let folder = folder(SIZE);
            fs::write(folder.path().join("www/small"), content(1000)).unwrap();
            cross([&programs[0], &programs[1]], test_case, folder.path());
        }
    }
}
