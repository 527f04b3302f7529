"""Makes the certificates of this folder anew: `python3 make.py`, with the package cryptography, which
Bentpipe's own environment has.

The authority's key is not kept, so that nothing else is ever signed with it.
"""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

FOLDER = Path(__file__).parent
NAMES = ("server", "localhost")
# This machine's loopback, and the server of an emulated path.
ADDRESSES = ("127.0.0.1", "::1", "198.51.100.1", "2001:db8:2::1")
VALID = (datetime(1999, 1, 1, tzinfo=UTC), datetime(2049, 12, 31, tzinfo=UTC))


def main() -> None:
    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer, subject = _name("Bentpipe laboratory CA P-256"), _name("server")
    of_authority = (
        _certificate(issuer, issuer, authority.public_key(), 1)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority.public_key()), critical=False)
        .sign(authority, hashes.SHA256())
    )
    of_server = (
        _certificate(issuer, subject, server.public_key(), 2)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_alternatives(), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False
        )
        .sign(authority, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (FOLDER / "ca.pem").write_bytes(of_authority.public_bytes(pem))
    (FOLDER / "cert.pem").write_bytes(of_server.public_bytes(pem))
    key = server.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (FOLDER / "priv.key").write_bytes(key)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePublicKey, serial: int
) -> x509.CertificateBuilder:
    begin, end = VALID
    made = x509.CertificateBuilder().issuer_name(issuer).subject_name(subject)
    return made.public_key(key).serial_number(serial).not_valid_before(begin).not_valid_after(end)


def _alternatives() -> x509.SubjectAlternativeName:
    addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in ADDRESSES]
    return x509.SubjectAlternativeName([*(x509.DNSName(name) for name in NAMES), *addresses])


if __name__ == "__main__":
    main()
