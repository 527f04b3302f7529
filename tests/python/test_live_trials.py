"""Trials that watch a live stream: what the client asked for, what is measured, and that it repeats."""

from pathlib import Path

import pytest
from conftest import Command, installed_or_skip

from bentpipe import workload
from bentpipe.errors import UsageError
from bentpipe.workload.live import RATES_BPS

pytestmark = pytest.mark.virtual_time


def test_a_stream_is_watched_over_each_version_of_http_and_repeats(bentpipe: Command) -> None:
    for name in ("noq", "linux", "nginx"):
        installed_or_skip(name)
    words = ["--scenario", "goodput", "--workload", "live:12s", "--protocol", "h1,h2,h3",
             "--client", "noq,linux", "--server", "nginx"]  # fmt: skip
    first, again = (bentpipe.trials(*words, "--out", out) for out in ("A", "B"))
    assert [(one["outcome"], one["alpn"]) for one in first] == [
        ("ok", "http/1.1"), ("ok", "h2"), ("ok", "h3"),
    ]  # fmt: skip
    assert [one["packet_log_hash"] for one in first] == [one["packet_log_hash"] for one in again]
    for one in first:
        # 10 Mbit/s carry all but the first segment at the highest rate; the last is made after 6 s.
        assert one["media_rate_bps"] == (RATES_BPS[0] + 5 * RATES_BPS[-1]) / 6
        assert (one["stalls"], one["stalled_s"], one["rate_changes"]) == (0, 0, 1)
        assert one["latency_s"] == pytest.approx(6 + one["startup_s"])
        assert 6 < one["completion_s"] < 8
        assert (one["goodput_bps"], one["limit_s"], one["plt_s"]) == (None, None, None)


def test_a_link_that_is_too_slow_stalls_the_stream(bentpipe: Command) -> None:
    """400 kbit/s carry no rate: each of the four segments takes three seconds, and plays for two."""
    installed_or_skip("noq")
    words = ["--scenario", "goodput", "--set", "forward.rate=400kbit/s", "--workload", "live:8s"]
    (one,) = bentpipe.trials(*words, "--client", "noq", "--server", "noq")
    assert (one["outcome"], one["stalls"], one["rate_changes"]) == ("ok", 3, 0)
    assert one["media_rate_bps"] == RATES_BPS[0]
    assert 3 < one["stalled_s"] < 6
    assert one["latency_s"] == pytest.approx(6 + one["startup_s"] + one["stalled_s"])


def test_a_stream_that_is_cut_says_what_was_played(bentpipe: Command) -> None:
    """300 kbit/s bring the first segment after some 4 s, which plays for 2, and the second one after 8."""
    installed_or_skip("noq")
    words = ["--scenario", "goodput", "--set", "forward.rate=300kbit/s", "--set", "timeout=7s"]
    (one,) = bentpipe.trials(*words, "--workload", "live:8s", "--client", "noq", "--server", "noq")
    assert (one["outcome"], one["completion_s"]) == ("transfer_timeout", None)
    assert 4 < one["startup_s"] < 5
    assert (one["stalls"], one["stalled_s"]) == (1, pytest.approx(7 - one["startup_s"] - 2))


def test_a_timeout_that_no_stream_can_keep_is_refused(bentpipe: Command) -> None:
    done = bentpipe("run", "--scenario", "goodput", "--workload", "live:120s", "--client", "noq")
    assert done.code == 2
    assert "ends after goodput's timeout of 60 s" in done.err


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("live", '"live" has no time'),
        ("live:3s", "3s is not whole segments of 2s"),
        ("live:0s", "0s is not whole segments"),
        ("live:2h", "is no time"),
        ("live:4s:h4", 'unknown version of HTTP "h4"'),
    ],
)
def test_mistakes_are_named(text: str, wrong: str) -> None:
    with pytest.raises(UsageError) as error:
        workload.parse(text, "--workload")
    assert wrong in str(error.value)


def test_the_summary_says_how_streams_were_played(bentpipe: Command, tmp_path: Path) -> None:
    installed_or_skip("noq")
    words = ["--scenario", "goodput", "--workload", "live:4s", "--client", "noq", "--server", "noq"]
    done = bentpipe("run", *words, "--iterations", "1", "--out", "A")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert any("live stream of 4s" in line for line in lines)
    head = next(line.split() for line in lines if "stalled" in line)
    assert head[-6:] == ["starts", "stalls", "stalled", "Mbit/s", "changes", "behind"]
    (script,) = (tmp_path / "A" / "report" / "data" / "cells").glob("*.js")
    assert '"media_rate_bps"' in script.read_text()
