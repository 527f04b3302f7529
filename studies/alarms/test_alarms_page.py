"""The page on false alarms, from made-up trials."""

from __future__ import annotations

import random

import fake_run
from conftest import Command

CLIENTS = ("noq", "noq:window=100000000", "noq:window=1320000")


def test_alarms_are_few_and_slowdowns_are_found_where_trials_agree(bentpipe: Command) -> None:
    chance = random.Random(3)
    records = []
    for scenario, spread in (("sat", 0.002), ("satloss", 0.3)):
        for client in CLIENTS:
            slower = 1.05 if client == CLIENTS[2] else 1.0
            for number in range(60):
                made = fake_run.record(scenario, "noq", "noq", number + 1)
                time_s = slower * 10 * chance.lognormvariate(0, spread)
                values = {"client": client, "outcome": "ok", "detail": "", "completion_s": time_s}
                records.append(fake_run.change(made, trial=f"{client}{number}", **values))
    text = bentpipe.page("alarms", *fake_run.write_campaign("alarms", records))
    rows = {line.split(" | ")[0].removeprefix("| "): line.split(" | ") for line in text.splitlines()}
    assert float(rows["other seeds"][3].split()[0]) <= 1.0
    assert rows["sat"][2] == "100.0 %" and rows["sat"][5].startswith("100.0 %")
    assert float(rows["satloss"][2].split()[0]) < 10


def test_too_few_trials_are_named(bentpipe: Command) -> None:
    records = [fake_run.record("sat", "noq", "noq", number) for number in (1, 2)]
    done = bentpipe("study", "alarms", *fake_run.write_campaign("alarms", records), "-o", "out")
    assert done.code == 1 and "fewer than 56 trials of noq" in done.err
