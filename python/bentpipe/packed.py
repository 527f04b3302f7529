"""Files that other programs wrote, plain or compressed.

gzip (RFC 1952) and zstd (RFC 8878) are recognised by how a file begins, never by its name. A file is unpacked
as it is read, and no further than to a limit: a small one may hold gigabytes. `backports.zstd` is the
standard library's `compression.zstd` of Python 3.14.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from bentpipe.errors import BentpipeError, UsageError

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

SUFFIXES = (".gz", ".zst")  # what the two programs append to names
LARGEST_WINDOW_LOG = 27  # of zstd: the 128 MiB that its own program unpacks unasked
_STEP_BYTES = 2**20
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"  # behind a byte from 0x50 to 0x5f: a frame of zstd that holds no content
_OTHERS = {b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
_LONGEST_MAGIC = 6


def read(file: Path, most_bytes: int, hint: str) -> bytes:
    """The content of a file, decompressed. UsageError if there is no such file; BentpipeError if it is cut
    off or damaged, or has more than `most_bytes`. Both name the file, and hint at what it should be.
    """
    try:
        with file.open("rb") as opened:
            return _unpacked(opened, most_bytes)
    except FileNotFoundError:
        raise UsageError(f"{file}: there is no such file", hint) from None
    except IsADirectoryError:
        raise UsageError(f"{file} is a folder", hint) from None
    except EOFError:
        raise BentpipeError(f"{file}: is cut off: the end of what is packed in it is missing", hint) from None
    except (zlib.error, gzip.BadGzipFile, zstd.ZstdError) as error:
        raise BentpipeError(f"{file}: cannot be unpacked: {error}", hint) from None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}", hint) from error
    except ValueError as error:
        raise BentpipeError(f"{file}: {error}", hint) from None


def plain_name(file: Path) -> str:
    """The file's name without the extension of the compression."""
    return next((file.name.removesuffix(one) for one in SUFFIXES if file.name.endswith(one)), file.name)


def _unpacked(opened: io.BufferedReader, most_bytes: int) -> bytes:
    """ValueError for what is packed otherwise, and for too much."""
    begins = opened.peek(_LONGEST_MAGIC)[:_LONGEST_MAGIC]
    for magic, packer in _OTHERS.items():
        if begins.startswith(magic):
            raise ValueError(f"is packed by {packer}: unpack it first, or pack it by gzip or zstd")
    content = bytearray()
    with _reader(begins)(opened) as reader:
        while step := reader.read(_STEP_BYTES):
            content += step
            if len(content) > most_bytes:
                raise ValueError(f"has more than {most_bytes} bytes{'' if reader is opened else ' unpacked'}")
    return bytes(content)


def _reader(begins: bytes) -> Callable[[BinaryIO], BinaryIO]:
    """The reader of a file that begins with these bytes."""
    if begins.startswith(_GZIP):
        return lambda opened: gzip.GzipFile(fileobj=opened)  # type: ignore[return-value]
    if begins.startswith(_ZSTD) or (begins[1:4] == _SKIPPABLE and begins[0] & 0xF0 == 0x50):
        limits: dict[int, int] = {zstd.DecompressionParameter.window_log_max: LARGEST_WINDOW_LOG}
        return lambda opened: zstd.ZstdFile(opened, options=limits)  # type: ignore[return-value]
    return lambda opened: opened
