#!/usr/bin/env python3
"""A program of the QUIC interop runner, and no more: aioquic, with what the runner's images find. It knows
nothing of Bentpipe.
"""

import asyncio
import os
import ssl
import sys
from pathlib import Path
from urllib.parse import urlsplit

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent, StreamDataReceived

WINDOW = 16 * 2**20


class Server(QuicConnectionProtocol):
    """Answers `GET /name` with the file, on the same stream."""

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived) and event.end_stream:
            name = event.data.decode().split()[1].lstrip("/")
            self._quic.send_stream_data(event.stream_id, Path("/www", name).read_bytes(), True)
            self.transmit()


async def run_server() -> None:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["hq-interop"])
    configuration.load_cert_chain("/certs/cert.pem", "/certs/priv.key")
    await serve("::", 443, configuration=configuration, create_protocol=Server)
    await asyncio.Future()  # until it is killed


async def run_client() -> None:
    urls = [urlsplit(url) for url in os.environ["REQUESTS"].split()]
    configuration = QuicConfiguration(
        is_client=True,
        alpn_protocols=["hq-interop"],
        verify_mode=ssl.CERT_NONE,
        max_data=WINDOW,
        max_stream_data=WINDOW,
    )
    with Path(os.environ.get("SSLKEYLOGFILE", os.devnull)).open("a") as secrets:
        configuration.secrets_log_file = secrets
        first = urls[0]
        async with connect(first.hostname, first.port, configuration=configuration) as client:
            for url in urls:
                reader, writer = await client.create_stream()
                writer.write(f"GET {url.path}\r\n".encode())
                writer.write_eof()
                Path("/downloads", url.path.lstrip("/")).write_bytes(await reader.read())


if os.environ["TESTCASE"] not in ("handshake", "transfer"):
    sys.exit(127)
asyncio.run(run_server() if os.environ["ROLE"] == "server" else run_client())
