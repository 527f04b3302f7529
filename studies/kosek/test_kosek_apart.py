"""`bentpipe study kosek`: sections on runs that do not count with the paper's settings, from made-up runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fake_run
import fake_trace
import numpy as np
import pytest
from conftest import Command
from kosek.test_kosek_page import CHAIN, SLOW, first_run, page, row, trial, write
from kosek.windows import WindowCourse

from bentpipe.runs.records import Record


def campaign(run: Path, name: str) -> Path:
    """The run as one of that campaign."""
    with fake_run.changed_manifest(run) as manifest:
        manifest["campaign"] = name
    return run


def logged(run: Path, record: Record, **changes: Any) -> Path:
    """The folder of the trial with an analysis whose server logged its window: 0.1 MB, 2 MB from 3 s on."""
    folder = run / "trials" / record.trial
    fake_trace.write(folder)
    file = folder / "analysis.json"
    summary = json.loads(file.read_text())
    window = {"time_s": [1.0, 3.0], "bytes": [100_000, 2_000_000]}
    summary["connections"][0] |= {"qlog": {"server": {"cwnd": window}}} | changes
    file.write_text(json.dumps(summary))
    return folder


def traced_run() -> Path:
    """A trial without proxies and one with them; of the hops of the latter there are captures and logs."""
    place = ("geo-tum", "0%")
    direct, proxied = (
        trial(place, name, 1, SLOW, trial=f"trial{number}") for number, name in enumerate(("direct", CHAIN))
    )
    run = campaign(write("traced", [direct, proxied]), "kosek-windows")
    logged(run, direct)
    folder = logged(run, proxied)
    for hop in ("terminal-gateway", "gateway-server"):
        (folder / f"trace-{hop}.pcapng").write_text("a capture")
    for end in ("client", "terminal", "gateway", "server"):
        (folder / "qlog" / end).mkdir(parents=True)
        (folder / "qlog" / end / "one.sqlog").touch()
    return run


def test_windows_are_those_that_the_senders_logged(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_trace.stand_in(tmp_path / "bin")
    monkeypatch.setenv("BENTPIPE_BIN", str(tmp_path / "bin"))
    text = page(bentpipe, first_run(), traced_run())
    below = text.partition("## Congestion windows")[2]
    found = row(below, "geo-tum, 0 %")
    # 20 Mbit/s and the 600 ms of the made-up transfer are 1.5 MB.
    assert found[:3] == ["3.00 s", "2.00", "2.00"]
    assert all(float(one) > 0 for one in (found[4], found[7]))  # of the stand-in: both hops have one
    assert "the median of 1 trial." in " ".join(below.split())
    assert (Path("out") / "kosek-windows.svg").is_file()
    # The last hop is read with the log of the end that sends over it, and no other.
    assert [Path(one).parts[-2:] for one in fake_trace.asked()["qlog"]] in (
        [("gateway", "one.sqlog")], [("server", "one.sqlog")]
    )  # fmt: skip
    # Its trials are not counted with those of the figure.
    assert row(text, "geo-tum, 0 %: QUIC")[0] == "3"


def test_without_logs_there_are_no_windows(bentpipe: Command) -> None:
    records = [trial(("geo-tum", "0%"), "direct", 1, SLOW, trial="trial0")]
    run = campaign(write("traced", records), "kosek-windows")
    assert "## Congestion windows" not in page(bentpipe, first_run(), run), "no trace"
    logged(run, records[0], qlog=None)
    assert "## Congestion windows" not in page(bentpipe, first_run(), run), "no log"


def test_a_window_holds_until_its_next_change() -> None:
    course = WindowCourse(np.array([1.0, 3.0, 4.0]), np.array([10.0, 30.0, 20.0]), 0.5)
    assert [course.at(time_s) for time_s in (0.5, 1.0, 2.9, 3.5, 9.0)] == [None, 10, 10, 30, 20]
    assert [course.reaches(least) for least in (10, 11, 31)] == [1.0, 3.0, None]
