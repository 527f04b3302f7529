"""`bentpipe study objectives`: bounds computed by hand, a page from made-up runs, and campaigns that ask
what the suites ask.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import fake_run
import pytest
from conftest import Command
from objectives.bounds import bound_s

from bentpipe.objectives import suite
from bentpipe.plan import campaign, scenarios
from bentpipe.runs.records import Record
from bentpipe.schema.manifest import ScenarioState

CAMPAIGNS = ("objectives", "objectives-lossy", "objectives-upload")
SUITES = [suite.load(name) for name in ("quic-4-sat", "kuhn-2020")]
SMALL = {"rtt_ms": 650.0, "forward_rate_bps": 10e6, "return_rate_bps": 2e6}


def state(summary: dict[str, float]) -> ScenarioState:
    blank: dict[str, Any] = dict.fromkeys(ScenarioState.__struct_fields__)
    return ScenarioState(**(blank | {"summary": summary}))


def trial(server: str, iteration: int, client: str = "noq", **values: object) -> Record:
    """Of `4sat-small`, whose first objectives are 2 MB in 3 s, 10 MB in 10 s, 100 MB in 85 s."""
    made = fake_run.record("sat", "noq", "noq", iteration)
    good = {
        "trial": f"{client}-{server}-{iteration}",
        "scenario": "4sat-small",
        "workload": "transfer:100000000",
        "size_bytes": 10**8,
        "client": client,
        "server": server,
        "outcome": "ok",
        "detail": "",
        "first_mb_s": times(2.9, 9.9, 90.0),
    }
    return fake_run.change(made, **(good | values))


def times(two: float, ten: float, hundred: float) -> list[float]:
    """Of `first_mb_s`: 1, 2, 5, 10, 20, 50 and 100 MB."""
    return [two, two, ten, ten, hundred, hundred, hundred]


def page(bentpipe: Command, records: list[Record]) -> str:
    fake_run.write(Path("run"))
    fake_run.write_records(Path("run"), records)
    with fake_run.changed_manifest(Path("run")) as manifest:
        sat = json.loads(json.dumps(manifest["scenarios"]["sat"]))
        manifest["scenarios"]["4sat-small"] = sat | {"summary": sat["summary"] | SMALL}
    runs = ["--run", "run"] * 6
    done = bentpipe("study", "objectives", *runs, "-o", "out")
    assert done.code == 0, done.err
    assert done.out.split() == ["out/objectives.md"]
    return Path("out/objectives.md").read_text()


@pytest.mark.parametrize(("name", "seconds"), [("small down 100 MB", 84.2302), ("small up 2 MB", 9.2681)])
def test_bounds_by_hand(name: str, seconds: float) -> None:
    """1500 bytes carry 1447: 2 · 0.65 s + 8 · 1e8 · 1500 / 1447 / 1e7; 1.5 · 0.65 s + 8 · 2e6 · … / 2e6."""
    asked = next(one for one in SUITES[0].objectives if one.name == name)
    assert math.isclose(bound_s(asked, state(SMALL)), seconds, abs_tol=1e-4)


def test_the_campaigns_ask_what_the_suites_ask() -> None:
    plans = [campaign.load(name) for name in CAMPAIGNS]
    run = {(label, str(moved)) for one in plans for label in one.labels() for moved in one.parsed_workloads}
    asked = {(each.setting.label, each.setting.workload) for one in SUITES for each in one.objectives}
    assert run == asked
    assert all(one.seed == SUITES[0].seed and one.clients == ("noq",) for one in plans)
    assert len({one.servers for one in plans}) == 1
    lossy = {one.label for one in scenarios.resolve_all(plans[1].cases())}
    assert lossy == {"4sat-lossy", "cnes-250-3-loss1"}


def test_the_page_on_objectives(bentpipe: Command) -> None:
    met = [trial("noq", number) for number in (1, 2, 3, 4)]
    mixed = [trial("quinn", number, first_mb_s=times(2.9, 9.0 + number, 95.0)) for number in (0, 1, 2, 3)]
    never = {"outcome": "transfer_timeout", "detail": "after 600 s", "first_mb_s": [1.0, 2.0]}
    both = [trial("noq:cc=bentpipe", number, "noq:cc=bentpipe", **never) for number in (1, 2, 3, 4)]
    text = page(bentpipe, [*both, *mixed, *met])
    said = " ".join(text.split())
    assert "Of 24 objectives are met, by noq: 2. Next are" in said
    assert "| noq | 2 | 0 | **2** | - |" in text
    assert "| quinn | 1 | 0 | **1** | 1 |" in text
    assert "| noq:cc=bentpipe, both ends | 1 | 0 | **1** | - |" in text
    assert "| *asked* | 3 / 10 / 85 | 10 / 50 / 420 |" in text
    assert "| noq | **2.90** / **9.90** / 90.00 | not run / not run / not run |" in text
    assert "| quinn | **2.90** / 11.00? / 95.00 |" in text
    assert "| noq:cc=bentpipe, both ends | **2.00** / - / - |" in text
    assert "| quic-4-sat: small down 100 MB | - | 85 s | 84.23 s | 99 % | 0 |" in text
    assert "| quic-4-sat: small down 2 MB | noq:cc=bentpipe, both ends, 2.00 s | 3 s |" in text


def test_seven_trials_are_held_to_the_error_of_the_suite(bentpipe: Command) -> None:
    """Of seven, one that disagrees leaves it open; four of four do not."""
    late = [
        trial("noq", number, first_mb_s=times(4.0 if number == 7 else 2.0, 20.0, 90.0))
        for number in range(1, 8)
    ]
    text = page(bentpipe, [*late, *(trial("quinn", number) for number in (1, 2, 3, 4))])
    assert "| noq | 2.00? / 20.00 / 90.00 |" in text
    assert "| quinn | **2.90** / **9.90** / 90.00 |" in text


def test_a_run_of_other_paths_has_no_page(bentpipe: Command) -> None:
    fake_run.write(Path("run"))
    done = bentpipe("study", "objectives", *["--run", "run"] * 6, "-o", "out")
    assert done.code == 1 and "quic-4-sat and kuhn-2020" in done.err
