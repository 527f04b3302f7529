"""`bentpipe study after-split`, from made-up runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake_run
import pytest
import study_marks
from conftest import Command

from bentpipe.analysis.trial_marks import RunCell
from bentpipe.runs.records import Record

PEP = "quic-pep terminal:mode=warm,gateway:mode=warm"
FEC = "fec terminal,gateway"
NAMED = {"name": "quic-pep", "version": "1", "driver": ""}
LOSSY = "geo-tum,forward.loss=1%,return.loss=1%"


def trials(treatment: str, *seconds: float, scenario: str = "geo-tum", **values: Any) -> list[Record]:
    """Trials of 10 MB from a server with CUBIC that took so long."""
    said = {
        "workload": "transfer:10000000",
        "size_bytes": 10**7,
        "server": "noq:cc=cubic",
        "outcome": "ok",
        "detail": "",
    }
    return [
        fake_run.change(
            fake_run.record("sat", "noq", "noq", number),
            trial=f"{scenario}-{treatment}-{number}-{values.get('workload', '')}",
            scenario=scenario,
            treatment=treatment,
            completion_s=took,
            **(said | values),
        )
        for number, took in enumerate(seconds, 1)
    ]


def page(bentpipe: Command, *records: list[Record]) -> str:
    fake_run.write(Path("run"))
    fake_run.write_records(Path("run"), [one for some in records for one in some])
    return bentpipe.page("after-split", "--run", "run")


def test_the_title_and_the_choice_follow_the_rule(bentpipe: Command) -> None:
    text = page(
        bentpipe,
        trials("direct", 10.0, 10.1, 9.9),
        trials(PEP, 5.0, 5.1, 4.9),
        trials(FEC, 11.0, 11.1, 10.9),
        trials("direct", 100.0, 140.0, 80.0, scenario=LOSSY),
        trials(PEP, 90.0, 150.0, 80.0, scenario=LOSSY),
        trials(FEC, 12.0, 12.5, 11.5, scenario=LOSSY),
        trials("direct", 4.0, 4.0, 4.0, scenario="leo-tum"),
        trials(PEP, 3.9, 3.9, 3.9, scenario="leo-tum"),
    )
    first = text.splitlines()[0]
    assert first == (
        "# For servers with CUBIC: split connections over GEO; repair losses in advance over GEO with "
        "1 % of loss; leave connections alone over LEO"
    )
    flat = " ".join(text.split())
    assert "`quic-pep` takes 5.0 s in place of 10.0 for 10 MB from a server with CUBIC" in flat
    assert "| GEO | 1 % | fec | direct |" in text
    # Slower beyond chance and by more than 5 %; what is faster by 3 % has no mark.
    assert (
        "| GEO | 0 % | 10 MB | cc=cubic | 10.00 (9.90 to 10.10) | 5.00 (4.90 to 5.10) ▼ | 11.00 ▲ |" in text
    )
    assert "| LEO | 0 % | 10 MB | cc=cubic | 4.00 | 3.90 |" in text
    assert Path("out/after-split.svg").exists()


def test_what_is_slower_at_one_size_is_not_chosen(bentpipe: Command) -> None:
    small: dict[str, Any] = {"workload": "transfer:1000000", "size_bytes": 10**6}
    text = page(
        bentpipe,
        trials("direct", 10.0, 10.1, 9.9),
        trials(PEP, 5.0, 5.1, 4.9),
        trials("direct", 1.0, 1.01, 0.99, **small),
        trials(PEP, 2.0, 2.01, 1.99, **small),
    )
    assert "| GEO | 0 % | direct | direct |" in text


def test_two_flows_have_their_goodputs(bentpipe: Command) -> None:
    flow = {
        f"{way}_{what}": 0 for way in ("forward", "return") for what in ("packets", "queue_drops", "losses")
    } | {f"{way}_queueing_{what}_ms": 0.0 for way in ("forward", "return") for what in ("median", "p99")}
    said = {"client": "noq", "server": "noq", "start_s": 0.0, "end_s": 30.0, "outcome": "ok", "detail": ""}
    flows = [{**flow, **said, "goodput_bps": rate, "received_bytes": []} for rate in (9e6, 3e6)]
    shared: dict[str, Any] = {
        "workload": "duration:60s + server=noq:cc=cubic,start=1s,middlebox=hold_ms=0:rate=0%",
        "size_bytes": 0,
        "flows": flows,
    }
    text = page(bentpipe, trials("direct", 10.0, 10.1), trials(FEC, 9.0, 9.1), trials(FEC, 60.0, **shared))
    assert "| GEO | 0 % | 9.0 / 3.0 |" in text


def test_cpu_time_is_that_of_real_time(bentpipe: Command) -> None:
    def box(place: str, seconds: float) -> dict[str, Any]:
        return {**NAMED, "place": place, "cpu_s": seconds, "memory_bytes": 0, "statistics": {}}

    large: dict[str, Any] = {"workload": "transfer:100000000", "size_bytes": 10**8, "scenario": "leo-tum"}
    real = {**large, "testbed": "emu", "cpu_client_s": 0.5, "cpu_server_s": 0.3}
    boxes = [[box("terminal", cost), box("gateway", 0.25)] for cost in (0.1, 0.2, 0.4)]
    behind = trials(PEP, 43.0, 43.1, 43.2, **real)
    text = page(
        bentpipe,
        trials("direct", 10.0, 10.1),
        trials(PEP, 9.0, 9.1),
        trials("direct", 44.0, **large, cpu_client_s=7.0),
        trials("direct", 45.0, 45.1, **real),
        [fake_run.change(one, proxies=mine) for one, mine in zip(behind, boxes, strict=True)],
    )
    assert "| direct | 5.0 (5.0 to 5.0) | 3.0 (3.0 to 3.0) |  |  |" in text
    assert "| 5.0 (5.0 to 5.0) | 3.0 (3.0 to 3.0) | 2.0 (1.0 to 4.0) | 2.5 (2.5 to 2.5) |" in text
    assert "| LEO | 0 % | 100 MB | cc=cubic | 44.00 |" in text, "and times are those of virtual time"


def test_a_run_without_a_comparison_makes_no_page(bentpipe: Command) -> None:
    fake_run.write(Path("run"))
    fake_run.write_records(Path("run"), trials(PEP, 5.0))
    done = bentpipe("study", "after-split", "--run", "run", "-o", "out")
    assert done.code != 0 and "direct and behind a treatment" in done.err and "run after-split" in done.err


def test_times_lead_to_their_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    direct, split = trials("direct", 10.0, 10.1, 9.9), trials(PEP, 5.0, 5.1, 4.9)
    fake_run.write(Path("run"))
    fake_run.write_records(Path("run"), [*direct, *split])
    found = study_marks.leading("after-split", ["--run", "run"])
    assert found["10.00 (9.90 to 10.10)"] == [RunCell(Path("run"), direct[0].cell_key)]
    assert found["5.00 (4.90 to 5.10) ▼"] == [RunCell(Path("run"), split[0].cell_key)]
