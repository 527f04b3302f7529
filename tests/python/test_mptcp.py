"""Linux's MPTCP over scenarios with several paths, in both testbeds."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Command, installed_or_skip
from test_emu import RUN, trusted

from bentpipe.stacks import catalogue

MPTCP = "linux:mptcp=on"
SIMULATED = ("run", "--no-report", "--json", "--trace", "none")
has_mptcp = pytest.mark.skipif(
    not Path("/proc/sys/net/mptcp").exists(), reason="this machine's kernel has no MPTCP"
)


def simulated(bentpipe: Command, *words: str, client: str = MPTCP, server: str = MPTCP) -> dict[str, Any]:
    installed_or_skip("linux")
    ends = ("--client", client, "--server", server, "--iterations", "1")
    (one,) = bentpipe(*SIMULATED, *ends, "--out", "S", *words).records()
    return one


def emulated(bentpipe: Command, *words: str, client: str = MPTCP, server: str = MPTCP) -> dict[str, Any]:
    if why := catalogue.discover()["linux"].missing("sockets"):
        pytest.skip(why)
    ends = ("--client", client, "--server", server, "--iterations", "1")
    (one,) = trusted(bentpipe(*RUN, *ends, "--out", "E", *words).records())
    return one


def shares(one: dict[str, Any]) -> dict[str, float]:
    return {path["name"]: path["forward_share"] for path in one["paths"]}


def check_both_paths_carry(one: dict[str, Any]) -> None:
    assert (one["outcome"], one["detail"]) == ("ok", "")
    assert min(shares(one).values()) > 0.2
    assert (one["connections"], one["measured_from"]) == (2, "wire"), "each subflow is one of TCP"
    assert one["goodput_bps"] > 20e6, "more than either path alone has"
    assert one["handshake_s"] < one["ttfb_s"] < one["completion_s"]


@pytest.mark.virtual_time
def test_both_paths_carry_a_file_in_guests_and_the_seed_repeats_it(bentpipe: Command) -> None:
    words = ("--scenario", "leo-terrestrial", "--bytes", "10MB")
    one = simulated(bentpipe, *words)
    check_both_paths_carry(one)
    again = simulated(bentpipe, *words, "--out", "again")
    assert again["packet_log_hash"] == one["packet_log_hash"]


@pytest.mark.virtual_time
def test_a_backup_carries_nothing_while_the_other_path_is_there(bentpipe: Command) -> None:
    words = ("--scenario", "leo-terrestrial", "--bytes", "2MB")
    one = simulated(bentpipe, *words, client=f"{MPTCP}:backup=terrestrial")
    assert one["outcome"] == "ok" and shares(one)["leo"] > 0.99
    alone = simulated(bentpipe, *words, "--out", "none", client=f"{MPTCP}:path-manager=none")
    assert alone["outcome"] == "ok" and shares(alone) == {"leo": 1.0, "terrestrial": 0.0}


@pytest.mark.virtual_time
def test_a_server_without_it_is_reached_by_tcp_over_the_first_path(bentpipe: Command) -> None:
    one = simulated(bentpipe, "--scenario", "geo-leo", "--bytes", "100kB", server="linux")
    assert one["outcome"] == "ok" and shares(one) == {"geo": 1.0, "leo": 0.0}
    assert one["connections"] == 1


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("client", "says"),
    [
        (f"{MPTCP}:backup=moon", "moon is no path; there are leo, terrestrial"),
        (f"{MPTCP}:backup=leo+terrestrial", "all paths are backups"),
        (f"{MPTCP}:scheduler=redundant", "this kernel has default"),
        (f"{MPTCP}:pacing=on", "takes no pacing rate"),
        ("linux:backup=leo", "it needs mptcp=on"),
    ],
)
def test_what_it_refuses_is_unsupported_and_says_why(bentpipe: Command, client: str, says: str) -> None:
    one = simulated(bentpipe, "--scenario", "leo-terrestrial", "--bytes", "1kB", client=client)
    assert one["outcome"] == "unsupported"
    log = Path("S/trials") / one["trial"] / "client.log"
    assert says in one["detail"] + (log.read_text() if log.exists() else "")


@has_mptcp
@pytest.mark.emulated
@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("ip", ["4", "6"])
def test_both_paths_carry_a_file_for_real(bentpipe: Command, ip: str) -> None:
    words = ("--scenario", "leo-terrestrial", "--bytes", "10MB", "--ip", ip, "--trace", "all")
    one = emulated(bentpipe, *words)
    check_both_paths_carry(one)
    trace = Path("E/trials") / one["trial"] / "trace.pcapng"
    connections = json.loads(bentpipe("trace", trace, "--json").out)["connections"]
    clients = {one["client"].rpartition(":")[0].strip("[]") for one in connections}
    addresses = {"4": ("192.0.2.1", "192.0.2.2"), "6": ("2001:db8:1::1", "2001:db8:1::2")}[ip]
    assert clients == set(addresses)


@has_mptcp
@pytest.mark.emulated
@pytest.mark.usefixtures("namespaces")
def test_two_clients_of_a_host_have_the_same_paths(bentpipe: Command) -> None:
    words = ("--scenario", "leo-terrestrial", "--bytes", "1MB", "--flow", "start=100ms,workload=transfer:1MB")
    one = emulated(bentpipe, *words)
    assert (one["outcome"], one["detail"]) == ("ok", "")
    assert [flow["outcome"] for flow in one["flows"]] == ["ok", "ok"]


@pytest.mark.emulated
@pytest.mark.usefixtures("namespaces")
def test_without_mptcp_the_first_path_is_as_if_there_were_no_other(bentpipe: Command) -> None:
    one = emulated(bentpipe, "--scenario", "geo-leo", "--bytes", "100kB", client="linux", server="linux")
    assert one["outcome"] == "ok" and shares(one) == {"geo": 1.0, "leo": 0.0}
