"""The page on real links, from made-up trials."""

from __future__ import annotations

import json
import math
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fake_run
import pytest
from conftest import Command
from real_links.emulation import pairs
from real_links.timed_trials import timed, trend

from bentpipe.runs.records import Record
from bentpipe.study.claims import AGREES, CANNOT_TELL, CONTRADICTS

T_OF_22 = 2.0739  # of Student's t with 22 degrees of freedom, two-sided at 95 %: any table has it
COUNTS = ("packets", "bytes", "queue_drops", "losses")


def trials(slope: float, count: int = 24) -> list[Record]:
    """Of one pair, one every four hours, whose goodput changes by `slope` a day."""
    chance = random.Random(5)
    began = datetime(2026, 4, 1, tzinfo=UTC)
    made = []
    for number in range(count):
        at = began + timedelta(hours=4 * number)
        share = 1 + slope * number / 6 + chance.gauss(0, 0.01)
        values: dict[str, Any] = {
            "trial": f"t{number}",
            "testbed": "remote",
            "outcome": "ok",
            "detail": "",
            "goodput_bps": 8e6 * share,
            "began": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "tries": 1,
            "clock_offset_ms": 0.5,
            "clock_error_ms": 0.2,
            "probe_rtt_ms": 610.0,
            "probe_loss_share": 0.01,
            "weather": {"rain_mm": number % 6, "station": "roof"},
        }
        made.append(fake_run.change(fake_run.record("sat", "noq", "quinn", number + 1), **values))
    return made


def write(name: str, records: list[Record], testbed: str, laboratory: bool = False) -> list[str]:
    words = fake_run.write_campaign(name, records)
    file = Path(name) / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["options"]["testbed"] = testbed
    link = {"operator": "an operator", "orbit": "GEO", "laboratory": laboratory}
    for state in manifest["scenarios"].values():
        state["summary"]["link"] = link
    file.write_text(json.dumps(manifest))
    return words


def test_the_interval_of_a_slope_is_by_as_many_trials_as_there_are() -> None:
    """Beside it, the standard error as least squares have it."""
    every = timed(trials(0.01))
    found = trend(every)
    assert found is not None
    days, shares = [number / 6 for number in range(24)], [one.share for one in every]
    left = sum((y - found.intercept - found.slope * x) ** 2 for x, y in zip(days, shares, strict=True))
    spread = sum((x - sum(days) / 24) ** 2 for x in days)
    assert found.error == pytest.approx(T_OF_22 * math.sqrt(left / 22 / spread), rel=1e-4)


def test_pairs_that_run_one_after_the_other_hide_no_trend() -> None:
    """Of three pairs, each with eight trials: goodput falls by 5 % of the first a day, whoever runs."""
    records = [
        fake_run.change(one, server=f"server-{number // 8}") for number, one in enumerate(trials(-0.05))
    ]
    found = trend(timed(records))
    assert found is not None and found.slope == pytest.approx(-0.05, abs=0.01) and found.changes
    # Of pairs with a single trial each nothing is known.
    alone = [fake_run.change(one, server=f"server-{number}") for number, one in enumerate(trials(-0.05))]
    assert trend(timed(alone)) is None


def front(text: str) -> str:
    return " ".join(text.partition("## What was run")[0].split())


@pytest.mark.parametrize(
    ("slope", "said", "advice"),
    [(0.0, "no trend is shown", False), (0.05, "goodput changes", True)],
)
def test_trends_are_told_from_none(bentpipe: Command, slope: float, said: str, advice: bool) -> None:
    text = bentpipe.page("real-links", *write("real", trials(slope), "remote"))
    assert f": {said}.\n" in text
    assert "of a laboratory" not in text
    assert "| 04:00 | 4 |" in text
    assert "| rain\\_mm | 0 |" in text and "station" not in text
    assert Path("out/real-links-time.svg").exists() and Path("out/real-links.svg").exists()
    begin = front(text)
    assert begin.startswith("# Over sat 1 pair reaches ")
    assert (", which shows no trend." in begin) != advice
    assert ("- Compare pairs by trials of the same days" in begin) == advice


