"""The files of workloads, on a disk."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from bentpipe.errors import UsageError
from bentpipe.workload.model import Workload

_CHUNK = 1 << 20


def check_space(scratch: Path, workloads: Iterable[Workload], where: str, trials: int) -> None:
    """UsageError, naming `where` the workloads were given, if `scratch` has no space for all of their files
    and for the copies that the receivers of that many concurrent trials make of the largest ones.
    """
    workloads = list(workloads)
    free = shutil.disk_usage(scratch).free
    served, largest = (
        sum(one.disk_bytes for one in workloads),
        max((one.disk_bytes for one in workloads), default=0),
    )
    if served + trials * largest > free:
        one_file = len(workloads) == 1 and workloads[0].file_count == 1
        what = f"a file of {_amount(served)}" if one_file else f"files of {_amount(served)}"
        raise UsageError(
            f"{where}: {what} and {'a copy' if trials == 1 else f'{trials} copies'} of "
            f"{'it' if one_file else 'them'}, one for each trial at a time, do not fit in the scratch folder "
            f"{scratch}: {_amount(free)} are free",
            "choose a smaller size or fewer --jobs, or name another scratch folder in TMPDIR",
        )


def write_files(folder: Path, workload: Workload) -> None:
    """The files of a workload."""
    for name, size in workload.files.items():
        www_file(folder, size, name=name, content=workload.contents.get(name))


def www_file(
    folder: Path,
    size: int,
    stopped: Callable[[], bool] = lambda: False,
    name: str | None = None,
    content: bytes | None = None,
) -> Path:
    """A file that is served: its content, or `size` bytes that do not compress, always the same ones for its
    name, which is its size unless given. OSError if the disk is full. Once `stopped` says so, the rest of it
    is not written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (name or str(size))
    if content is not None:
        path.write_bytes(content)
        return path
    with path.open("wb") as file:
        for start in range(0, size, _CHUNK):
            if stopped():
                break
            drawn = hashlib.shake_128(f"bentpipe {path.name} {start}".encode())
            file.write(drawn.digest(min(_CHUNK, size - start)))
    return path


def _amount(size: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
