"""Nodes of a link that hold, lose or repeat packets, from a scenario's key to record and trace."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Command, installed_or_skip

ONCE = ("--iterations", "1", "--draws", "independent", "--no-report", "--json")


def over_sat(bentpipe: Command, change: str, *words: str, stack: str = "quic-go") -> dict[str, Any]:
    """The record of a trial over `sat` with that change towards the client."""
    words = ("--client", stack, "--server", stack, *ONCE, *words)
    done = bentpipe("run", "--scenario", "sat", "--set", f"forward.{change}", "--bytes", "2MB", *words)
    assert done.code == 0, done.err
    (record,) = done.records()
    assert record["outcome"] == "ok", record["detail"]
    return record


def test_reordering_is_counted_and_repeats(bentpipe: Command) -> None:
    installed_or_skip("quic-go")
    in_order = over_sat(bentpipe, "queue=1BDP")
    assert (in_order["forward_reordered"], in_order["forward_reorder_extent"]) == (0, 0)
    change = 'reorder={share="2 %", distance="4 packets"}'
    first, second = (over_sat(bentpipe, change) for _ in range(2))
    assert first["packet_log_hash"] == second["packet_log_hash"]
    share = first["forward_reordered"] / first["forward_packets"]
    assert 0.005 < share < 0.05
    # Others that are held do not count for it.
    assert first["forward_reorder_extent"] == 4
    assert (first["return_reordered"], first["forward_losses"]) == (0, 0)
    late = over_sat(bentpipe, 'reorder={share="2 %", by="5 ms"}')
    # 5 ms are eight full-sized packets at 20 Mbit/s.
    assert late["forward_reordered"] > 0 and 5 < late["forward_reorder_extent"] < 60


def test_bit_errors_hit_long_packets(bentpipe: Command) -> None:
    installed_or_skip("quic-go")
    both = over_sat(bentpipe, "bit_errors=2e-6", "--set", "return.bit_errors=2e-6")
    # 2.4 % of 1500 bytes, and 0.1 % of acknowledgements.
    lost = [both[f"{way}_losses"] / both[f"{way}_packets"] for way in ("forward", "return")]
    assert 0.01 < lost[0] < 0.04 and lost[1] < lost[0]


def test_aggregated_acknowledgements_take_longer_and_keep_their_order(bentpipe: Command) -> None:
    installed_or_skip("quic-go")
    alone = over_sat(bentpipe, "queue=1BDP")
    change = 'return.aggregate={hold="40 ms", packets=16}'
    first, second = (over_sat(bentpipe, "queue=1BDP", "--set", change) for _ in range(2))
    assert first["packet_log_hash"] == second["packet_log_hash"]
    assert (first["return_reordered"], first["return_losses"]) == (0, 0)
    # The client's first packet waits for all of it.
    assert abs(first["handshake_s"] - alone["handshake_s"] - 0.04) < 0.02


def arrivals_in(trace: Path, side: str, from_port: int) -> int:
    """How many packets from a port a trace has at a side, the receiver's, as tshark reads them."""
    found = subprocess.run(
        ["tshark", "-r", str(trace), "-Y", f'frame.interface_name == "{side}" and udp.srcport == {from_port}',
         "-T", "fields", "-e", "frame.number"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return len(found.stdout.split())


@pytest.mark.parametrize("stack", ["noq", "quic-go"])
def test_duplicated_packets_arrive_twice(bentpipe: Command, stack: str) -> None:
    installed_or_skip(stack)
    change = ("duplicate=5 %", "--set", 'return.duplicate={share="5 %", after="1 ms"}')
    first = over_sat(bentpipe, *change, "--trace", "all", "--out", "traced", stack=stack)
    second = over_sat(bentpipe, *change, stack=stack)
    assert first["packet_log_hash"] == second["packet_log_hash"]
    alone = over_sat(bentpipe, "duplicate=0 %", stack=stack)
    assert alone["forward_duplicated"] == 0 and alone["packet_log_hash"] != first["packet_log_hash"]
    # Copies cost nothing.
    assert first["goodput_bps"] > 0.9 * alone["goodput_bps"]
    (trace,) = Path("traced").rglob("trace.pcapng")
    for way, side, port in (("forward", "client", 443), ("return", "server", 50000)):
        sent, duplicated = first[f"{way}_packets"], first[f"{way}_duplicated"]
        arrived = sent - first[f"{way}_losses"] - first[f"{way}_queue_drops"]
        assert 0.02 < duplicated / arrived < 0.08, way
        assert first[f"{way}_reordered"] == 0
        if shutil.which("tshark"):
            assert arrivals_in(trace, side, port) == arrived + duplicated, way


@pytest.mark.emulated
def test_packets_are_reordered_and_duplicated_in_real_time_too(bentpipe: Command, namespaces: None) -> None:
    installed_or_skip("quic-go")
    change = 'forward.reorder={share="5 %", distance="3 packets"}'
    done = bentpipe(
        "run", "--testbed", "emu", "--scenario", "goodput", "--set", change, "--set",
        "forward.duplicate=5 %", "--bytes", "1MB", "--client", "quic-go", "--server", "quic-go", *ONCE,
    )  # fmt: skip
    assert done.code == 0, done.err
    (record,) = done.records()
    assert record["outcome"] == "ok", record["detail"]
    # 5 % of some 750 packets towards the client.
    assert record["forward_duplicated"] > 5 and record["return_duplicated"] == 0
    assert record["forward_reordered"] > 5 and record["forward_reorder_extent"] >= 3
    assert record["return_reordered"] == 0
