"""Two aioquic endpoints, joined by a wire that is captured. Neither sockets nor clocks take part."""

from __future__ import annotations

import io
import ipaddress
import ssl
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aioquic._buffer import Buffer
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.logger import QuicLogger
from aioquic.quic.packet import encode_quic_retry, pull_quic_header

from bentpipe import paths

Address = tuple[str, int]
CLIENT: Address = ("2001:db8::1", 50000)
SERVER: Address = ("2001:db8::2", 443)
DELAY = 0.01  # seconds from end to end
RAW_IP = 101


def configuration(is_client: bool, **options: Any) -> QuicConfiguration:
    """The settings of an end; it keeps its secrets and a qlog."""
    made = QuicConfiguration(
        is_client=is_client,
        alpn_protocols=["hq-interop"],
        quic_logger=QuicLogger(),
        secrets_log_file=io.StringIO(),
        verify_mode=ssl.CERT_NONE,
        **options,
    )
    if not is_client:
        made.load_cert_chain(paths.certs() / "cert.pem", paths.certs() / "priv.key")
    return made


@dataclass
class Wire:
    """Carries datagrams between a client and a server, and keeps them."""

    client: QuicConnection
    server_settings: QuicConfiguration
    with_retry: bool = False
    tickets: dict[bytes, Any] = field(default_factory=dict)
    server: QuicConnection | None = None
    client_address: Address = CLIENT
    now: float = 1_000_000_000.0
    captured: list[tuple[float, Address, Address, bytes]] = field(default_factory=list)
    _first_destination: bytes | None = None

    def run(self, rounds: int = 12) -> None:
        """Carries what both ends want to send to and fro, and lets the time pass."""
        for _ in range(rounds):
            for data, _to in self.client.datagrams_to_send(self.now):
                self._to_server(data)
            self.now += DELAY
            if self.server is not None:
                for data, to in self.server.datagrams_to_send(self.now):
                    self._to_client(data, to)
            self.now += DELAY
            for end in filter(None, (self.client, self.server)):
                timer = end.get_timer()
                if timer is not None and timer <= self.now:
                    end.handle_timer(self.now)

    def _to_client(self, data: bytes, to: Address) -> None:
        self.captured.append((self.now, SERVER, to, data))
        self.client.receive_datagram(data, SERVER, self.now)

    def _to_server(self, data: bytes) -> None:
        self.captured.append((self.now, self.client_address, SERVER, data))
        if self.server is None and not self._accept(data):
            return
        assert self.server is not None
        self.server.receive_datagram(data, self.client_address, self.now)

    def _accept(self, data: bytes) -> bool:
        """Begins the server's connection; with Retry not before the client has come back."""
        header = pull_quic_header(Buffer(data=data), host_cid_length=8)
        retried = None
        if self.with_retry and not header.token:
            self._first_destination = header.destination_cid
            retry = encode_quic_retry(
                header.version or 0, b"retried!", header.source_cid, header.destination_cid, b"token"
            )
            self._to_client(retry, self.client_address)
            return False
        if self.with_retry:
            retried = header.destination_cid
        self.server = QuicConnection(
            configuration=self.server_settings,
            original_destination_connection_id=self._first_destination or header.destination_cid,
            retry_source_connection_id=retried,
            session_ticket_handler=lambda ticket: self.tickets.update({ticket.ticket: ticket}),
            session_ticket_fetcher=self.tickets.get,
        )
        return True

    def write(self, capture: Path, key_log: Path) -> None:
        """Writes classic pcap with microseconds, and the secrets beside it."""
        records = [struct.pack(">IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, RAW_IP)]
        for time, source, destination, data in self.captured:
            packet = _ipv6(source, destination, data)
            micros = round(time * 1_000_000)
            head = struct.pack(">IIII", micros // 1_000_000, micros % 1_000_000, len(packet), len(packet))
            records.append(head + packet)
        capture.write_bytes(b"".join(records))
        log = self.client.configuration.secrets_log_file
        assert isinstance(log, io.StringIO)
        key_log.write_text(log.getvalue())


def _ipv6(source: Address, destination: Address, data: bytes) -> bytes:
    addresses = b"".join(ipaddress.IPv6Address(address).packed for address, _ in (source, destination))
    udp = struct.pack(">HHHH", source[1], destination[1], 8 + len(data), 0) + data
    return struct.pack(">IHBB", 6 << 28, len(udp), 17, 64) + addresses + udp
