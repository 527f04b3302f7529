"""The test cases of `endpoints/contract/test-cases.md` for aioquic and its fork qh3, which share code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from laboratory import AIOQUIC, DELAY_NS, ROOT, Lab, Outcome

from bentpipe import paths
from bentpipe.stacks import catalogue

pytestmark = pytest.mark.virtual_time

QH3 = catalogue.load(paths.endpoints() / "qh3")
COMMANDS = {"aioquic": AIOQUIC, "qh3": QH3.command("virtual-time")}
ROUND_TRIP_NS = 2 * DELAY_NS
SMALL = 3000  # bytes

needs_qh3 = pytest.mark.skipif(
    QH3.missing("virtual-time") is not None,
    reason=f"{QH3.missing('virtual-time')}; {QH3.how_to_install}",
)
either = pytest.mark.parametrize("stack", ["aioquic", pytest.param("qh3", marks=needs_qh3)])


def serving(folder: Path, stack: str, count: int = 3, size: int = SMALL) -> Lab:
    lab = Lab(folder, command=list(COMMANDS[stack]))
    for i in range(count):
        (folder / "www" / str(i)).write_bytes(i.to_bytes(2, "little") * (size // 2))
    return lab


def play(lab: Lab, testcase: str, count: int = 3, server_testcase: str = "", **client: Any) -> Outcome:
    """A trial with `count` requests; the keys go to the file `keys`."""
    (lab.folder / "keys").unlink(missing_ok=True)
    client |= {
        "testcase": testcase,
        "requests": [f"https://server:443/{i}" for i in range(count)],
        "keylog": str(lab.folder / "keys"),
    }
    return lab.trial(client=client, server={"testcase": server_testcase or testcase})


def arrived(lab: Lab, count: int = 3) -> bool:
    www, downloads = lab.folder / "www", lab.folder / "downloads"
    return all((downloads / str(i)).read_bytes() == (www / str(i)).read_bytes() for i in range(count))


def secrets(lab: Lab, label: str) -> int:
    return [line.split()[0] for line in (lab.folder / "keys").read_text().splitlines()].count(label)


@either
@pytest.mark.parametrize("testcase", ["handshake", "longrtt"])
def test_what_is_done_as_in_a_transfer_has_the_same_packets(
    tmp_path: Path, stack: str, testcase: str
) -> None:
    lab = serving(tmp_path, stack)
    outcome = play(lab, testcase)
    assert arrived(lab)
    assert outcome.hash == play(lab, "transfer").hash


@either
def test_more_requests_than_streams_may_be_open(tmp_path: Path, stack: str) -> None:
    count = 300  # both servers allow 100 to 128 at first
    lab = serving(tmp_path, stack, count, size=30)
    outcome = play(lab, "multiplexing", count)
    assert outcome.byes[0]["error"] is None
    assert arrived(lab, count)
    assert secrets(lab, "CLIENT_TRAFFIC_SECRET_0") == 1
    last = max(request["first_byte_ns"] for request in outcome.byes[0]["requests"])
    assert last > 3 * ROUND_TRIP_NS, "every request was allowed at once, so nothing was shown"


@either
@pytest.mark.parametrize(("testcase", "early", "round_trips"), [("resumption", 0, 2), ("zerortt", 1, 1)])
def test_a_second_connection_begins_with_a_ticket(
    tmp_path: Path, stack: str, testcase: str, early: int, round_trips: int
) -> None:
    lab = serving(tmp_path, stack)
    outcome = play(lab, testcase)
    client, server = outcome.byes
    assert (client["error"], server["error"]) == (None, None)
    assert arrived(lab)
    assert secrets(lab, "CLIENT_TRAFFIC_SECRET_0") == 2
    assert secrets(lab, "CLIENT_EARLY_TRAFFIC_SECRET") == early
    first, second, third = client["requests"]
    assert client["handshake_ns"] < first["first_byte_ns"]
    waited = second["first_byte_ns"] - first["last_byte_ns"]
    assert round_trips * ROUND_TRIP_NS < waited < (round_trips + 0.1) * ROUND_TRIP_NS
    assert third["first_byte_ns"] - second["first_byte_ns"] < 0.1 * ROUND_TRIP_NS
    assert play(lab, testcase).hash == outcome.hash


@either
def test_a_connection_for_a_ticket_alone(tmp_path: Path, stack: str) -> None:
    lab = serving(tmp_path, stack)
    assert play(lab, "resumption", count=1).byes[0]["error"] is None
    assert arrived(lab, 1)
    assert secrets(lab, "CLIENT_TRAFFIC_SECRET_0") == 2


FOLDERS = {
    name: str(ROOT / "endpoints" / folder)
    for name, folder in (("stack", "aioquic"), ("family", "aioquic-family"))
}
# Aioquic, but as a server that knows no ticket again, or as a client that has every file.
ALTERED = """
import sys
sys.path[:0] = [{stack!r}, {family!r}]
import files, stack, program
{change}
sys.exit(program.main("aioquic", sys.argv[1:]))
"""
FORGETFUL = ALTERED.format(change="stack.IssuedTickets.take = lambda self, label: None", **FOLDERS)
GENEROUS = ALTERED.format(change="files.load = lambda folder, path: b'anything'", **FOLDERS)


@either
def test_early_data_that_are_rejected_are_sent_again(tmp_path: Path, stack: str) -> None:
    """An aioquic server that issues tickets and knows none of them again."""
    lab = serving(tmp_path, stack)
    requests = [f"https://server:443/{i}" for i in range(3)]
    keys = {"keylog": str(tmp_path / "keys")}
    client = lab.start(role="client", testcase="zerortt", requests=requests, **keys)
    lab.command = [sys.executable, "-c", FORGETFUL, "--virtual-time"]
    outcome = lab.run([client, lab.start(role="server", testcase="zerortt")])
    assert outcome.byes[0]["error"] is None
    assert arrived(lab)
    assert secrets(lab, "CLIENT_EARLY_TRAFFIC_SECRET") == 1
    first, second, _ = outcome.byes[0]["requests"]
    assert second["first_byte_ns"] - first["last_byte_ns"] > 1.9 * ROUND_TRIP_NS


@either
def test_upload(tmp_path: Path, stack: str) -> None:
    lab = serving(tmp_path, stack, size=200_000)
    (tmp_path / "www" / "1").write_bytes(b"")
    outcome = play(lab, "upload")
    assert arrived(lab)
    assert [bye["error"] for bye in outcome.byes] == [None, None]
    for request, size in zip(outcome.byes[0]["requests"], (200_000, 0, 200_000), strict=True):
        assert request["bytes"] == size
        assert request["first_byte_ns"] == outcome.byes[0]["handshake_ns"]
        assert request["last_byte_ns"] > request["first_byte_ns"] + ROUND_TRIP_NS
    assert play(lab, "upload").hash == outcome.hash


@either
def test_a_server_refuses_the_other_method(tmp_path: Path, stack: str) -> None:
    for asked, served in (("upload", "transfer"), ("transfer", "upload")):
        lab = serving(tmp_path, stack, size=200_000)
        other = tmp_path / "other"
        other.mkdir(exist_ok=True)
        # An upload's server has no `www`, and a transfer's none to write to.
        folder = {"www": str(tmp_path / "www"), "downloads": str(other)}
        client = {"testcase": asked, "requests": ["https://server:443/0", "https://server:443/2"]}
        outcome = lab.trial(client=client | folder, server={"testcase": served} | folder)
        assert "reset by peer" in outcome.byes[0]["error"]
        assert list(other.iterdir()) == []


@either
def test_an_upload_that_leads_out_is_refused(tmp_path: Path, stack: str) -> None:
    lab = serving(tmp_path, stack, size=200_000)
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (tmp_path / "downloads" / "1").symlink_to(outside)
    outcome = play(lab, "upload")
    assert "/1: reset by peer" in outcome.byes[0]["error"]
    assert outside.read_text() == "mine"
    for name in ("0", "2"):
        assert (tmp_path / "downloads" / name).read_bytes() == (tmp_path / "www" / name).read_bytes()


@either
@pytest.mark.parametrize("name", ["folder", "1/below", "no\0name"])
def test_an_upload_that_cannot_be_stored_is_refused(tmp_path: Path, stack: str, name: str) -> None:
    """Where a folder is, below a file, and by a name that no file can have."""
    lab = serving(tmp_path, stack)
    (tmp_path / "downloads" / "folder").mkdir()
    requests = [f"https://server:443/{path}" for path in ("1", name, "2")]
    lab.command = [sys.executable, "-c", GENEROUS, "--virtual-time"]
    client = lab.start(role="client", testcase="upload", requests=requests)
    lab.command = list(COMMANDS[stack])
    outcome = lab.run([client, lab.start(role="server", testcase="upload")])
    assert f"/{name}: reset by peer" in outcome.byes[0]["error"]
    for path in ("1", "2"):
        assert (tmp_path / "downloads" / path).read_bytes() == b"anything"
