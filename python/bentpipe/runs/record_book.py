"""The records of a run under way: which trials have one is in memory, their content is on the disk.

A record is one append of one line. If that fails half way, for want of space, the half line is taken back; if
the process dies half way, the next one takes it back. So every line that stands is a whole record. One that
replaces another is appended, too: of a trial the last line counts, and `compact` drops the others.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bentpipe.runs.records import Record, parse_line

_PARTIAL = ".partial"


class RecordBook(Mapping[str, Record]):
    """Trial → record, in the order of their lines. A record that is looked up is read from the disk; none is
    cached.
    """

    def __init__(self, path: Path) -> None:
        """OSError if the file cannot be opened. One that is there already wants `load`."""
        self._path = path
        self._file = _open(path, os.O_CREAT)
        self._lines: dict[str, tuple[int, int]] = {}  # trial → where its line begins, and its length
        self._superseded = 0
        self._closed = False

    def load(self) -> None:
        """Find the records of an earlier process. ValueError, with the line, if one is not valid."""
        with self._path.open("rb") as file:
            begin = 0
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):  # the writer was interrupted here
                    os.ftruncate(self._file, begin)
                    return
                if line.strip():
                    record = parse_line(self._path, number, line)
                    self._superseded += record.trial in self._lines
                    self._lines[record.trial] = begin, len(line)
                begin += len(line)

    def add(self, record: Record) -> None:
        """Add a record; OSError, and the file as it was before, if it cannot be written whole."""
        line = f"{record.to_json()}\n".encode()
        before = os.fstat(self._file).st_size
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            os.ftruncate(self._file, before)
            raise
        self._superseded += record.trial in self._lines
        self._lines[record.trial] = before, len(line)

    def compact(self, order: Iterable[str]) -> None:
        """Drop lines that later ones have replaced, if there are any, and bring the rest into `order`. The
        file is replaced only once the new one is complete.
        """
        if not self._superseded:
            return
        partial = self._path.with_name(f"{self._path.name}{_PARTIAL}")
        lines, begin = {}, 0
        try:
            with partial.open("wb") as file:
                for trial in order:
                    line = self._line(trial)
                    file.write(line)
                    lines[trial] = begin, len(line)
                    begin += len(line)
            partial.replace(self._path)
            fresh = _open(self._path)
        except OSError:
            partial.unlink(missing_ok=True)
            raise
        os.close(self._file)
        self._file, self._lines, self._superseded = fresh, lines, 0

    def close(self) -> None:
        """Close the file for writing. The records can still be read."""
        os.close(self._file)
        self._closed = True

    def __getitem__(self, trial: str) -> Record:
        return Record.from_mapping(json.loads(self._line(trial)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, trial: object) -> bool:
        return trial in self._lines

    def _line(self, trial: str) -> bytes:
        begin, length = self._lines[trial]
        if not self._closed:
            return os.pread(self._file, length, begin)
        with self._path.open("rb") as file:
            file.seek(begin)
            return file.read(length)


def _open(path: Path, more: int = 0) -> int:
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | more, 0o644)
