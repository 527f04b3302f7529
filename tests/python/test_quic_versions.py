"""Drafts of QUIC, as aioquic speaks them with the salts and Retry keys of the time: bentpipe-trace reads what
tshark reads. Versions that are not decoded are named.
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import aioquic.quic.crypto
import aioquic.quic.packet
import link_layers
import pytest
import quic_wire
from aioquic.quic.connection import QuicConnection

from bentpipe import paths

TSHARK = shutil.which("tshark")
# draft-ietf-quic-tls-29 sections 5.2 and 5.8, as they were up to draft 32.
SALT = bytes.fromhex("afbfec289993d24c9e9786f19c6111e04390a899")
RETRY_KEY = bytes.fromhex("ccce187ed09a09d05728155a6cb96be1")
RETRY_NONCE = bytes.fromhex("e54930f97f2136f0530a8c1c")
CLIENT, SERVER = quic_wire.CLIENT, quic_wire.SERVER


def draft(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Has aioquic speak a draft."""
    if number > 32:
        return
    monkeypatch.setattr(aioquic.quic.crypto, "INITIAL_SALT_VERSION_1", SALT)
    monkeypatch.setattr(aioquic.quic.packet, "RETRY_AEAD_KEY_VERSION_1", RETRY_KEY)
    monkeypatch.setattr(aioquic.quic.packet, "RETRY_AEAD_NONCE_VERSION_1", RETRY_NONCE)


def decode(capture: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [paths.program("bentpipe-trace"), "packets", capture, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def captured(folder: Path, number: int, with_retry: bool) -> tuple[Path, Path]:
    """A connection of a draft: its capture and its secrets."""
    versions = [0xFF000000 + number]
    ends = [quic_wire.configuration(is_client, supported_versions=versions) for is_client in (True, False)]
    client = QuicConnection(configuration=ends[0])
    client.connect(SERVER, now=0.0)
    client.send_stream_data(0, bytes(20_000), end_stream=True)
    wire = quic_wire.Wire(client, ends[1], with_retry=with_retry)
    wire.run()
    capture, keys = folder / "a.pcap", folder / "keys"
    wire.write(capture, keys)
    return capture, keys


def packets(capture: Path, keys: Path) -> list[dict[str, Any]]:
    done = decode(capture, "--keylog", keys)
    assert "not decoded" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def tshark(capture: Path, keys: Path, field: str) -> list[str]:
    """Every value of a field."""
    if TSHARK is None:
        pytest.skip("tshark is not installed (apt install tshark)")
    command: list[str | Path] = [
        TSHARK,
        "-r",
        capture,
        "-o",
        f"tls.keylog_file:{keys}",
        "-T",
        "fields",
        "-e",
        field,
    ]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [value for line in table.splitlines() for value in line.split(",") if value]


@pytest.mark.parametrize("number", [29, 32, 33, 34])
def test_drafts_are_decoded(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draft(monkeypatch, number)
    capture, keys = captured(tmp_path, number, with_retry=False)
    numbers = [str(packet["number"]) for packet in packets(capture, keys)]
    assert len(numbers) > 20 and numbers == tshark(capture, keys, "quic.packet_number")
    assert set(tshark(capture, keys, "quic.version")) == {f"0xff0000{number:02x}"}

    command: list[str | Path] = [
        paths.program("bentpipe-trace"),
        "analyze",
        capture,
        "--keylog",
        keys,
        "-o",
        tmp_path,
    ]
    subprocess.run(command, check=True, capture_output=True)
    (connection,) = json.loads((tmp_path / "analysis.json").read_text())["connections"]
    assert connection["version"] == f"draft-{number}"


@pytest.mark.parametrize("number", [29, 32, 33, 34])
def test_retry_packets_of_drafts_are_authentic(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft(monkeypatch, number)
    capture, keys = captured(tmp_path, number, with_retry=True)
    found = {packet["type"] for packet in packets(capture, keys)}
    assert found == {"Initial", "Retry", "Handshake", "1-RTT"}
    assert not [text for text in tshark(capture, keys, "_ws.expert.message") if "Retry" in text]


def long_header(version: bytes) -> bytes:
    return b"\xc3" + version + b"\x08" + bytes(8) + b"\0\0\x40\x40" + bytes(64)


def test_versions_that_are_not_decoded_are_named(tmp_path: Path) -> None:
    payloads = {
        b"\x0d" + bytes(8) + b"Q043" + bytes(40): "QUIC version Q043 (gQUIC) is not decoded",
        long_header(b"Q046"): "QUIC version Q046 (gQUIC) is not decoded",
        long_header(b"T051"): "QUIC version T051 (gQUIC) is not decoded",
        long_header(b"\xff\0\0\x1b"): "QUIC version draft-27 is not decoded",
        long_header(b"\xfa\xce\xb0\x02"): "QUIC version 0xfaceb002 (mvfst) is not decoded",
        long_header(b"\x1a\x2a\x3a\x4a"): "QUIC version 0x1a2a3a4a (reserved) is not decoded",
        long_header(b"\x12\x34\x56\x78"): "QUIC version 0x12345678 is not known, if it is QUIC",
    }
    packets = []
    for payload in payloads:
        udp = struct.pack(">HHHH", 50_000, 443, 8 + len(payload), 0) + payload
        packets.append((0, link_layers.outer(17, udp)))
    link_layers.write(tmp_path / "a.pcap", link_layers.RAW, packets)
    said = decode(tmp_path / "a.pcap").stderr
    for reason in payloads.values():
        assert reason in said
