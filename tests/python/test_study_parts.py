"""What pages of studies share: means with their intervals, dots in panels, sheets of all settings."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import fake_run
import pytest

from bentpipe.analysis.cells import cells
from bentpipe.study import dots, sheets
from bentpipe.study.claims import MeasuredValue
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.means import arithmetic


def test_an_arithmetic_mean_has_students_interval() -> None:
    """Of 1, 2 and 3: a deviation of 1, and a quantile of 4.3027 with two degrees of freedom."""
    found = arithmetic([1.0, 2.0, 3.0])
    assert found is not None and found.low is not None and found.high is not None
    assert found.value == 2
    assert found.high - 2 == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4) == 2 - found.low


def test_what_never_varies_is_its_own_interval_and_one_value_has_none() -> None:
    assert arithmetic([0.0, 0.0]) == MeasuredValue(0.0, 0.0, 0.0)
    assert arithmetic([0.1] * 3) == MeasuredValue(0.1, 0.1, 0.1)
    assert arithmetic([0.5]) == MeasuredValue(0.5, None, None)
    assert arithmetic([]) is None and arithmetic([1.0, math.inf]) is None


def test_dots_have_a_panel_for_each_path_and_a_key_for_each_series(tmp_path: Path) -> None:
    one, other = MeasuredValue(1, 0.9, 1.1), MeasuredValue(2, None, None)
    panels = [
        DotPanel("sat", [DotRow("noq", {"2 flows": one, "4 flows": other}), DotRow("quinn", {})]),
        DotPanel("eutelsat", [DotRow("noq", {"4 flows": one})]),
    ]
    file = tmp_path / "dots.svg"
    dots.draw(panels, file, "Mbit/s", "goodput", border=1)
    text = " ".join(ElementTree.parse(file).getroot().itertext())
    assert all(word in text for word in ("sat", "eutelsat", "quinn", "2 flows", "4 flows", "Mbit/s"))


def test_a_table_that_is_too_long_becomes_a_sheet(tmp_path: Path) -> None:
    rows, file = [[str(number), "1"] for number in range(sheets.LONGEST + 1)], tmp_path / "all.csv"
    parts, files = sheets.folded_table("All of them", ["a", "b"], rows, file)
    assert parts == [f"[all.csv](all.csv) has {len(rows)} rows: all of them."] and files == [file]
    assert file.read_text().splitlines()[:2] == ["a,b", "0,1"] and len(file.read_text().splitlines()) == 42
    parts, files = sheets.folded_table("All of them", ["a", "b"], rows[1:], file)
    assert files == [] and parts[0].startswith("<details>") and "| 40 | 1 |" in parts[1]


def test_a_sheet_has_a_row_for_each_setting(tmp_path: Path) -> None:
    made = [fake_run.record("sat", "noq", "quinn", number) for number in (1, 2, 3)]
    values = [fake_run.change(one, ttfb_s=float(place)) for place, one in enumerate(made, start=1)]
    failed = fake_run.change(fake_run.record("sat", "noq", "noq", 1), outcome="crashed")
    file = tmp_path / "all.csv"
    line = sheets.of_cells(cells([*values, failed]), {"ttfb_s": lambda one: one.ttfb_s}, file)
    assert line.startswith("[all.csv](all.csv) has 2 rows, one for each setting")
    head, first, second = file.read_text().splitlines()
    assert head.endswith("trials,ok,ttfb_s_mean,ttfb_s_low,ttfb_s_high,ttfb_s_median")
    assert first == "sim,sat,transfer:10485760,noq,quinn,direct,3,3,2,-0.484138,4.48414,2"
    assert second == "sim,sat,transfer:10485760,noq,noq,direct,1,0,,,,"
