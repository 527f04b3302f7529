//! Two programs with each other.

use std::fs;
use std::path::Path;

use crate::Subject;
use crate::coordinator::{Coordinator, content, folder, pair};
use crate::sockets::cross;
use crate::test_cases::{ALL, resumption, upload, zero_rtt};

const SIZE: usize = 1 << 20;

/// The subject and quinn, in both orders.
fn programs(subject: &Subject) -> [[String; 2]; 2] {
    let other = Path::new(subject.program).with_file_name("bentpipe-endpoint-quinn");
    assert!(
        other.exists(),
        "{} is missing; `cargo test --workspace` builds it",
        other.display()
    );
    let (this, other) = (
        subject.program.to_owned(),
        other.to_str().unwrap().to_owned(),
    );
    [[this.clone(), other.clone()], [other, this]]
}

pub fn every_test_case_works_between_the_two(subject: &Subject) {
    for programs in &programs(subject) {
        let programs = [&programs[0][..], &programs[1][..]];
        for test_case in ALL {
            match test_case {
                "resumption" => resumption(programs),
                "zerortt" => zero_rtt(programs),
                "upload" => upload(programs),
                _ => {
                    let folder = folder(SIZE);
                    let (client, server) = pair(test_case, folder.path(), &[SIZE]);
                    let outcome = Coordinator::new(programs, &client, &server).finish();
                    assert_eq!(outcome.client.error, None);
                    let file = folder.path().join("downloads").join(SIZE.to_string());
                    assert!(fs::read(file).unwrap() == content(SIZE));
                }
            }
        }
    }
}

pub fn every_test_case_crosses_real_sockets_between_the_two(subject: &Subject) {
    for programs in &programs(subject) {
        for test_case in ALL {
            let folder = folder(SIZE);
            fs::write(folder.path().join("www/small"), content(1000)).unwrap();
            cross([&programs[0], &programs[1]], test_case, folder.path());
        }
    }
}
