"""`bentpipe study fairness`: the page on flows that share a path, from made-up runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake_run
import pytest
import study_marks
from conftest import Command

from bentpipe.analysis.trial_marks import RunCell
from bentpipe.runs.records import Record

EQUALS = "duration:30s + start=1s"
BESIDE = "duration:30s + server=noq:cc=cubic:ss=standard,start=1s"
FIRST = "noq:cc=cubic:ss=search"


def flow(start_s: float, goodput_bps: float | None, drops: int) -> dict[str, Any]:
    counts = {
        f"{way}_{what}": 0 for way in ("forward", "return") for what in ("packets", "queue_drops", "losses")
    }
    return {
        "client": "noq",
        "server": FIRST,
        "start_s": start_s,
        "end_s": 31.0,
        "outcome": "ok",
        "detail": "",
        "goodput_bps": goodput_bps,
        "received_bytes": [],
        **counts,
        "forward_packets": 1000,
        "forward_queue_drops": drops,
    }


def trial(workload: str, iteration: int, index: float | None, goodputs: tuple[float, ...]) -> Record:
    flows = [flow(number, bps, 20 * number) for number, bps in enumerate(goodputs)]
    made = fake_run.record("sat", "noq", FIRST, iteration)
    return fake_run.change(made, workload=workload, jain_index=index, flows=flows, outcome="ok", detail="")


def write(records: list[Record]) -> None:
    fake_run.write(Path("run"))
    with fake_run.changed_manifest(Path("run")) as manifest:
        manifest["options"] |= {"workloads": ["duration:30s"], "flows": ["start=1s"]}
    fake_run.write_records(Path("run"), records)


def page(bentpipe: Command) -> str:
    return bentpipe.page("fairness", "--run", "run")


def test_each_setting_has_its_median_and_its_worst_trial(bentpipe: Command) -> None:
    records = [trial(EQUALS, number, 0.94 + number / 100, (10e6, 9e6)) for number in (1, 2, 3)]
    records += [trial(BESIDE, number, 0.5 + number / 10, (15e6, number * 1e6)) for number in (1, 2, 3)]
    write(records)
    text = page(bentpipe)
    first = "| noq:cc=cubic:ss=search | 1 of its kind | **0.96 (0.95)** | 10.00 / 9.00 | 1 % |"
    assert first in text
    other = "| noq:cc=cubic:ss=search | noq:cc=cubic:ss=standard | 0.70 (0.60) | 15.00 / 2.00 | 1 % |"
    assert other in text
    assert "| server | sat, 2 flows |" in text and "| noq:cc=cubic:ss=search | **0.96 (0.95)** |" in text
    assert "- 1 of its kind, from 1 s on" in text


def test_one_trial_in_which_a_flow_starves_is_enough(bentpipe: Command) -> None:
    write(
        [
            trial(EQUALS, 1, 0.95, (10e6, 9e6)),
            trial(EQUALS, 2, 0.95, (10e6, 9e6)),
            trial(EQUALS, 3, 0.5, (9e6, 0)),
        ]
    )
    assert "| noq:cc=cubic:ss=search | 0.95 (0.50) |" in page(bentpipe)


def test_several_further_flows_are_counted(bentpipe: Command) -> None:
    three = "duration:30s + start=1s + start=2s + start=3s"
    write([trial(three, 1, 0.99, (5e6, 5e6, 5e6, 5e6))])
    text = page(bentpipe)
    assert "- 3 of its kind, from 1, 2 and 3 s on" in text
    assert (
        "| noq:cc=cubic:ss=search | 3 of its kind | **0.99 (0.99)** | 5.00 / 5.00 / 5.00 / 5.00 | 3 % |"
        in text
    )


@pytest.mark.parametrize("flows", [[], [trial(EQUALS, 1, None, ())]])
def test_single_flows_make_no_page(bentpipe: Command, flows: list[Record]) -> None:
    write([*flows, fake_run.record("sat", "noq", "quinn", 1)])
    done = bentpipe("study", "fairness", "--run", "run", "-o", "out")
    assert done.code != 0
    assert "trials of several flows" in done.err and "bentpipe run fairness" in done.err


def of(server: str, label: str, shares: tuple[float, ...]) -> list[Record]:
    """Trials of two flows in which the first one gets these shares of 20 Mbit/s."""
    made = []
    for number, share in enumerate(shares, start=1):
        goodputs = (20e6 * share, 20e6 * (1 - share))
        index = sum(goodputs) ** 2 / (2 * sum(one**2 for one in goodputs))
        made.append(fake_run.change(trial(label, number, index, goodputs), server=server, iteration=number))
    return made


STANDARD, TRAINS = "noq:cc=cubic:ss=standard", "noq:cc=cubic:ss=trains"


def front(text: str) -> str:
    """What stands above the first section on what was run, on one line."""
    return " ".join(text.partition("## What was run")[0].split())


def test_title_and_answer_are_the_finding_with_its_interval(bentpipe: Command) -> None:
    even, taking = (0.5, 0.5, 0.51), (0.78, 0.80, 0.82)
    records = [*of(TRAINS, EQUALS, even), *of(STANDARD, EQUALS, taking)]
    write([*records, *of(STANDARD, BESIDE, taking), *of(TRAINS, BESIDE, (0.9, 0.91, 0.92))])
    text = page(bentpipe)
    title = "# 2 equal flows over sat: Jain's index 0.74 (0.67 to 0.80) with standard, 1.00 with trains\n"
    assert text.startswith(title)
    begin = front(text)
    assert "In every trial among equals, over 1 setting, it is at least 0.9 with trains." in begin
    assert "![Jain's index among flows of one kind, with intervals](fairness.svg)" in begin
    # What trains take is beyond what the standard slow start takes from its own kind, intervals apart.
    assert "- These take more from noq:cc=cubic:ss=standard than it does from a flow of its own" in begin
    assert "over every path: noq:cc=cubic:ss=trains." in begin
    sheet = Path("out/fairness.csv").read_text().splitlines()
    assert len(sheet) == 1 + 4 and sheet[0].startswith("testbed,scenario,workload,client,server,treatment")
    assert f"sim,sat,{EQUALS},noq,{STANDARD},direct,3,3,3,0.735" in sheet[2].replace('"', "")


def test_advice_that_a_run_does_not_bear_out_is_not_given(bentpipe: Command) -> None:
    wide = (0.3, 0.8, 0.9)
    records = [*of(TRAINS, EQUALS, wide), *of(STANDARD, EQUALS, (0.7, 0.8, 0.9))]
    write([*records, *of(STANDARD, BESIDE, (0.7, 0.8, 0.9)), *of(TRAINS, BESIDE, wide)])
    begin = front(page(bentpipe))
    assert "## What to do with it" not in begin and "with no server." in begin


CUBIC, BBR, NOQ = "linux:cc=cubic", "linux:cc=bbr", "noq:cc=cubic"


def two(first: str, second: str, goodputs: tuple[float, float], **values: Any) -> Record:
    workload = f"duration:30s + client={second.partition(':')[0]},server={second},start=1s"
    made = trial(workload, 1, 0.9, goodputs)
    client = first.partition(":")[0]
    named = {"client": client, "server": first, "transport": "tcp" if client == "linux" else "quic"}
    return fake_run.change(made, **(named | values))


def test_flows_of_tcp_and_quic_have_a_page_of_their_own(bentpipe: Command) -> None:
    records = [two(CUBIC, NOQ, (12e6, 4e6)), two(NOQ, CUBIC, (15e6, 5e6)), two(CUBIC, CUBIC, (8e6, 8e6))]
    write([*records, two(BBR, CUBIC, (1e6, 9e6))])
    done = bentpipe("study", "fairness", "--run", "run", "-o", "out")
    files = ["out/fairness-tcp.md", "out/fairness-tcp.svg", "out/fairness-tcp.csv"]
    assert (done.code, done.out.split()) == (0, files), done.err
    text = Path("out/fairness-tcp.md").read_text()
    # Before the other 12 of 16 Mbit/s, after it 5 of 20; among equals there is one order.
    assert "| sat | noq:cc=cubic | linux:cc=cubic |" in text
    assert "| linux:cc=cubic | 75 % / 25 % | 50 % |" in text
    assert "| noq:cc=cubic | - | 75 % / 25 % |" in text
    assert "| linux:cc=bbr | - | 10 % / - |" in text
    assert "| linux:cc=cubic | noq:cc=cubic | **0.90 (0.90)** | 12.00 / 4.00 | 1 % |" in text


def test_real_time_stands_beside_virtual_time(bentpipe: Command) -> None:
    write([two(CUBIC, NOQ, (12e6, 4e6))])
    Path("run").rename("virtual")
    write([two(CUBIC, NOQ, (10e6, 6e6), testbed="emu")])
    with fake_run.changed_manifest(Path("run")) as manifest:
        manifest["options"]["testbed"] = "emu"
    done = bentpipe("study", "fairness", "--run", "virtual", "--run", "run", "-o", "out")
    assert done.code == 0, done.err
    row = "| sat | linux:cc=cubic | noq:cc=cubic | 12.00 / 4.00 | 10.00 / 6.00 | 75 % / 62 % | 1 |"
    assert row in Path("out/fairness-tcp.md").read_text()


def test_who_gets_least_is_the_title_beside_tcp(bentpipe: Command) -> None:
    def trials(first: str, second: str, shares: tuple[float, ...]) -> list[Record]:
        made = (two(first, second, (20e6 * one, 20e6 * (1 - one))) for one in shares)
        each = enumerate(made, start=1)
        return [fake_run.change(one, iteration=number, seed=f"{number:x}") for number, one in each]

    little, rest = (0.05, 0.06, 0.07), (0.93, 0.95, 0.94)
    write([*trials(CUBIC, NOQ, little), *trials(NOQ, CUBIC, rest), *trials(CUBIC, CUBIC, (0.5, 0.5, 0.5))])
    done = bentpipe("study", "fairness", "--run", "run", "-o", "out")
    assert done.code == 0, done.err
    text = Path("out/fairness-tcp.md").read_text()
    title = "# linux:cc=cubic gets 6 % (4 to 8) where it starts first beside noq:cc=cubic over sat\n"
    assert text.startswith(title)
    begin = front(text)
    assert "In 1 of 1 pair of different senders, over 1 path, one gets less than 25 %" in begin
    assert "- Beside noq:cc=cubic, linux:cc=cubic gets less than 25 % over every path" in begin
    assert "and noq:cc=cubic get 25 % each" not in begin


def test_an_interval_that_is_wide_stays_in_the_title(bentpipe: Command) -> None:
    long = "linux:cc=cubic:window=16000000:sack=off"

    def trials(first: str, second: str, shares: tuple[float, ...]) -> list[Record]:
        made = [two(first, second, (20e6 * one, 20e6 * (1 - one))) for one in shares]
        return [fake_run.change(one, iteration=n, seed=f"{n:x}") for n, one in enumerate(made, start=1)]

    write([*trials(long, NOQ, (0.05, 0.3, 0.2)), *trials(NOQ, long, (0.9, 0.5, 0.95))])
    done = bentpipe("study", "fairness", "--run", "run", "-o", "out")
    assert done.code == 0, done.err
    title = Path("out/fairness-tcp.md").read_text().partition("\n")[0]
    assert "18 % (0 to 50) where it starts first" in title or "gets 18" not in title, title


def test_a_trial_without_a_measure_is_counted_and_is_not_even(bentpipe: Command) -> None:
    """Of one server the third trial crashed; of the other it is invalid among those beside another."""
    crashed = fake_run.change(
        trial(EQUALS, 3, None, ()), server=TRAINS, outcome="transfer_timeout", detail="after 60 s"
    )
    beside = [*of(TRAINS, BESIDE, (0.9, 0.91, 0.92)), *of(STANDARD, BESIDE, (0.78, 0.8, 0.82))]
    beside[2] = fake_run.change(beside[2], outcome="invalid", detail="the host was too slow")
    write([*of(TRAINS, EQUALS, (0.5, 0.5)), crashed, *of(STANDARD, EQUALS, (0.5, 0.51, 0.52)), *beside])
    text = page(bentpipe)
    begin = front(text)
    assert "it is at least 0.9 with standard." in begin
    assert "with trains, 1 of 3 trials not measured" in begin
    assert "1.00 (1.00), 1 of 3 trials not measured |" in text
    assert "These take more from" not in begin, "one of its trials is not known"
    head, *rows = Path("out/fairness.csv").read_text().splitlines()
    assert ",trials,ok,measured,jain_index_mean," in head
    assert any(f"{TRAINS},direct,3,2,2,1,1,1,1,50," in one for one in rows)


def test_each_setting_leads_to_its_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    records = [trial(EQUALS, number, 0.94 + number / 100, (10e6, 9e6)) for number in (1, 2, 3)]
    write(records)
    found = study_marks.leading("fairness", ["--run", "run"])
    there = RunCell(Path("run"), records[0].cell_key)
    assert found["**0.96 (0.95)**"] == [there, there]  # among equals, and in the table of the path
    assert found["10.00 / 9.00"] == [there]
