"""Leaves out, at start, the modules that aioquic imports but does not use in a trial.

They are more than half of the start-up time of the process. Most are for checking certificates, which the
contract does not ask for; `inspect` writes a text for people about each of a hundred data classes; and what
`logging` gets nobody reads in virtual time. Each is replaced by a module that becomes the real one when
something else of it is used, so that nothing can go missing.
"""

from __future__ import annotations

import importlib
import sys
from enum import Enum
from types import ModuleType

CHECKING = ("OpenSSL", "OpenSSL.crypto", "certifi", "service_identity", "ssl")
SPOKEN = ("inspect", "logging")
# The part that aioquic uses is native; all else in it, extensions and names, is Python.
X509 = "cryptography.x509"
NATIVE = ("Certificate", "load_der_x509_certificate", "load_pem_x509_certificate")


class Version(Enum):
    """For `cryptography.x509.Version`, which the native code asks for, to say that it knows a certificate's
    version (RFC 5280 section 4.1.2.1).
    """

    v1 = 0
    v3 = 2


class Silence:
    """A logger, and an adapter of one, with the methods that aioquic calls."""

    def __init__(self, *_given: object, **_named: object) -> None: ...

    def debug(self, *_given: object, **_named: object) -> None: ...

    info = warning = error = debug


class Deferred(ModuleType):
    """A module that is imported when an attribute is first asked for that has not been given to it."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # the import machinery, asking what kind of module this is
            raise AttributeError(name)
        _restore()
        return getattr(importlib.import_module(self.__name__), name)


def defer() -> None:
    """To be called before the first import of aioquic."""
    _keep_silent()
    names = (*CHECKING, X509)
    if any(name in sys.modules for name in names):
        return
    from cryptography.hazmat.bindings._rust import x509

    for name in names:
        sys.modules[name] = Deferred(name)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, sys.modules[name])
    for name in NATIVE:
        setattr(sys.modules[X509], name, getattr(x509, name))
    setattr(sys.modules[X509], "Version", Version)  # noqa: B010
    # The one thing that a handshake without a check asks for; a constant of OpenSSL (SSL_VERIFY_NONE).
    setattr(sys.modules["ssl"], "CERT_NONE", 0)  # noqa: B010


def _keep_silent() -> None:
    """Has data classes described by their names alone, and nothing logged."""
    if "inspect" not in sys.modules:
        _replace("inspect", signature=lambda _described: "")
    if "logging" not in sys.modules:
        _replace(
            "logging",
            Logger=Silence,
            LoggerAdapter=Silence,
            getLogger=Silence,
            disable=Silence().debug,
            CRITICAL=None,
        )


def _replace(name: str, **used: object) -> None:
    """Defers a module that is not imported yet, but for what is used of it."""
    sys.modules[name] = Deferred(name)
    vars(sys.modules[name]).update(used)


def _restore() -> None:
    for name in (*CHECKING, X509, *SPOKEN):
        if isinstance(sys.modules.get(name), Deferred):
            del sys.modules[name]
