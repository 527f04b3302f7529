"""Queues that act when packets leave, from a scenario's key to what a stack and a trace see of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Command, installed_or_skip

QUIC_GO = ("--client", "quic-go", "--server", "quic-go", "--iterations", "1", "--no-report", "--json")


def over_sat(bentpipe: Command, queue: str, *words: str, stacks: tuple[str, ...] = QUIC_GO) -> dict[str, Any]:
    """The record of a trial over `sat` with that queue towards the client."""
    done = bentpipe("run", "--scenario", "sat", "--set", f"forward.queue={queue}", *stacks, *words)
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
    assert first["packet_log_hash"] == second["packet_log_hash"]
    assert first["forward_marked"] > 0 and first["rtt_median_ms"] < 700
    unmarked = over_sat(bentpipe, '{aqm="fq-codel", size="1 BDP", ecn="off"}')
    assert unmarked["forward_marked"] == 0 and unmarked["forward_queue_drops"] > 0


def test_dualpi2_keeps_l4s_out_of_the_queue_of_others(bentpipe: Command) -> None:
    installed_or_skip("picoquic")
    stacks = (
        "--client", "picoquic", "--server", "picoquic:cc=prague", "--iterations", "1", "--no-report",
        "--set", "forward.delay=10ms", "--set", "return.delay=10ms", "--bytes", "3MB", "--json",
    )  # fmt: skip
    words = ("--trace", "all", "--out", "dualpi2")
    single = over_sat(bentpipe, '{aqm="pi2", size="1 MB"}', stacks=stacks)
    dual = over_sat(bentpipe, '{aqm="dualpi2", size="1 MB"}', *words, stacks=stacks)
    assert dual["forward_marked"] > 20 and dual["forward_queue_drops"] == 0
    # 20 ms of delays, and nearly 10 more where the controller keeps its target.
    assert 20 < dual["rtt_median_ms"] < 24 < single["rtt_median_ms"]
    if shutil.which("tshark"):
        (trace,) = Path("dualpi2").rglob("*.pcapng")
        assert marks_in(trace) == dual["forward_marked"]


@pytest.mark.emulated
def test_a_queue_marks_in_real_time_too(bentpipe: Command, namespaces: None) -> None:
    installed_or_skip("quic-go")
    queue = '{aqm="step", mark_above="1 ms", size="1 BDP"}'
    for attempt in range(3):
        out = Path(f"marks-{attempt}")
        done = bentpipe(
            "run", "--testbed", "emu", "--scenario", "goodput", "--set", f"forward.queue={queue}", "--bytes",
            "1MB", "--trace", "all", "--out", str(out), *QUIC_GO,
        )  # fmt: skip
        (record,) = done.records()
        # A machine that stalls for 100 ms, as one with a quota of CPU does, voids the trial.
        if record["outcome"] != "invalid":
            break
    assert record["outcome"] == "ok" and record["forward_marked"] > 0, record["detail"]
    if shutil.which("tshark"):
        (trace,) = out.rglob("*.pcapng")
        assert marks_in(trace) == record["forward_marked"]
