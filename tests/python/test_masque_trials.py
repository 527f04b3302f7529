"""Trials through `masque`: connections pass as they are, in both testbeds."""

from typing import Any

import pytest
from conftest import Command, installed_or_skip
from test_emu import trusted

WORDS = ["--scenario", "sat", "--client", "noq", "--server", "noq", "--bytes", "2MB"]
HOP_RTT = 0.6  # of sat's satellite, in seconds


def of(place: str, record: dict[str, Any]) -> dict[str, Any]:
    """What an end did."""
    (one,) = (it for it in record["proxies"] if it["place"] == place)
    return dict(one["statistics"])


@pytest.mark.virtual_time
def test_the_first_byte_comes_a_round_trip_later_and_none_later_where_it_is_warm(bentpipe: Command) -> None:
    installed_or_skip("noq")
    words = [*WORDS, "--treatment", "direct,masque", "--treatment", "masque=terminal:mode=warm,gateway"]
    first, again = (bentpipe.trials(*words, "--out", out) for out in ("A", "B"))
    assert [one["outcome"] for one in first] == ["ok"] * 3
    assert [one["packet_log_hash"] for one in first] == [one["packet_log_hash"] for one in again]
    direct, cold, warm = first
    # Handshakes take some milliseconds of the return link's 2 Mbit/s.
    assert cold["ttfb_s"] - direct["ttfb_s"] == pytest.approx(HOP_RTT, abs=0.02)
    assert warm["ttfb_s"] - direct["ttfb_s"] == pytest.approx(0, abs=0.005)
    terminal, gateway = of("terminal", cold), of("gateway", cold)
    assert terminal["received_datagrams_total"] == gateway["sent_datagrams_total"] > 1000
    assert terminal["received_bytes_total"] == gateway["sent_bytes_total"] > 2_000_000
    assert (
        terminal["requests_total"],
        terminal["sent_capsules_total"],
        gateway["received_capsules_total"],
    ) == (1, 0, 0)


@pytest.mark.virtual_time
def test_datagrams_go_in_streams_or_without_congestion_control_if_asked_for(
    bentpipe: Command,
) -> None:
    installed_or_skip("noq")
    treatments = ["masque=terminal:carry=streams,gateway:carry=streams", "masque=terminal,gateway:nested=off"]
    words = [*WORDS, "--set", "forward.loss=2%"]
    streams, unlimited = bentpipe.trials(*words, *(it for one in treatments for it in ("--treatment", one)))
    assert streams["outcome"] == unlimited["outcome"] == "ok"
    # Of a stream nothing is lost; of datagrams what the path loses is.
    assert (
        of("terminal", streams)["received_capsules_total"]
        == of("gateway", streams)["sent_capsules_total"]
        > 1000
    )
    assert of("gateway", streams)["lost_tunnel_packets_total"] > 0
    sent, came = (
        of("gateway", unlimited)["sent_datagrams_total"],
        of("terminal", unlimited)["received_datagrams_total"],
    )
    assert 0.9 < came / sent < 1
    assert of("gateway", unlimited)["queue_full_datagrams_total"] == 0
    assert of("gateway", unlimited)["most_queued_bytes"] < 100_000


@pytest.mark.virtual_time
def test_packets_with_short_headers_pass_beside_the_tunnel_if_both_ends_forward(bentpipe: Command) -> None:
    installed_or_skip("noq")
    installed_or_skip("aioquic")
    # A server that keeps the client's first connection ID, which the terminal sees.
    words = ["--scenario", "sat", "--client", "noq", "--server", "aioquic", "--bytes", "2MB"]
    for transform in ("scramble", "identity"):
        words += ["--treatment", f"masque=terminal:forward={transform},gateway:forward={transform}"]
    words += ["--treatment", "masque=terminal:forward=scramble,gateway"]
    first, again = (bentpipe.trials(*words, "--out", out) for out in ("A", "B"))
    assert [one["outcome"] for one in first] == ["ok"] * 3
    assert [one["packet_log_hash"] for one in first] == [one["packet_log_hash"] for one in again]
    scrambled, plain, tunnelled = first
    for one in (scrambled, plain):
        terminal, gateway = of("terminal", one), of("gateway", one)
        assert gateway["forwarded_packets_total"] > 1300 and gateway["forwarded_bytes_total"] > 1_900_000
        # The queue of 25 packets drops some.
        came, left = terminal["received_forwarded_packets_total"], gateway["forwarded_packets_total"]
        assert 1300 < came <= left
        # The handshake, and what comes before the proxy knows the connection IDs.
        assert 0 < gateway["sent_datagrams_total"] < 40
        assert terminal["virtual_connection_ids_total"] == gateway["virtual_connection_ids_total"] == 2
    assert of("gateway", tunnelled)["forwarded_packets_total"] == 0
    assert of("gateway", tunnelled)["sent_datagrams_total"] > 1300


@pytest.mark.virtual_time
def test_probes_for_a_larger_mtu_do_not_fit_and_are_counted(bentpipe: Command) -> None:
    installed_or_skip("noq")
    (one,) = bentpipe.trials(*WORDS, "--treatment", "masque")
    assert one["outcome"] == "ok" and of("gateway", one)["too_large_datagrams_total"] > 0
    assert {it["mtu_bytes"] for it in one["proxies"]} == {1440}


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    "option",
    [
        *("carry=pigeons", "queue=10", "mode=hot", "cc=vegas", "mtu=9000", "nested=off:cc=cubic"),
        *("window=x", "forward=yes"),
    ],
)
def test_an_option_that_there_is_not_is_unsupported(option: str, bentpipe: Command) -> None:
    installed_or_skip("noq")
    asked = f"masque=terminal:{option},gateway"
    done = bentpipe("run", *WORDS, "--iterations", "1", "--treatment", asked, "--json")
    said = done.err + "".join(one["outcome"] + one["detail"] for one in done.records())
    name = option.rpartition(":")[2].partition("=")[0]
    assert name in said and ("unsupported" in said or "unknown" in said)


@pytest.mark.emulated
def test_connections_pass_in_real_time(bentpipe: Command, namespaces: None) -> None:
    installed_or_skip("noq")
    words = [*WORDS, "--testbed", "emu", "--treatment", "masque"]
    asked = "masque=terminal:mode=warm:carry=streams,gateway:carry=streams"
    beside = "masque=terminal:forward=scramble,gateway:forward=scramble"
    trials = trusted(bentpipe.trials(*words, "--treatment", asked, "--treatment", beside))
    datagrams, streams, forwarded = trials
    assert of("terminal", datagrams)["received_datagrams_total"] > 1000
    assert of("terminal", streams)["received_capsules_total"] > 1000
    # noq's server leaves the client's first connection ID at once; its client stays with the server's.
    assert of("gateway", forwarded)["received_forwarded_packets_total"] > 100


@pytest.mark.virtual_time
def test_media_frames_have_the_ages_of_those_sent_directly_where_the_tunnel_is_warm(
    bentpipe: Command,
) -> None:
    """The client is there five seconds after the server, whose clock the frames carry."""
    installed_or_skip("noq")
    words = ["--scenario", "sat", "--client", "noq", "--server", "noq"]
    words += ["--workload", "frames:2s:datagrams:400ms"]
    warm = "masque=terminal:mode=warm,gateway"
    direct, behind = bentpipe.trials(*words, "--treatment", "direct", "--treatment", warm)
    assert direct["outcome"] == behind["outcome"] == "ok", behind["detail"]
    # The tunnel adds headers and a queue, not five seconds.
    assert behind["frame_age_median_s"] == pytest.approx(direct["frame_age_median_s"], abs=0.5)
