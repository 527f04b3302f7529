"""qh3's asyncio layer, for socket mode; apart from `dialect`, because it takes long to import."""

from qh3.asyncio.protocol import QuicConnectionProtocol
from qh3.asyncio.server import serve

__all__ = ["QuicConnectionProtocol", "serve"]
