"""Which stacks repeat: the same seed gives the same packets, byte for byte. Those that do not are listed
here, so that the list cannot grow unseen.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import Command, installed_or_skip
from laboratory import Lab, Outcome

from bentpipe import paths
from bentpipe.stacks import catalogue

pytestmark = pytest.mark.virtual_time

# Stack → why the same seed does not always give the same packets.
DO_NOT_REPEAT: dict[str, str] = {}
# Stack → when a stack that repeats otherwise does not.
EXCEPTIONS = {"x-net": "with many requests and loss: probes take streams in random order"}

# Real time, which is all that some stacks have, repeats with none.
KNOWN = [
    name
    for name, stack in catalogue.discover().items()
    if stack.folder.parent == paths.endpoints() and "virtual-time" in stack.commands
]


def test_the_list_is_that_of_the_stacks() -> None:
    known = {name: catalogue.discover()[name] for name in KNOWN}
    assert {name: one.notes for name, one in known.items() if not one.deterministic} == DO_NOT_REPEAT
    assert {name: one.repeats_except for name, one in known.items() if one.repeats_except} == EXCEPTIONS
    assert all(DO_NOT_REPEAT.values())


# As many requests as streams are not open at once, by far, over a path without loss.
MANY = ("sat", "multiplexing:700x100B")


def hashes(
    bentpipe: Command,
    clients: Sequence[str],
    servers: Sequence[str],
    out: str,
    of: tuple[str, str] = ("sat,satloss", "transfer:200kB"),
) -> dict[str, str]:
    """Trial → hash of its packets. `of`: scenarios and workload."""
    done = bentpipe("run", "--scenario", of[0], "--client", ",".join(clients), "--server",
                    ",".join(servers), "--iterations", "1", "--workload", of[1], "--trace", "none",
                    "--seed", "11", "--no-report", "--json", "--out", out)  # fmt: skip
    assert done.code == 0, done.err
    records = done.records()
    assert [(r["trial"], r["detail"]) for r in records if r["outcome"] != "ok"] == []
    return {record["trial"]: record["packet_log_hash"] for record in records}


@pytest.mark.parametrize("name", [name for name in KNOWN if name not in DO_NOT_REPEAT])
def test_a_stack_repeats(bentpipe: Command, name: str) -> None:
    """Over sat and satloss, as client and as server, against itself and, over QUIC, against quinn."""
    stack = installed_or_skip(name)
    partner = name if "quic" not in stack.transports else installed_or_skip("quinn").name
    both = list(dict.fromkeys([name, partner]))
    known = catalogue.discover()
    clients, servers = ([one for one in both if role in known[one].roles] for role in ("client", "server"))
    first, again = (hashes(bentpipe, clients, servers, out) for out in "AB")
    assert first == again
    assert len(set(first.values())) == len(first) == 2 * len(clients) * len(servers)


@pytest.mark.parametrize("name", [name for name in KNOWN if name not in DO_NOT_REPEAT])
def test_a_stack_repeats_with_many_streams(bentpipe: Command, name: str) -> None:
    """As client and as server of 700 requests: programs that are built to give the processor to another
    task by wall time, as Go does after 10 ms, differ here first.
    """
    stack = installed_or_skip(name)
    if "multiplexing" not in stack.testcases:
        pytest.skip(f"{name} has no multiplexing")
    partner = name if "quic" not in stack.transports else installed_or_skip("quinn").name
    clients, servers = ([name if role in stack.roles else partner] for role in ("client", "server"))
    pairs = dict.fromkeys([(clients[0], partner), (partner, servers[0])])
    for number, (client, server) in enumerate(pairs):
        first, again = (hashes(bentpipe, [client], [server], f"{out}{number}", MANY) for out in "AB")
        assert first == again


@pytest.mark.parametrize("testcase", ["transfer", "handshake", "longrtt", "multiplexing"])
@pytest.mark.parametrize("name", ["aioquic", "quic-go", "noq"])
def test_a_stack_repeats_over_http3(name: str, testcase: str, tmp_path: Path) -> None:
    """Files over HTTP/3, which no trial of two stacks with hq-interop is of."""
    stack = installed_or_skip(name)
    lab = Lab(tmp_path, stack.command("virtual-time"), lose_every=50)
    count = 150 if testcase == "multiplexing" else 3  # more than a server allows at first
    paths = [f"small-{i}" for i in range(count)]
    for path in paths:
        (tmp_path / "www" / path).write_bytes(path.encode() * 100)

    def trial() -> Outcome:
        asked = {"testcase": testcase, "alpn": "h3"}
        requests = [f"https://server:443/{path}" for path in ["file", *paths]]
        return lab.trial(client={**asked, "requests": requests}, server=asked)

    outcome = trial()
    assert [bye["error"] for bye in outcome.byes] == [None, None]
    for path in ["file", *paths]:
        assert (tmp_path / "downloads" / path).read_bytes() == (tmp_path / "www" / path).read_bytes()
    assert trial().hash == outcome.hash


def test_bentpipe_stacks_says_which_do_not_repeat(bentpipe: Command) -> None:
    listed = {one["name"]: one for one in json.loads(bentpipe("stacks", "--json").out)}
    shown = " ".join(bentpipe("stacks").out.split())
    for name, why in EXCEPTIONS.items():
        assert listed[name]["repeats_except"] == why
        assert f"{name} repeats, except {why}" in shown
    for name, why in DO_NOT_REPEAT.items():
        assert listed[name]["deterministic"] is False
        assert f"{name} does not repeat: {why}" in shown
