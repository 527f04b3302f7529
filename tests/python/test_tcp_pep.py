"""Trials through bentpipe-tcp-pep: what comes of them must be what the path allows, in both testbeds.

Over geo-tum, by way of two proxies, the terminal answers the client's SYN at once and sends its own over the
satellite; the gateway answers that and, when the ClientHello comes with the third segment, sends its own to
the server.
"""

from pathlib import Path
from typing import Any

import pytest
from conftest import Command, installed_or_skip
from test_guest import odd_server

from bentpipe.errors import UsageError
from bentpipe.plan import treatments

SATELLITE, GROUND, CABLE = 0.25, 0.04, 0.0001
BOTH = "tcp-pep=terminal,gateway"


@pytest.fixture(autouse=True)
def linux() -> None:
    """Leaves a test out where there are no guests."""
    installed_or_skip("linux")


def run(bentpipe: Command, *arguments: str, out: str = "A") -> list[dict[str, Any]]:
    words = [*arguments, "--iterations", "1", "--no-report", "--json", "--out", out]
    for side in ("--client", "--server"):
        words += [] if side in arguments else [side, "linux"]
    done = bentpipe("run", *words)
    assert done.code == 0, done.err
    return done.records()


@pytest.mark.virtual_time
def test_each_hop_shakes_hands_by_itself(bentpipe: Command) -> None:
    (record,) = run(
        bentpipe, "--scenario", "geo-tum", "--treatment", BOTH, "--bytes", "200kB", "--trace", "all"
    )
    assert (record["outcome"], record["detail"]) == ("ok", "")
    to_gateway = 3 * SATELLITE  # SYN, its answer, and the third segment with the ClientHello
    to_server = 3 * GROUND
    back = GROUND + SATELLITE
    assert record["handshake_s"] == pytest.approx(to_gateway + to_server + back, abs=0.005)
    terminal, gateway = record["proxies"]
    assert terminal["statistics"] == gateway["statistics"]
    said = terminal["statistics"]
    assert (said["connections_total"], said["reset_total"]) == (1, 0)
    assert 200_000 < said["bytes_to_clients_total"] < 203_000 > said["bytes_to_servers_total"] > 300
    assert [hop["connections"] for hop in record["hops"]] == [1, 1, 1]
    assert [hop["rtt_min_ms"] for hop in record["hops"]] == pytest.approx([0.2, 500, 80], abs=3)
    traces = sorted(path.name for path in Path("A/trials", record["trial"]).glob("*.pcapng"))
    assert traces == ["trace-gateway-server.pcapng", "trace-terminal-gateway.pcapng", "trace.pcapng"]


@pytest.mark.virtual_time
def test_a_large_initial_window_at_the_gateway_is_faster_and_repeats(bentpipe: Command) -> None:
    words = ["--scenario", "cnes-50-10", "--bytes", "5MB", "--treatment", "direct"]
    words += ["--treatment", "tcp-pep=gateway:config=D", "--treatment", "tcp-pep=gateway:config=A"]
    records, again = run(bentpipe, *words), run(bentpipe, *words, out="B")
    direct, large, small = sorted(
        records, key=lambda one: ["d", "D", "A"].index(one["treatment"][-1].replace("t", "d"))
    )
    assert large["completion_s"] < 0.85 * direct["completion_s"]
    assert large["completion_s"] < 0.85 * small["completion_s"]
    hashes = [{one["trial"]: one["packet_log_hash"] for one in run} for run in (records, again)]
    assert hashes[0] == hashes[1]


@pytest.mark.virtual_time
def test_without_options_a_short_queue_overflows_later_than_without_proxies(bentpipe: Command) -> None:
    """The queue of `sat` takes 25 packets: what the kernel sends at once overflows it."""
    words = ["--scenario", "sat", "--bytes", "1MB", "--treatment", "direct,tcp-pep"]
    words += ["--treatment", "tcp-pep=terminal:pacing=off,gateway:pacing=off"]
    direct, paced, unpaced = run(bentpipe, *words)
    assert paced["forward_queue_drops"] == 0 < direct["forward_queue_drops"] < unpaced["forward_queue_drops"]
    assert paced["completion_s"] < 0.7 * direct["completion_s"]


@pytest.mark.virtual_time
def test_test_cases_loss_and_ip_versions(bentpipe: Command) -> None:
    cases = "upload:100kB,resumption:2x20kB,handshake:1kB,duration:2s"
    words = ["--scenario", "goodput", "--set", "forward.loss=2 %", "--set", "return.loss=2 %", "--ip", "6"]
    records = run(
        bentpipe,
        *words,
        "--workload",
        cases,
        "--treatment",
        "tcp-pep=terminal:cc=bbr,gateway:iw=30:ground.iw=20",
    )
    assert [(one["outcome"], one["detail"]) for one in records] == [("ok", "")] * 4


@pytest.mark.virtual_time
def test_hundreds_of_connections_at_once(bentpipe: Command) -> None:
    words = ["--scenario", "goodput", "--set", "forward.queue=1MB", "--set", "return.queue=1MB"]
    words += ["--client", "linux:parallel=300"]
    (record,) = run(bentpipe, *words, "--treatment", BOTH, "--workload", "multiplexing:300x1kB")
    assert (record["outcome"], record["detail"], record["connections"]) == ("ok", "", 300)
    assert [one["statistics"]["connections_total"] for one in record["proxies"]] == [300, 300]
    assert [one["statistics"]["reset_total"] for one in record["proxies"]] == [0, 0]


