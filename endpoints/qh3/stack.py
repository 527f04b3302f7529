"""qh3, set up for a job: configuration, options, and what is common to virtual time and sockets.

Model: qh3's defaults stay as they are, except for what an option names, and for Ed25519: qh3's client does
not offer it unless told to, and the contract's certificate has such a key.
"""

# No pathlib: its import is a noticeable part of a short process.
# ruff: noqa: PTH118, PTH123

from __future__ import annotations

import json
import os
from typing import TextIO

from hq import ALPN
from job import Job
from qh3 import __version__
from qh3.quic.configuration import QuicConfiguration
from qh3.quic.connection import QuicConnection
from qh3.quic.logger import QLOG_VERSION, QuicFileLogger, QuicLoggerTrace
from qh3.tls import SignatureAlgorithm

SERVER_NAME = "server"
# What qh3 2.1.0 offers by itself (`tls.Context`), and Ed25519.
SIGNATURES: list[int] = [
    SignatureAlgorithm.ECDSA_SECP256R1_SHA256,
    SignatureAlgorithm.RSA_PSS_RSAE_SHA256,
    SignatureAlgorithm.RSA_PKCS1_SHA256,
    SignatureAlgorithm.ECDSA_SECP384R1_SHA384,
    SignatureAlgorithm.RSA_PSS_RSAE_SHA384,
    SignatureAlgorithm.RSA_PKCS1_SHA384,
    SignatureAlgorithm.RSA_PSS_RSAE_SHA512,
    SignatureAlgorithm.RSA_PKCS1_SHA512,
    SignatureAlgorithm.RSA_PKCS1_SHA1,
    SignatureAlgorithm.ED25519,
]
CERT_NONE = 0  # ssl.CERT_NONE, without the import of ssl: the contract asks for no verification
IDLE_TIMEOUT = "idle timeout"  # the contract's words
KEYLOG_BUFFER = 1 << 16  # bytes; a connection has a few hundred of secrets


def version() -> str:
    """Name and version, as READY and people want it."""
    return f"qh3 {__version__}"


class QlogFiles(QuicFileLogger):
    """One qlog file for each connection, as qh3's own, but written as one string and named for its end.

    qh3 writes piece by piece, through the part of `json` that is in Python, which costs several times as
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
    """qh3's configuration for the job's role and options; it opens the key log."""
    configuration = QuicConfiguration(
        is_client=job.role == "client",
        alpn_protocols=[ALPN],
        server_name=SERVER_NAME if job.role == "client" else None,
        verify_mode=CERT_NONE,
        signature_algorithms=SIGNATURES,
        quic_logger=QlogFiles(job.qlog) if job.qlog else None,
        secrets_log_file=_open_keylog(job.keylog),
    )
    if job.options.mtu is not None:
        configuration.max_datagram_size, configuration.probe_datagram_size = job.options.mtu, False
    if job.options.window is not None:
        configuration.max_data = configuration.max_stream_data = job.options.window
    if job.role == "server":
        configuration.load_cert_chain(
            os.path.join(job.certs, "cert.pem"), os.path.join(job.certs, "priv.key")
        )
    return configuration


def has_ended(connection: QuicConnection) -> bool:
    """True from the CONNECTION_CLOSE on, sent or received, and after an idle timeout.

    qh3 tells of it by event only after the closing or draining period (RFC 9000 section 10.2), which
    nobody waits for.
    """
    return connection._close_event is not None


def reason(connection: QuicConnection) -> str | None:
    """Why a connection that has just ended did so early, in words; None for error code 0 of either side."""
    event = connection._close_event
    if event is None or event.error_code == 0:
        return None
    if event.reason_phrase == "Idle timeout":
        return IDLE_TIMEOUT
    core = connection._core
    by = "closed by peer" if core is not None and core.state == "draining" else "closed"
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
