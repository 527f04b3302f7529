"""Trials through bentpipe-pep: what comes of them must be what the path and the design allow.

Over geo-tum, by way of two proxies in `parallel` mode, a client's request waits for the handshake over the
satellite, 500 ms. Then it takes 250 ms to the gateway and 40 ms over the ground; the answer takes 290 ms.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Command, installed_or_skip
from test_emu import RUN as REAL_TIME
from test_emu import trusted

from bentpipe import paths

pytestmark = pytest.mark.virtual_time

SATELLITE, GROUND, CABLE = 0.25, 0.04, 0.0001
CHAIN = "terminal:cc=newreno:iw=100,gateway:cc=newreno:iw=100"
RUN = (
    "run",
    "--scenario",
    "geo-tum",
    "--client",
    "noq",
    "--server",
    "noq",
    "--iterations",
    "1",
    "--no-report",
    "--json",
)


@pytest.fixture(autouse=True)
def _there() -> None:
    installed_or_skip("noq")
    assert paths.program("bentpipe-pep").exists()


def run(bentpipe: Command, out: str, *arguments: str, pep: str = CHAIN) -> dict[str, Any]:
    done = bentpipe(*RUN, "--treatment", "quic-pep", "--pep", pep, "--out", out, *arguments)
    assert done.code == 0, done.err
    (record,) = done.records()
    assert isinstance(record, dict)
    return record


def test_a_file_arrives_sooner_and_each_hop_is_its_own(bentpipe: Command) -> None:
    record = run(bentpipe, "A", "--bytes", "10MiB", "--trace", "all")
    assert (record["outcome"], record["detail"]) == ("ok", "")
    assert record["treatment"] == f"quic-pep {CHAIN}"
    assert record["handshake_s"] == pytest.approx(2 * CABLE, abs=1e-4)
    first = 4 * SATELLITE + 2 * GROUND + 2 * CABLE
    assert record["ttfb_s"] == pytest.approx(first, abs=0.01)
    assert record["goodput_bps"] > 12e6, "direct it is 10.3 Mbit/s: slow start takes longer"
    access, satellite, ground = record["hops"]
    assert [hop["connections"] for hop in record["hops"]] == [1, 1, 1]
    rtt_ms = [hop["rtt_min_ms"] for hop in record["hops"]]
    assert rtt_ms == [pytest.approx(one, rel=0.01) for one in (0.2, 500, 80)]
    assert satellite["forward_queue_drops"] == record["forward_queue_drops"] > 0
    assert access["forward_queue_drops"] == ground["forward_queue_drops"] == 0
    assert satellite["retransmitted_share"] > 0 == access["retransmitted_share"]
    for proxy, place in zip(record["proxies"], ("terminal", "gateway"), strict=True):
        assert proxy["place"] == place
        assert proxy["version"].startswith("bentpipe-pep ")
        assert proxy["statistics"]["bytes_to_clients_total"] == 10 * 2**20
        assert (proxy["statistics"]["connections_total"], proxy["statistics"]["held_bytes"]) == (1, 0)
        assert min(proxy["cpu_s"], proxy["memory_bytes"]) > 0
    for name in ("trace", "trace-terminal-gateway", "trace-gateway-server"):
        trace = Path("A/trials") / record["trial"] / f"{name}.pcapng"
        shown = json.loads(bentpipe("trace", str(trace), "--json").out)
        (connection,) = shown["connections"]
        assert connection["metrics"]["stream_bytes"] == 10 * 2**20, name


def test_the_same_seed_gives_the_same_packets(bentpipe: Command) -> None:
    lossy = ("--bytes", "1MB", "--set", "forward.loss=1%", "--set", "return.loss=1%")
    one, two = (run(bentpipe, out, *lossy) for out in "AB")
    assert one["outcome"] == "ok", one["detail"]
    assert one["forward_losses"] > 0
    assert one["packet_log_hash"] == two["packet_log_hash"]
    assert [proxy["statistics"] for proxy in one["proxies"]] == [
        proxy["statistics"] for proxy in two["proxies"]
    ]


@pytest.mark.parametrize("workload", ["resumption:200kB", "zerortt:200kB", "multiplexing:2000x50",
                                      "handshake:1000", "longrtt:1000", "duration:3s"])  # fmt: skip
def test_every_test_case_goes_through(bentpipe: Command, workload: str) -> None:
    record = run(bentpipe, "A", "--workload", workload)
    assert (record["outcome"], record["detail"]) == ("ok", "")
    if workload.startswith(("resumption", "zerortt")):
        assert (record["connections"], record["resumed"]) == (2, True)


def test_an_upload_is_timed_where_it_arrives(bentpipe: Command) -> None:
    record = run(bentpipe, "A", "--workload", "upload:500kB")
    assert (record["outcome"], record["detail"]) == ("ok", "")
    # At the terminal all of it is there in no time; over the satellite there are 5.2 Mbit/s.
    assert record["runner_transfer_s"] >= record["transfer_s"] > 500_000 * 8 / 5.2e6
    assert record["goodput_bps"] < 5.2e6
    assert record["received_bytes"][-1] > 500_000


def test_flows_have_proxies_of_their_own(bentpipe: Command) -> None:
    record = run(bentpipe, "A", "--bytes", "500kB", "--flow", "start=1s")
    assert (record["outcome"], record["detail"]) == ("ok", "")
    assert [flow["outcome"] for flow in record["flows"]] == ["ok", "ok"]
    assert [proxy["statistics"]["connections_total"] for proxy in record["proxies"]] == [1, 1]
    assert record["forward_packets"] == sum(flow["forward_packets"] for flow in record["flows"])


def test_a_word_that_the_proxy_does_not_know_is_unsupported(bentpipe: Command) -> None:
    record = run(bentpipe, "A", "--bytes", "1kB", pep="terminal:iw=many,gateway")
    assert record["outcome"] == "unsupported"
    assert 'option iw = "many"' in record["detail"]


@pytest.mark.emulated
@pytest.mark.usefixtures("namespaces")
def test_in_real_time_too(bentpipe: Command) -> None:
    done = bentpipe(*REAL_TIME, "--scenario", "geo-tum", "--client", "noq", "--server", "noq", "--bytes",
                    "1MB", "--treatment", "quic-pep", "--pep", CHAIN, "--iterations", "1", "--trace", "all",
                    "--out", "A")  # fmt: skip
    (record,) = trusted(done.records())
    assert (record["outcome"], record["detail"]) == ("ok", "")
    first = 4 * SATELLITE + 2 * GROUND + 2 * CABLE
    assert first <= record["ttfb_s"], "how much later says how busy the machine is"
    assert [hop["connections"] for hop in record["hops"]] == [1, 1, 1]
    assert record["hops"][1]["rtt_min_ms"] >= 500
    for proxy in record["proxies"]:
        assert proxy["statistics"]["bytes_to_clients_total"] == 1_000_000
        assert min(proxy["cpu_s"], proxy["memory_bytes"]) > 0
    traces = {file.name for file in (Path("A/trials") / record["trial"]).glob("*.pcapng")}
    assert traces == {"trace.pcapng", "trace-terminal-gateway.pcapng", "trace-gateway-server.pcapng"}
