"""Clients that migrate from the first path of a scenario to the second (RFC 9000, section 9)."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import laboratory
import pytest
from conftest import Command, installed_or_skip
from laboratory import READY, RUN, SECOND_NS, Lab, encode_run
from test_emu import RUN as EMULATED
from test_emu import trusted

from bentpipe.stacks import catalogue

# Clients, each with a server that follows it to the end: quiche's does not.
PAIRS = {name: name for name in ("noq", "quinn", "picoquic", "ngtcp2", "quic-go", "aioquic", "qh3")}
PAIRS |= {"quiche": "noq", "msquic": "msquic"}
PLAIN = ("--no-report", "--json", "--iterations", "1", "--trace", "none")
ENDS = ("--scenario", "terrestrial-leo", "--bytes", "10MB")  # the first path after 2 s


def run(bentpipe: Command, client: str, server: str, *words: str, out: str = "run") -> dict[str, Any]:
    for label in (client, server):
        installed_or_skip(label.partition(":")[0])
    (one,) = bentpipe("run", "--client", client, "--server", server, *PLAIN, *words, "--out", out).records()
    return one


def check_it_went_on(one: dict[str, Any]) -> None:
    """The file is whole, and came over the first path and then over the second."""
    assert (one["outcome"], one["detail"]) == ("ok", "")
    assert min(path["forward_share"] for path in one["paths"]) > 0.2
    first, second = one["paths"]
    assert 0 < first["data_first_s"] < first["data_last_s"] < second["data_first_s"] < second["data_last_s"]


@pytest.mark.virtual_time
@pytest.mark.parametrize(("client", "server"), [*PAIRS.items(), ("quinn", "s2n-quic"), ("quinn", "msquic")])
def test_a_file_arrives_though_the_path_that_it_began_on_ends(
    bentpipe: Command, client: str, server: str
) -> None:
    one = run(bentpipe, f"{client}:migrate=2s", server, *ENDS)
    check_it_went_on(one)
    assert (one["measured_from"], one["undecoded_packets"], one["findings"]) == ("wire", 0, [])
    # The way to the server and back over the second path is the least that it can take.
    left, came = one["paths"][0]["data_last_s"], one["paths"][1]["data_first_s"]
    assert came > 2.112 and came - left < 2


@pytest.mark.virtual_time
@pytest.mark.parametrize("stack", ["noq", "quic-go", "aioquic", "ngtcp2"])
def test_the_same_seed_gives_the_same_packets(bentpipe: Command, stack: str) -> None:
    words = ("--scenario", "terrestrial-leo", "--bytes", "2MB")
    ends = (f"{stack}:migrate=500ms", stack)
    hashes = {run(bentpipe, *ends, *words, out=out)["packet_log_hash"] for out in ("one", "two")}
    assert len(hashes) == 1


@pytest.mark.virtual_time
def test_a_client_that_stays_fails_with_its_path(bentpipe: Command) -> None:
    one = run(bentpipe, "noq:multipath=off", "noq", *ENDS)
    assert one["outcome"] == "transfer_timeout"
    assert [path["data_first_s"] is None for path in one["paths"]] == [False, True]


@pytest.mark.virtual_time
def test_a_run_says_how_long_no_data_came(bentpipe: Command) -> None:
    installed_or_skip("noq")
    ends = ("--client", "noq:migrate=2s", "--server", "noq", *ENDS, "--iterations", "1")
    told = bentpipe("run", *ends, "--no-report", "--out", "run").out.replace("\n  ", " ")
    assert "from the last data over terrestrial to the first over leo: noq:migrate=2s → noq " in told


@pytest.mark.virtual_time
@pytest.mark.parametrize("stack", ["noq", "picoquic", "quic-go", "aioquic"])
@pytest.mark.parametrize(
    ("option", "scenario", "says"),
    [
        ("migrate=2", "geo-leo", "a time since the start"),
        ("migrate=2h", "geo-leo", "a time since the start"),
        ("migrate=2s", "sat", "choose a scenario with several"),
    ],
)
def test_what_a_client_cannot_do_is_unsupported(
    bentpipe: Command, stack: str, option: str, scenario: str, says: str
) -> None:
    one = run(bentpipe, f"{stack}:{option}", stack, "--scenario", scenario, "--bytes", "1kB")
    assert one["outcome"] == "unsupported"
    assert says in one["detail"] or says in said_by(one, "client")


@pytest.mark.virtual_time
@pytest.mark.parametrize("stack", ["noq", "picoquic", "quic-go", "aioquic"])
def test_a_server_does_not_migrate(bentpipe: Command, stack: str) -> None:
    one = run(bentpipe, stack, f"{stack}:migrate=2s", "--scenario", "geo-leo", "--bytes", "1kB")
    assert one["outcome"] == "unsupported"
    assert "migrate" in one["detail"] + said_by(one, "server")


@pytest.mark.virtual_time
@pytest.mark.parametrize("stack", ["noq", "picoquic"])
def test_a_client_has_several_paths_at_once_or_migrates(bentpipe: Command, stack: str) -> None:
    one = run(bentpipe, f"{stack}:migrate=2s:multipath=on", stack, "--scenario", "geo-leo", "--bytes", "1kB")
    assert one["outcome"] == "unsupported"
    assert "one path at a time" in one["detail"] + said_by(one, "client")


def said_by(one: dict[str, Any], role: str) -> str:
    log = Path("run/trials") / one["trial"] / f"{role}.log"
    return log.read_text() if log.exists() else ""


@pytest.mark.virtual_time
@pytest.mark.parametrize("stack", ["noq", "picoquic", "ngtcp2", "quic-go", "aioquic"])
def test_a_datagram_on_a_path_that_there_is_not_ends_the_program(tmp_path: Path, stack: str) -> None:
    lab = Lab(tmp_path, installed_or_skip(stack).command("virtual-time"))
    paths = [
        {"name": name, "local": "198.51.100.1:443", "remote": f"192.0.2.{host}:50000"}
        for host, name in enumerate(("geo", "leo"), 1)
    ]
    child = lab.start(role="server", paths=paths)
    assert json.loads(child.receive(READY))["paths"] is True
    path = 2 << 4
    child.send(RUN, encode_run(SECOND_NS, [(1, path, bytes(1200))]))
    with pytest.raises((EOFError, struct.error)):
        child.receive(laboratory.RAN)
    assert child.leave() == 1
    assert "path 2" in (tmp_path / "stderr-server").read_text()


def emulated(bentpipe: Command, client: str, server: str, *words: str) -> dict[str, Any]:
    for label in (client, server):
        if why := catalogue.discover()[label.partition(":")[0]].missing("sockets"):
            pytest.skip(why)
    ends = ("--client", client, "--server", server, "--iterations", "1")
    (one,) = trusted(bentpipe(*EMULATED, *ends, "--out", "E", *words).records())
    return one


@pytest.mark.emulated
@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("stack", ["noq", "ngtcp2", "quic-go", "aioquic"])
def test_a_client_migrates_for_real(bentpipe: Command, stack: str) -> None:
    # Programs begin later than links: a path that ends might be gone before there is a connection.
    words = ("--scenario", "leo-terrestrial", "--bytes", "10MB")
    one = emulated(bentpipe, f"{stack}:migrate=2s", stack, *words)
    assert (one["outcome"], one["detail"]) == ("ok", "")
    first, second = one["paths"]
    assert first["data_first_s"] < second["data_first_s"] < second["data_last_s"]


@pytest.mark.emulated
@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize(("stack", "ip"), [("noq", "4"), ("noq", "6"), ("picoquic", "4"), ("picoquic", "6")])
def test_both_paths_carry_a_file_for_real(bentpipe: Command, stack: str, ip: str) -> None:
    words = ("--scenario", "leo-terrestrial", "--bytes", "10MB", "--ip", ip)
    one = emulated(bentpipe, stack, stack, *words)
    assert (one["outcome"], one["detail"]) == ("ok", "")
    assert min(path["forward_share"] for path in one["paths"]) > 0.2
    assert one["goodput_bps"] > 20e6, "more than either path alone has"
