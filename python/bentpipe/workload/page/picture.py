"""Pictures of any number of bytes."""

from __future__ import annotations

import hashlib
import math
import zlib

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHUNK = 12  # bytes of a chunk around its data
_FRAME = len(_SIGNATURE) + (_CHUNK + 13) + _CHUNK + _CHUNK  # with a header, one chunk of data and the end


def png(size: int) -> bytes | None:
    """A picture of noise, a PNG (W3C, third edition) of `size` incompressible bytes; None if that is too
    small for a few pixels.
    """
    side = math.isqrt(size // 3)
    while side > 0:
        # Rows of `side` pixels, each with a byte for its filter.
        for rows in range(side, 0, -1):
            body = _stored(rows * (1 + 3 * side))
            rest = size - _FRAME - body
            if rest == 0 or rest >= _CHUNK + 2:
                return _drawn(side, rows, rest)
        side -= 1
    return None


def _stored(count: int) -> int:
    """Bytes of a zlib stream that does not compress (RFC 1950, RFC 1951)."""
    return 2 + count + 5 * math.ceil(count / 65535) + 4


def _drawn(width: int, rows: int, rest: int) -> bytes:
    noise = hashlib.shake_128(f"bentpipe picture {width} {rows}".encode()).digest(rows * 3 * width)
    lines = b"".join(b"\0" + noise[3 * width * row : 3 * width * (row + 1)] for row in range(rows))
    chunks = [_chunk(b"IHDR", _big(width) + _big(rows) + bytes([8, 2, 0, 0, 0]))]
    if rest:
        chunks.append(_chunk(b"tEXt", b"a\0" + b"b" * (rest - _CHUNK - 2)))
    chunks += [_chunk(b"IDAT", _zlib(lines)), _chunk(b"IEND", b"")]
    return _SIGNATURE + b"".join(chunks)


def _zlib(data: bytes) -> bytes:
    parts = [data[at : at + 65535] for at in range(0, len(data), 65535)]
    blocks = [
        bytes([part is parts[-1]]) + _little(len(part)) + _little(65535 - len(part)) + part for part in parts
    ]
    return b"\x78\x01" + b"".join(blocks) + _big(zlib.adler32(data))


def _chunk(name: bytes, data: bytes) -> bytes:
    return _big(len(data)) + name + data + _big(zlib.crc32(name + data))


def _big(number: int) -> bytes:
    return number.to_bytes(4, "big")


def _little(number: int) -> bytes:
    return number.to_bytes(2, "little")
