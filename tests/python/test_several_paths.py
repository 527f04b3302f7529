"""Scenarios with several paths in virtual time, and multipath QUIC over them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Command, installed_or_skip

pytestmark = pytest.mark.virtual_time

STACKS = ("picoquic", "noq")
PLAIN = ("--no-report", "--json", "--iterations", "1", "--trace", "none")


def record(bentpipe: Command, stack: str, *words: str, scenario: str = "leo-terrestrial") -> dict[str, Any]:
    """Of a trial of a stack with itself over several paths that ends well."""
    installed_or_skip(stack.partition(":")[0])
    ends = ("--client", stack, "--server", stack)
    done = bentpipe("run", "--scenario", scenario, *ends, *PLAIN, *words, "--out", "run")
    assert done.code == 0, done.err
    (one,) = done.records()
    assert (one["outcome"], one["detail"]) == ("ok", "")
    return one


def shares(one: dict[str, Any], way: str = "forward") -> dict[str, float]:
    return {path["name"]: path[f"{way}_share"] for path in one["paths"]}


@pytest.mark.parametrize("stack", STACKS)
def test_both_paths_carry_a_file_and_the_packets_are_decoded(bentpipe: Command, stack: str) -> None:
    one = record(bentpipe, stack, "--bytes", "10MiB")
    assert min(shares(one).values()) > 0.2 and min(shares(one, "return").values()) > 0
    assert sum(shares(one).values()) == pytest.approx(1)
    assert one["forward_bytes"] == sum(path["forward_bytes"] for path in one["paths"])
    assert one["measured_from"] == "wire" and one["undecoded_packets"] == 0
    # More than the faster path alone could carry.
    assert one["goodput_bps"] > 20e6
    assert one["findings"] == []
    assert 0 < one["share_of_limit"] <= 1


@pytest.mark.parametrize("stack", STACKS)
def test_the_same_seed_gives_the_same_packets(bentpipe: Command, stack: str) -> None:
    hashes = []
    for name in ("one", "two"):
        Path(name).mkdir()
        installed_or_skip(stack)
        words = ("--scenario", "geo-leo", "--client", stack, "--server", stack, "--bytes", "2MiB", *PLAIN)
        done = bentpipe("run", *words, "--out", f"{name}/run")
        hashes += [one["packet_log_hash"] for one in done.records()]
    assert len(hashes) == 2 and len(set(hashes)) == 1


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_without_multipath_has_the_first_path_as_if_there_were_no_other(
    bentpipe: Command, stack: str
) -> None:
    alone = record(bentpipe, f"{stack}:multipath=off", "--bytes", "2MiB", scenario="geo-leo")
    assert shares(alone) == {"geo": 1.0, "leo": 0.0}
    installed_or_skip(stack)
    words = ("--scenario", "geo-tum", "--client", stack, "--server", stack, "--bytes", "2MiB", *PLAIN)
    (same,) = bentpipe("run", *words, "--out", "geo-tum").records()
    assert same["paths"] == []
    # Its seed is another, and so are some bytes of its handshake.
    for measure in ("completion_s", "goodput_bps", "forward_packets", "rtt_median_ms"):
        assert alone[measure] == pytest.approx(same[measure], rel=1e-3)


def test_a_file_arrives_where_a_path_goes_away_for_good(bentpipe: Command) -> None:
    away = 'outages={times=[{at="2 s", for="1000 s"}], queue="flush"}'
    gone = [f"paths.terrestrial.{way}.{away}" for way in ("forward", "return")]
    words = [word for one in gone for word in ("--set", one)]
    one = record(bentpipe, "picoquic", "--bytes", "20MiB", *words)
    assert shares(one)["leo"] > shares(one)["terrestrial"] > 0


@pytest.mark.parametrize("stack", STACKS)
def test_a_file_arrives_where_a_path_goes_away_for_a_time(bentpipe: Command, stack: str) -> None:
    away = 'outages={times=[{at="2 s", for="2 s"}], queue="flush"}'
    gone = [f"paths.terrestrial.{way}.{away}" for way in ("forward", "return")]
    words = [word for one in gone for word in ("--set", one)]
    one = record(bentpipe, stack, "--bytes", "20MiB", *words)
    terrestrial = one["paths"][1]
    assert terrestrial["forward_queue_drops"] > 0 and terrestrial["forward_share"] > 0.1


def test_treatments_stand_on_one_path(bentpipe: Command) -> None:
    ends = ("--client", "noq", "--server", "noq", "--treatment", "direct,quic-pep")
    done = bentpipe("run", "--scenario", "geo-leo", *ends, *PLAIN, "--out", "run")
    assert done.code == 2
    assert "not applicable: geo-leo with quic-pep" in done.err and "several paths (geo, leo)" in done.err
    assert "--treatment direct" in done.err


def test_the_scenario_is_shown_with_each_path(bentpipe: Command) -> None:
    text = bentpipe("scenarios", "show", "geo-leo", "--set", "paths.leo.forward.rate=7 Mbit/s").out
    assert max(map(len, text.splitlines())) <= 80
    for words in ("geo 580 ms, leo 112 ms", "geo forward:", "leo return:", "[rate 7 Mbit/s]"):
        assert words in text
    text = bentpipe("scenarios", "show", "leo-terrestrial").out
    assert "paths.terrestrial.satellite.forward.outages" in text
    listed = bentpipe("scenarios").out
    assert "and leo" in listed and "and terrestrial" in listed


def test_a_run_says_how_the_bytes_were_shared(bentpipe: Command) -> None:
    installed_or_skip("noq")
    ends = ("--client", "noq", "--server", "noq:multipath=off", "--bytes", "1MiB", "--iterations", "1")
    done = bentpipe("run", "--scenario", "geo-leo", *ends, "--no-report", "--out", "run")
    assert done.code == 0, done.err
    told = done.out.replace("\n  ", " ")
    assert "shares of the forward bytes over geo / leo: noq → noq:multipath=off 100 / 0 %" in told