def test_trials_of_less_than_a_day_show_nothing_of_days(bentpipe: Command) -> None:
    """Six at intervals of four hours, of which the last one began 20 hours after the first."""
    begin = front(bentpipe.page("real-links", *write("real", trials(0.05, 6), "remote")))
    assert "The trials are too few, or of less than a day, and show nothing of days and hours." in begin
    assert "- Before you compare days or hours, run for several days, with `--shuffle`." in begin
    assert "goodput changes" not in begin


@pytest.mark.parametrize(
    ("factor", "title", "word"),
    [
        (1.0, "Over a laboratory's link 1 of 1 pair of stacks have the goodput of the emulation", "equal"),
        (0.9, "Over a laboratory's link 0 of 1 pair of stacks have the goodput of the emulation", "differs"),
    ],
)
def test_a_link_is_compared_with_its_emulation(
    bentpipe: Command, factor: float, title: str, word: str
) -> None:
    real = trials(0.0)
    emulated = [
        fake_run.change(one, testbed="emu", goodput_bps=factor * (one.goodput_bps or 0)) for one in real
    ]
    words = [*write("real", real, "remote", laboratory=True), *write("emu", emulated, "emu")]
    text = bentpipe.page("real-links", *words)
    assert text.startswith(f"# {title} within 3 %\n")
    assert f" % ({'-0' if factor == 1 else '10'}." in text and f" | {word} |" in text
    assert "**This page is of a laboratory**" in text
    drawn = Path("out/real-links.svg").read_text()
    assert "over the link" in drawn and "emulated" in drawn
    begin = front(text)
    assert ("- For the goodput of these pairs, emulate the link" in begin) == (word == "equal")
    assert ("- Do not take emulated goodputs for those of the link with noq → quinn" in begin) != (
        word == "equal"
    )


def test_a_pair_is_equal_to_its_emulation_only_where_trials_show_it() -> None:
    """Two that differ much are too few; one that failed leaves it open; failing far more often differs."""
    real = trials(0.0)
    failed = [fake_run.change(one, outcome="crashed", goodput_bps=None) for one in real]
    wide = [fake_run.change(one, goodput_bps=bps) for one, bps in zip(real, (4e6, 16e6), strict=False)]
    invalid = [fake_run.change(one, outcome="invalid", goodput_bps=None) for one in real[:3]]
    for emulated, verdict in (
        (real, AGREES),
        (wide, CANNOT_TELL),
        ([*failed[:1], *real[1:]], CANNOT_TELL),
        ([*failed[:12], *real[12:]], CONTRADICTS),
        ([*invalid, *real[3:]], AGREES),
    ):
        (one,) = pairs(real, emulated)
        assert one.verdict == verdict


def test_what_nobody_counted_is_not_zero(bentpipe: Command) -> None:
    """Without captures records say nothing of packets: the page, a report and a comparison bear it."""
    ways = [f"{way}_{what}" for way in ("forward", "return") for what in COUNTS]
    unseen: dict[str, Any] = {**dict.fromkeys(ways), "packet_log_hash": None, "received_bytes": []}
    records = [fake_run.change(one, **unseen, measured_from="qlog") for one in trials(0.0)]
    done = bentpipe("study", "real-links", *write("real", records, "remote"), "-o", "out")
    assert done.code == 0, done.err
    assert "| 0.00 MB |" not in (text := Path("out/real-links.md").read_text()) and "| 0 MB |" not in text
    words = write("some", [*records[:20], *trials(0.0)[20:]], "remote")
    assert bentpipe("study", "real-links", *words, "-o", "some-out").code == 0
    assert " MB of 4 of 24 trials |" in Path("some-out/real-links.md").read_text()
    assert bentpipe("report", "real").code == 0
    done = bentpipe("compare", "real", "real", "--measure", "forward_packets")
    assert done.code in (0, 1) and "Traceback" not in done.err, done.err


def test_runs_of_no_link_are_refused(bentpipe: Command) -> None:
    records = [fake_run.change(one, testbed="sim") for one in trials(0.0, 2)]
    done = bentpipe("study", "real-links", *write("sim", records, "sim"), "-o", "out")
    assert done.code == 1 and "over a real link" in done.err
