"""Trials through `masque-ip`: whole IP packets pass, TCP's too, in both testbeds."""

from pathlib import Path

import pytest
from conftest import Command, installed_or_skip
from test_emu import trusted
from test_masque_trials import HOP_RTT, of

from bentpipe.stacks import middleboxes

WORDS = ["--scenario", "sat", "--bytes", "2MB"]


@pytest.mark.virtual_time
def test_tcp_passes_and_segments_fit(bentpipe: Command) -> None:
    installed_or_skip("linux")
    words = [*WORDS, "--client", "linux", "--server", "linux", "--treatment", "direct,masque-ip"]
    warm = ["--treatment", "masque-ip=terminal:mode=warm,gateway"]
    first, again = (bentpipe.trials(*words, *warm, "--out", out) for out in ("A", "B"))
    assert [one["outcome"] for one in first] == ["ok"] * 3
    assert [one["packet_log_hash"] for one in first] == [one["packet_log_hash"] for one in again]
    direct, cold, warm_one = first
    assert cold["ttfb_s"] - direct["ttfb_s"] == pytest.approx(HOP_RTT, abs=0.03)
    assert warm_one["ttfb_s"] - direct["ttfb_s"] == pytest.approx(0, abs=0.01)
    terminal, gateway = of("terminal", warm_one), of("gateway", warm_one)
    assert gateway["sent_datagrams_total"] > 1000 and gateway["sent_bytes_total"] > 2_000_000
    # SYNs ask for segments that fit, and nothing else is larger.
    assert terminal["too_large_datagrams_total"] == gateway["too_large_datagrams_total"] == 0
    assert terminal["refused_packets_total"] == gateway["refused_packets_total"] == 0
    assert warm_one["largest_packet_bytes"] == 1412
    assert {one["mtu_bytes"] for one in warm_one["proxies"]} == {1412}


@pytest.mark.virtual_time
@pytest.mark.parametrize("ip", ["4", "6"])
def test_stacks_that_know_udp_alone_pass_too(bentpipe: Command, ip: str) -> None:
    installed_or_skip("noq")
    words = [*WORDS, "--client", "noq", "--server", "noq", "--ip", ip, "--set", "forward.loss=1%"]
    streams = "masque-ip=terminal:carry=streams,gateway:carry=streams"
    datagrams, streamed = bentpipe.trials(*words, "--treatment", "masque-ip", "--treatment", streams)
    assert datagrams["outcome"] == streamed["outcome"] == "ok"
    terminal, gateway = of("terminal", datagrams), of("gateway", datagrams)
    assert terminal["received_datagrams_total"] < gateway["sent_datagrams_total"]
    # Probes for a larger MTU are answered with ICMP, which such a stack does not see.
    assert gateway["too_large_datagrams_total"] > 0
    terminal, gateway = of("terminal", streamed), of("gateway", streamed)
    assert terminal["received_capsules_total"] == gateway["sent_capsules_total"] > 1000


@pytest.mark.emulated
def test_packets_pass_in_real_time(bentpipe: Command, namespaces: None) -> None:
    installed_or_skip("linux")
    installed_or_skip("noq")
    words = [*WORDS, "--testbed", "emu", "--pairs", "self", "--client", "linux,noq", "--server", "linux,noq"]
    for one in trusted(bentpipe.trials(*words, "--treatment", "masque-ip")):
        terminal, gateway = of("terminal", one), of("gateway", one)
        assert terminal["received_datagrams_total"] > 1000, one["client"]
        assert gateway["received_datagrams_total"] > 100
        assert one["stray_packets"] < 100


def test_it_needs_devices_in_real_time(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed_or_skip("noq")
    monkeypatch.setattr(middleboxes, "DEVICE", tmp_path / "tun")
    words = [*WORDS, "--testbed", "emu", "--client", "noq", "--server", "noq"]
    refused = bentpipe("run", *words, "--treatment", "masque-ip")
    assert refused.code != 0 and "tunnels need TUN devices" in refused.err
