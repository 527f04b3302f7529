"""A connection captured behind each link layer and in each tunnel: what tshark reads of it, bentpipe-trace
reads too, and neither the layer nor the byte order of the file changes it.
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

import link_layers
import pytest
import quic_wire
from aioquic.quic.connection import QuicConnection

from bentpipe import paths

TSHARK = shutil.which("tshark")
KEYS = Path("keys")


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a capture of raw IP with its secrets."""
    folder = tmp_path_factory.mktemp("connection")
    client = QuicConnection(configuration=quic_wire.configuration(is_client=True))
    client.connect(quic_wire.SERVER, now=0.0)
    client.send_stream_data(0, bytes(20_000), end_stream=True)
    wire = quic_wire.Wire(client, quic_wire.configuration(is_client=False))
    wire.run()
    wire.write(folder / "raw.pcap", folder / KEYS)
    return folder


def decode(capture: Path, keys: Path) -> tuple[list[dict[str, object]], str]:
    """The packets that bentpipe-trace finds, and what it says beside them."""
    command: list[str | Path] = [paths.program("bentpipe-trace"), "packets", capture, "--keylog", keys]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def tshark_numbers(capture: Path, keys: Path, *options: str) -> list[int]:
    """The numbers of the QUIC packets that tshark decrypts."""
    if TSHARK is None:
        pytest.skip("tshark is not installed (apt install tshark)")
    command: list[str | Path] = [TSHARK, "-r", capture, "-o", f"tls.keylog_file:{keys}", *options]
    command += ["-Y", "quic", "-T", "fields", "-e", "quic.packet_number"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [int(number) for line in done.stdout.splitlines() for number in line.split(",") if number]


@pytest.mark.parametrize("name", link_layers.LAYERS)
def test_a_connection_behind_each_link_layer(connection: Path, name: str, tmp_path: Path) -> None:
    link_type, layer = link_layers.LAYERS[name]
    packets = [(time, layer(ip)) for time, ip in link_layers.read(connection / "raw.pcap")]
    plain, _ = decode(connection / "raw.pcap", connection / KEYS)
    assert len(plain) > 20
    for order in "<>":
        capture = tmp_path / "other.pcap"
        link_layers.write(capture, link_type, packets, order)
        found, said = decode(capture, connection / KEYS)
        assert found == plain
        assert "not decoded" not in said
    numbers = [packet["number"] for packet in plain]
    assert tshark_numbers(tmp_path / "other.pcap", connection / KEYS) == numbers


def test_icmp_that_quotes_quic_is_not_counted_as_quic(connection: Path, tmp_path: Path) -> None:
    packets = link_layers.read(connection / "raw.pcap")
    plain, _ = decode(connection / "raw.pcap", connection / KEYS)
    quotes = []
    for time, ip in packets:
        head = ip[:6] + bytes((58, 64)) + ip[24:40] + ip[8:24]  # of ICMPv6, the other way
        icmp = struct.pack(">BBHI", 2, 0, 0, 1280) + ip
        quote = head[:4] + struct.pack(">H", len(icmp)) + head[6:] + icmp
        quotes += [(time, ip), (time, quote), (time, link_layers.outer(41, quote))]
    link_layers.write(tmp_path / "icmp.pcap", link_layers.RAW, quotes)
    found, said = decode(tmp_path / "icmp.pcap", connection / KEYS)
    assert [packet["number"] for packet in found] == [packet["number"] for packet in plain]
    assert "QUIC" not in said


def test_a_link_type_that_is_not_read_is_named(connection: Path, tmp_path: Path) -> None:
    packets = link_layers.read(connection / "raw.pcap")
    link_layers.write(tmp_path / "wifi.pcap", 105, packets)
    found, said = decode(tmp_path / "wifi.pcap", connection / KEYS)
    assert found == []
    assert "link type 105 (802.11, as a monitor sees it) is not read (hint: capture with Ethernet" in said
