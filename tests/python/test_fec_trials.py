"""Trials through `fec` and `sidecar`: losses of the satellite hop are repaired there, in both testbeds."""

from typing import Any

import pytest
from conftest import Command, installed_or_skip
from test_emu import trusted

BLOCKS = "fec=terminal:code=reed-solomon:interleave=2,gateway:code=reed-solomon:interleave=2"
LOSSY = ["--scenario", "satloss", "--client", "noq", "--server", "noq:cc=cubic"]


def of_terminal(record: dict[str, Any]) -> dict[str, Any]:
    """What the terminal's end did with what came from the server."""
    (one,) = (it for it in record["proxies"] if it["place"] == "terminal")
    return dict(one["statistics"])


@pytest.mark.virtual_time
def test_files_come_sooner_where_losses_are_repaired_and_repeat(bentpipe: Command) -> None:
    installed_or_skip("noq")
    words = [*LOSSY, "--bytes", "3MB", "--treatment", "direct,fec,sidecar", "--treatment", BLOCKS]
    first, again = (bentpipe.trials(*words, "--out", out) for out in ("A", "B"))
    assert [one["outcome"] for one in first] == ["ok"] * 4
    assert [one["packet_log_hash"] for one in first] == [one["packet_log_hash"] for one in again]
    direct, fec, sidecar, blocks = first
    for one in (fec, sidecar, blocks):
        assert one["completion_s"] < direct["completion_s"] / 2
    for one in (fec, blocks):
        assert of_terminal(one)["repaired_packets"] > 0 == of_terminal(one)["answered_packets"]
    assert of_terminal(sidecar)["answered_packets"] > 0 == of_terminal(sidecar)["repaired_packets"]
    # An answer takes a round trip of 600 ms.
    assert of_terminal(sidecar)["repair_delay_median_s"] >= 0.6 > of_terminal(fec)["repair_delay_p95_s"]


@pytest.mark.virtual_time
def test_marks_of_a_queue_reach_the_receiver_and_break_no_repair(bentpipe: Command) -> None:
    installed_or_skip("noq")
    queue = 'forward.queue={aqm="step", mark_above="20 ms", size="1 BDP"}'
    words = [*LOSSY, "--set", queue, "--bytes", "3MB", "--treatment", "fec"]
    (one,) = bentpipe.trials(*words)
    assert one["outcome"] == "ok" and one["forward_marked"] > 0
    assert of_terminal(one)["repaired_packets"] > 0 == of_terminal(one)["odd_packets"]


@pytest.mark.virtual_time
@pytest.mark.parametrize("option", ["rate=0.2", "window=0", "hold_ms=forever", "code=rs"])
def test_an_option_that_there_is_not_is_unsupported(option: str, bentpipe: Command) -> None:
    installed_or_skip("noq")
    asked = f"fec=terminal:{option},gateway"
    done = bentpipe("run", *LOSSY, "--bytes", "1kB", "--iterations", "1", "--treatment", asked, "--json")
    said = done.err + "".join(one["outcome"] + one["detail"] for one in done.records())
    assert option.partition("=")[0] in said and ("unsupported" in said or "unknown" in said)


@pytest.mark.emulated
def test_losses_are_repaired_in_real_time(bentpipe: Command, namespaces: None) -> None:
    installed_or_skip("noq")
    words = [*LOSSY, "--testbed", "emu", "--bytes", "1MB", "--treatment", "fec,sidecar"]
    fec, sidecar = trusted(bentpipe.trials(*words))
    assert of_terminal(fec)["repaired_packets"] > 0
    assert of_terminal(sidecar)["answered_packets"] > 0
