"""Trials that watch frames with deadlines: how many come, how old they are, and that it repeats."""

import pytest
from conftest import Command, installed_or_skip

from bentpipe import workload
from bentpipe.errors import UsageError

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize("stack", ["noq", "quinn"])
def test_frames_come_over_a_free_path_and_repeat(stack: str, bentpipe: Command) -> None:
    """The path takes 15 ms. Of the largest frame, 42,852 bytes, 10 Mbit/s carry the last byte 35 ms later."""
    installed_or_skip(stack)
    words = ["--scenario", "goodput", "--workload", "frames:3s:streams", "--workload", "frames:3s:datagrams",
             "--client", stack, "--server", stack]  # fmt: skip
    first, again = (bentpipe.trials(*words, "--out", out) for out in ("A", "B"))
    assert [one["workload"] for one in first] == ["frames:3s:streams:400ms", "frames:3s:datagrams:400ms"]
    assert [one["packet_log_hash"] for one in first] == [one["packet_log_hash"] for one in again]
    for one in first:
        assert (one["outcome"], one["detail"], one["connections"]) == ("ok", "", 1)
        assert (one["frames"], one["late_frames"], one["lost_frames"]) == (90, 0, 0)
        assert 0.015 < one["frame_age_median_s"] <= one["frame_age_p95_s"] <= one["frame_age_p99_s"]
        assert 0.049 < one["frame_age_max_s"] < 0.4
        assert one["in_time_share"] == 1
        assert (one["goodput_bps"], one["limit_s"], one["completion_s"]) == (None, None, None)


def test_what_waits_at_the_last_deadline_comes_late_and_is_not_lost(bentpipe: Command) -> None:
    """Slow start over GEO keeps frames waiting for longer than they are of use."""
    installed_or_skip("noq")
    words = ["--scenario", "sat", "--client", "noq", "--server", "noq"]
    (one,) = bentpipe.trials(*words, "--workload", "frames:3s:datagrams")
    assert (one["outcome"], one["lost_frames"]) == ("ok", 0)
    assert one["late_frames"] > 50
    assert one["in_time_share"] == 1 - one["late_frames"] / 90
    assert one["frame_age_p95_s"] > 0.4


def test_what_is_lost_is_sent_again_over_streams_alone(bentpipe: Command) -> None:
    installed_or_skip("noq")
    words = ["--scenario", "goodput", "--set", "forward.loss=2%", "--workload", "frames:10s:streams",
             "--workload", "frames:10s:datagrams", "--client", "noq", "--server", "noq"]  # fmt: skip
    streams, datagrams = bentpipe.trials(*words)
    assert (streams["outcome"], datagrams["outcome"]) == ("ok", "ok")
    assert streams["lost_frames"] == 0 < datagrams["lost_frames"]
    # 6 packets of a frame of 7 kB are all there with a probability of 0.98 ^ 6.
    assert 0.05 < datagrams["lost_frames"] / datagrams["frames"] < 0.3


def test_over_geo_nothing_that_is_lost_comes_in_time(bentpipe: Command) -> None:
    """A path of 300 ms and a deadline of 400 ms leave no time to send anything again."""
    installed_or_skip("noq")
    words = ["--scenario", "sat", "--set", "forward.loss=0.5%", "--client", "noq"]
    both = ["--workload", "frames:20s:streams", "--workload", "frames:20s:streams:20s"]
    short, long = bentpipe.trials(*words, "--server", "noq:cc=bentpipe", *both)
    assert (short["outcome"], long["outcome"]) == ("ok", "ok")
    assert 0.3 < short["frame_age_median_s"] < 0.4
    assert short["lost_frames"] > 0 == long["lost_frames"]
    # A percentile is over all frames: of 600 six may be lost for 99 % of them to have come.
    assert (short["frame_age_p99_s"] is None) == (short["lost_frames"] > 6)
    assert short["in_time_share"] == 1 - (short["late_frames"] + short["lost_frames"]) / 600
    assert long["frame_age_max_s"] > 0.9


def test_a_link_that_is_too_slow_loses_frames(bentpipe: Command) -> None:
    installed_or_skip("noq")
    words = ["--scenario", "goodput", "--set", "forward.rate=1Mbit/s", "--client", "noq", "--server", "noq"]
    for carrier in ("streams", "datagrams"):
        (one,) = bentpipe.trials(*words, "--workload", f"frames:6s:{carrier}", "--out", carrier)
        assert one["outcome"] == "ok", one["detail"]
        assert one["late_frames"] + one["lost_frames"] > 40


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("frames", '"frames" has no time'),
        ("frames:3s", '"" carries no frames'),
        ("frames:3s:packets", '"packets" carries no frames'),
        ("frames:1ms:streams", "1ms is no time for frames"),
        ("frames:3s:streams:0s", "0s is no deadline"),
        ("frames:3s:streams:soon", '"soon" is no time'),
        ("frames:3s:streams:26s", "26s is no deadline"),
    ],
)
def test_mistakes_are_named(text: str, wrong: str) -> None:
    with pytest.raises(UsageError) as error:
        workload.parse(text, "--workload")
    assert wrong in str(error.value)