@pytest.mark.virtual_time
def test_a_connection_that_is_refused_behind_it_is_reset(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd_server(tmp_path, monkeypatch, "echo ready; exec sleep 1000")
    (record,) = run(
        bentpipe, "--scenario", "goodput", "--server", "odd", "--treatment", BOTH, "--bytes", "1kB"
    )
    assert record["outcome"] == "missing_file"
    assert [one["statistics"]["reset_total"] for one in record["proxies"]] == [1, 1]
    assert record["virtual_s"] < 1, "nobody waits"


@pytest.mark.virtual_time
@pytest.mark.parametrize("ip", ["4", "6"])
def test_late_the_whole_path_shakes_hands_and_with_a_pool_nobody_waits_for_the_satellite(
    bentpipe: Command, ip: str
) -> None:
    """Late, SYN and answer go all the way before TLS does. With a pool the ClientHello leaves at once."""
    words = ["--scenario", "geo-tum", "--bytes", "200kB", "--ip", ip]
    late = "tcp-pep=terminal:accept=late,gateway:accept=late"
    pool = "tcp-pep=terminal:pool=3,gateway:pool=3"
    records = run(bentpipe, *words, "--treatment", late, "--treatment", pool)
    by_treatment = {"pool" in one["treatment"]: one for one in records}
    assert [one["outcome"] for one in records] == ["ok", "ok"], [one["detail"] for one in records]
    one_way = SATELLITE + GROUND
    assert by_treatment[False]["handshake_s"] == pytest.approx(4 * one_way, abs=0.005)
    ready = by_treatment[True]
    assert ready["handshake_s"] == pytest.approx(one_way + 2 * GROUND + one_way, abs=0.005)
    terminal, gateway = (one["statistics"] for one in ready["proxies"])
    assert (terminal["pool_hits_total"], terminal["pool_misses_total"]) == (1, 0)
    assert (gateway["connections_total"], gateway["reset_total"]) == (1, 0)


@pytest.mark.virtual_time
def test_a_rate_bounds_its_hop_and_repeats(bentpipe: Command) -> None:
    """1 MB at 2 Mbit/s takes four seconds; the first ten segments, and half of a buffer, are not paced."""
    words = ["--scenario", "goodput", "--bytes", "1MB", "--treatment", "tcp-pep=gateway:rate=2000000"]
    records = [run(bentpipe, *words, out=out)[0] for out in ("A", "B")]
    assert [one["outcome"] for one in records] == ["ok", "ok"]
    assert 3.9 < records[0]["completion_s"] < 4.5
    assert records[0]["packet_log_hash"] == records[1]["packet_log_hash"]


@pytest.mark.virtual_time
def test_late_a_client_is_refused_by_whoever_refuses_its_proxy(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd_server(tmp_path, monkeypatch, "echo ready; exec sleep 1000")
    words = ["--scenario", "goodput", "--server", "odd", "--bytes", "1kB"]
    (record,) = run(bentpipe, *words, "--treatment", "tcp-pep=terminal:accept=late,gateway:accept=late")
    counted = [one["statistics"] for one in record["proxies"]]
    assert [(one["connections_total"], one["reset_total"]) for one in counted] == [(0, 1)] * 2
    assert record["hops"][0]["connections"] == 0 and record["virtual_s"] < 1


def test_a_pool_has_two_ends() -> None:
    with pytest.raises(UsageError, match='the option "pool" is at the terminal alone'):
        treatments.named(["tcp-pep=terminal:pool=3"], "--treatment")


@pytest.mark.virtual_time
def test_what_it_refuses_is_unsupported_and_says_why(bentpipe: Command) -> None:
    (unknown,) = run(bentpipe, "--scenario", "goodput", "--treatment", "tcp-pep=gateway:cc=vegan")
    assert unknown["outcome"] == "unsupported"
    assert "this kernel has" in unknown["detail"] and "kernel.config" in unknown["detail"]
    (letter,) = run(bentpipe, "--scenario", "goodput", "--treatment", "tcp-pep=gateway:config=E", out="B")
    assert letter["outcome"] == "unsupported" and "write A, B, C or D" in letter["detail"]
    (both,) = run(
        bentpipe,
        "--scenario",
        "goodput",
        "--treatment",
        "tcp-pep=terminal:pool=3:accept=late,gateway:pool=3",
        out="D",
    )
    assert both["outcome"] == "unsupported" and "says nothing of the server" in both["detail"]


@pytest.mark.emulated
@pytest.mark.usefixtures("namespaces")
def test_in_real_time_too(bentpipe: Command) -> None:
    pool = "terminal:pool=3:rate=50000000,gateway:pool=3:iw=30"
    words = [
        "--testbed",
        "emu",
        "--scenario",
        "goodput",
        "--bytes",
        "200kB",
        "--treatment",
        f"tcp-pep={pool}",
    ]
    (record,) = run(bentpipe, *words, "--flow", "client=linux,server=linux")
    if record["outcome"] != "invalid":  # the machine was too busy
        assert (record["outcome"], record["detail"]) == ("ok", "")
        assert [one["outcome"] for one in record["flows"]] == ["ok", "ok"]
        assert [one["statistics"]["connections_total"] for one in record["proxies"]] == [1, 1]
        connections = [hop["connections"] for hop in record["hops"]]
        assert connections[0] == connections[2] == 1 <= connections[1]
