"""Nodes of a link that hold, lose or repeat packets, from a scenario's key to record and trace."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Command, installed_or_skip

QUIC_GO = ("--client", "quic-go", "--server", "quic-go", "--iterations", "1", "--no-report", "--json")


def over_sat(bentpipe: Command, change: str, *words: str) -> dict[str, Any]:
    """The record of a trial over `sat` with that change towards the client."""
    done = bentpipe(
        "run", "--scenario", "sat", "--set", f"forward.{change}", "--bytes", "2MB", *QUIC_GO, *words
    )
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
    assert first["packet_log_sha256"] == second["packet_log_sha256"]
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
    assert first["packet_log_sha256"] == second["packet_log_sha256"]
    assert (first["return_reordered"], first["return_losses"]) == (0, 0)
    # The client's first packet waits for all of it.
    assert abs(first["handshake_s"] - alone["handshake_s"] - 0.04) < 0.02


@pytest.mark.emulated
def test_packets_are_reordered_in_real_time_too(bentpipe: Command, namespaces: None) -> None:
    installed_or_skip("quic-go")
    change = 'forward.reorder={share="5 %", distance="3 packets"}'
    done = bentpipe(
        "run", "--testbed", "emu", "--scenario", "goodput", "--set", change, "--bytes", "1MB", *QUIC_GO,
    )  # fmt: skip
    assert done.code == 0, done.err
    (record,) = done.records()
    assert record["outcome"] == "ok", record["detail"]
    assert record["forward_reordered"] > 5 and record["forward_reorder_extent"] >= 3
    assert record["return_reordered"] == 0
