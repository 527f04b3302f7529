"""Chains in virtual time: programs between client and server, and the hops between them.

A relay that hands datagrams on untouched changes nothing of a path but the cables beside it. So what a client
sees through relays must be, to the nanosecond, what it sees over the same path without them.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import HERE, installed_or_skip

from bentpipe import paths
from bentpipe.execution.jobs import LocalFlow, LocalTrial
from bentpipe.plan import scenarios
from bentpipe.stacks import catalogue

pytestmark = pytest.mark.virtual_time

CABLE = "0.1 ms"
SEED = "00000000000000c4"
SIZE = 1_000_000
# Of the client, and so alike where the packets that it sees are alike.
OF_CLIENT = ("outcome", "detail", "measured_from", "handshake_s", "ttfb_s", "completion_s", "transfer_s",
             "goodput_bps", "efficiency", "received_step_s", "received_bytes", "connections")  # fmt: skip
COUNTS = [
    f"{way}_{what}" for way in ("forward", "return") for what in ("packets", "bytes", "queue_drops", "losses")
]


def proxy(place: str, *arguments: str, **options: str) -> dict[str, Any]:
    command = [sys.executable, str(HERE / "relay.py"), *arguments]
    return {"place": place, "name": f"{place}:relay", "command": command, "options": options}


class Laboratory:
    """Runs jobs of one noq with another over geo-tum."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.www = folder / "www"
        self.www.mkdir()
        (self.www / "file").write_bytes(bytes(range(256)) * (SIZE // 256))

    def run(self, places: list[dict[str, Any]], *sets: str, **changes: Any) -> dict[str, Any]:
        scenario = scenarios.resolve("geo-tum", sets)
        noq = catalogue.variant("noq", catalogue.discover())
        trial = LocalTrial(
            scenario.scenario,
            (LocalFlow("transfer", ("/file",), noq, noq),),
            self.www,
            SEED,
            self.folder / "trial",
        )
        mapping = {**msgspec.to_builtins(trial.job()), "proxies": places, **changes}
        done = subprocess.run([paths.program("bentpipe-sim"), "trial"], input=json.dumps(mapping),
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert isinstance(result, dict)
        return result


@pytest.fixture
def laboratory(tmp_path: Path) -> Laboratory:
    installed_or_skip("noq")
    return Laboratory(tmp_path)


LOSS = ("forward.loss=0.5%", "return.loss=0.5%")


def test_relays_change_nothing_but_the_cables(laboratory: Laboratory) -> None:
    through = laboratory.run([proxy("terminal"), proxy("gateway")], *LOSS)
    cable = [f"access.{way}.delay={CABLE}" for way in ("forward", "return")]
    direct = laboratory.run([], *LOSS, *cable)
    assert through["outcome"] == "ok", through["detail"]
    assert direct["forward_losses"] > 0 < direct["return_losses"]
    assert direct["proxies"] == direct["hops"] == []
    for column in OF_CLIENT:
        assert through[column] == direct[column], column
    assert through["hops"][1]["forward_losses"] == through["forward_losses"]


def test_each_hop_has_its_own_counts_and_nothing_is_lost_between_them(laboratory: Laboratory) -> None:
    record = laboratory.run([proxy("terminal"), proxy("gateway")], *LOSS)
    access, satellite, ground = record["hops"]
    ends = [(hop["from"], hop["to"]) for hop in record["hops"]]
    assert ends == [("client", "terminal"), ("terminal", "gateway"), ("gateway", "server")]
    assert {column: record[column] for column in COUNTS} == {column: satellite[column] for column in COUNTS}
    for way, chain in (("forward", (ground, satellite, access)), ("return", (access, satellite, ground))):
        for hop, following in itertools.pairwise(chain):
            delivered = hop[f"{way}_packets"] - hop[f"{way}_queue_drops"] - hop[f"{way}_losses"]
            # What was still on the way at the end has not been handed on.
            assert 0 <= delivered - following[f"{way}_packets"] <= 2, way
    # Acknowledgements of a hop's receiver need no longer than that hop's round trip.
    assert record["rtt_min_ms"] == access["rtt_min_ms"] == pytest.approx(0.2)
    assert satellite["rtt_min_ms"] is None, "a relay has no secrets of its own"
    terminal, gateway = record["proxies"]
    assert (terminal["place"], gateway["place"]) == ("terminal", "gateway")
    assert (terminal["name"], terminal["version"], terminal["driver"]) == (
        "terminal:relay",
        "relay 1",
        "at once",
    )
    assert terminal["cpu_s"] > 0 < terminal["memory_bytes"]
    assert terminal["statistics"]["from_client"] == satellite["return_packets"]
    assert terminal["statistics"]["from_server"] == access["forward_packets"]
    assert (terminal["statistics"]["listen"], terminal["statistics"]["next"]) == (
        "192.0.2.254:443",
        "203.0.113.2:443",
    )
    assert (gateway["statistics"]["listen"], gateway["statistics"]["next"]) == (
        "203.0.113.2:443",
        "198.51.100.1:443",
    )


@pytest.mark.parametrize("place", ["terminal", "gateway"])
def test_one_proxy_makes_two_hops(laboratory: Laboratory, place: str) -> None:
    record = laboratory.run([proxy(place)])
    assert record["outcome"] == "ok", record["detail"]
    names = [f"{hop['from']}-{hop['to']}" for hop in record["hops"]]
    assert names == [f"client-{place}", f"{place}-server"]
    bottleneck = record["hops"][["gateway", "terminal"].index(place)]
    assert record["forward_packets"] == bottleneck["forward_packets"]
    # There is a cable at the access where the proxy is at the terminal.
    assert record["handshake_s"] == pytest.approx(0.5802 if place == "terminal" else 0.58, abs=0.02)


def test_the_same_seed_gives_the_same_packets_on_every_hop(laboratory: Laboratory) -> None:
    chain = [proxy("terminal"), proxy("gateway")]
    one, two = (laboratory.run(chain, *LOSS) for _ in range(2))
    assert one["packet_log_hash"] == two["packet_log_hash"]
    assert one["epochs"] == two["epochs"]
    assert laboratory.run(chain)["packet_log_hash"] != one["packet_log_hash"]


def test_flows_with_chains_of_their_own_share_the_links(laboratory: Laboratory) -> None:
    """Through relays two flows come to what they come to without them, and that twice alike."""
    noq = catalogue.variant("noq", catalogue.discover())
    ways = [f"access.{way}.delay={CABLE}" for way in ("forward", "return")]
    flow = msgspec.to_builtins(LocalFlow("transfer", ("/file",), noq, noq).of_job("virtual-time"))
    flows = [{**flow, "start_ns": start} for start in (0, 300_000_000)]
    chain = [proxy("terminal"), proxy("gateway")]
    direct = laboratory.run([], *ways, flows=flows)
    one, two = (laboratory.run(chain, flows=flows) for _ in range(2))
    assert one["outcome"] == "ok", one["detail"]
    for column in (*OF_CLIENT, "jain_index"):
        assert one[column] == direct[column] == two[column], column
    for chained, plain in zip(one["flows"], direct["flows"], strict=True):
        # The server's last packet was sent, and had not come as far as the satellite when all was over.
        assert 0 <= plain.pop("forward_packets") - chained["forward_packets"] <= 1
        assert plain == {name: chained[name] for name in plain}
    assert (one["packet_log_hash"], one["flows"]) == (two["packet_log_hash"], two["flows"])
    for column in COUNTS:
        if not column.endswith("_bytes"):
            assert one[column] == sum(flow[column] for flow in one["flows"])


def test_a_proxy_that_crashes_is_named(laboratory: Laboratory) -> None:
    record = laboratory.run([proxy("terminal"), proxy("gateway", "crash")])
    assert record["outcome"] == "crashed"
    assert record["detail"].startswith("gateway:relay as gateway ended by itself"), record["detail"]
    assert "the relay was told to crash" in record["detail"]
    left = {file.name for file in (laboratory.folder / "trial").iterdir()}
    assert {"gateway.log", "gateway.frames"} <= left
    assert "terminal.frames" not in left


def test_an_option_that_a_proxy_does_not_know_is_unsupported(laboratory: Laboratory) -> None:
    record = laboratory.run([proxy("terminal", iw="100")])
    assert record["outcome"] == "unsupported"
    assert record["detail"] == "terminal:relay as terminal does not support this: it exited with 127"


def test_proxies_stand_where_they_can(laboratory: Laboratory) -> None:
    wrong = [["gateway", "terminal"], ["terminal", "terminal"], ["client"], ["server"]]
    for places in wrong:
        with pytest.raises(AssertionError, match="write one at the terminal"):
            laboratory.run([proxy(place) for place in places])


def test_each_hop_has_a_trace(laboratory: Laboratory) -> None:
    record = laboratory.run([proxy("terminal"), proxy("gateway")], trace=True)
    assert record["outcome"] == "ok", record["detail"]
    traces = {file.name for file in (laboratory.folder / "trial").glob("*.pcapng")}
    assert traces == {"trace.pcapng", "trace-terminal-gateway.pcapng", "trace-gateway-server.pcapng"}
