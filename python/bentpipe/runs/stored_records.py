"""The records of a run on the disk: in memory is which trials there are, and where their lines begin.

So what is made of them cell by cell, or a few at a time, is made of any number. Of a trial that was run again
the last line counts; a run that is complete has no other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from bentpipe.errors import BentpipeError
from bentpipe.runs.records import CellKey, Record, parse_line, was_cut_off

RECORDS = "records.jsonl"


class _Trial(msgspec.Struct):
    """Of a record what says which trial it is of."""

    trial: str
    scenario: str
    workload: str
    treatment: str
    testbed: str
    client: str
    server: str

    @property
    def cell_key(self) -> CellKey:
        return CellKey(self.scenario, self.workload, self.treatment, self.testbed, self.client, self.server)


class StoredRecords:
    """The records of a run, read whenever somebody asks for them. It may be asked by several threads."""

    def __init__(self, folder: Path) -> None:
        """BentpipeError if a line is no record, FileNotFoundError if the run has no file of them. What a
        record says may turn out later to be of another format.
        """
        self._path = folder / RECORDS
        self._lines: dict[CellKey, dict[str, tuple[int, int]]] = {}  # trial → begin and length, in bytes
        with readable(self._path), ExitStack() as opened:
            # It stays open: a run that ends meanwhile replaces its file.
            self._file = opened.enter_context(self._path.open("rb"))
            self._find()
            opened.pop_all()

    def _find(self) -> None:
        decode = msgspec.json.Decoder(_Trial).decode
        begin = 0
        for number, line in enumerate(self._file, start=1):
            if line.strip():
                found: _Trial | Record
                try:
                    found = decode(line)
                except msgspec.MsgspecError:  # of an older format, or none at all
                    try:
                        found = parse_line(self._path, number, line)
                    except ValueError as error:
                        if was_cut_off(line, error):
                            return
                        raise
                self._lines.setdefault(found.cell_key, {})[found.trial] = begin, len(line)
            begin += len(line)

    def __len__(self) -> int:
        return sum(len(trials) for trials in self._lines.values())

    def __iter__(self) -> Iterator[Record]:
        """All of them, cell by cell. BentpipeError if one cannot be read."""
        for key in self._lines:
            yield from self.of_cell(key)

    @property
    def cells(self) -> list[CellKey]:
        """In the order in which they first appear."""
        return list(self._lines)

    def trials(self, key: CellKey) -> list[str]:
        """The trials of a cell."""
        return list(self._lines[key])

    def of_cell(self, key: CellKey) -> list[Record]:
        """The records of a cell. BentpipeError if one cannot be read, or not any more."""
        return [self.of_trial(key, trial) for trial in self._lines[key]]

    def of_trial(self, key: CellKey, trial: str) -> Record:
        """The record of one of a cell's trials; errors as of `of_cell`."""
        begin, length = self._lines[key][trial]
        with readable(self._path):
            line = os.pread(self._file.fileno(), length, begin)
            if len(line) < length:
                raise ValueError(f"{self._path} was changed while it was read")
            try:
                found = Record.from_mapping(json.loads(line))
            except ValueError:  # which line that is, is counted only now
                found = parse_line(self._path, self._number(begin), line)
            if (found.cell_key, found.trial) != (key, trial):
                raise ValueError(f"{self._path} was changed while it was read")
        return found

    def _number(self, begin: int) -> int:
        """Of the line that begins there, for an error."""
        return 1 + os.pread(self._file.fileno(), begin, 0).count(b"\n")

    def close(self) -> None:
        self._file.close()


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """BentpipeError for what cannot be read in the records of a run; FileNotFoundError stays."""
    try:
        yield
    except ValueError as error:
        raise BentpipeError(str(error), "the run may be of a newer version of Bentpipe") from error
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BentpipeError(f"{path}: cannot be read: {error.strerror}") from error
