"""Objectives derived from what TCP reaches: by made-up records, and with Linux's TCP in a guest."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import fake_run
import pytest
from conftest import Command, installed_or_skip

from bentpipe.objectives import derivation, suite
from bentpipe.runs.records import Record

PEP_D = "tcp-pep terminal:config=D,gateway:config=D"


def trial(treatment: str, marks: list[float], iteration: int, **values: Any) -> Record:
    made = fake_run.record("sat", "noq", "noq", iteration)
    given: dict[str, Any] = {
        "workload": "transfer:100000000", "size_bytes": 10**8, "treatment": treatment,
        "handshake_s": 1.2, "first_mb_s": marks,
    }  # fmt: skip
    return fake_run.change(made, **given | values)


def test_the_best_of_each_size_is_the_objective_in_whole_seconds() -> None:
    direct = [trial("direct", [5.0, 6.0, 7.0, 8.01 + n, 20.0], n) for n in range(3)]
    split = [trial(PEP_D, [4.0, 4.9, 5.5, 6.4, 9.0, 13.0, 21.5], n) for n in range(3)]
    found = derivation.reached([*direct, *split])
    assert [one.name for one in found] == ["direct", "tcp-pep D"]
    assert found[0].times_s == {2: 6.0, 10: 9.01, 100: math.inf}
    assert found[1].from_request_s[100] == pytest.approx(20.3)
    made = derivation.derive(found)
    assert [(one.megabytes, one.within_s, one.by.name) for one in made] == [
        (2, 5, "tcp-pep D"), (10, 7, "tcp-pep D"), (100, 22, "tcp-pep D"),
    ]  # fmt: skip


def test_where_nobody_comes_so_far_there_is_no_objective() -> None:
    made = derivation.derive(derivation.reached([trial("direct", [5.0, 6.0], n) for n in range(3)]))
    assert [one.megabytes for one in made] == [2]


def test_the_proxies_configurations_stand_for_their_kind() -> None:
    found = derivation.expanded(("direct", "tcp-pep", "tcp-pep=gateway:iw=50"))
    assert len(found) == 6 and found[1] == "tcp-pep=terminal:config=A,gateway:config=A"
    assert derivation.name_of("tcp-pep gateway:iw=50") == "tcp-pep gateway:iw=50"


def test_received_data_is_a_straight_line_between_steps() -> None:
    one = trial(
        "direct", [], 1, received_step_s=0.5, received_bytes=[0, 0, 10**6, 3 * 10**6], handshake_s=1.0
    )
    assert derivation.curve_mb(one, [0.0, 0.25, 0.5, 1.0, 9.0]) == [0.0, 0.5, 1.0, 3.0, 3.0]


@pytest.mark.virtual_time
def test_a_suite_is_derived_and_can_be_checked(bentpipe: Command, tmp_path: Path) -> None:
    installed_or_skip("linux")
    words = ["objectives", "derive", "--scenario", "sat", "--bytes", "2MB", "--iterations", "1"]
    done = bentpipe(*words, "-o", "made.toml", "--figure", "made.svg", "--run", "run")
    assert done.code == 0, done.err
    assert "tcp-pep D" in done.out and "derived objective" in done.out
    assert "<svg" in Path("made.svg").read_text()
    (objective,) = suite.load("made.toml").objectives
    best = min(
        json.loads(line)["first_mb_s"][1] for line in Path("run/records.jsonl").read_text().splitlines()
    )
    assert objective.bound == math.ceil(best)


@pytest.mark.usefixtures("fake_sim")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--scenario", "sot", "--stack", "toy"], 'unknown scenario "sot"'),
        (["--scenario", "sat", "--treatment", "pep"], 'unknown treatment "pep"'),
        (["--scenario", "sat", "--bytes", "much"], '"much" is no size'),
        (["--scenario", "sat", "-o", "suite.json"], "suite.json is no .toml file"),
        (["--scenario", "sat", "--stack", "nobody"], 'unknown stack "nobody"'),
    ],
)
def test_what_is_wrong_is_named(bentpipe: Command, arguments: list[str], says: str) -> None:
    done = bentpipe("objectives", "derive", *arguments)
    assert done.code == 2 and says in done.err, done.err
