"""`bentpipe check` from end to end: with instant results, and with a real stack in virtual time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import pytest
from conftest import STACKS, Command

from bentpipe import paths
from bentpipe.cli.check import _again

SUITE = """
title = "Of a test"
[[objectives]]
name = "near"
scenario = "sat"
workload = "transfer:10MB"
within = { "1 MB" = "4 s", "10 MB" = "5 s" }

[[objectives]]
name = "rate"
scenario = "satloss"
workload = "transfer:2MB"
measure = "goodput_bps"
at_least = "9 Mbit/s"
"""
TOY = ["--client", "toy", "--server", "toy"]


@pytest.fixture
def suite(tmp_path: Path) -> str:
    (tmp_path / "mine.toml").write_text(SUITE)
    twice = SUITE.replace('"satloss"', '"sat.toml"')
    (tmp_path / "twice.toml").write_text(twice)
    (tmp_path / "sat.toml").write_text((paths.scenarios() / "sat.toml").read_text())
    return "mine.toml"


def verdicts(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(folder, "verdicts.json").read_text())
    return found


@pytest.mark.usefixtures("fake_sim")
def test_a_check_says_what_is_met_in_every_form(bentpipe: Command, suite: str) -> None:
    """The toy moves 10 to 11 Mbit/s: 10 MB take more than 8 s."""
    files = ["--junit", "out.xml", "--markdown", "out.md", "--badge", "out.svg"]
    done = bentpipe("check", suite, *TOY, "--out", "run", *files)
    assert done.code == 1, done.err
    assert "near 10 MB: no rule says why" in done.out
    assert "2 pass, 1 fail; a verdict is wrong in at most 1 % of cases" in done.out
    found = verdicts("run")["verdicts"]
    assert [one["outcome"] for one in found] == ["pass", "fail", "pass"]
    assert all(one["trials"] == 7 and len(one["values"]) == 7 for one in found)
    assert xml.parse("out.xml").getroot().get("failures") == "1"
    assert "1 fail" in Path("out.md").read_text()
    assert "2/3" in Path("out.svg").read_text()
    records = Path("run/records.jsonl").read_text().splitlines()
    assert len(records) == 14, "one transfer answers for both of its times"


@pytest.mark.usefixtures("fake_sim")
def test_the_same_check_gives_the_same_verdicts(bentpipe: Command, suite: str) -> None:
    said = [bentpipe("check", suite, *TOY, "--json", "--out", out).out for out in ("a", "b")]
    assert said[0].replace("a/", "b/") == said[1]


@pytest.mark.usefixtures("fake_sim")
def test_a_run_can_be_continued_and_keeps_what_it_has(
    bentpipe: Command, suite: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert bentpipe("check", suite, *TOY, "--out", "run").code == 1
    lines = Path("run/records.jsonl").read_text().splitlines(keepends=True)
    Path("run/records.jsonl").write_text("".join(lines[:9]))  # as if it had ended early
    monkeypatch.setenv("FAKE_SIM", "log")
    monkeypatch.setenv("FAKE_SIM_LOG", str(tmp_path / "log"))
    before = verdicts("run")
    assert bentpipe("check", suite, *TOY, "--resume", "run").code == 1
    assert verdicts("run") == before
    executed = (tmp_path / "log").read_text().splitlines()
    assert len(executed) - 5 in (0, 1), "a trial whose trace is wanted may run again"
    other = bentpipe("check", suite, *TOY, "--seed", "9", "--resume", "run")
    assert other.code == 2 and "another check" in other.err


@pytest.mark.usefixtures("fake_sim")
def test_an_earlier_run_is_the_base(bentpipe: Command, suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bentpipe("check", suite, *TOY, "--out", "few")
    bentpipe("check", suite, *TOY, "--out", "before", "--least", "14")
    same = bentpipe("check", suite, *TOY, "--out", "same", "--against", "few")
    assert [one["outcome"] for one in verdicts("same")["changes"]] == ["same"] * 3
    assert "against few" in same.out and "byte for byte" in same.out
    monkeypatch.setenv("FAKE_SIM", "slower")
    bentpipe("check", suite, *TOY, "--out", "unsure", "--against", "few")
    assert all("7 pairs are too few to be sure" in one["why"] for one in verdicts("unsure")["changes"])
    slower = bentpipe("check", suite, *TOY, "--out", "slower", "--against", "before")
    assert slower.code == 1
    changes = verdicts("slower")["changes"]
    assert [one["outcome"] for one in changes] == ["worse"] * 3
    assert changes[0]["measure"] == "goodput" and round(changes[0]["ratio"], 6) == 0.9
    assert f"bentpipe trace before/trials/{changes[0]['base_trial']}" in slower.out
    assert f"bentpipe trace slower/trials/{changes[0]['trial']}" in slower.out
    text = Path("before/manifest.json").read_text()
    Path("before/manifest.json").write_text(text.replace('"testbed": "sim"', '"testbed": "emu"'))
    testbed = bentpipe("check", suite, *TOY, "--out", "other", "--against", "before")
    assert testbed.code == 2 and "add --testbed emu" in testbed.err
    Path("before/manifest.json").write_text(text.replace('"name": "sat"', '"name": "other"'))
    path = bentpipe("check", suite, *TOY, "--out", "other", "--against", "before")
    assert path.code == 2 and "sat is another path in before" in path.err
    Path("before/manifest.json").write_text(text)
    seeds = bentpipe("check", suite, *TOY, "--out", "seeds", "--against", "before", "--seed", "9")
    assert seeds.code == 2 and "hint: add --seed 1" in seeds.err
    assert not Path("seeds").exists()


@pytest.mark.usefixtures("fake_sim")
def test_a_base_may_be_the_same_stack_from_another_folder(bentpipe: Command, suite: str) -> None:
    shutil.copytree(STACKS / "toy", "old")
    done = bentpipe("check", suite, *TOY, "--out", "run", "--against-stack", "old")
    assert [one["outcome"] for one in verdicts("run")["changes"]] == ["same"] * 3, done.err
    assert len(Path("run-base/records.jsonl").read_text().splitlines()) == 14
    text = Path("old/stack.toml").read_text()
    Path("old/stack.toml").write_text(text.replace('"toy"', '"old-toy"'))
    other = bentpipe("check", suite, *TOY, "--out", "other", "--against-stack", "old")
    assert other.code == 2 and '"old-toy", which takes no part' in other.err


@pytest.mark.usefixtures("fake_sim")
def test_a_crash_fails_an_objective_and_the_others_are_decided(
    bentpipe: Command, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SIM", "flaky")
    monkeypatch.setenv("FAKE_SIM_HEALED", "healed")
    done = bentpipe("check", suite, *TOY, "--out", "run")
    assert done.code == 1
    assert "crashed in" in done.out and "the server ended" in done.out
    assert all(one["outcome"] == "fail" for one in verdicts("run")["verdicts"])


def test_names_and_reasons_are_no_markup(bentpipe: Command, tmp_path: Path, fake_sim: Path) -> None:
    assert fake_sim.exists()
    text = SUITE.replace('name = "rate"', 'name = "odd [red]x[/blue] | <b> \\u0001"')
    (tmp_path / "odd.toml").write_text(text)
    done = bentpipe("check", "odd.toml", *TOY, "--out", "run", "--junit", "out.xml", "--markdown", "out.md")
    assert done.code == 1 and "odd [red]x[/blue]" in done.out, done.err
    assert "odd [red]x[/blue] | <b> ?" in xml.parse("out.xml").getroot()[0][2].get("name", "")
    assert "odd \\[red\\]x\\[/blue\\] \\| &lt;b&gt;" in Path("out.md").read_text()


@pytest.mark.parametrize(
    "given", [["--out", "a"], ["--out=a"], ["-o", "a"], ["-oa"], ["--resume", "b"], ["--resume=b"], []]
)
def test_what_ends_early_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, given: list[str]) -> None:
    monkeypatch.setattr("sys.argv", ["bentpipe", "check", "own", *given, "--jobs", "2"])
    assert _again(Path("c d")) == "bentpipe check own --jobs 2 --resume 'c d'"


@pytest.mark.usefixtures("fake_sim")
def test_what_stacks_do_not_offer_is_skipped_and_no_pass(
    bentpipe: Command, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SIM", "unsupported")
    done = bentpipe("check", suite, *TOY, "--out", "run")
    assert (done.code, {one["outcome"] for one in verdicts("run")["verdicts"]}) == (3, {"skipped"})


@pytest.mark.usefixtures("fake_sim")
@pytest.mark.parametrize(
    ("arguments", "says", "hint"),
    [
        (["nothing"], 'unknown suite "nothing"', "quic-4-sat"),
        (["mine.toml", "--server", "tay"], 'unknown stack "tay"', "toy"),
        (["mine.toml", *TOY, "--most", "0"], "--most", "--help"),
        (["mine.toml", *TOY, "--against", "no"], "no: there is no such folder", "run"),
        (["mine.toml", *TOY, "--against", "a", "--against-stack", "b"], "cannot both be given", "leave"),
        (["mine.toml", *TOY, "--out", "a", "--resume", "b"], "cannot both be given", "stays"),
        (["mine.toml", *TOY, "--margin", "much"], '"much" is no share', "--help"),
        (["mine.toml", *TOY, "--junit", "no/out.xml"], "there is no folder no", "in a folder that is there"),
        (["own", "--server", "toy"], "--server: each objective of own names its server", "leave it out"),
        (["twice.toml", *TOY], 'two scenarios would be called "sat"', "once"),
    ],
)
def test_what_is_not_understood_is_named_before_anything_runs(
    bentpipe: Command, suite: str, arguments: list[str], says: str, hint: str
) -> None:
    done = bentpipe("check", *arguments)
    assert done.code == 2, suite
    assert says in done.err and hint in done.err
    assert not Path("runs").exists()


@pytest.mark.virtual_time
def test_a_real_stack_is_checked_in_virtual_time(bentpipe: Command, tmp_path: Path) -> None:
    """Times that slow start from ten packets, doubling each 600 ms, keeps, and some that it cannot."""
    (tmp_path / "real.toml").write_text(
        'title = "Real"\n[[objectives]]\nname = "down"\nscenario = "sat"\nworkload = "transfer:2MB"\n'
        'within = { "1 MB" = "6 s", "2 MB" = "1.5 s" }\n'
        '[[objectives]]\nname = "proxy"\nscenario = "sat"\nworkload = "transfer:2MB"\n'
        'treatment = "quic-pep"\nmeasure = "completion_s"\nat_most = "105 %"\n'
        'than = { treatment = "direct" }\n'
    )
    done = bentpipe("check", "real.toml", "--out", "run")
    assert done.code == 1, done.err
    found = {one["objective"]: one for one in verdicts("run")["verdicts"]}
    assert [one["outcome"] for one in found.values()] == ["pass", "fail", "pass"], done.out
    first, whole = found["down 1 MB"]["values"][0], found["down 2 MB"]["values"][0]
    records = map(json.loads, Path("run/records.jsonl").read_text().splitlines())
    record = next(one for one in records if one["treatment"] == "direct" and one["iteration"] == 1)
    assert record["first_mb_s"] == [first, whole] and record["completion_s"] == whole
    assert record["ttfb_s"] < first < whole
