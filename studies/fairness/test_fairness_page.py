"""`bentpipe study fairness`: the page on flows that share a path, from made-up runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake_run
import pytest
from conftest import Command

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
    assert (done.code, done.out) == (0, "out/fairness-tcp.md\n"), done.err
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
