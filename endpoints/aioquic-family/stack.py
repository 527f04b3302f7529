"""The library, set up for a job: configuration, logs, tickets, and how a connection ended.

Model: the library's defaults stay as they are, except for what an option names and for what `dialect` says.
"""

# No pathlib: its import is a noticeable part of a short process.
# ruff: noqa: PTH118, PTH123

from __future__ import annotations

import json
import os
from typing import Protocol, TextIO

import dialect
from dialect import (
    QLOG_VERSION,
    QuicConfiguration,
    QuicConnection,
    QuicEvent,
    QuicFileLogger,
    QuicLoggerTrace,
    SessionTicket,
)
from job import Job

SERVER_NAME = "server"
H3_NO_ERROR = 0x100  # RFC 9114 section 8.1
CERT_NONE = 0  # ssl.CERT_NONE, without the import of ssl: the contract asks for no verification
IDLE_TIMEOUT = "idle timeout"  # the contract's words
KEYLOG_BUFFER = 1 << 16  # bytes; a connection has a few hundred of secrets


class Session(Protocol):
    """One connection and what is spoken over it."""

    connection: QuicConnection
    reason: str | None  # why it ended early, once it has

    @property
    def wake_ns(self) -> int | None:
        """When `proceed` is to be called, though nothing comes; None: never."""

    def handle(self, event: QuicEvent, now_ns: int) -> None:
        """Takes an event that the connection gave out at `now_ns`."""

    def proceed(self, now_ns: int) -> None:
        """To be called before the connection is asked what it wants to send."""


class QlogFiles(QuicFileLogger):
    """One qlog file for each connection, as of the library, but written as one string and named for its end.

    The library writes piece by piece, through the part of `json` that is in Python, which costs several times
    as much; and both ends of a connection have the same file name there, though they may share a folder.
    """

    def end_trace(self, trace: QuicLoggerTrace) -> None:
        content = trace.to_dict()
        log = {"qlog_format": "JSON", "qlog_version": QLOG_VERSION, "traces": [content]}
        name = f"{content['common_fields']['ODCID']}_{content['vantage_point']['type']}.qlog"
        with open(os.path.join(self.path, name), "w") as file:
            file.write(json.dumps(log))
        self._traces.remove(trace)


class IssuedTickets:
    """The tickets of a server, each of them for one use."""

    def __init__(self) -> None:
        self._tickets: dict[bytes, SessionTicket] = {}

    def add(self, ticket: SessionTicket) -> None:
        self._tickets[ticket.ticket] = ticket

    def take(self, label: bytes) -> SessionTicket | None:
        return self._tickets.pop(label, None)


def configure(job: Job) -> QuicConfiguration:
    """The library's configuration for the job's role and options; it opens the key log."""
    configuration = QuicConfiguration(
        is_client=job.role == "client",
        alpn_protocols=[job.alpn],
        server_name=SERVER_NAME if job.role == "client" else None,
        verify_mode=CERT_NONE,
        quic_logger=QlogFiles(job.qlog) if job.qlog else None,
        secrets_log_file=_open_keylog(job.keylog),
    )
    window = job.options.get("window")
    if window is not None:
        configuration.max_data = configuration.max_stream_data = int(window)
    dialect.configure(configuration, job.options)
    if job.role == "server":
        configuration.load_cert_chain(
            os.path.join(job.certs, "cert.pem"), os.path.join(job.certs, "priv.key")
        )
    return configuration


def reason(connection: QuicConnection) -> str | None:
    """Why a connection that has just ended did so early, in words; None for an end without error."""
    event = connection._close_event
    if event is None or event.error_code in (0, H3_NO_ERROR):
        return None
    if event.reason_phrase == "Idle timeout":
        return IDLE_TIMEOUT
    by = "closed by peer" if dialect.is_draining(connection) else "closed"
    return f"{by}: code {event.error_code:#x} {event.reason_phrase}".rstrip()


def finish_logs(configuration: QuicConfiguration) -> None:
    """Writes the qlog files of connections that have not ended, and the key log."""
    logger, keylog = configuration.quic_logger, configuration.secrets_log_file
    if logger is not None:
        traces: list[QuicLoggerTrace] = list(logger._traces)
        for trace in traces:
            logger.end_trace(trace)
    if keylog is not None:
        keylog.close()


def _open_keylog(path: str | None) -> TextIO | None:
    return open(path, "a", buffering=KEYLOG_BUFFER) if path else None
