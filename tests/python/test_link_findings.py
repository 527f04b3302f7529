"""Findings of trials in virtual time that name what the links did."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import Command, present

from bentpipe.runs.trial_files import LINK_EVENTS, SUMMARY

pytestmark = pytest.mark.virtual_time


def _trial(bentpipe: Command, scenario: str, workload: str) -> tuple[Path, dict[str, Any]]:
    pair = present()[0]
    done = bentpipe(
        "run", "--scenario", scenario, "--client", pair, "--server", pair, "--workload", workload,
        "--iterations", "1", "--trace", "all", "--out", "run", "--no-report", "--json",
    )  # fmt: skip
    (record,) = done.records()
    assert record["outcome"] == "ok", record["detail"]
    return Path("run/trials") / str(record["trial"]), record


def _finding(bentpipe: Command, trial: Path, rule: str) -> dict[str, Any]:
    assert bentpipe("trace", trial, "--explain").code == 0
    (connection,) = json.loads((trial / SUMMARY).read_text())["connections"]
    (found,) = (finding for finding in connection["findings"] if finding["rule"] == rule)
    return dict(found)


def test_a_stall_is_at_the_handover_of_this_trial(bentpipe: Command) -> None:
    trial, record = _trial(bentpipe, "starlink", "transfer:100MiB")
    found = _finding(bentpipe, trial, "stalled_at_handovers")
    assert found["verdict"] == "yes", found["text"]
    assert "stalled_at_handovers" in record["findings"]
    events = json.loads((trial / LINK_EVENTS).read_text())
    said = re.match(r"The transfer stalled at the handover at ([\d.]+) s for", found["text"])
    assert said is not None, found["text"]
    began = [it["from_ns"] / 1e9 for it in events["interruptions"]]
    assert any(abs(time - float(said[1])) < 0.05 for time in began), (said[1], began)
    # Every 15 s, both ways.
    forward = [it["from_ns"] for it in events["interruptions"] if it["direction"] == "forward"]
    assert {after - before for before, after in pairwise(forward)} <= {15_000_000_000}
    assert events["requests"] == []
    # Without the file nobody knows.
    (trial / LINK_EVENTS).unlink()
    (trial / SUMMARY).unlink()
    assert _finding(bentpipe, trial, "stalled_at_handovers")["verdict"] == "not_sure"


def test_waits_are_for_the_grants_of_this_trial(bentpipe: Command) -> None:
    trial, record = _trial(bentpipe, "rcs2-shared", "transfer:2MiB")
    found = _finding(bentpipe, trial, "waited_for_grants")
    assert "of " in found["text"] and "request" in found["text"]
    assert (found["verdict"] == "yes") == ("waited_for_grants" in record["findings"])
    events = json.loads((trial / LINK_EVENTS).read_text())
    granted = [it["answered_ns"] - it["sent_ns"] for it in events["requests"] if it["granted"]]
    assert max(granted) / 1e6 == pytest.approx(record["return_grant_wait_max_ms"])
    assert events["interruptions"] == []


def test_events_that_cannot_be_read_are_named(bentpipe: Command) -> None:
    trial, _ = _trial(bentpipe, "sat", "transfer:100KiB")
    (trial / LINK_EVENTS).write_text("{")
    (trial / SUMMARY).unlink(missing_ok=True)
    done = bentpipe("trace", trial)
    assert done.code == 1 and f"{LINK_EVENTS}: cannot be read" in done.err
