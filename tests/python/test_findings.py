"""What rules say of real stacks, in virtual time, where it is known what they do."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Command, present

from bentpipe.analysis import traces

pytestmark = pytest.mark.virtual_time

SIZE = "10MiB"


class Findings:
    """What every rule says of one trial, by the rule."""

    def __init__(self, folder: Path) -> None:
        found = traces.of_trial(folder).connection().findings
        self.verdicts = {one.rule: one.verdict for one in found}
        self.texts = {one.rule: one.text for one in found}

    def yes(self) -> set[str]:
        """The rules that say yes."""
        return {rule for rule, verdict in self.verdicts.items() if verdict == "yes"}


def trial(bentpipe: Command, scenario: str, client: str, server: str, *more: str) -> Findings:
    """Run one trial, and ask the rules."""
    for stack in (client, server):
        if stack.partition(":")[0] not in present():
            pytest.skip(f"{stack} is not built")
    done = bentpipe(
        "run", "--scenario", scenario, "--client", client, "--server", server, "--iterations", "1",
        "--bytes", SIZE, "--trace", "all", "--out", "run", "--no-report", "--json", *more,
    )  # fmt: skip
    (record,) = done.records()
    return Findings(Path("run/trials") / record["trial"])


def test_a_small_receive_window_limits_the_sender(bentpipe: Command) -> None:
    found = trial(bentpipe, "sat", "quinn:window=262144", "quinn")
    assert found.yes() == {"limited_by_flow_control"}
    assert "which allows 3.6 Mbit/s at an RTT of 0.600 s" in found.texts["limited_by_flow_control"]
    assert "flow control kept the window from growing" in found.texts["slow_start_left_early"]


def test_the_default_window_of_quinn_is_less_than_the_path(bentpipe: Command) -> None:
    found = trial(bentpipe, "sat", "quinn", "quinn", "--set", "forward.queue=4BDP")
    assert found.yes() == {"limited_by_flow_control", "limited_by_cwnd"}
    # Its receive window is 1.25 MB, the BDP 1.5 MB.
    assert "with up to 1.26 MB in flight" in found.texts["limited_by_flow_control"]


def test_a_small_queue_ends_slow_start_in_a_loss_storm(bentpipe: Command) -> None:
    found = trial(bentpipe, "sat", "aioquic", "aioquic")
    assert found.yes() == {
        "handshake_retransmitted",  # its first probe timeout is 200 ms
        "slow_start_left_late",
        "limited_by_cwnd",
        "packet_size_below_path",
        "loss_storm",
    }
    assert "716 were lost in the whole transfer" in found.texts["loss_storm"]
    assert "1228 bytes" in found.texts["packet_size_below_path"]


def test_a_queue_of_four_bdp_has_no_storm(bentpipe: Command) -> None:
    found = trial(bentpipe, "sat", "quic-go", "quic-go", "--set", "forward.queue=4BDP")
    assert found.verdicts["loss_storm"] == "no"
    assert "None of" in found.texts["loss_storm"]
    assert "the data ended while the window still grew" in found.texts["slow_start_left_early"]


def test_chance_losses_end_slow_start_early(bentpipe: Command) -> None:
    found = trial(bentpipe, "satloss", "noq", "noq", "--set", "forward.queue=1BDP")
    assert found.yes() == {"slow_start_left_early", "limited_by_cwnd"}
    assert "on a loss" in found.texts["slow_start_left_early"]


def test_a_round_trip_beyond_the_first_probe_timeout_repeats_the_handshake(bentpipe: Command) -> None:
    found = trial(bentpipe, "longrtt", "quinn", "quinn")
    assert found.texts["handshake_retransmitted"].startswith("From 0.999 s on")
    assert found.verdicts["handshake_retransmitted"] == "yes"


@pytest.mark.parametrize("server", ["noq", "quinn", "aioquic", "quic-go"])
def test_every_stack_paces_and_none_sends_needlessly(bentpipe: Command, server: str) -> None:
    found = trial(bentpipe, "sat", server, server, "--set", "forward.queue=1BDP")
    for rule in ("no_pacing", "spurious_retransmissions", "sent_twice", "non_monotonic_packet_numbers"):
        assert found.verdicts[rule] == "no", found.texts[rule]


def test_a_transfer_that_timed_out_is_not_taken_for_finished(bentpipe: Command) -> None:
    found = trial(bentpipe, "sat", "quinn", "aioquic", "--set", "timeout=6 s")
    assert "the data ended" not in found.texts["slow_start_left_early"]
    assert found.verdicts["long_tail"] == "not_sure"
    assert "the capture ends before the data" in found.texts["long_tail"]


def test_losses_are_not_blamed_on_credit(bentpipe: Command) -> None:
    found = trial(bentpipe, "sat", "quic-go", "quinn:cc=bbr")
    assert found.verdicts["limited_by_flow_control"] == "no"
    assert "lost data held the receiver's window" in found.texts["limited_by_flow_control"]


def test_a_qlog_does_not_contradict_the_wire(bentpipe: Command) -> None:
    found = trial(bentpipe, "sat", "quinn", "quic-go", "--qlog")
    start = {rule for rule in found.yes() if rule.startswith("slow_start")}
    (trace,) = Path("run/trials").glob("*/trace.pcapng")
    link = traces.of_trial(trace.parent).link
    (wire,) = traces.analyse([trace], Path("wire"), link=link).summary.connections
    assert start
    assert start <= {one.rule for one in wire.findings if one.verdict == "yes"}
