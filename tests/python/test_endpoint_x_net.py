"""The x-net endpoint: what is special to it, and `bentpipe stacks test`."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import Command, installed_or_skip
from laboratory import AIOQUIC, Lab

from bentpipe.stacks import pipe
from bentpipe.stacks.pipe import PipeProgram

pytestmark = pytest.mark.virtual_time

DELAY_NS = 15_000_000
SECOND_NS = 1_000_000_000
SEVERAL = 150  # requests: more than the 100 streams that the server allows at first
TO_ITSELF = ["run", "--client", "x-net", "--server", "x-net", "--no-report", "--json", "--trace", "none"]

Datagram = tuple[int, bytes]  # time in ns, payload


@pytest.fixture
def command() -> list[str]:
    """What starts the program in virtual time."""
    return installed_or_skip("x-net").command("virtual-time")


@dataclass
class End:
    """A program, and what is on its way to it."""

    program: PipeProgram
    arriving: list[Datagram] = field(default_factory=list)
    done: bool = False
    sent: int = 0

    def live(self, until: int) -> list[Datagram]:
        """One RUN; what departed."""
        due = [one for one in self.arriving if one[0] < until]
        self.arriving = self.arriving[len(due) :]
        body = b"".join(struct.pack("<QBH", at, 0, len(payload)) + payload for at, payload in due)
        self.program.send(pipe.RUN, struct.pack("<QI", until, len(due)) + body)
        answer = self.program.receive(pipe.RAN)
        _wake, done, count = struct.unpack_from("<QBI", answer)
        position, departures = 13, []
        for _ in range(count):
            at, _ecn, size = struct.unpack_from("<QBH", answer, position)
            departures.append((at, answer[position + 11 : position + 11 + size]))
            position += 11 + size
        self.done = bool(done)
        self.sent += count
        return departures


@dataclass
class Ended:
    """How a client and a server ended: their BYEs, and the virtual time in ns."""

    client: dict[str, Any]
    server: dict[str, Any]
    at: int


def hello(role: str, folder: Path, requests: list[str]) -> dict[str, Any]:
    greeting = pipe.hello(role, "transfer", {}, folder)
    return greeting | {"requests": [f"https://server:443/{name}" for name in requests if role == "client"]}


def play(command: list[str], folder: Path, requests: list[str], dead_after: int | None = None) -> Ended:
    """Client and server over a path of no limits, which goes dead after so many packets of the server."""
    (folder / "downloads").mkdir()
    with PipeProgram(command) as of_client, PipeProgram(command) as of_server:
        client, server = End(of_client), End(of_server)
        of_client.ready(hello("client", folder, requests))
        of_server.ready(hello("server", folder, requests))
        until = 0
        while not (client.done and server.done) and until < 100 * SECOND_NS:
            until += DELAY_NS
            for end, other in ((client, server), (server, client)):
                departed = end.live(until)
                if dead_after is None or server.sent <= dead_after:
                    other.arriving += [(at + DELAY_NS, payload) for at, payload in departed]
        return Ended(of_client.finish(), of_server.finish(), until)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "www").mkdir()
    return tmp_path


@pytest.mark.real_time
def test_it_keeps_the_contract(bentpipe: Command, command: list[str]) -> None:
    done = bentpipe("stacks", "test", "x-net")
    assert done.code == 0, done.out
    assert "FAIL" not in done.out


def test_the_same_seed_gives_the_same_packets_logged_or_not(bentpipe: Command, command: list[str]) -> None:
    run = [*TO_ITSELF, "--scenario", "sat,satloss,goodput", "--iterations", "2", "--bytes", "1MB"]
    plain = bentpipe(*run, "--out", "A").records()
    logged = bentpipe(*run, "--trace", "all", "--qlog", "--out", "B").records()
    hashes = {record["trial"]: record["packet_log_hash"] for record in plain}
    assert len(set(hashes.values())) == 6
    assert {record["trial"]: record["packet_log_hash"] for record in logged} == hashes
    for side in ("client", "server"):
        files = list(Path("B/trials").glob(f"*/qlog/{side}/*_{side}.sqlog"))
        assert len(files) == 6
        assert all('"reference_time":946684800' in file.read_text()[:400] for file in files)


def test_what_cannot_be_chosen(bentpipe: Command, command: list[str]) -> None:
    """Datagrams of 1200 bytes, and an acknowledgement for ten of them, save for the first 100."""
    run = [*TO_ITSELF, "--scenario", "sat", "--set", "forward.queue=2BDP", "--iterations", "1", "--out", "A"]
    (record,) = bentpipe(*run).records()
    assert record["forward_queue_drops"] == 0
    assert record["largest_packet_bytes"] == 1200 + 28
    assert "packet_size_below_path" in record["findings"]
    assert 0.09 < record["acks_per_data_packet"] < 0.12


@pytest.mark.parametrize(
    ("client", "server", "least", "most"),
    [
        ("x-net", "x-net", 900e3, 1.2e6),  # both hold 1 MiB
        ("x-net:window=8388608", "x-net", 900e3, 1.2e6),  # what the server keeps until it is acknowledged
        ("x-net:window=8388608", "x-net:window=8388608", 2e6, 8e6),
        ("x-net:window=100000", "x-net:window=8388608", 90e3, 120e3),
        ("x-net", "x-net:window=100000", 900e3, 1.2e6),  # the server sends no slower
    ],
)
def test_windows(
    bentpipe: Command, command: list[str], client: str, server: str, least: float, most: float
) -> None:
    run = ["run", "--client", client, "--server", server, "--scenario", "sat", "--set", "forward.queue=2BDP",
           "--iterations", "1", "--no-report", "--json", "--trace", "none", "--out", "A"]  # fmt: skip
    (record,) = bentpipe(*run).records()
    assert record["outcome"] == "ok"
    assert least <= record["in_flight_max_bytes"] <= most


@pytest.mark.parametrize("option", ["cc=cubic", "cc=reno", "window=0", "window=10MB", "iw=10"])
def test_what_it_lacks_is_refused(command: list[str], folder: Path, option: str) -> None:
    name, value = option.split("=")
    for role in ("client", "server"):
        assert pipe.refusal(command, hello(role, folder, ["file"]) | {"options": {name: value}}) is None


def test_a_server_that_is_not_there(command: list[str], folder: Path) -> None:
    with PipeProgram(command) as program:
        client = End(program)
        assert program.ready(hello("client", folder, ["file"]))["next_wake"] == 0
        until = 0
        while not client.done and until < 60 * SECOND_NS:
            until += SECOND_NS
            client.live(until)
        bye = program.finish()
    assert 10 * SECOND_NS <= until <= 11 * SECOND_NS
    assert bye["error"] == "handshake timeout"
    assert bye["handshake_ns"] is None


def test_a_path_that_goes_dead(command: list[str], folder: Path) -> None:
    (folder / "www" / "file").write_bytes(bytes(1_000_000))
    ended = play(command, folder, ["file"], dead_after=200)
    assert ended.client["error"] == "idle timeout"
    assert ended.server["error"] == "idle timeout"
    (request,) = ended.client["requests"]
    assert 0 < request["bytes"] < 1_000_000
    assert request["last_byte_ns"] + 30 * SECOND_NS <= ended.at <= request["last_byte_ns"] + 35 * SECOND_NS
    assert (folder / "downloads" / "file").stat().st_size == request["bytes"]


def test_more_requests_than_streams(command: list[str], folder: Path) -> None:
    names = [f"in/{number}" for number in range(SEVERAL)]
    (folder / "www" / "in").mkdir()
    for number, name in enumerate(names):
        (folder / "www" / name).write_bytes(bytes([number]) * number * 100)  # the first is empty
    ended = play(command, folder, names)
    assert ended.client["error"] is None
    assert ended.server["error"] is None
    assert [request["bytes"] for request in ended.client["requests"]] == [100 * n for n in range(SEVERAL)]
    for name in names:
        assert (folder / "downloads" / name).read_bytes() == (folder / "www" / name).read_bytes()


def test_a_link_that_leads_out_is_refused(command: list[str], folder: Path) -> None:
    (folder / "outside").write_bytes(b"secret")
    (folder / "www" / "link").symlink_to(folder / "outside")
    (folder / "www" / "file").write_bytes(b"served")
    ended = play(command, folder, ["link", "file"])
    assert "request /link: stream reset by peer" in ended.client["error"]
    assert [request["bytes"] for request in ended.client["requests"]] == [0, 6]
    assert not (folder / "downloads" / "link").exists()
    assert (folder / "downloads" / "file").read_bytes() == b"served"


@pytest.mark.parametrize("testcase", ["resumption", "zerortt"])
def test_its_server_gives_no_tickets(command: list[str], folder: Path, testcase: str) -> None:
    for role in ("client", "server"):
        assert pipe.refusal(command, hello(role, folder, ["file", "file"]) | {"testcase": testcase}) is None


@pytest.mark.parametrize("x_net", ["client", "server"])
def test_uploads(command: list[str], tmp_path: Path, x_net: str) -> None:
    lab = Lab(tmp_path, lose_every=17)
    ends = []
    for role in ("client", "server"):
        lab.command = command if role == x_net else AIOQUIC
        ends.append(lab.start(role=role, testcase="upload"))
    client, server = lab.run(ends).byes
    assert (client["error"], server["error"]) == (None, None)
    assert lab.stored() == lab.served()
    assert [request["bytes"] for request in client["requests"]] == [len(lab.served())]


def test_a_server_that_takes_no_uploads(command: list[str], tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    client = lab.start(role="client", testcase="upload")
    lab.command = command
    assert "reset by peer" in lab.run([client, lab.start(role="server")]).byes[0]["error"]
    assert not (tmp_path / "downloads" / "file").exists()


def test_a_client_whose_upload_is_refused(command: list[str], tmp_path: Path) -> None:
    lab = Lab(tmp_path, command)
    client = lab.start(role="client", testcase="upload")
    lab.command = AIOQUIC
    error = lab.run([client, lab.start(role="server")]).byes[0]["error"]
    assert "request /file: stream reset by peer" in error
