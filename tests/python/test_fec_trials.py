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
    words += ["--draws", "independent"]
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
def test_a_further_flow_may_have_other_options(bentpipe: Command) -> None:
    """The second flow is not repaired: it loses what the first does not, and no repairs of it are sent."""
    installed_or_skip("noq")
    words = [*LOSSY, "--workload", "duration:20s", "--treatment", "fec"]
    second = ("start=0s", "start=0s,middlebox=hold_ms=0:rate=0%")
    both, one = (bentpipe.trials(*words, "--flow", flow, "--out", flow[-3:])[0] for flow in second)
    assert [it["outcome"] for it in (both, one)] == ["ok", "ok"]
    assert one["workload"] == f"duration:20s + {second[1]}"
    goodputs = [[flow["goodput_bps"] for flow in it["flows"]] for it in (both, one)]
    assert goodputs[0][1] > 2 * goodputs[1][1]
    assert of_terminal(one)["repaired_packets"] > 0


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


@pytest.mark.virtual_time
def test_the_hop_of_a_proxy_can_be_repaired_too(bentpipe: Command) -> None:
    installed_or_skip("noq")
    chain = "quic-pep=terminal:cc=cubic{0},gateway:cc=cubic{0}"
    chains = [chain.format(more) for more in ("", ":fec=20%", ":fec=20%:fec.code=reed-solomon")]
    treatments = [word for one in chains for word in ("--treatment", one)]
    deep = (*LOSSY, "--set", "forward.queue=8BDP")  # what is lost is lost by chance
    first, again = (bentpipe.trials(*deep, "--bytes", "3MB", *treatments, "--out", out) for out in ("A", "B"))
    assert [one["outcome"] for one in first] == ["ok"] * 3
    assert [one["packet_log_hash"] for one in first] == [one["packet_log_hash"] for one in again]
    plain, repaired, blocks = first
    assert not any(name.startswith("fec_") for name in of_terminal(plain))
    for one in (repaired, blocks):
        said = of_terminal(one)
        assert said["fec_repaired_packets"] > 0 and said["fec_overhead_bytes"] > 0
        assert one["completion_s"] < plain["completion_s"] / 2
    # At a fifth more packets 95 % of 1 % of loss are repaired within 50 ms.
    lost = of_terminal(repaired)["fec_repaired_packets"] + of_terminal(repaired)["fec_lost_packets"]
    assert of_terminal(repaired)["fec_repaired_in_50_ms_packets"] >= 0.95 * lost


@pytest.mark.virtual_time
@pytest.mark.parametrize("kind", ["masque", "masque-ip"])
def test_the_hop_of_a_tunnel_can_be_repaired_too(kind: str, bentpipe: Command) -> None:
    installed_or_skip("noq")
    chains = [f"{kind}=terminal{more},gateway{more}" for more in ("", ":fec=20%")]
    treatments = [word for one in chains for word in ("--treatment", one)]
    deep = (*LOSSY, "--set", "forward.queue=8BDP")  # what is lost is lost by chance
    first, again = (bentpipe.trials(*deep, "--bytes", "3MB", *treatments, "--out", out) for out in ("A", "B"))
    assert [one["outcome"] for one in first] == ["ok"] * 2
    assert [one["packet_log_hash"] for one in first] == [one["packet_log_hash"] for one in again]
    plain, repaired = first
    assert not any(name.startswith("fec_") for name in of_terminal(plain))
    said = of_terminal(repaired)
    assert said["fec_repaired_packets"] > 0 and said["fec_too_large_packets"] == 0
    assert said["received_datagrams_total"] > 0
    assert repaired["retransmitted_share"] < plain["retransmitted_share"] / 2
    lost = said["fec_repaired_packets"] + said["fec_lost_packets"]
    assert said["fec_repaired_in_50_ms_packets"] >= 0.95 * lost


@pytest.mark.virtual_time
def test_losses_that_stay_hidden_are_counted(bentpipe: Command) -> None:
    installed_or_skip("noq")
    frames = [*LOSSY, "--workload", "frames:20s:datagrams", "--treatment", "fec"]
    kept, at_once = (
        of_terminal(one)
        for one in bentpipe.trials(*frames, "--treatment", "fec=terminal:hold_ms=0,gateway:hold_ms=0")
    )
    assert kept["hidden_losses"] > 0.5 * kept["repaired_packets"]
    assert kept["hidden_losses"] + kept["late_packets"] == kept["repaired_packets"]
    assert at_once["hidden_losses"] < kept["hidden_losses"] and at_once["late_packets"] > 0


@pytest.mark.emulated
@pytest.mark.parametrize("kind", ["quic-pep", "masque", "masque-ip"])
def test_the_hop_of_another_is_repaired_in_real_time(kind: str, bentpipe: Command, namespaces: None) -> None:
    installed_or_skip("noq")
    chain = f"{kind}=terminal:fec=20%,gateway:fec=20%"
    words = [*LOSSY, "--testbed", "emu", "--bytes", "1MB", "--iterations", "1", "--treatment", chain]
    (one,) = trusted(bentpipe.trials(*words))
    said = of_terminal(one)
    assert said["fec_repaired_packets"] > 0 and said["fec_too_large_packets"] == 0
    (gateway,) = (it["statistics"] for it in one["proxies"] if it["place"] == "gateway")
    assert gateway["fec_sent_repair_packets"] > 0


@pytest.mark.emulated
def test_losses_are_repaired_in_real_time(bentpipe: Command, namespaces: None) -> None:
    installed_or_skip("noq")
    words = [*LOSSY, "--testbed", "emu", "--bytes", "1MB", "--treatment", "fec,sidecar"]
    fec, sidecar = trusted(bentpipe.trials(*words))
    assert of_terminal(fec)["repaired_packets"] > 0
    assert of_terminal(sidecar)["answered_packets"] > 0
