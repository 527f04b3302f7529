"""What is transferred."""

from __future__ import annotations

import hashlib
from pathlib import Path

_CHUNK = 1 << 20


def www_file(folder: Path, size: int) -> Path:
    """The file that is served: `size` bytes that do not compress, always the same ones. OSError if it has no
    room.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / str(size)
    with path.open("wb") as file:
        for start in range(0, size, _CHUNK):
            name = f"bentpipe {size} {start}".encode()
            file.write(hashlib.shake_128(name).digest(min(_CHUNK, size - start)))
    return path
