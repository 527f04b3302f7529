"""The records of a run on the disk: memory holds only which trials there are, and where their lines begin.

So what is made of them cell by cell, or a few at a time, is made of any number. Of a trial that was run again
the last line counts; a run that is complete has no other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from bentpipe.errors import BentpipeError
from bentpipe.runs.records import CellKey, Record, parse_line, was_cut_off

RECORDS = "records.jsonl"
_PART = 1 << 20  # bytes in which lines are counted at a time


class _Identity(msgspec.Struct):
    """The fields of a record that say which trial it is of."""

    trial: str
    scenario: str
    workload: str
    treatment: str
    testbed: str
    client: str
    server: str


class StoredRecords:
    """The records of a run, read when they are asked for. Several threads may use it."""

    def __init__(self, folder: Path) -> None:
        """BentpipeError if a line does not say which trial it is of, FileNotFoundError if the run has no file
        of them. What else a record says is looked at when it is read.
        """
        self._path = folder / RECORDS
        self._lines: dict[CellKey, dict[str, tuple[int, int]]] = {}  # trial → begin and length, in bytes
        with readable(self._path), ExitStack() as opened:
            # It stays open: a run that ends meanwhile replaces its file.
            self._file = opened.enter_context(self._path.open("rb"))
            self._find()
            opened.pop_all()

    def _find(self) -> None:
        decode = msgspec.json.Decoder(_Identity).decode
        begin = 0
        for number, line in enumerate(self._file, start=1):
            if line.strip():
                found: _Identity | Record
                try:
                    found = decode(line)
                except msgspec.MsgspecError:  # of an older format, or none at all
                    try:
                        found = parse_line(self._path, number, line)
                    except ValueError as error:
                        if was_cut_off(line, error):
                            return
                        raise
                self._lines.setdefault(CellKey.of(found), {})[found.trial] = begin, len(line)
            begin += len(line)

    def __len__(self) -> int:
        return sum(len(trials) for trials in self._lines.values())

    def __iter__(self) -> Iterator[Record]:
        """All of them, in the order of their lines. BentpipeError if one cannot be read."""
        places = (
            (begin, key, trial) for key, found in self._lines.items() for trial, (begin, _) in found.items()
        )
        for _, key, trial in sorted(places):
            yield self.of_trial(key, trial)

    @property
    def cells(self) -> list[CellKey]:
        """The cells, in the order in which they first appear."""
        return list(self._lines)

    def trials(self, key: CellKey) -> list[str]:
        """The trials of a cell."""
        return list(self._lines[key])

    def of_cell(self, key: CellKey) -> list[Record]:
        """The records of a cell. BentpipeError if one cannot be read, or is gone."""
        return [self.of_trial(key, trial) for trial in self._lines[key]]

    def of_trial(self, key: CellKey, trial: str) -> Record:
        """The record of one of a cell's trials; errors as of `of_cell`."""
        begin, length = self._lines[key][trial]
        with readable(self._path):
            line = os.pread(self._file.fileno(), length, begin)
            if len(line) < length:
                raise self._changed()
            try:
                found = Record.from_mapping(json.loads(line))
            except ValueError:  # which line that is, is counted only now
                found = parse_line(self._path, self._number(begin), line)
            if (found.cell_key, found.trial) != (key, trial):
                raise self._changed()
        return found

    def _changed(self) -> BentpipeError:
        return BentpipeError(f"{self._path} was changed while it was read", "try again")

    def _number(self, begin: int) -> int:
        """The number of the line that begins there, for an error."""
        number, place = 1, 0
        while place < begin:
            part = os.pread(self._file.fileno(), min(begin - place, _PART), place)
            number += part.count(b"\n")
            place += len(part) or begin
        return number

    def close(self) -> None:
        self._file.close()


class RecordsByTrial(Mapping[str, Record]):
    """Some of a run's records by their trials, read when they are looked up."""

    def __init__(self, stored: StoredRecords, cells: Mapping[str, CellKey]) -> None:
        """`cells` has the cell of each trial."""
        self._stored = stored
        self._cells = cells

    def __getitem__(self, trial: str) -> Record:
        return self._stored.of_trial(self._cells[trial], trial)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """BentpipeError for records of a run that cannot be read; FileNotFoundError is passed on."""
    try:
        yield
    except ValueError as error:
        raise BentpipeError(str(error), "the run may be of a newer version of Bentpipe") from error
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BentpipeError(f"{path}: cannot be read: {error.strerror}") from error
