"""`bentpipe study limit`, from made-up runs."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import fake_run
import pytest
import study_marks
from conftest import Command
from fake_grid import COMES_TO, GOOD, OWN, REFERENCE, SIZE, fail, page, trial, write

from bentpipe.analysis.trial_marks import RunCell


def test_the_page_on_the_limit(bentpipe: Command) -> None:
    scenarios = ("sat,timeout=600s", "eutelsat,timeout=600s")
    records = [
        trial(server, iteration, scenario, size)
        for scenario in scenarios
        for size in (100_000, SIZE)
        for server in COMES_TO
        for iteration in (1, 2)
    ]
    write([*records[:-2], *map(fail, records[-2:])])
    text = page(bentpipe, "limit")
    # Over sat, which stands for GEO, and for 10 MB; the reference comes to 60 %.
    assert text.startswith(
        "# 10 MB over sat reach 85 % of the limit with trains, 60 % with CUBIC with HyStart++\n"
    )
    front = " ".join(text.partition("## What was run")[0].split())
    shares = (
        "Over sat CUBIC with HyStart++ reaches these shares of an ideal sender's speed: 60 % for 100 kB and"
    )
    assert shares in front
    assert "Most often best, or within 5 % of the best, of 4 settings: trains in 3, hystart++ in 1." in front
    assert "- For 100 kB: trains, best or within 5 % of the best over 2 of 2 paths." in front
    # Over eutelsat it failed with 10 MB, and so is best over half of the paths: no advice follows from that.
    assert "- For 10 MB" not in front
    assert (
        "- These reach more than the best, and drop more than CUBIC with HyStart++ does: hybla in 4" in front
    )
    assert "Files of 100 kB, 10 MB over 2 paths, with 4 variants as the server and noq as the client" in text
    assert "| sat | 85 %: trains | 85 %: trains |" in text
    assert "| eutelsat | 85 %: trains | 60 %: hystart++ |" in text
    sat = text.partition("\n## sat\n")[2].partition("\n## ")[0]
    assert "| server | 100 kB | dropped | 10 MB | dropped |" in sat
    assert "| noq:cc=cubic:ss=trains | **85 %** | 0 % | **85 %** | 0 % |" in sat
    assert "| noq:cc=cubic:ss=hybla | 95 % | 40 % | 95 % | 40 % |" in sat
    assert "| noq:cc=cubic | 50 % | 2.0 % | 50 % | 2.0 % |" in sat
    eutelsat = text.partition("\n## eutelsat\n")[2].partition("\n## ")[0]
    assert "| noq:cc=cubic:ss=trains | **85 %** | 0 % | transfer timeout | - |" in eutelsat
    assert "2 of 32 trials failed." in text
    sheet = Path("out/limit.csv").read_text().splitlines()
    assert len(sheet) == 1 + 16 and sheet[0].count("share_of_limit") == 4
    texts = " ".join(ElementTree.parse("out/limit.svg").getroot().itertext())
    assert all(name in texts for name in ("trains", "noq's own cubic", "eutelsat", "100 kB"))


def test_nothing_is_bold_that_chance_could_have_made(bentpipe: Command) -> None:
    shares = {GOOD: (0.7, 0.9), REFERENCE: (0.6, 0.75), OWN: (0.5, 0.5)}
    write(
        [
            trial(server, iteration, share_of_limit=share, forward_queue_drops=0)
            for server, both in shares.items()
            for iteration, share in enumerate(both, start=1)
        ]
    )
    text = page(bentpipe, "limit")
    assert "| noq:cc=cubic:ss=trains | 79 % |" in text and "**" not in text.partition("\n## sat")[2]
    assert "| sat | 79 %: trains; or " in text and "hystart++ |" in text
    assert "- For 10 MB" not in text and "within 5 % of the best, of" not in text


def test_tcp_stands_beside_with_a_client_of_its_own(bentpipe: Command) -> None:
    tcp = {"client": "linux", "server": "linux:cc=bbr", "transport": "tcp", "share_of_limit": 0.75}
    write([*(trial(server, 1) for server in COMES_TO), fake_run.change(trial(OWN, 1), **tcp)])
    text = page(bentpipe, "limit")
    said = " ".join(text.split())
    assert "5 variants as the server and noq, linux as the client of the same stack" in said
    assert "| linux:cc=bbr | 75 % | 2.0 % |" in text and "a round trip more" in said


def test_one_server_has_no_limit_page(bentpipe: Command) -> None:
    write([trial(GOOD, 1)])
    done = bentpipe("study", "limit", "--run", "run", "-o", "out")
    assert done.code != 0
    assert "several servers" in done.err and "bentpipe run limit" in done.err


def test_each_share_leads_to_its_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that of a variant that never succeeded."""
    monkeypatch.chdir(tmp_path)
    records = [
        trial(server, number, size=size)
        for size in (100_000, SIZE)
        for server in COMES_TO
        for number in (1, 2)
    ]
    records[-2:] = map(fail, records[-2:])
    write(records)
    found = study_marks.leading("limit", ["--run", "run"])
    first, last = records[0], records[-1]
    assert found["50 %"] == [RunCell(Path("run"), one.cell_key) for one in (first, records[8])]
    assert found["transfer timeout"] == [RunCell(Path("run"), last.cell_key)]
    assert len(found["2.0 %"]) == 2 and None not in found["2.0 %"]
