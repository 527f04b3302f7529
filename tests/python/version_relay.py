"""A relay of datagrams over loopback that notes in which versions of QUIC a server's long headers are."""

from __future__ import annotations

import socket
import threading
from typing import Self

VERSION_2 = 0x6B3343CF  # RFC 9369


class VersionRelay:
    """One client's datagrams go to the server's port, and its answers back, while it is entered."""

    def __init__(self, server_port: int) -> None:
        self.versions: set[int] = set()
        self._server = ("127.0.0.1", server_port)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._pass_on, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # An empty datagram, of which QUIC has none, ends it.
        self._socket.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join()
        self._socket.close()

    def _pass_on(self) -> None:
        client = None
        while True:
            try:
                data, origin = self._socket.recvfrom(65536)
            except ConnectionRefusedError:  # one of the ends has gone
                continue
            if not data:
                return
            if origin != self._server:
                client = origin
                self._socket.sendto(data, self._server)
            elif client is not None:
                if data[0] & 0x80:
                    self.versions.add(int.from_bytes(data[1:5]))
                self._socket.sendto(data, client)
