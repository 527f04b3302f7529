"""The real thing: four stacks in the real simulator, from the command line to the report.

Everything must be built (`make setup`). A stack whose toolchain is missing is left out, as `make setup`
leaves it out.
"""

import json
import re
import shutil
import struct
from pathlib import Path

import pytest
from conftest import SETUP as FOUR
from conftest import Command, installed_or_skip, present

from bentpipe import paths
from bentpipe.stacks import catalogue

pytestmark = pytest.mark.virtual_time

REFERENCE = paths.root() / "docs" / "reference" / "campaigns.md"
SMALL = ["--bytes", "100kB", "--no-report", "--json"]


def by_trial(records: list[dict[str, object]]) -> dict[object, object]:
    return {record["trial"]: record["packet_log_hash"] for record in records}


def test_every_pair_moves_a_file(bentpipe: Command) -> None:
    four = ",".join(present())
    done = bentpipe("run", "--scenario", "goodput,sat,satloss", "--client", four, "--server", four,
                    "--iterations", "1", "--trace", "none", "--out", "A", *SMALL)  # fmt: skip
    assert done.code == 0, done.err
    records = done.records()
    assert len(records) == 3 * len(present()) ** 2
    assert [(r["client"], r["server"], r["detail"]) for r in records if r["outcome"] != "ok"] == []
    for record in records:
        assert record["size_bytes"] == 100_000
        assert 0 < record["handshake_s"] <= record["ttfb_s"] <= record["completion_s"] <= record["virtual_s"]
        assert record["limit_s"] <= record["completion_s"]
        assert 0 < record["efficiency"] <= 1
        assert record["received_bytes"] == sorted(record["received_bytes"])
        assert record["received_bytes"][-1] >= 100_000
        read = record["in_order_bytes"]
        assert read == sorted(read) and len(read) == len(record["received_bytes"])
        assert all(own <= came for own, came in zip(read, record["received_bytes"], strict=True))


