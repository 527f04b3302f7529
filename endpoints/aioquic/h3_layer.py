"""aioquic's HTTP/3, for socket mode; apart from `dialect`, because virtual time does without it."""

from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived

__all__ = ["DataReceived", "H3Connection", "HeadersReceived"]
