"""`bentpipe study limit` and `slow-start`: pages of variants against settings, from made-up runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import fake_run
from conftest import Command

from bentpipe.analysis.cells import cells
from bentpipe.runs.records import Record
from bentpipe.study.grid import Grid, GridCell, dropped

OWN, REFERENCE, RASH, GOOD = (
    "noq:cc=cubic",
    "noq:cc=cubic:ss=hystart++",
    "noq:cc=cubic:ss=hybla",
    "noq:cc=cubic:ss=trains",
)
# Variant → share of the limit, and packets that the queue dropped of a thousand.
COMES_TO = {OWN: (0.5, 20), REFERENCE: (0.6, 10), RASH: (0.95, 400), GOOD: (0.85, 0)}
SIZE = 10_000_000


def trial(server: str, iteration: int, scenario: str = "sat", size: int = SIZE, **values: Any) -> Record:
    """One thousand packets of a thousandth of the file each."""
    share, drops = COMES_TO[server]
    made = fake_run.record("sat", "noq", server, iteration)
    good = {
        "scenario": scenario,
        "workload": f"transfer:{size}",
        "size_bytes": size,
        "outcome": "ok",
        "detail": "",
        "share_of_limit": share,
        "forward_packets": 1000,
        "forward_bytes": size,
        "forward_queue_drops": drops,
    }
    return fake_run.change(made, **(good | values))


def fail(record: Record) -> Record:
    return fake_run.change(record, outcome="transfer_timeout", detail="after 600 s", share_of_limit=None)


def write(records: list[Record]) -> None:
    fake_run.write(Path("run"))
    manifest = json.loads(Path("run/manifest.json").read_text())
    manifest["scenarios"] |= {one.scenario: manifest["scenarios"]["sat"] for one in records}
    Path("run/manifest.json").write_text(json.dumps(manifest))
    Path("run/records.jsonl").write_text("".join(f"{one.to_json()}\n" for one in records))


def page(bentpipe: Command, name: str) -> str:
    done = bentpipe("study", name, "--run", "run", "-o", "out")
    assert done.code == 0, done.err
    assert done.out.split() == [f"out/{name}.md", f"out/{name}.svg"]
    return Path(f"out/{name}.md").read_text()


def grid(records: list[Record]) -> Grid:
    found = {(one.key.server, "here"): one for one in cells(records)}
    return Grid({label: label for label in COMES_TO}, ["here"], found)


def test_drops_are_told_as_a_share_of_the_file() -> None:
    assert dropped(trial(RASH, 1)) == 0.4
    assert dropped(fake_run.change(trial(RASH, 1), forward_packets=0)) is None


def test_the_best_is_sought_among_those_that_lose_no_more_than_the_reference() -> None:
    assert grid([trial(one, 1) for one in COMES_TO]).best("here") == {GOOD}
    assert grid([trial(one, 1) for one in COMES_TO if one != GOOD]).best("here") == {REFERENCE}


def test_without_the_reference_the_fastest_is_the_best() -> None:
    assert grid([trial(one, 1) for one in COMES_TO if one != REFERENCE]).best("here") == {RASH}


def test_who_fails_is_not_the_best() -> None:
    records = [trial(one, 1) for one in COMES_TO] + [fail(trial(GOOD, 2))]
    assert grid(records).best("here") == {REFERENCE}
    assert "85 % (1)" in grid(records).markdown("server")


def test_a_spot_is_the_median_of_what_succeeded() -> None:
    records = [trial(GOOD, number, share_of_limit=0.1 * number) for number in (1, 2, 9)]
    (cell,) = cells([*records, fail(trial(GOOD, 10))])
    assert GridCell(cell).share == 0.2 and GridCell(cell).failed == 1
    assert GridCell(cell).written(best=True) == ["**20 %** (1)", "0 %"]
    (cell,) = cells([fail(trial(GOOD, 1))])
    assert GridCell(cell).written(best=False) == ["transfer timeout", "-"]


def test_the_page_on_the_limit(bentpipe: Command) -> None:
    scenarios = ("sat,timeout=600s", "eutelsat,timeout=600s")
    records = [
        trial(server, 1, scenario, size)
        for scenario in scenarios
        for size in (100_000, SIZE)
        for server in COMES_TO
    ]
    broken = records[-1]
    write([fail(one) if one is broken else one for one in records])
    text = page(bentpipe, "limit")
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
    assert "1 of 16 trials failed." in text
    texts = " ".join(ElementTree.parse("out/limit.svg").getroot().itertext())
    assert all(name in texts for name in ("trains", "noq's own cubic", "eutelsat", "100 kB"))


def test_one_server_has_no_limit_page(bentpipe: Command) -> None:
    write([trial(GOOD, 1)])
    done = bentpipe("study", "limit", "--run", "run", "-o", "out")
    assert done.code != 0
    assert "several servers" in done.err and "bentpipe run limit" in done.err


def test_the_page_on_slow_starts(bentpipe: Command) -> None:
    def left(by: str, second: float) -> dict[str, Any]:
        return {"server_statistics": {"slow_start_left_by": by, "slow_start_left_s": second}}

    small, large = "sat,forward.queue=0.1BDP", "sat,forward.queue=5BDP"
    records = [trial(REFERENCE, number, small, **left("loss", 4.0 + number)) for number in (1, 2, 3)]
    records += [trial(REFERENCE, number, large, **left("css_rounds", 6.0)) for number in (1, 2)]
    records += [trial(REFERENCE, 3, large, **left("loss", 1.0))]
    records += [trial(GOOD, number, small) for number in (1, 2, 3)]
    slowed = left("loss", 3.0)
    slowed["server_statistics"]["css_entered_s"] = 2.0
    records += [trial(RASH, 1, small, **slowed), trial(RASH, 1, large, **slowed)]
    records += [trial(OWN, 1, small)]  # its slow start is not chosen
    write(records)
    text = page(bentpipe, "slow-start")
    assert "3 variants as the server, each over 1 path" in text
    assert "| server | 0.1 BDP | dropped | 5 BDP | dropped |" in text
    assert "| noq:cc=cubic:ss=trains | **85 %** | 0 % |  |  |" in text
    assert "| hystart++ | loss 6.0 s | css rounds 6.0 s (2 of 3) |" in text
    assert "| hystart++ | 5 BDP |" in text and "| trains | never |" in text
    assert "| hybla | 0.1 BDP |" in text
    assert "| trains | not left |  |" in text


def test_without_a_sweep_of_queues_there_is_no_such_page(bentpipe: Command) -> None:
    write([trial(one, 1) for one in COMES_TO])
    done = bentpipe("study", "slow-start", "--run", "run", "-o", "out")
    assert done.code != 0
    assert "a sweep of forward.queue" in done.err
