"""What is transferred: a test case of `endpoints/CONTRACT.md`, section 2, and the files of it.

A workload is written `TESTCASE:SIZE` or `TESTCASE:COUNTxSIZE`, as in `transfer:10MiB` or
`multiplexing:2000x32B`; SIZE is that of each file. The canonical form, in bytes and with the count unless it
is 1, is what records hold and what seeds come from. `duration:30s` is a file that is too large to go through
in that time, and cut then. Where further flows share the path, they stand behind it (`bentpipe.plan.flows`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from bentpipe.errors import UsageError, one_of
from bentpipe.testcases import TESTCASES, FileCount

_SIZE = re.compile(r"([0-9]{1,18})\s*(|B|kB|KiB|MB|MiB|GB|GiB)")
_FACTORS = {"": 1, "B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30}
_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)\s*(ms|s|min)")
_MILLISECONDS = {"ms": 1, "s": 1000, "min": 60_000}
DURATION = "duration"
AND = " + "  # between a workload and further flows"
_COUNTED = re.compile(r"(?:([0-9]{1,18})\s*x\s*)?(.*)", re.DOTALL)
_MOST = 10**18  # bytes of a file: more is a slip of the hand
_CHUNK = 1 << 20
_BLOCK = 4096  # of a file system: what a small file takes


@dataclass(frozen=True)
class Workload:
    """A test case and its files, which are all of the same size."""

    testcase: str
    count: int
    file_bytes: int  # 0 of a duration: nobody knows beforehand how much comes
    duration_ms: int | None = None
    flows: tuple[str, ...] = ()  # in canonical form

    def __str__(self) -> str:
        """The canonical form."""
        return AND.join((self._own, *self.flows))

    @property
    def alone(self) -> Workload:
        """Without further flows."""
        return dataclasses.replace(self, flows=())

    @property
    def _own(self) -> str:
        if self.duration_ms is not None:
            return f"{DURATION}:{shown_time(self.duration_ms)}"
        return f"{self.testcase}:{self._counted()}{self.file_bytes}"

    @property
    def title(self) -> str:
        """In words: `transfer of 10 MiB`, `multiplexing of 2000 files of 32 B`."""
        many = f"{self.count} files of " if self.count > 1 else ""
        own = f"{self.testcase} of {many}{shown_size(self.file_bytes)}"
        if self.duration_ms is not None:
            own = f"{DURATION} of {shown_time(self.duration_ms)}"
        return f"{own} beside {AND.join(self.flows)}" if self.flows else own

    @property
    def size_bytes(self) -> int:
        """Of all files together."""
        return self.count * self.file_bytes

    @property
    def measured_bytes(self) -> int:
        """Of the files that measures are of: where there are two connections, those of the second."""
        return self.size_bytes - (self.file_bytes if self.testcase in ("resumption", "zerortt") else 0)

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files: one file is called by its size, several also have a number."""
        if self.duration_ms is not None:
            return (DURATION,)
        if self.count == 1:
            return (str(self.file_bytes),)
        return tuple(f"{self.file_bytes}-{number}" for number in range(1, self.count + 1))

    @property
    def requests(self) -> tuple[str, ...]:
        """What the client asks for, in this order."""
        return tuple(f"/{name}" for name in self.files)

    @property
    def room(self) -> int:
        """Bytes that the files take on a disk."""
        return self.count * -(-self.file_bytes // _BLOCK) * _BLOCK

    def _counted(self) -> str:
        return f"{self.count}x" if self.count > 1 else ""


def parse(text: str, where: str) -> Workload:
    """The workload that `text` names; UsageError that names `where` it was given otherwise."""
    own, *flows = text.split(AND)
    testcase, colon, files = (part.strip() for part in own.partition(":"))
    if testcase == DURATION:
        lasts_ms = milliseconds(files, f'{where}: "{text}"')
        if lasts_ms == 0:
            raise UsageError(f'{where}: "{text}" lasts no time', "give a time above 0")
        return Workload("transfer", 1, 0, lasts_ms, tuple(flows))
    if testcase not in TESTCASES:
        hint = one_of(testcase, (*TESTCASES, DURATION), "test cases") + "; as in transfer:10MiB"
        raise UsageError(f'{where}: "{text}": unknown test case "{testcase}"', hint)
    counts = TESTCASES[testcase]
    match = _COUNTED.fullmatch(files)
    if not colon or match is None or not match[2]:
        raise UsageError(f'{where}: "{text}" has no size', f"write {testcase}:{_example(counts)}")
    count = int(match[1]) if match[1] is not None else counts.default
    if count is None:
        hint = f"write {testcase}:COUNTxSIZE, as in {testcase}:{_example(counts)}"
        raise UsageError(f'{where}: "{text}": {testcase} needs a number of files', hint)
    if count < counts.least:
        what = "1 file" if counts.least == 1 else f"{counts.least} files"
        raise UsageError(f'{where}: "{text}": {testcase} needs at least {what}', "give a larger count")
    bytes_each = size(match[2], f'{where}: "{text}"')
    return Workload(testcase, count, bytes_each, flows=tuple(flows))


def canonical(texts: Iterable[str], where: str) -> tuple[str, ...]:
    """Workloads in canonical form, each once. UsageError, naming `where`, for what is none."""
    texts = list(texts)
    for text in texts:
        if AND.strip() in text:
            raise UsageError(f'{where}: "{text}" has a + in it', "give further flows by themselves: --flow")
    return tuple(dict.fromkeys(str(parse(text, where)) for text in texts))


def title(text: str) -> str:
    """A record's workload in words; one that this version does not know as it is written."""
    found = known(text)
    return found.title if found else text


def known(text: str) -> Workload | None:
    """A record's workload; None for one that this version does not know."""
    try:
        return parse(text, "workload")
    except UsageError:
        return None


def size(text: str, where: str) -> int:
    """Bytes from `10MiB`, `200 MB` or a plain number; UsageError that names `where` otherwise."""
    match = _SIZE.fullmatch(text.strip())
    count = int(match[1]) * _FACTORS[match[2]] if match else 0
    if not 0 < count < _MOST:
        raise UsageError(
            f'{where}: "{text}" is no size',
            "write a positive whole number below 10^18 bytes, with B, kB, MB, GB, KiB, MiB or GiB",
        )
    return count


def milliseconds(text: str, where: str) -> int:
    """A time, as in `30s` or `1500 ms`; UsageError that names `where` otherwise."""
    match = _TIME.fullmatch(text.strip())
    value = Decimal(match[1]) * _MILLISECONDS[match[2]] if match else None
    if value is None or value != int(value):
        raise UsageError(f'{where}: "{text}" is no time', "write whole milliseconds, as in 30s or 1500 ms")
    return int(value)


def shown_time(time_ms: int) -> str:
    """In the largest unit that leaves a whole number, as `30s` or `1500ms`."""
    return f"{time_ms}ms" if time_ms % 1000 else f"{time_ms // 1000}s"


def shown_size(count: int) -> str:
    """Bytes in the largest unit that leaves a whole number: `10 MiB`, `100 kB`, `1500 B`."""
    units = sorted(((factor, unit) for unit, factor in _FACTORS.items() if factor > 1), reverse=True)
    return next((f"{count // factor} {unit}" for factor, unit in units if count % factor == 0), f"{count} B")


def check_room(scratch: Path, workloads: Iterable[Workload], where: str, trials: int) -> None:
    """UsageError, naming `where` the workloads were given, if `scratch` has no room for all of their files
    and for the copies that the receivers of so many trials at a time make of those of the largest.
    """
    workloads = list(workloads)
    free = shutil.disk_usage(scratch).free
    served, largest = sum(one.room for one in workloads), max((one.room for one in workloads), default=0)
    if served + trials * largest > free:
        one_file = len(workloads) == 1 and workloads[0].count == 1
        what = f"a file of {_amount(served)}" if one_file else f"files of {_amount(served)}"
        raise UsageError(
            f"{where}: {what} and {'a copy' if trials == 1 else f'{trials} copies'} of "
            f"{'it' if one_file else 'them'}, one for each trial at a time, do not fit in the scratch folder "
            f"{scratch}: {_amount(free)} are free",
            "choose a smaller size or fewer --jobs, or name another scratch folder in TMPDIR",
        )


def write_files(folder: Path, workload: Workload) -> None:
    """The files of a workload, as `www_file` makes them; each has bytes of its own."""
    if workload.duration_ms is not None:
        return  # bentpipe-sim makes it
    for name in workload.files:
        www_file(folder, workload.file_bytes, name=name)


def www_file(
    folder: Path, size: int, stopped: Callable[[], bool] = lambda: False, name: str | None = None
) -> Path:
    """A file that is served: `size` bytes that do not compress, always the same ones for its name, which is
    its size unless given. OSError if it has no room. Once `stopped` says so, what is missing of it is not
    written any more.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (name or str(size))
    with path.open("wb") as file:
        for start in range(0, size, _CHUNK):
            if stopped():
                break
            drawn = hashlib.shake_128(f"bentpipe {path.name} {start}".encode())
            file.write(drawn.digest(min(_CHUNK, size - start)))
    return path


def _example(counts: FileCount) -> str:
    return "10MiB" if counts.least == 1 else "2x10kB" if counts.default else "2000x32B"


def _amount(size: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
