"""The stacks that have socket mode alone and speak hq-interop, msquic, kwik and lsquic: the contract, refused
paths, IPv6, early data, and what their options do not take.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Command
from version_relay import VERSION_2, VersionRelay

from bentpipe.stacks import catalogue, loopback
from bentpipe.stacks.loopback import SocketProcess, Transfer
from bentpipe.stacks.model import ROLES, Stack

pytestmark = pytest.mark.real_time

NAMES = ("msquic", "kwik", "lsquic")
SIZE = 40_000
PATIENCE_S = 300.0  # a Java virtual machine on a busy machine
EARLY = "CLIENT_EARLY_TRAFFIC_SECRET"


def stack(name: str) -> Stack:
    """The stack; the test is skipped if it is not installed."""
    found = catalogue.discover()[name]
    why = found.missing("sockets")
    if why:
        pytest.skip(f"{why}; {found.how_to_install}")
    return found


@pytest.fixture
def transfer(tmp_path: Path) -> Transfer:
    www = tmp_path / "www"
    www.mkdir()
    for name in ("one", "two", "three"):
        (www / name).write_bytes(name.encode() * SIZE)
    return Transfer(www, ("/one", "/two", "/three"), tmp_path / "trial", logs=True)


@pytest.mark.parametrize("name", NAMES)
def test_it_keeps_the_contract(bentpipe: Command, name: str) -> None:
    stack(name)
    done = bentpipe("stacks", "test", name)
    assert done.code == 0, done.out
    assert "multiplexing: every file arrives" in done.out
    assert ("an unknown value of window is refused" in done.out) == (name != "lsquic")


@pytest.mark.parametrize("testcase", ["transfer", "resumption", "zerortt", "upload"])
@pytest.mark.parametrize("name", NAMES)
def test_it_and_noq_understand_each_other(name: str, testcase: str, transfer: Transfer) -> None:
    """The client's secrets tell how many connections there were, and of early data."""
    other = stack("noq")
    if testcase not in stack(name).testcases:
        pytest.skip(f"{name} does not have {testcase}")
    for client, server in ((stack(name), other), (other, stack(name))):
        folder = transfer.folder / f"{client.name}-{server.name}"
        loopback.run(client, server, replace(transfer, testcase=testcase, folder=folder), PATIENCE_S)
        labels = [line.split()[0] for line in (folder / "keys-client.log").read_text().splitlines()]
        assert labels.count("CLIENT_TRAFFIC_SECRET_0") == (2 if testcase in ("resumption", "zerortt") else 1)
        if testcase == "zerortt":
            assert EARLY in labels


def test_kwik_serves_a_client_that_prefers_version_2(transfer: Transfer) -> None:
    """Its server answers lsquic in version 2 (RFC 9368, 2.3)."""
    loopback._folders(transfer)
    with loopback.free_port() as port, VersionRelay(port) as relay:
        server, client = (loopback.environment(role, transfer, port) for role in ("server", "client"))
        client["REQUESTS"] = f"https://127.0.0.1:{relay.port}/one"
        with SocketProcess(stack("kwik"), server) as serving:
            serving.wait_ready(PATIENCE_S)
            with SocketProcess(stack("lsquic"), client) as fetching:
                assert fetching.wait(PATIENCE_S).code == 0, fetching.said()
    assert (transfer.folder / "downloads/one").read_bytes() == b"one" * SIZE
    assert relay.versions == {VERSION_2}


@pytest.mark.parametrize("name", NAMES)
def test_a_refused_path_fails_alone(name: str, transfer: Transfer) -> None:
    """The files beside it arrive, and the client says what did not, and fails."""
    one = stack(name)
    asked = replace(transfer, requests=("/one", "/absent", "/three"))
    with pytest.raises(loopback.LoopbackError, match="the client exited with 1"):
        loopback.run(one, one, asked, PATIENCE_S)
    got = {file.name: file.read_bytes() for file in (transfer.folder / "downloads").iterdir()}
    assert got == {name: name.encode() * SIZE for name in ("one", "three")}


@pytest.mark.parametrize("name", NAMES)
def test_it_speaks_ipv6(name: str, transfer: Transfer) -> None:
    one = stack(name)
    loopback._folders(transfer)
    with loopback.free_port() as port:
        server, client = (loopback.environment(role, transfer, port) for role in ("server", "client"))
        server["BENTPIPE_LISTEN"] = f"[::1]:{port}"
        client["REQUESTS"] = f"https://[::1]:{port}/one"
        with SocketProcess(one, server) as serving:
            serving.wait_ready(PATIENCE_S)
            with SocketProcess(one, client) as fetching:
                assert fetching.wait(PATIENCE_S).code == 0, fetching.said()
            serving.terminate()
            assert serving.wait(PATIENCE_S).code == 0, serving.said()
    assert (transfer.folder / "downloads/one").read_bytes() == b"one" * SIZE


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("msquic", {"window": "1000000"}),  # no power of two
        ("msquic", {"mtu": "1219"}),  # 1247 bytes with IPv4's headers
        ("msquic", {"cc": "bbr", "ss": "hystart++"}),
        ("kwik", {"cc": "cubic"}),
        ("kwik", {"mtu": "1252"}),
        ("kwik", {"window": "1499"}),
    ],
)
def test_what_it_lacks_is_refused(name: str, options: dict[str, str], transfer: Transfer) -> None:
    for role in ROLES:
        asked = replace(transfer, options=options)
        assert loopback.refusal(stack(name), role, asked, PATIENCE_S) is None
