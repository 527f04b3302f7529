"""The page on false alarms, from made-up trials."""

from __future__ import annotations

import random
from pathlib import Path

import fake_run
import pytest
from alarms import answer
from alarms.checks import BASE, LARGER, SMALLER, DrawnChecks, Pool, share
from conftest import Command

from bentpipe.runs.records import Record

COUNT = 60


def trials(spreads: dict[str, float], *, seeds: bool = True, slower: float = 1.05) -> list[Record]:
    """Trials of paths with these spreads; times of the same seed are nearly equal, as are their draws, unless
    there are no common `seeds`.
    """
    chance = random.Random(3)
    records = []
    for scenario, spread in spreads.items():
        times_s = [10 * chance.lognormvariate(0, spread) for _ in range(COUNT)]
        for client in (BASE, LARGER, SMALLER):
            for number, time_s in enumerate(times_s, start=1):
                made = fake_run.record(scenario, "noq", "noq", number)
                shown = time_s * (slower if client == SMALLER else 1.0) * chance.lognormvariate(0, 1e-4)
                values = {"client": client, "outcome": "ok", "detail": "", "completion_s": shown}
                seed = str(number) if seeds else f"{client}{number}"
                records.append(fake_run.change(made, trial=f"{client}{number}", seed=seed, **values))
    return records


def page(bentpipe: Command, records: list[Record]) -> str:
    return bentpipe.page("alarms", *fake_run.write_campaign("alarms", records))


def front(text: str) -> str:
    return " ".join(text.partition("## What was run")[0].split())


def test_alarms_are_few_and_slowdowns_are_found_where_trials_agree(bentpipe: Command) -> None:
    """With the same draws pairs agree although trials spread; with other draws they do not."""
    text = page(bentpipe, trials({"sat": 0.002, "satloss": 0.3}))
    rows = {line.split(" | ")[0].removeprefix("| "): line.split(" | ") for line in text.splitlines()}
    assert float(rows["other seeds"][3].split()[0]) <= 1.0
    assert rows["sat"][3].startswith("100.0 %") and rows["satloss"][4].startswith("100.0 %")
    assert rows["sat"][5] == "5.0 %" and rows["sat"][6].startswith("100.0 %")
    assert float(rows["satloss"][3].split()[0]) < 10
    title = "# Checks find a slowdown of 3 % over 2 of 2 paths with the same draws, over 1 with others"
    assert text.startswith(title)
    begin = front(text)
    assert "calls a path better or worse in 0.1 % (0.0 to 0.6) at most, however pairs are drawn:" in begin
    assert "less than the 1 % that a check allows." in begin
    assert "find a slowdown of 3 % over sat and satloss, each time in more than 90 % of them; with" in begin
    assert "Watch for regressions over paths like sat, on which" in begin
    assert "- Over satloss a check finds 3 % only where the new version sends what the old one sent" in begin
    assert "do not take *undecided*" not in begin
    assert "![False alarms and slowdowns found, in percent, with intervals](alarms.svg)" in begin
    assert Path("out/alarms.svg").exists()


def unpaired(spread: float) -> dict[str, dict[str, float]]:
    """Times of one path whose trials with the same seed have nothing in common."""
    chance = random.Random(5)
    return {
        client: {str(number): 10 * chance.lognormvariate(0, spread) for number in range(COUNT)}
        for client in (BASE, LARGER, SMALLER)
    }


def test_a_slowdown_that_is_missed_is_named_and_how_many_pairs_it_takes(tmp_path: Path) -> None:
    checks = DrawnChecks([Pool("satloss", unpaired(0.3))])
    begin = " ".join("\n".join(answer.front(checks, tmp_path).parts()).split())
    assert begin.startswith("# Checks find a slowdown of 3 % over 0 of 1 path, with")
    assert "over satloss, where even pairs with the same seed differ by 4" in begin
    assert "do not take *undecided* as *unchanged*: to find 3 % there, a check needs some" in begin
    assert "Watch for regressions" not in begin


def test_a_share_is_beside_what_is_allowed_only_where_its_interval_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 1000 checks 10 are 1 %, with an interval from 0.5 to 1.8 %; 20 are 2 %, from 1.3 %."""
    checks = DrawnChecks([Pool("sat", unpaired(0.002))])
    for count, said in ((3, "less than the"), (10, "not to be told from the"), (20, "more than the")):
        monkeypatch.setitem(checks.__dict__, "alarms", {"other seeds": count})
        begin = " ".join("\n".join(answer.front(checks, tmp_path).parts()).split())
        assert f"{said} 1 % that a check allows." in begin
        assert ("- Take *better*" in begin) == (count == 3)


def test_the_interval_of_a_share_is_wilson_s() -> None:
    """Beside numbers that any table has: none of ten, and half of them."""
    none, half = share(0, 10), share(5, 10)
    assert (none.value, none.low) == (0, 0) and none.high == pytest.approx(27.75, abs=0.01)
    assert half.low == pytest.approx(23.66, abs=0.01) and half.high == pytest.approx(76.34, abs=0.01)


def test_too_few_trials_are_named(bentpipe: Command) -> None:
    records = [fake_run.record("sat", "noq", "noq", number) for number in (1, 2)]
    done = bentpipe("study", "alarms", *fake_run.write_campaign("alarms", records), "-o", "out")
    assert done.code == 1 and "fewer than 56 trials of noq" in done.err


def test_trials_without_common_draws_are_no_pairs(bentpipe: Command) -> None:
    words = fake_run.write_campaign("alarms", trials({"sat": 0.002}, seeds=False))
    done = bentpipe("study", "alarms", *words, "-o", "out")
    assert done.code == 1 and "fewer than 56 pairs of noq and noq:window=100000000" in done.err
