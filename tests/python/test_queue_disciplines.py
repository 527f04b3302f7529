"""Our queue disciplines beside Linux's: the same packets through both."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.virtual_time
# Of all packets of a comparison, how many may be dropped or marked on one side more: by how much Linux's
# arithmetic is off (docs/design/queue-disciplines.md).
SHARE = 0.005
# Drops at random agree in the number alone.
AT_RANDOM = ("pie", "pie, marks")


@pytest.fixture(scope="module")
def comparisons() -> dict[str, Any]:
    command = [sys.executable, "tools/queue_disciplines.py", "--seeds", "1", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if "build it with" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return {one["case"]: one for one in map(json.loads, done.stdout.splitlines())}


def test_both_sides_act_as_often(comparisons: dict[str, Any]) -> None:
    assert len(comparisons) >= 12
    for name, one in comparisons.items():
        acts = {side: one["dropped"][side] + one["marked"][side] for side in ("ours", "linux")}
        assert acts["linux"] > 100, name
        assert abs(acts["ours"] - acts["linux"]) <= SHARE * one["packets"], (name, acts)


def test_a_queue_that_is_full_drops_the_same_packets_until_codel_acts(comparisons: dict[str, Any]) -> None:
    for name in ("codel, full", "fq-codel, full"):
        assert comparisons[name]["first_other_fate"] > 0.17e9, name


def test_the_rate_is_that_of_the_link(comparisons: dict[str, Any]) -> None:
    """Marks do not change when packets leave: all do at the same nanosecond."""
    assert comparisons["codel, marks"]["start_apart_ns"]["max"] == 0


def test_linux_counts_what_is_missing_behind_it(comparisons: dict[str, Any]) -> None:
    for name, one in comparisons.items():
        counted = one["tc"][-1]
        assert counted["drops"] == one["dropped"]["linux"], name
        assert counted.get("ecn_mark", 0) == one["marked"]["linux"] or name in AT_RANDOM, name
