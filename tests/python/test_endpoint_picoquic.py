"""The picoquic endpoint: its options reach the library."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Command, installed_or_skip

pytestmark = pytest.mark.virtual_time

PATH = ("--scenario", "sat", "--set", "forward.queue=2 BDP", "--bytes", "2MiB", "--iterations", "1")


def records(bentpipe: Command, *servers: str) -> dict[str, dict[str, Any]]:
    """Server → the record of a trial over a GEO path that all of them share."""
    installed_or_skip("picoquic")
    words = [word for server in servers for word in ("--server", server)]
    done = bentpipe("run", *PATH, "--client", "picoquic", *words, "--no-report", "--json", "--out", "run")
    assert done.code == 0, done.err
    found = {one["server"]: one for one in done.records()}
    assert [one["detail"] for one in found.values() if one["outcome"] != "ok"] == []
    return found


@pytest.mark.parametrize("cc", ["newreno", "cubic", "bbr", "c4"])
def test_what_is_saved_of_a_path_is_used_where_its_round_trip_is_the_same(bentpipe: Command, cc: str) -> None:
    plain = f"picoquic:cc={cc}"
    same, other = (f"{plain}:resume=on:saved=1500000@{rtt}ms" for rtt in (600, 60))
    found = records(bentpipe, plain, same, other)
    times = {server: one["completion_s"] for server, one in found.items()}
    assert times[same] < times[plain] - 0.3  # half a round trip and more
    assert times[other] == pytest.approx(times[plain], rel=0.02)


def test_a_window_that_may_not_grow_bounds_the_rate(bentpipe: Command) -> None:
    found = records(bentpipe, "picoquic:cwnd=60000")
    assert found["picoquic:cwnd=60000"]["goodput_bps"] < 60000 * 8 / 0.6 * 1.1


def test_saved_alone_is_unsupported(bentpipe: Command) -> None:
    installed_or_skip("picoquic")
    ends = ("--client", "picoquic", "--server", "picoquic:resume=on")
    done = bentpipe("run", *PATH, *ends, "--no-report", "--json", "--out", "run")
    assert [one["outcome"] for one in done.records()] == ["unsupported"]
