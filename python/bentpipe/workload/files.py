"""Workloads of files that are all of the same size: `transfer:10MiB`, `multiplexing:2000x32B`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bentpipe.errors import UsageError
from bentpipe.workload.model import Kind, Workload, on_disk
from bentpipe.workload.testcase import TestCase
from bentpipe.workload.units import shown_size, size

_IN_H3 = ("hq-interop", "h3", "http/0.9")
TESTCASES = {
    "transfer": TestCase(protocols=_IN_H3),
    "handshake": TestCase(protocols=_IN_H3),
    "longrtt": TestCase(protocols=_IN_H3),
    "multiplexing": TestCase(least=2, default=None, protocols=_IN_H3),
    "resumption": TestCase(least=2, default=2, connections=2),
    # The request goes with the client's first packets.
    "zerortt": TestCase(least=2, default=2, connections=2, before=1.0),
    "upload": TestCase(sender="client", before=1.5, after=0.5),
}
_COUNTED = re.compile(r"(?:([0-9]{1,18})\s*x\s*)?(.*)", re.DOTALL)


@dataclass(frozen=True)
class FileTransfer(Workload):
    """A test case and its files."""

    name: str
    count: int
    file_bytes: int

    @property
    def own(self) -> str:
        counted = f"{self.count}x" if self.count > 1 else ""
        return f"{self.name}:{counted}{self.file_bytes}"

    @property
    def own_title(self) -> str:
        many = f"{self.count} files of " if self.count > 1 else ""
        return f"{self.name} of {many}{shown_size(self.file_bytes)}"

    @property
    def testcase(self) -> str:
        return self.name

    @property
    def requests(self) -> tuple[str, ...]:
        return tuple(f"/{name}" for name in self.files)

    @property
    def files(self) -> Mapping[str, int]:
        """The files; a single one is named by its size, several also have a number."""
        if self.count == 1:
            return {str(self.file_bytes): self.file_bytes}
        numbers = range(1, self.count + 1)
        return {f"{self.file_bytes}-{number}": self.file_bytes for number in numbers}

    @property
    def file_count(self) -> int:
        return self.count

    @property
    def size_bytes(self) -> int:
        return self.count * self.file_bytes

    @property
    def disk_bytes(self) -> int:
        return self.count * on_disk(self.file_bytes)

    @property
    def measured_bytes(self) -> int:
        """The bytes that are measured; where there are two connections, those of the second."""
        first = TESTCASES[self.name].connections - 1
        return (self.count - first) * self.file_bytes


def parse(name: str, value: str, where: str, flows: tuple[str, ...]) -> FileTransfer | None:
    """The workload `name:value`, if it is of this kind."""
    testcase = TESTCASES.get(name)
    if testcase is None:
        return None
    match = _COUNTED.fullmatch(value)
    if match is None or not match[2]:
        raise UsageError(f"{where} has no size", f"write {name}:{_example(testcase)}")
    count = int(match[1]) if match[1] is not None else testcase.default
    if count is None:
        hint = f"write {name}:COUNTxSIZE, as in {name}:{_example(testcase)}"
        raise UsageError(f"{where}: {name} needs a number of files", hint)
    if count < testcase.least:
        what = "1 file" if testcase.least == 1 else f"{testcase.least} files"
        raise UsageError(f"{where}: {name} needs at least {what}", "give a larger count")
    return FileTransfer(name, count, size(match[2], where), flows=flows)


def _example(testcase: TestCase) -> str:
    if testcase.least == 1:
        return "10MiB"
    return "2x10kB" if testcase.default else "2000x32B"


KIND = Kind(tuple(TESTCASES), parse, TESTCASES)
