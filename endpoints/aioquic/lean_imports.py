"""Leaves out, at start, the modules that aioquic imports for checking certificates only.

The contract asks for no check, and these modules are a third of the start-up time of the process (README).
Each is replaced by a module that becomes the real one when something of it is used, so that nothing can go
missing.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

CHECKING = ("OpenSSL", "OpenSSL.crypto", "certifi", "service_identity", "ssl")


class Deferred(ModuleType):
    """A module that is imported when an attribute is first asked for."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # the import machinery, asking what kind of module this is
            raise AttributeError(name)
        _restore()
        return getattr(importlib.import_module(self.__name__), name)


def defer() -> None:
    """To be called before the first import of aioquic."""
    if any(name in sys.modules for name in CHECKING):
        return
    for name in CHECKING:
        sys.modules[name] = Deferred(name)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, sys.modules[name])
    # The one thing that a handshake without a check asks for; a constant of OpenSSL (SSL_VERIFY_NONE).
    setattr(sys.modules["ssl"], "CERT_NONE", 0)  # noqa: B010


def _restore() -> None:
    for name in CHECKING:
        if isinstance(sys.modules.get(name), Deferred):
            del sys.modules[name]
