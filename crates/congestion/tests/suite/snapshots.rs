//! How each slow start grows the window, and what comes of it: one table per path, to be read by
//! people.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test -p bentpipe-congestion snapshots` writes them anew.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use crate::model::{DATAGRAM, History, Model};
use bentpipe_congestion::Algorithms;
use bentpipe_units::Time;

/// Round trips that are shown.
const ROUNDS: usize = 16;

#[test]
fn sat_with_25_packets_of_queue() {
    compare("sat-25-packets", &Model::sat(25));
}

#[test]
fn sat_with_a_quarter_of_the_bdp_of_queue() {
    let bdp = Model::sat(0).bdp_packets();
    compare("sat-quarter-bdp", &Model::sat(bdp / 4));
}

#[test]
fn sat_with_one_bdp_of_queue() {
    let bdp = Model::sat(0).bdp_packets();
    compare("sat-1-bdp", &Model::sat(bdp));
}

#[test]
fn sat_with_four_bdp_of_queue() {
    let bdp = Model::sat(0).bdp_packets();
    compare("sat-4-bdp", &Model::sat(4 * bdp));
}

#[test]
fn satloss() {
    let model = Model {
        loss_one_in: 100,
        ..Model::sat(25)
    };
    compare("satloss", &model);
}

fn compare(name: &str, model: &Model) {
    let table = table(model);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/snapshots")
        .join(format!("{name}.txt"));
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, &table).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == table,
        "{} differs from what is measured; with UPDATE_SNAPSHOTS=1 it is written anew:\n{table}",
        path.display()
    );
}

/// A block per avoidance: a column per slow start, a row per round trip, the window in packets;
/// below, what came of it.
fn table(model: &Model) -> String {
    let mut text = format!(
        "{} bit/s, {} ms, {} packets of queue, loss 1 in {}, {} bytes; BDP: {} packets\n",
        model.rate.bps(),
        model.rtt.as_nanos() / 1_000_000,
        model.queue,
        model.loss_one_in,
        model.bytes,
        model.bdp_packets(),
    );
    for cc in Algorithms::avoidances() {
        let runs: Vec<(&str, History)> = Algorithms::slow_starts()
            .into_iter()
            .map(|ss| (ss, model.run(cc, ss)))
            .collect();
        write!(text, "\n{cc}\nround trip").unwrap();
        row(&mut text, runs.iter().map(|(ss, _)| (*ss).to_owned()));
        for round in 0..ROUNDS {
            write!(text, "{:10}", round + 2).unwrap();
            row(&mut text, runs.iter().map(|(_, run)| window(run, round)));
        }
        write!(text, "complete s").unwrap();
        row(&mut text, runs.iter().map(|(_, run)| seconds(run)));
        write!(text, "limit, %  ").unwrap();
        row(
            &mut text,
            runs.iter().map(|(_, run)| run.share(model).to_string()),
        );
        write!(text, "drops     ").unwrap();
        row(&mut text, runs.iter().map(|(_, run)| run.drops.to_string()));
        write!(text, "most queue").unwrap();
        row(
            &mut text,
            runs.iter().map(|(_, run)| run.longest_queue.to_string()),
        );
    }
    text
}

/// In packets; marked once slow start has been left.
fn window(run: &History, round: usize) -> String {
    run.samples.get(round).map_or_else(String::new, |sample| {
        let mark = match sample.phase {
            "congestion_avoidance" | "drain" => "a",
            "slow_start" => " ",
            _ => "*",
        };
        format!("{}{mark}", sample.window / DATAGRAM)
    })
}

fn seconds(run: &History) -> String {
    let hundredths = (run.completion - Time::ZERO).as_nanos() / 10_000_000;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn row(text: &mut String, cells: impl Iterator<Item = String>) {
    for cell in cells {
        write!(text, " {cell:>13}").unwrap();
    }
    while text.ends_with(' ') {
        text.pop();
    }
    text.push('\n');
}
