"""What is transferred."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from bentpipe.errors import UsageError

_CHUNK = 1 << 20


def check_room(scratch: Path, size: int, where: str) -> None:
    """UsageError, naming `where` the size was given, if `scratch` has no room for a file of `size` bytes and
    for the copy that a client makes of it.
    """
    free = shutil.disk_usage(scratch).free
    if 2 * size > free:
        raise UsageError(
            f"{where}: a file of {_amount(size)} and a client's copy of it do not fit in the scratch folder "
            f"{scratch}: {_amount(free)} are free",
            "choose a smaller size, or name another scratch folder in TMPDIR",
        )


def www_file(folder: Path, size: int, stopped: Callable[[], bool] = lambda: False) -> Path:
    """The file that is served: `size` bytes that do not compress, always the same ones. OSError if it has no
    room. Once `stopped` says so, what is missing of it is not written any more.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / str(size)
    with path.open("wb") as file:
        for start in range(0, size, _CHUNK):
            if stopped():
                break
            name = f"bentpipe {size} {start}".encode()
            file.write(hashlib.shake_128(name).digest(min(_CHUNK, size - start)))
    return path


def _amount(size: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