def test_the_same_seed_gives_the_same_packets(bentpipe: Command) -> None:
    """Over two runs, over --jobs, over the order of trials, and over a resumed run. That each stack repeats
    is held in test_determinism.py; here each plays once.
    """
    half, other = (",".join(present()[start::2]) for start in (0, 1))
    run = ["run", "--scenario", "sat,satloss", "--client", half, "--server", other,
           "--iterations", "2", "--trace", "none", "--seed", "7",
           "--draws", "independent", *SMALL]  # fmt: skip
    first = by_trial(bentpipe(*run, "--jobs", "1", "--out", "A").records())
    again = by_trial(bentpipe(*run, "--jobs", "2", "--shuffle", "--out", "B").records())
    assert all(first.values())
    assert len(set(first.values())) == len(first)
    assert again == first
    lines = Path("B/records.jsonl").read_text().splitlines(keepends=True)
    Path("B/records.jsonl").write_text("".join(lines[: len(lines) // 2]))
    resumed = bentpipe("run", "--resume", "B", "--no-report", "--json")
    assert resumed.code == 0, resumed.err
    assert by_trial(resumed.records()) == first


def test_another_seed_gives_other_packets(bentpipe: Command) -> None:
    run = ["run", "--scenario", "sat", "--client", "quinn", "--server", "noq", "--iterations", "1",
           "--trace", "none", *SMALL]  # fmt: skip
    hashes = {
        tuple(by_trial(bentpipe(*run, "--seed", seed, "--out", f"S{seed}").records()).values())
        for seed in ("1", "2", "3")
    }
    assert len(hashes) == 3


def test_one_bdp_of_queue_and_large_windows(bentpipe: Command) -> None:
    """quinn to quinn moves 10 MiB over sat in 9.3 s of virtual time, as measured in a feasibility trial."""
    quinn = "quinn:window=16777216"
    done = bentpipe("run", "--scenario", "sat", "--client", quinn, "--server", quinn, "--set",
                    "forward.queue=1BDP", "--iterations", "1", "--trace", "none", "--no-report",
                    "--json", "--out", "A")  # fmt: skip
    (record,) = done.records()
    assert record["scenario"] == "sat,forward.queue=1BDP"
    assert record["completion_s"] == pytest.approx(9.3, rel=0.02)


def test_a_run_leaves_a_trace_and_a_report(bentpipe: Command) -> None:
    done = bentpipe("run", "--scenario", "sat", "--client", "quinn", "--server", "noq", "--iterations", "3",
                    "--bytes", "100kB", "--trace", "median", "--qlog", "--out", "A")  # fmt: skip
    assert done.code == 0, done.err
    assert "report: A/report/index.html" in done.out
    assert Path("A/report/index.html").is_file()
    (trial,) = Path("A/trials").iterdir()
    data = (trial / "trace.pcapng").read_bytes()
    assert struct.unpack_from("<I", data)[0] == 0x0A0D0D0A
    assert b"CLIENT_TRAFFIC_SECRET_0" in data
    assert list((trial / "qlog").rglob("*.*qlog"))
    manifest = json.loads(Path("A/manifest.json").read_text())
    assert manifest["contract_breaches"] == {}
    assert set(manifest["versions"]["stacks"]) == {"quinn", "noq"}


# Beside the analysis, what the links did: reports draw it.
KEPT = ["analysis.json", "link-events.json", "packets.parquet"]


def test_of_a_trace_the_analysis_alone_can_be_kept(bentpipe: Command) -> None:
    done = bentpipe("run", "--scenario", "sat", "--client", "quinn", "--server", "noq", "--iterations", "3",
                    "--bytes", "100kB", "--trace", "analysis", "--out", "A")  # fmt: skip
    assert done.code == 0, done.err
    (trial,) = Path("A/trials").iterdir()
    assert sorted(file.name for file in trial.iterdir()) == KEPT
    (script,) = Path("A/report/data/trials").iterdir()
    assert script.name == f"{trial.name}.js"
    explained = bentpipe("trace", trial, "--explain")
    assert explained.code == 0 and "slow start" in explained.out.lower()
    refused = bentpipe("trace", trial, "-o", "elsewhere")
    assert refused.code == 2 and "only the analysis" in refused.err
    # What is lost is made again of the same packets.
    analysis = json.loads((trial / "analysis.json").read_text())["connections"]
    shutil.rmtree(trial)
    again = bentpipe("run", "--resume", "A", "--no-report")
    assert again.code == 0, again.err
    assert sorted(file.name for file in trial.iterdir()) == KEPT
    assert json.loads((trial / "analysis.json").read_text())["connections"] == analysis


@pytest.mark.real_time
@pytest.mark.parametrize("name", sorted({*FOUR} - {"quinn"}))  # quinn: in test_conformance.py
def test_every_stack_keeps_the_contract(bentpipe: Command, name: str) -> None:
    installed_or_skip(name)
    done = bentpipe("stacks", "test", name)
    assert done.code == 0, done.out


@pytest.mark.parametrize(
    ("option", "value"), [("cc", "none-such"), ("window", "many"), ("iw", "-1"), ("iw", "ten")]
)
def test_option_values_that_a_stack_does_not_know_are_unsupported(
    bentpipe: Command, option: str, value: str
) -> None:
    known = catalogue.discover()
    clients = ",".join(f"{name}:{option}={value}" for name in present() if option in known[name].options)
    done = bentpipe("run", "--scenario", "goodput", "--client", clients, "--server", "quinn",
                    "--iterations", "1", "--trace", "none", "--out", "A", *SMALL)  # fmt: skip
    assert {record["outcome"] for record in done.records()} == {"unsupported"}


def test_over_links_that_vary_each_trial_has_its_own_limit(bentpipe: Command) -> None:
    """And no transfer is better than it, whatever varies; the same seed draws the same."""
    varying = "4sat-variable,sat-allocation,starlink,viasat-varying"
    run = ["run", "--scenario", varying, "--client", "noq", "--server", "noq", "--iterations", "3",
           "--trace", "none", *SMALL]  # fmt: skip
    done = bentpipe(*run, "--out", "A")
    assert done.code == 0, done.err
    for record in done.records():
        assert record["outcome"] == "ok" and record["limit_s"] <= record["completion_s"]
        assert record["efficiency"] is None or 0 < record["efficiency"] <= 1
    limits = {
        scenario: len({r["limit_s"] for r in done.records() if r["scenario"] == scenario})
        for scenario in varying.split(",")
    }
    assert limits == {"4sat-variable": 1, "sat-allocation": 1, "starlink": 3, "viasat-varying": 3}
    assert by_trial(bentpipe(*run, "--out", "B").records()) == by_trial(done.records())


def test_a_rate_may_be_set_to_one_that_changes(bentpipe: Command) -> None:
    steps = 'forward.rate={ steps = [["0 s", "20 Mbit/s"], ["1 s", "2 Mbit/s"]] }'
    run = ["run", "--scenario", "sat", "--client", "noq", "--server", "noq", "--iterations", "1", *SMALL]
    fixed = bentpipe(*run, "--out", "A", "--trace", "none").records()[0]
    changed = bentpipe(*run, "--out", "B", "--trace", "none", "--set", steps).records()[0]
    # The request arrives at 0.9 s: 100 ms at 20 Mbit/s are enough for the file.
    assert changed["limit_s"] == fixed["limit_s"] < 1.3 < fixed["completion_s"] < changed["completion_s"]
    assert changed["scenario"].startswith('sat,forward.rate={steps=[["0s","20Mbit/s"]')


def test_stacks_and_scenarios_are_listed(bentpipe: Command) -> None:
    listed = bentpipe("stacks")
    assert listed.code == 0
    assert all(name in listed.out for name in FOUR)
    for name in FOUR:
        shown = bentpipe("stacks", "show", name)
        assert shown.code == 0 and "cc " in shown.out
    listed = bentpipe("scenarios")
    assert listed.code == 0 and "satloss" in listed.out
    assert max(map(len, listed.out.splitlines())) <= 80
    shown = bentpipe("scenarios", "show", "sat", "--set", "forward.queue=1BDP")
    assert "Endres" in shown.out and "600 ms" in shown.out and "queue 1 BDP" in shown.out
    full = json.loads(bentpipe("scenarios", "show", "sat", "--json").out)
    assert full["summary"]["forward_rate_bps"] == 20_000_000


SCENARIO = """
title = "A test"
source = "none"
timeout = "60 s"
[satellite.forward]
rate = "10 Mbit/s"
delay = "300 ms"
queue = "25 packets"
[satellite.return]
rate = "1 Mbit/s"
delay = "300 ms"
queue = "25 packets"
"""


@pytest.mark.parametrize(
    ("old", "new", "key", "said"),
    [
        ("queue =", "queu =", "queu", "unknown key"),
        ('"10 Mbit/s"', "10", "rate", "Mbit/s"),
        ('"10 Mbit/s"', '"10"', "rate", "unit"),
        ('"10 Mbit/s"', '"-10 Mbit/s"', "rate", "-10 Mbit/s"),
        ('"300 ms"', '"300 parsecs"', "delay", "300 parsecs"),
        ('delay = "300 ms"', 'delay = { trace = "nowhere.csv" }', "delay", "nowhere.csv"),
        ("[satellite.return]", "[satelite.return]", "satelite", "unknown key"),
        ('title = "A test"', "title = A test", "own.toml", ""),
    ],
)
def test_mistakes_in_scenario_files_are_named(
    bentpipe: Command, tmp_path: Path, old: str, new: str, key: str, said: str
) -> None:
    assert old in SCENARIO
    (tmp_path / "own.toml").write_text(SCENARIO.replace(old, new, 1))
    done = bentpipe("run", "--scenario", "own.toml", "--client", "quinn", "--server", "quinn", "--out", "A")
    assert done.code == 2, done.err
    assert done.err.startswith("error: ") and "own.toml" in done.err
    assert key in done.err and said in done.err
    assert not (tmp_path / "A").exists()


@pytest.mark.parametrize("block", re.findall(r"```toml\n(.*?)```", REFERENCE.read_text(), re.DOTALL))
def test_the_examples_of_the_campaign_reference_run(bentpipe: Command, tmp_path: Path, block: str) -> None:
    (tmp_path / "plan.toml").write_text(block)
    stack = present()[0]
    done = bentpipe("run", "plan.toml", "--client", stack, "--server", stack, "--iterations", "1",
                    "--out", "A", *SMALL)  # fmt: skip
    assert done.code == 0, done.err
    assert [record["detail"] for record in done.records() if record["outcome"] != "ok"] == []


def test_a_scenario_of_ones_own_is_run(bentpipe: Command, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(SCENARIO)
    done = bentpipe("run", "--scenario", "own.toml", "--client", "quinn", "--server", "quinn",
                    "--iterations", "1", "--trace", "none", "--out", "A", *SMALL)  # fmt: skip
    assert [(record["scenario"], record["outcome"]) for record in done.records()] == [("own", "ok")]
