"""Cross traffic, from a scenario's key to what a stack and a record see of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conftest import Command

NOQ = ("--client", "noq", "--server", "noq", "--iterations", "1", "--no-report", "--json")


def trial(bentpipe: Command, *words: str) -> dict[str, Any]:
    """The record of a trial of noq."""
    (record,) = bentpipe("run", *words, *NOQ).records()
    return record


def test_a_stack_gets_what_sources_leave(bentpipe: Command) -> None:
    source = '[{kind="cbr", rate="5 Mbit/s", stop="60 s"}]'
    path = ("--scenario", "goodput", "--bytes", "3MB")
    alone = trial(bentpipe, *path)
    beside, again = (trial(bentpipe, *path, "--set", f"forward.sources={source}") for _ in range(2))
    assert beside["packet_log_hash"] == again["packet_log_hash"]
    assert beside["outcome"] == "ok" and alone["forward_source_packets"] is None
    assert 0.4 < beside["goodput_bps"] / alone["goodput_bps"] < 0.6
    # 5 Mbit/s for as long as the trial took.
    assert abs(beside["forward_source_bytes"] * 8 / beside["virtual_s"] / 5e6 - 1) < 0.01
    packets, lost = beside["forward_source_packets"], beside["forward_source_lost"]
    assert beside["forward_source_delivered_bytes"] == (packets - lost) * 1500
    assert beside["return_source_packets"] is None


def test_the_time_of_a_link_does_not_run_ahead_of_its_senders(bentpipe: Command) -> None:
    # Sources fill the queue, which holds 600 ms; the server waits for its timers. A packet that met sources'
    # packets of a later time would be late by more than that.
    source = '[{kind="cbr", rate="25 Mbit/s", stop="600 s"}]'
    for aqm in ("head-drop", "fq-codel"):
        queue = f'{{aqm="{aqm}", size="1 BDP"}}'
        words = ("--set", f"forward.queue={queue}", "--set", f"forward.sources={source}")
        record = trial(bentpipe, "--scenario", "sat", "--bytes", "1MB", *words)
        assert record["forward_source_lost"] > 0
        assert 0 < record["forward_queueing_p99_ms"] < 610, aqm


def test_a_replay_sends_what_its_file_has(bentpipe: Command) -> None:
    Path("packets.csv").write_text("0.000000,1500\n0.010000,40\n0.020000,1500\n")
    replay = 'sources = [{ kind = "replay", trace = "packets.csv", stop = "60 s" }]'
    Path("mine.toml").write_text(
        'title = "A replay"\nsource = "made up"\ntimeout = "60 s"\n'
        f'[satellite.forward]\nrate = "10 Mbit/s"\ndelay = "15 ms"\n{replay}\n'
        '[satellite.return]\nrate = "10 Mbit/s"\ndelay = "15 ms"\n'
    )
    record = trial(bentpipe, "--scenario", "mine.toml", "--bytes", "100kB")
    assert (record["forward_source_packets"], record["forward_source_bytes"]) == (3, 3040)
    Path("packets.csv").write_text("0.01,1500\n0.00,40\n")
    refused = bentpipe("run", "--scenario", "mine.toml", *NOQ)
    assert refused.code == 2 and "line 2: 0.00,40: times must not go back" in refused.err
