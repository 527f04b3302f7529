"""aioquic, set up for a job: configuration, options, and what is common to virtual time and sockets.

Model: aioquic's defaults stay as they are, except for what an option names. `iw` sets `K_INITIAL_WINDOW`, the
constant (in packets) from which both of its congestion controllers compute their first window and, for CUBIC,
the window after 2 s of silence: this is the one place where aioquic keeps it.
"""

# No pathlib: its import is a noticeable part of a short process.
# ruff: noqa: PTH118, PTH123

from __future__ import annotations

import json
import os
from typing import TextIO

from aioquic import __version__
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.congestion import base, cubic
from aioquic.quic.connection import END_STATES, QuicConnection, QuicConnectionState
from aioquic.quic.logger import QLOG_VERSION, QuicFileLogger, QuicLoggerTrace
from hq import ALPN
from job import Job

SERVER_NAME = "server"
CERT_NONE = 0  # ssl.CERT_NONE, without the import of ssl: the contract asks for no verification
IDLE_TIMEOUT = "idle timeout"  # the contract's words
KEYLOG_BUFFER = 1 << 16  # bytes; a connection has a few hundred of secrets


def version() -> str:
    """Name and version, as READY and people want it."""
    return f"aioquic {__version__}"


class QlogFiles(QuicFileLogger):
    """One qlog file for each connection, as aioquic's own, but written as one string and named for its end.

    aioquic writes piece by piece, through the part of `json` that is in Python, which costs several times as
    much; and both ends of a connection have the same file name there, though they may share a folder.
    """

    def end_trace(self, trace: QuicLoggerTrace) -> None:
        content = trace.to_dict()
        log = {"qlog_format": "JSON", "qlog_version": QLOG_VERSION, "traces": [content]}
        name = f"{content['common_fields']['ODCID']}_{content['vantage_point']['type']}.qlog"
        with open(os.path.join(self.path, name), "w") as file:
            file.write(json.dumps(log))
        self._traces.remove(trace)


def configure(job: Job) -> QuicConfiguration:
    """aioquic's configuration for the job's role and options; it opens the key log."""
    configuration = QuicConfiguration(
        is_client=job.role == "client",
        alpn_protocols=[ALPN],
        server_name=SERVER_NAME if job.role == "client" else None,
        verify_mode=CERT_NONE,
        quic_logger=QlogFiles(job.qlog) if job.qlog else None,
        secrets_log_file=_open_keylog(job.keylog),
    )
    if job.options.cc is not None:
        configuration.congestion_control_algorithm = job.options.cc
    if job.options.window is not None:
        configuration.max_data = configuration.max_stream_data = job.options.window
    if job.options.iw is not None:
        base.K_INITIAL_WINDOW = cubic.K_INITIAL_WINDOW = job.options.iw  # type: ignore[attr-defined]
    if job.role == "server":
        configuration.load_cert_chain(
            os.path.join(job.certs, "cert.pem"), os.path.join(job.certs, "priv.key")
        )
    return configuration


def has_ended(connection: QuicConnection) -> bool:
    """True from the CONNECTION_CLOSE on, sent or received, and after an idle timeout.

    aioquic tells of it by event only after the closing or draining period (RFC 9000 section 10.2), which
    nobody waits for.
    """
    return connection._close_event is not None and connection._state in END_STATES


def reason(connection: QuicConnection) -> str | None:
    """Why a connection that has just ended did so early, in words; None for error code 0 of either side."""
    event = connection._close_event
    if event is None or event.error_code == 0:
        return None
    if event.reason_phrase == "Idle timeout":
        return IDLE_TIMEOUT
    by = "closed by peer" if connection._state is QuicConnectionState.DRAINING else "closed"
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
