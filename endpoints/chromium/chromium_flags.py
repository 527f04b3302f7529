"""Chromium's command line: one page over one protocol, from a server of ours, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from page_job import HOST, LATER_VISIT, UPGRADE, Job

# Background activity of a browser: updates, lists, metrics, guesses.
_QUIET = (
    "--no-first-run", "--no-default-browser-check", "--no-pings", "--disable-background-networking",
    "--disable-client-side-phishing-detection", "--disable-component-update", "--disable-default-apps",
    "--disable-domain-reliability", "--disable-extensions", "--disable-sync", "--metrics-recording-only",
    "--disable-breakpad",
    "--disable-features=OptimizationHints,MediaRouter,Translate,NetworkTimeServiceQuerying",
    "--no-proxy-server", "--disable-dev-shm-usage", "--disable-gpu", "--mute-audio",
)  # fmt: skip

# With a ticket over QUIC it sends early data, unless an experiment of its makers takes that away.
_NO_EARLY_DATA = (
    "--force-fieldtrials=QUIC/Enabled/", "--force-fieldtrial-params=QUIC.Enabled:disable_tls_zero_rtt/true",
)  # fmt: skip

_NO_PORT = 9  # of a server that nothing is asked of


def flags(job: Job, profile: Path) -> list[str]:
    """The arguments with which Chromium loads the page of `job`."""
    address = ipaddress.ip_address(job.address)
    shown = f"[{address}]" if address.version == 6 else str(address)
    return [
        "--headless",
        # As root, or in a user namespace, there is no sandbox; the page is our own.
        "--no-sandbox",
        "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
        f"--host-resolver-rules=MAP {HOST} {shown}, MAP * ~NOTFOUND",
        f"--ignore-certificate-errors-spki-list={_key_digest(job.certificates)}",
        *_QUIET,
        *_of_protocol(job),
        *(_NO_EARLY_DATA if job.testcase == LATER_VISIT else ()),
        "about:blank",
    ]


def _of_protocol(job: Job) -> list[str]:
    """Those of HTTP/3: from the first packet on, when it has been named as an alternative, or not at all."""
    # Where QUIC is forced on one port of a host, Chromium takes certificates of unknown authorities for all.
    forced = {"h3": job.port, UPGRADE: _NO_PORT}.get(job.alpn)
    if forced is None:
        return ["--disable-quic"]
    return ["--enable-quic", f"--origin-to-force-quic-on={HOST}:{forced}"]


def _key_digest(certificates: Path) -> str:
    """SHA-256 of the public key of the server's certificate, as Chromium wants it."""
    found = x509.load_pem_x509_certificate((certificates / "cert.pem").read_bytes())
    key = found.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(key).digest()).decode()
