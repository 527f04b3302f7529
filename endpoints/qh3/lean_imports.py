"""Leaves out, at start, what comes along with qh3 and virtual time has no use for: its asyncio layer, with it
asyncio, and HTTP/3. They are a quarter of the start-up time of the process.
"""

from __future__ import annotations

import sys
from types import ModuleType

# Module → the names that `qh3` takes from it, to offer them itself.
LEFT_OUT = {
    "qh3.asyncio": ("QuicConnectionProtocol", "connect", "serve"),
    "qh3.h3.connection": ("H3Connection", "ProtocolError"),
}


def leave_out() -> None:
    """To be called before the first import of qh3. What is left out is None afterwards."""
    for name, offered in LEFT_OUT.items():
        sys.modules[name] = ModuleType(name)
        for each in offered:
            setattr(sys.modules[name], each, None)
