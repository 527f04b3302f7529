"""What the Makefile, `benches/` and `examples/` offer is tried: by `.ci/run`, or by `make smoke`.

A target or a benchmark that is in neither must come into a list here, with what it is tried by, or why it is
not. The smallest setting of a benchmark measures nothing; it shows that all of it runs.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import browser
import command_lines
import pytest
from conftest import installed_or_skip

ROOT = Path(__file__).resolve().parents[2]
CI = (ROOT / ".ci" / "run").read_text()
CALLED_BY_CI = set(re.findall(r"^ *make ([\w-]+)", CI, re.MULTILINE))
# What `make smoke` calls them with; `bench` runs last, alone.
SMOKE: dict[str, list[str]] = {
    "demo": [],
    "soak": ["MINUTES=0.01"],
    "test-crate": ["CRATE=interop"],
    "products": [],
}
ELSEWHERE = {"site": "tests/python/test_documentation_site.py"}  # the tests that `make smoke` tries them in
ALONE = {"bench": ["SMALLEST=1"]}
NOT_TRIED = {
    "bench-needs": "`make bench` begins with it",
    "clean": "it removes what the others stand on",
    "docs": "it carries out all studies, which takes three hours",
    "fmt": "it changes files; `make lint` says whether it would",
    "schemas": "it writes files; tests hold each against what it would write",
    "wheel": "`make wheel-check` begins with it",
}
# Benchmarks beside those of `make bench`, and what each is called with.
FURTHER: dict[str, list[list[str]]] = {
    "benches/report.py": [[]],
    "benches/site.py": [[]],
    "benches/scale/beyond.py": [[]],
    "benches/scale/records.py": [[]],
    "benches/scale/cluster.py": [["overhead"], ["memory"], ["deaths"], ["results"], ["programs"]],
}
BENCH_NEEDS = ("tshark", "editcap", "iperf3")


def recipe(target: str) -> str:
    """What the Makefile does for a target."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)*)", command_lines.MAKEFILE, re.MULTILINE)
    assert found is not None
    return found[1]


def test_every_target_is_tried_or_says_why_not() -> None:
    assert sorted([*CALLED_BY_CI, *SMOKE, *ELSEWHERE, *ALONE, *NOT_TRIED]) == sorted(command_lines.TARGETS)
    for target, file in ELSEWHERE.items():
        assert file in recipe("smoke") and f'"make", "{target}"' in (ROOT / file).read_text()
    phony = re.search(r"^\.PHONY: (.*)$", command_lines.MAKEFILE, re.MULTILINE)
    assert phony is not None and {*phony[1].split()} == command_lines.TARGETS


def test_every_benchmark_is_tried() -> None:
    there = [file for file in (ROOT / "benches").rglob("*.py") if "__main__" in file.read_text()]
    called = re.findall(r"\S*benches/\S+\.py", recipe("bench"))
    assert sorted([*called, *FURTHER]) == sorted(str(file.relative_to(ROOT)) for file in there)
    rust = [file.stem for file in (ROOT / "benches").glob("*/benches/*.rs")]
    assert re.findall(r"--bench (\w+)", recipe("bench")) == sorted(rust)


def tried(command: list[str]) -> str:
    """What a command prints, which must end well."""
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("name", "words"), [(name, words) for name, calls in FURTHER.items() for words in calls], ids=str
)
def test_a_benchmark_runs_with_its_smallest_setting(name: str, words: list[str]) -> None:
    if name == "benches/report.py" and browser.CHROMIUM is None:
        pytest.skip("no Chromium on the PATH")
    assert tried([sys.executable, name, *words, "--smallest"])


@pytest.mark.smoke
@pytest.mark.parametrize("target", SMOKE)
def test_a_target_works(target: str) -> None:
    assert tried(["make", target, *SMOKE[target]])


@pytest.mark.smoke
@pytest.mark.parametrize(("name", "library"), [("template-c", "picoquic"), ("template-python", "aioquic")])
def test_a_template_of_a_stack_passes_the_tests_of_the_contract(name: str, library: str) -> None:
    installed_or_skip(library)
    assert ", 0 failed, 0 skipped" in tried(
        [sys.executable, "-m", "bentpipe", "stacks", "test", "--stacks", f"examples/{name}"]
    )


def test_every_example_in_rust_is_tried() -> None:
    assert [file.parent.name for file in (ROOT / "examples").glob("*/Cargo.toml")] == ["plug-into-noq"]


@pytest.mark.smoke
def test_the_controller_of_congestion_plugs_into_noq_as_published() -> None:
    """From its own lock file, of the same versions as the root's, so that nothing more is fetched."""
    example = ROOT / "examples" / "plug-into-noq"
    root, own = (lock.read_text().split("\n\n") for lock in (ROOT / "Cargo.lock", example / "Cargo.lock"))
    checksum = re.compile(r'^checksum = ".*"$', re.MULTILINE)
    known = {found[0] for package in root if (found := checksum.search(package))}
    versions = {found[0] for package in own if (found := checksum.search(package))}
    assert versions <= known
    printed = tried(
        [
            *["cargo", "run", "--release", "--locked", "--quiet"],
            *["--manifest-path", str(example / "Cargo.toml"), "--target-dir", "target/plug-into-noq"],
        ]
    )
    assert re.findall(r"^cc=(\S+) ss=(\S+) +\d+\.\d\d s, ", printed, re.MULTILINE) == [
        ("cubic", "hystart++"),
        ("cubic", "search"),
        ("bentpipe", "flight"),
    ]


@pytest.mark.smoke
def test_a_constant_of_the_sender_is_swept() -> None:
    """One value over the short paths, in a copy of the crate; nothing is written."""
    swept = json.loads(tried([sys.executable, "tools/sender/sweep.py", "--smallest"]))
    (row,) = swept["rows"].values()
    assert len(swept["paths"]) > 10 and row["factors"]["2"]["failed"] == []


def test_what_is_published_stands_alone() -> None:
    """Two crates can be packed for a registry: what they depend on is there, or is the other one."""
    published = {"bentpipe-congestion", "bentpipe-units"}
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    packages = json.loads(tried(command))["packages"]
    assert {it["name"] for it in packages if it["publish"] is None} == published
    for package in packages:
        if package["name"] in published:
            for edge in package["dependencies"]:
                assert edge["req"] != "*" and (edge.get("path") is None or edge["name"] in published)
            folder = Path(package["manifest_path"]).parent
            for name in ("README.md", "LICENSE-MIT", "LICENSE-APACHE"):
                assert (folder / name).is_file()


@pytest.mark.smoke
@pytest.mark.emulated
@pytest.mark.usefixtures("namespaces")
def test_all_benchmarks_of_make_bench_run() -> None:
    if absent := [name for name in BENCH_NEEDS if shutil.which(name) is None]:
        pytest.skip(f"not on the PATH: {', '.join(absent)}")
    printed = tried(["make", "bench", *ALONE["bench"]])
    # Each of them says something that no other does.
    for said in (
        "client → server",
        "of the reference",
        "each discipline at most",
        "bentpipe-trace",
        "bentpipe perf at least",
        "requests ",
        "iperf3's bytes",
        "1 Gbit/s of 600 B, fq-codel",
    ):
        assert said in printed
    assert re.search(r"^cubic +linux .*iperf3", printed, re.MULTILINE)
