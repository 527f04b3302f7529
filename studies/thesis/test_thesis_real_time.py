"""Pairs in real time on the thesis's page, of made-up runs beside a made-up main one."""

import json
import shutil
from pathlib import Path

import fake_run
from conftest import Command

from bentpipe.runs.records import Record

_SHORTER = "sat-2021,forward.queue=25packets,return.queue=25packets"  # as records name it


def test_pairs_in_real_time_stand_beside_2021(bentpipe: Command) -> None:
    """kwik's pairs are made up to have half as much again, and to fail once with msquic as the server;
    over the shorter queue, twice as much, and to fail once with kwik.
    """
    fake_run.write(Path("run"), links=fake_run.OF_2021)
    then = {"nginx": 0.867e6, "kwik": 2.656e6, "lsquic": 2.802e6, "neqo": 2.836e6, "msquic": 2.873e6}
    usual = [
        _in_real_time("sat-2021", server, 1.5 * then[server], trial) for server in then for trial in (1, 2)
    ]
    usual[-2] = fake_run.change(usual[-2], outcome="transfer_timeout")
    usual.append(fake_run.change(_in_real_time("satloss-2021", "kwik", 1e6, 1), outcome="transfer_timeout"))
    servers = (("lsquic", 1), ("neqo", 1), ("msquic", 1), ("kwik", 1), ("kwik", 2))
    shorter = [_in_real_time(_SHORTER, server, 2 * then[server], trial) for server, trial in servers]
    shorter[-1] = fake_run.change(shorter[-1], outcome="transfer_timeout")
    emulated = _write_emulated("thesis-emulated", usual)
    words = emulated + _write_emulated("thesis-emulated-queue", shorter)
    text = bentpipe.page("thesis", "--run", "run", *words)
    assert "| now / 2021 | 25 packets | 25 packets / 2021 |\n" in text
    assert "| sat-2021 | kwik → nginx | 0.87 | 1.30 ±0.00 | 1.50 | not run | - |" in text
    assert "| sat-2021 | kwik → lsquic | 2.80 | 4.20 ±0.00 | 1.50 | 5.60 | 2.00 |" in text
    assert "| sat-2021 | kwik → msquic | 2.87 | 4.31 (1!) | - | 5.75 | 2.00 |" in text
    assert "| sat-2021 | kwik → kwik | 2.66 | 3.98 ±0.00 | 1.50 | 5.31 (1!) | - |" in text
    assert "| satloss-2021 | kwik → kwik | none | failed (1!) | - | not run | - |" in text
    told = " ".join(text.split())
    assert "2 trials of each, 2 trials of each over 25 packets. Geometric mean" in told
    assert (
        "sat-2021 1.50 (1.50 to 1.50), 4 pairs; sat-2021, of those that have both 1.50 (1.50 to 1.50), "
        "2 pairs;" in told
    )
    assert "sat-2021, 25 packets 2.00 (2.00 to 2.00), 2 pairs." in told
    assert "[in real time](#the-same-pairs-in-real-time) kwik 1 of 1" in told
    done = bentpipe("study", "thesis", "--run", "run", *emulated, *_again("thesis-emulated"), "-o", "alone")
    assert done.code == 0, done.err
    text = Path("alone/thesis.md").read_text()
    assert "| sat-2021 | kwik → lsquic | 2.80 | 4.20 ±0.00 | 1.50 |\n" in text
    assert "2 trials of each. Geometric" in " ".join(text.split())
    assert "queue of then" not in " ".join(text.split())


def test_pairs_in_real_time_need_no_scenario_of_the_main_run(bentpipe: Command) -> None:
    main = [one for one in fake_run.write(Path("run"), links=fake_run.OF_2021) if one.scenario == "sat-2021"]
    words = fake_run.write_campaign("thesis", main, fake_run.OF_2021)
    words += _write_emulated("thesis-emulated", [_in_real_time("satloss-2021", "kwik", 1e6, 1)])
    done = bentpipe("study", "thesis", *words, "-o", "out")
    assert done.code == 0, done.err
    assert "| satloss-2021 | kwik → kwik | none | 1.00 | - |\n" in Path("out/thesis.md").read_text()


def _in_real_time(scenario: str, server: str, bps: float, iteration: int) -> Record:
    one = fake_run.record("sat-2021", "aioquic", "quinn", iteration)
    ends = {"testbed": "emu", "client": "kwik", "server": server, "scenario": scenario}
    return fake_run.change(one, runner_transfer_s=8 * one.size_bytes / bps, **ends)


def _write_emulated(name: str, records: list[Record]) -> list[str]:
    """A run in real time of these records."""
    words = fake_run.write_campaign(name, records, fake_run.OF_2021)
    file = Path(name) / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["scenarios"][_SHORTER] = manifest["scenarios"]["sat-2021"]
    file.write_text(json.dumps(manifest))
    return words


def _again(name: str) -> list[str]:
    """The same run in another folder, which adds nothing."""
    shutil.copytree(name, f"{name}-again")
    return ["--run", f"{name}-again"]
