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
from objectives.verdicts import Pair

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
    assert done.out.split() == ["out/objectives.md", "out/objectives.svg"]
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
    assert text.startswith("# noq meets 2 of 3 GEO download objectives, quinn 1 to 2\n")
    assert "| server | downloads, of 3 | quic-4-sat, of 3 | all, of 3 |" in text
    assert "| noq | 2 | 2 | 2 |" in text
    assert "| quinn | 1 to 2 | 1 to 2 | 1 to 2 |" in text
    assert "| noq:cc=bentpipe, both ends | 1 | 1 | 1 |" in text
    assert "| *asked* | 3 / 10 / 85 | 10 / 50 / 420 |" in text
    assert "| noq | **2.90** / **9.90** / 90.00 | not run / not run / not run |" in text
    assert "| quinn | **2.90** / 11.00? / 95.00 |" in text
    assert "| noq:cc=bentpipe, both ends | **2.00** / - / - |" in text
    assert "| quic-4-sat, small down: first 100 MB | - | 85 s | 84.23 s | 99 % | 0 |" in text
    assert "| quic-4-sat, small down: first 2 MB | noq:cc=bentpipe, both ends, 2.00 s | 3 s |" in text
    assert "Medians: kuhn-2020" not in text


def front(text: str) -> str:
    """What stands above the first section on what was run, on one line."""
    return " ".join(text.partition("## What was run")[0].split())


MET, LATE = times(2.9, 9.9, 84.9), times(4.0, 20.0, 90.0)
OWN = "noq:cc=bentpipe"


def four(server: str, *first_mb_s: list[float], client: str = "noq", **values: object) -> list[Record]:
    """Four trials, the last of these times repeated."""
    each = [*first_mb_s, *[first_mb_s[-1]] * (4 - len(first_mb_s))]
    return [
        trial(server, number, client, first_mb_s=one, **values) for number, one in enumerate(each, start=1)
    ]


def uploads(server: str, took: list[float], client: str = "noq") -> list[Record]:
    made = four(server, took, client=client, workload="upload:100000000")
    return [fake_run.change(one, trial=f"up-{one.trial}") for one in made]


def test_title_answer_and_advice_are_of_the_run(bentpipe: Command) -> None:
    """Uploads do not count for a server: the client sends."""
    sent = [*uploads("noq", times(9.0, 60.0, 500.0)), *uploads("quinn", times(9.0, 49.0, 500.0))]
    sent += uploads(OWN, times(9.0, 49.0, 419.0), client=OWN)
    records = [*four(OWN, MET), *four("noq", LATE), *four("quinn", LATE), *sent]
    text = page(bentpipe, records)
    assert text.startswith("# noq:cc=bentpipe meets 3 of 3 GEO download objectives, 2 others none\n")
    begin = front(text)
    assert "of 3 objectives, noq:cc=bentpipe meets 3 and each of the other 2 servers none." in begin
    assert "noq:cc=bentpipe at both ends meets 3 and the client noq meets 1 to 2 with any server." in begin
    assert "Each of the 6 objectives is met by a pair." in begin
    assert "- For downloads over GEO choose noq:cc=bentpipe: each of the other 2 servers surely" in begin
    assert "- For uploads change the client's congestion control: with noq:cc=bentpipe at both" in begin
    assert "- Allow more than" not in begin
    assert "](objectives.svg)" in begin
    assert "| noq:cc=bentpipe, both ends | not run | 3 | 3 to 6 | 3 to 6 |" in text


def test_a_server_that_may_meet_as_many_is_not_behind(bentpipe: Command) -> None:
    """Of four trials that disagree the verdicts are undecided: it may meet none, or all."""
    records = [*four(OWN, MET), *four("quinn", times(2.9, 20.0, 84.9), MET, LATE)]
    records += [*uploads("noq", times(9.0, 49.0, 500.0)), *four("noq", LATE, MET)]
    records += uploads(OWN, times(9.0, 49.0, 500.0), client=OWN)
    begin = front(page(bentpipe, records))
    assert "noq:cc=bentpipe meets 3 of 3 GEO download objectives, 2 others at most 3" in begin
    assert "each of the other 2 servers at most 3." in begin
    assert "- For downloads" not in begin and "- For uploads" not in begin


def test_without_a_sure_verdict_no_server_is_named(bentpipe: Command) -> None:
    """Two trials decide nothing, whatever their times."""
    text = page(bentpipe, [trial("noq", number, first_mb_s=MET) for number in (1, 2)])
    assert text.startswith("# No server is shown to meet any of 3 GEO download objectives\n")
    begin = front(text)
    assert "at most 3 of one server are undecided." in begin
    assert "quic-4-sat, small down: first 2 MB (0 of 1 pair miss it, 1 undecided)" in begin
    assert "- For downloads" not in begin


def test_a_time_that_leaves_nothing_to_a_sender_is_advised_against(bentpipe: Command) -> None:
    """The bound is 2.96 of 3 s, 9.59 of 10 s and 84.23 of 85 s; one that is met stays as it is."""
    begin = front(page(bentpipe, four("noq", times(3.1, 9.9, 90.0))))
    assert "- Allow more than 3 s for quic-4-sat, small down: first 2 MB: without 0-RTT the" in begin
    assert "- Allow more than 85 s" in begin and "- Allow more than 10 s" not in begin
    assert "rate alone take 99 % of it." in begin


def test_a_client_that_is_not_the_usual_one_is_named() -> None:
    pairs = [Pair("noq", "noq"), Pair("quinn", "quinn"), Pair("quinn", "noq"), Pair("noq", "quinn")]
    assert [one.title for one in pairs] == ["noq", "quinn, both ends", "noq, client quinn", "quinn"]


def test_seven_trials_are_held_to_the_error_of_the_suite(bentpipe: Command) -> None:
    """Of seven, one that disagrees leaves it open; four of four do not."""
    late = [
        trial("noq", number, first_mb_s=times(4.0 if number == 7 else 2.0, 20.0, 90.0))
        for number in range(1, 8)
    ]
    text = page(bentpipe, [*late, *(trial("quinn", number) for number in (1, 2, 3, 4))])
    assert "| noq | 2.00? / 20.00 / 90.00 |" in text
    assert "With 7 or more a verdict is wrong in at most 1 % of cases, with 4 or more in" in " ".join(
        text.split()
    )
    assert "| quinn | **2.90** / **9.90** / 90.00 |" in text


def test_a_run_of_other_paths_has_no_page(bentpipe: Command) -> None:
    fake_run.write(Path("run"))
    done = bentpipe("study", "objectives", *["--run", "run"] * 6, "-o", "out")
    assert done.code == 1 and "quic-4-sat and kuhn-2020" in done.err


def test_what_is_undecided_throughout_is_no_reason_to_allow_more_time(bentpipe: Command) -> None:
    """3 s leave a sender next to nothing, and a single trial decides nothing."""
    begin = front(page(bentpipe, [trial("noq", 1, first_mb_s=LATE)]))
    assert "no server is shown to meet an objective of 3; at most 3 of one server are undecided." in begin
    assert "Allow more than" not in begin
    begin = front(page(bentpipe, four("noq", LATE)))
    assert "no server is shown to meet an objective of 3. No pair" in begin
    assert "- Allow more than 3 s for quic-4-sat, small down: first 2 MB" in begin
