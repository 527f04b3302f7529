"""Queues that act when packets leave, from a scenario's key to what a stack and a trace see of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Command, installed_or_skip

QUIC_GO = ("--client", "quic-go", "--server", "quic-go", "--iterations", "1", "--no-report", "--json")


def over_sat(bentpipe: Command, queue: str, *words: str) -> dict[str, Any]:
    """The record of a trial over `sat` with that queue towards the client."""
    done = bentpipe("run", "--scenario", "sat", "--set", f"forward.queue={queue}", *QUIC_GO, *words)
    assert done.code == 0, done.err
    (record,) = done.records()
    assert record["outcome"] == "ok", record["detail"]
    return record


def test_marks_reach_the_client_and_the_sender_slows_down(bentpipe: Command) -> None:
    installed_or_skip("quic-go")
    drop_tail = over_sat(bentpipe, "1 BDP")
    queue = '{aqm="step", mark_above="5 ms", size="1 BDP"}'
    step = over_sat(bentpipe, queue, "--trace", "all", "--out", "marks")
    assert (drop_tail["forward_marked"], drop_tail["return_marked"]) == (0, 0)
    assert step["forward_marked"] > 100 and step["return_marked"] == 0
    assert step["forward_queue_drops"] == 0
    assert step["rtt_median_ms"] < drop_tail["rtt_median_ms"] - 100
    if shutil.which("tshark"):
        (trace,) = Path("marks").rglob("*.pcapng")
        assert marks_in(trace) == step["forward_marked"]


def marks_in(trace: Path) -> int:
    """How many packets of a trace have CE, as tshark reads them; and their checksums are right."""
    call = [
        "tshark",
        "-r",
        str(trace),
        "-o",
        "ip.check_checksum:TRUE",
        "-T",
        "fields",
        "-e",
        "ip.checksum.status",
    ]
    done = subprocess.run([*call, "-Y", "ip.dsfield.ecn == 3"], capture_output=True, text=True, check=True)
    statuses = done.stdout.split()
    assert set(statuses) <= {"1"}, "a marked packet has a wrong checksum"
    return len(statuses)


def test_fq_codel_keeps_the_delay_low_and_repeats(bentpipe: Command) -> None:
    installed_or_skip("quic-go")
    queue = '{aqm="fq-codel", size="1 BDP"}'
    first, second = (over_sat(bentpipe, queue) for _ in range(2))
    assert first["packet_log_sha256"] == second["packet_log_sha256"]
    assert first["forward_marked"] > 0 and first["rtt_median_ms"] < 700
    unmarked = over_sat(bentpipe, '{aqm="fq-codel", size="1 BDP", ecn="off"}')
    assert unmarked["forward_marked"] == 0 and unmarked["forward_queue_drops"] > 0


@pytest.mark.emulated
def test_a_queue_marks_in_real_time_too(bentpipe: Command, namespaces: None) -> None:
    installed_or_skip("quic-go")
    queue = '{aqm="step", mark_above="1 ms", size="1 BDP"}'
    done = bentpipe(
        "run", "--testbed", "emu", "--scenario", "goodput", "--set", f"forward.queue={queue}", "--bytes",
        "1MB", "--trace", "all", "--out", "marks", *QUIC_GO,
    )  # fmt: skip
    assert done.code == 0, done.err
    (record,) = done.records()
    assert record["outcome"] == "ok" and record["forward_marked"] > 0, record["detail"]
    if shutil.which("tshark"):
        (trace,) = Path("marks").rglob("*.pcapng")
        assert marks_in(trace) == record["forward_marked"]
