//! The program over the corpus: whatever a capture holds, it writes both its files and says by its
//! exit code whether the capture was whole.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, process};

/// Captures that are not read to their ends.
const DEFECTIVE: [&str; 3] = [
    "v1-cut.pcapng",
    "v1-garbage.pcapng",
    "v1-without-secrets.pcap",
];

#[test]
fn every_file_of_the_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../analysis/tests/corpus");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("analyze-{}", process::id()));
    let paths = fs::read_dir(corpus).unwrap().map(|it| it.unwrap().path());
    let captures: Vec<PathBuf> = paths.filter(|it| it.extension().unwrap() != "md").collect();
    assert!(captures.len() >= 15);
    for capture in captures {
        let mut program = Command::new(env!("CARGO_BIN_EXE_bentpipe-trace"));
        let program = program.arg("analyze").arg(&capture).arg("-o").arg(&out);
        let output = program.output().unwrap();
        let name = capture.file_name().unwrap().to_str().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = i32::from(DEFECTIVE.contains(&name));
        assert_eq!(output.status.code(), Some(expected), "{name}: {said}");
        assert_eq!(said.contains("error: "), expected == 1, "{name}: {said}");
        let table = fs::read(out.join("packets.parquet")).unwrap();
        assert!(
            table.starts_with(b"PAR1") && table.ends_with(b"PAR1"),
            "{name}"
        );
        let analysis = fs::read_to_string(out.join("analysis.json")).unwrap();
        assert!(analysis.contains("\"connections\":["), "{name}: {analysis}");
        fs::remove_dir_all(&out).unwrap();
    }
}
