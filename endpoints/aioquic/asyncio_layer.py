"""aioquic's asyncio layer, for socket mode; apart from `dialect`, because asyncio takes long to import."""

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve

__all__ = ["QuicConnectionProtocol", "serve"]
