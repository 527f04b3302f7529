"""What commands print of much: no more than some screens, 80 columns wide, and how to see the rest."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fake_run
import msgspec
import pytest
from conftest import Command
from rich.console import Console

from bentpipe.cli import check_summary, layout, summary
from bentpipe.cli.trace import _print_many
from bentpipe.errors import one_of
from bentpipe.objectives import suite
from bentpipe.runs import manifest
from bentpipe.runs.records import Record
from bentpipe.schema.analysis import Connection, Metrics, OneWay
from bentpipe.schema.verdicts import ObjectiveVerdict, Verdicts

MANY = tuple(f"stack-{number:02}:cc=cubic:iw=100:pacing=off" for number in range(12))
SCREENS = 130  # lines of some screens


def lines(text: str) -> list[str]:
    found = text.splitlines()
    assert len(found) < SCREENS and max(map(len, found)) <= 80, [one for one in found if len(one) > 80]
    return found


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
def big(tmp_path: Path) -> Path:
    """A run of 144 pairs over three paths."""
    fake_run.write(tmp_path / "A", stacks=MANY)
    return tmp_path / "A"


def test_a_comparison_of_many_cells_is_cut_and_machines_have_all(bentpipe: Command, big: Path) -> None:
    cells = len(MANY) ** 2 * len(fake_run.USUAL)
    shown = lines(bentpipe("compare", big, big).out)
    assert f"… and {cells - layout.ROWS} cells more: --all shows them" in shown
    assert sum("→" in line for line in shown) == layout.ROWS
    assert bentpipe("compare", big, big, "--all").out.count("→") == cells
    assert len(json.loads(bentpipe("compare", big, big, "--json").out)["cells"]) == cells
    assert len(bentpipe("compare", big, big, "--csv").out.splitlines()) == cells + 1


def test_a_result_of_many_pairs_is_cut(bentpipe: Command, big: Path) -> None:
    assert bentpipe("runner", "export", big, "-o", "result.json").code == 0
    shown = lines(bentpipe("runner", "import", "result.json").out)
    assert f"… and {len(MANY) ** 2 - layout.ROWS} pairs more: --all shows them" in shown
    every = bentpipe("runner", "import", "result.json", "--all").out
    assert every.count("→") == len(MANY) ** 2


def test_a_run_of_many_pairs_ends_with_the_tables_that_tell_most(big: Path) -> None:
    console = Console(file=io.StringIO(), width=80)
    records = [record for link in fake_run.USUAL for record in _records(link)]
    records[-1] = fake_run.change(records[-1], outcome="crashed", detail="exit code 134: " + "x " * 300)
    summary.show(records, manifest.read(big).scenarios, console)
    shown = lines(printed(console))
    assert "… and 1 tables more: the report has all of them" in shown
    assert any(line.startswith("satloss") for line in shown), "it has the failure"


def _records(link: str) -> list[Record]:
    few = [f"stack-{number:02}" for number in range(40)]
    return [fake_run.record(link, client, server, 1) for client in few for server in ("quinn", "noq")]


def _unknown(struct: type[msgspec.Struct], **values: Any) -> dict[str, Any]:
    return {**dict.fromkeys(struct.__struct_fields__), **values}


def test_of_many_connections_each_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    one_way = OneWay(**_unknown(OneWay))
    metrics = Metrics(**_unknown(Metrics, forward=one_way, return_=one_way))
    connections = [
        Connection(
            **_unknown(
                Connection,
                connection=number,
                protocol="quic",
                client=f"[2001:db8:ffff:ffff:ffff:ffff:ffff:{number:x}]:50000",
                server="[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:443",
                metrics=metrics,
                findings=[],
            )
        )
        for number in range(300)
    ]
    _print_many(connections, explain=True)
    shown = lines(capsys.readouterr().out)
    assert shown[0].startswith("300 connections") and "… and 280 connections more: --all shows them" in shown


def test_of_many_pairs_a_check_has_tables_of_those_that_failed() -> None:
    asked = suite.load("quic-4-sat").objectives[0]
    verdicts = [
        ObjectiveVerdict(
            objective=asked.name,
            asked=asked.asked,
            scenario="sat",
            workload="transfer:1000",
            treatment="direct",
            client=client,
            server="noq",
            outcome="fail" if client == MANY[-1] else "pass",
            why="6 of 7 trials meet it",
            trials=7,
            median=1.0,
            values=[1.0],
            findings=[],
            trial="",
        )
        for client in MANY
    ]
    blank: dict[str, Any] = {"title": "", "source": "", "against": "", "changes": [], "left_out": []}
    given: dict[str, Any] = {"format": 1, "suite": "s", "testbed": "sim", "error": 0.01, "most": 28}
    found = Verdicts(**blank, **given, margin=0.01, verdicts=verdicts)
    console = Console(file=io.StringIO(), width=80)
    check_summary.show(found, [asked] * len(MANY), Path("run"), console)
    shown = lines(printed(console))
    assert shown[0] == f"{MANY[-1]} → noq", "the one that failed comes first"
    assert sum(line.endswith("→ noq: 1 pass") for line in shown) == len(MANY) - 4


def test_a_hint_names_few_of_many() -> None:
    many = [f"campaign-{number}" for number in range(90)]
    hint = one_of("campain-7", many, "campaigns")
    assert hint.startswith('did you mean "campaign-7"? campaigns: campaign-7, ')
    assert hint.endswith(" and 82 more") and len(hint) < 200
    assert one_of("x", ["a", "b"], "words") == "words: a, b"


@pytest.mark.parametrize(
    "words",
    [
        ("stacks",), ("stacks", "show", "noq"), ("stacks", "show", "linux"), ("scenarios",), ("page",),
        ("page", "show", "kosek"), ("objectives",), ("objectives", "show", "kuhn-2020"), ("study",),
        ("doctor",),
    ],
)  # fmt: skip
def test_lists_are_80_columns_wide(bentpipe: Command, words: tuple[str, ...]) -> None:
    """But for what cannot be broken, as a path."""
    for line in bentpipe(*words).out.splitlines():
        assert len(line) <= 80 or len(line.split()) <= 2, line
