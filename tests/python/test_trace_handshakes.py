"""bentpipe-trace against the endpoints' own view: what two aioquic endpoints say in their qlog that they
sent, over handshakes, ciphers, versions, key updates and migrations of every kind.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite
from quic_wire import Wire, configuration

from bentpipe import paths

pytestmark = pytest.mark.virtual_time

V1, V2 = QuicProtocolVersion.VERSION_1, QuicProtocolVersion.VERSION_2
TYPES = {"initial": "Initial", "handshake": "Handshake", "0RTT": "0-RTT", "1RTT": "1-RTT", "retry": "Retry"}
Sent = tuple[str, int, list[tuple[int, int, int]], list[list[list[int]]]]  # type, number, streams, ACK ranges


def connect(client: QuicConfiguration, server: QuicConfiguration, **options: Any) -> Wire:
    """Two ends after their handshake."""
    wire = Wire(QuicConnection(configuration=client), server, **options)
    wire.client.connect(("2001:db8::2", 443), wire.now)
    return wire


def transfer(wire: Wire, size: int = 40_000) -> None:
    """Sends so many bytes to and fro on a new stream."""
    stream = wire.client.get_next_available_stream_id()
    wire.client.send_stream_data(stream, b"GET /\r\n", end_stream=True)
    wire.run(4)
    assert wire.server is not None
    wire.server.send_stream_data(stream, bytes(size), end_stream=True)
    wire.run(12)


def decode(wire: Wire, folder: Path) -> tuple[list[dict[str, Any]], str]:
    """The packets that bentpipe-trace prints, and its summary."""
    capture, keys = folder / "wire.pcap", folder / "keys.log"
    wire.write(capture, keys)
    program = paths.program("bentpipe-trace")
    command: list[str | Path] = [program, "packets", capture, "--keylog", keys]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def decoded(packets: list[dict[str, Any]], sender: str) -> list[Sent]:
    """The packets of an end, as they were decoded."""
    found = []
    for packet in packets:
        if packet["sender"] == sender and packet["number"] is not None:
            frames = packet["frames"]
            streams = [(f["id"], f["offset"], f["length"]) for f in frames if f["type"] == "STREAM"]
            acks = [sorted(f["ranges"]) for f in frames if f["type"] == "ACK"]
            found.append((packet["type"], packet["number"], streams, acks))
    return found


def logged(settings: QuicConfiguration) -> list[Sent]:
    """The packets that an end says it sent."""
    assert settings.quic_logger is not None
    (trace,) = settings.quic_logger.to_dict()["traces"]
    found = []
    for event in trace["events"]:
        if event["name"] == "transport:packet_sent":
            header, frames = event["data"]["header"], event["data"]["frames"]
            streams = [
                (f["stream_id"], f["offset"], f["length"]) for f in frames if f["frame_type"] == "stream"
            ]
            acks = [sorted(f["acked_ranges"]) for f in frames if f["frame_type"] == "ack"]
            found.append((TYPES[header["packet_type"]], header["packet_number"], streams, acks))
    return found


def check(wire: Wire, folder: Path) -> list[dict[str, Any]]:
    """Every packet that was sent is decoded, as both ends say."""
    packets, summary = decode(wire, folder)
    assert "not decoded" not in summary, summary
    for sender, settings in (("client", wire.client.configuration), ("server", wire.server_settings)):
        sent = logged(settings)
        assert len(sent) > 3
        assert decoded(packets, sender) == sent
    assert {packet["connection"] for packet in packets} == {0}
    return packets


@pytest.mark.parametrize("version", [V1, V2], ids=["v1", "v2"])
@pytest.mark.parametrize("cipher", list(CipherSuite)[:3], ids=lambda cipher: str(cipher.name))
def test_ciphers_and_versions(cipher: CipherSuite, version: int, tmp_path: Path) -> None:
    options: dict[str, Any] = {"cipher_suites": [cipher], "supported_versions": [version]}
    wire = connect(configuration(True, **options), configuration(False, **options))
    wire.run()
    transfer(wire)
    check(wire, tmp_path)


def test_compatible_version_negotiation(tmp_path: Path) -> None:
    client = configuration(True, original_version=V1, supported_versions=[V2, V1])
    wire = connect(client, configuration(False, supported_versions=[V2, V1]))
    wire.run()
    transfer(wire)
    packets, summary = decode(wire, tmp_path)
    # aioquic's acknowledgement of the server's Initial packet says version 2, and has the keys of version 1.
    assert "not decoded: 1 QUIC packets" in summary and "first in frame 3)" in summary
    sent = logged(wire.client.configuration)
    assert sent[1][:2] == ("Initial", 1)
    assert decoded(packets, "client") == sent[:1] + sent[2:]
    assert decoded(packets, "server") == logged(wire.server_settings)


@pytest.mark.parametrize("version", [V1, V2], ids=["v1", "v2"])
def test_retry(version: int, tmp_path: Path) -> None:
    options = {"supported_versions": [version]}
    wire = connect(configuration(True, **options), configuration(False, **options), with_retry=True)
    wire.run()
    transfer(wire)
    packets = check(wire, tmp_path)
    assert [packet["sender"] for packet in packets if packet["type"] == "Retry"] == ["server"]


@pytest.mark.parametrize("cipher", list(CipherSuite)[:3], ids=lambda cipher: str(cipher.name))
def test_zero_rtt(cipher: CipherSuite, tmp_path: Path) -> None:
    tickets: list[Any] = []
    first = Wire(
        QuicConnection(
            configuration=configuration(True, cipher_suites=[cipher]), session_ticket_handler=tickets.append
        ),
        configuration(False),
    )
    first.client.connect(("2001:db8::2", 443), first.now)
    first.run()
    assert tickets
    client = configuration(True, cipher_suites=[cipher], session_ticket=tickets[0])
    wire = connect(client, configuration(False), tickets=first.tickets)
    wire.client.send_stream_data(0, bytes(2000), end_stream=True)
    wire.run()
    transfer(wire)
    assert "0-RTT" in {packet["type"] for packet in check(wire, tmp_path)}


def test_zero_rtt_before_its_hello(tmp_path: Path) -> None:
    """A 0-RTT packet that overtakes the ClientHello waits for it, and is told of behind it."""
    tickets: list[Any] = []
    first = Wire(
        QuicConnection(configuration=configuration(True), session_ticket_handler=tickets.append),
        configuration(False),
    )
    first.client.connect(("2001:db8::2", 443), first.now)
    first.run()
    client = configuration(True, session_ticket=tickets[0])
    wire = connect(client, configuration(False), tickets=first.tickets)
    wire.client.send_stream_data(0, bytes(2500), end_stream=True)
    wire.run()
    in_order, _ = decode(wire, tmp_path)
    early = [packet["frame"] for packet in in_order if packet["type"] == "0-RTT"]
    hello = in_order[0]
    assert (hello["type"], hello["frame"]) == ("Initial", 1) and max(early) > 1
    moved = wire.captured.pop(0)
    wire.captured.insert(max(early) - 1, moved)
    packets, summary = decode(wire, tmp_path)
    assert "not decoded" not in summary, summary
    assert sorted(decoded(packets, "client")) == sorted(logged(client))
    times = {packet["number"]: packet["time_s"] for packet in in_order if packet["type"] == "0-RTT"}
    found = {packet["number"]: packet for packet in packets if packet["type"] == "0-RTT"}
    assert {number: packet["time_s"] for number, packet in found.items()} == times
    waited = [packet for packet in found.values() if packet["frame"] < max(early)]
    assert waited and packets.index(waited[0]) > [packet["type"] for packet in packets].index("Initial")

    wire.captured.remove(moved)
    _, summary = decode(wire, tmp_path)
    assert "not QUIC, or of a connection whose beginning was not seen (first in frame 1)" in summary


def test_key_updates_of_both_ends(tmp_path: Path) -> None:
    wire = connect(configuration(True), configuration(False))
    wire.run()
    assert wire.server is not None
    for end in (wire.client, wire.server, wire.server, wire.client):
        transfer(wire, 20_000)
        end.request_key_update()
    transfer(wire)
    check(wire, tmp_path)


@pytest.mark.parametrize("length", [1, 8, 20])
def test_connection_ids_and_a_new_address(length: int, tmp_path: Path) -> None:
    wire = connect(configuration(True, connection_id_length=length), configuration(False))
    wire.run()
    transfer(wire)
    wire.client.change_connection_id()
    transfer(wire)
    wire.client.change_connection_id()
    wire.client_address = ("2001:db8::1", 50001)
    transfer(wire)
    check(wire, tmp_path)


def test_datagram_frames(tmp_path: Path) -> None:
    options = {"max_datagram_frame_size": 1200}
    wire = connect(configuration(True, **options), configuration(False, **options))
    wire.run()
    wire.client.send_datagram_frame(bytes(500))
    wire.run()
    frames = [frame for packet in check(wire, tmp_path) for frame in packet["frames"]]
    assert {"type": "DATAGRAM", "length": 500} in frames


@pytest.mark.parametrize("version", [V1, V2], ids=["v1", "v2"])
@pytest.mark.parametrize("length", [1, 8, 20])
def test_a_capture_that_begins_in_the_middle(length: int, version: int, tmp_path: Path) -> None:
    """With a key log of this connection, everything from the first packet of each end on can be read."""
    client = configuration(True, connection_id_length=length, supported_versions=[version])
    wire = connect(client, configuration(False, supported_versions=[version]))
    wire.run()
    transfer(wire, 400_000)
    wire.client.request_key_update()
    transfer(wire)
    missed = len(wire.captured)
    del wire.captured[:]
    transfer(wire)
    assert missed > 300, "packet numbers take more than a byte"
    packets, summary = decode(wire, tmp_path)
    assert "not decoded" not in summary, summary
    assert {packet["connection"] for packet in packets} == {0}
    for sender, settings in (("client", wire.client.configuration), ("server", wire.server_settings)):
        sent = decoded(packets, sender)
        assert len(sent) > 3
        assert sent == logged(settings)[-len(sent) :]


def test_a_capture_that_begins_in_the_middle_of_many(tmp_path: Path) -> None:
    """A key log of many connections does not help: trying all of them would take too long."""
    wire = connect(configuration(True), configuration(False))
    wire.run()
    del wire.captured[:]
    transfer(wire)
    log = wire.client.configuration.secrets_log_file
    assert log is not None
    log.writelines(f"CLIENT_TRAFFIC_SECRET_0 {number:064x} {number:064x}\n" for number in range(8))
    packets, summary = decode(wire, tmp_path)
    assert packets == [] and "not QUIC, or of a connection whose beginning was not seen" in summary


def test_empty_connection_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then only addresses tell connections apart. An end without any must not issue more of them."""
    monkeypatch.setattr(QuicConnection, "_replenish_connection_ids", lambda self: None)
    wire = connect(configuration(True, connection_id_length=0), configuration(False, connection_id_length=0))
    wire.run()
    transfer(wire)
    check(wire, tmp_path)
    del wire.captured[:]
    transfer(wire)
    packets, summary = decode(wire, tmp_path)
    assert "not decoded" not in summary and len(packets) > 20
