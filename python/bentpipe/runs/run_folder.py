"""The folder of a run: who may write to it, and what remains of it however the run ends."""

from __future__ import annotations

import fcntl
import itertools
import os
import shlex
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bentpipe.errors import BentpipeError, UsageError, is_full
from bentpipe.runs import manifest
from bentpipe.runs.record_book import RecordBook
from bentpipe.runs.records import Record, read_jsonl, without_courses
from bentpipe.runs.stored_records import RECORDS, StoredRecords, readable
from bentpipe.runs.trial_files import (
    HOP_TRACES,
    LINK_EVENTS,
    PACKETS,
    REQUESTS,
    SUMMARY,
    TRACE,
    UNFINISHED,
    is_traced,
)
from bentpipe.schema.reading import FormatError

_PARTIAL = ".partial"


def unused_folder(name: str) -> Path:
    """A folder for a run that nobody named: of two that begin in the same second, the later has a number."""
    first = Path("runs") / f"{name}-{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}"
    further = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain([first], further) if not path.exists())


class DiskError(BentpipeError):
    """A failure to write a file of the run. What was finished before is kept."""


class RunFolder:
    """A run's folder, held by this process alone. Make one with `create` or `reopen`, and close it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.resume_options: Sequence[str] = ()  # that name who executes it
        self._lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise BentpipeError(f"{path} is in use by another bentpipe", "wait until it ends") from None
        self.records = RecordBook(path / RECORDS)

    @classmethod
    def create(cls, path: Path) -> RunFolder:
        """Make a folder for a new run; UsageError if something is in it already."""
        if path.exists() and not path.is_dir():
            raise UsageError(f"--out: {path} is not a folder", "choose another --out")
        if path.exists() and not _is_fresh(path):
            hint = f"choose another --out, or continue it with --resume {shlex.quote(str(path))}"
            raise UsageError(f"--out: {path} exists already and is not empty", hint)
        try:
            path.mkdir(parents=True, exist_ok=True)
            return cls(path)
        except OSError as error:
            raise DiskError(f"--out: {path} cannot be made: {error.strerror}") from error

    @classmethod
    def reopen(cls, path: Path) -> tuple[RunFolder, manifest.Manifest]:
        """Open the folder of an earlier run, with its records; and its manifest."""
        found = manifest.read(path)
        folder = cls(path)
        try:
            folder.records.load()
            trials = path / "trials"
            for left in (*trials.glob(f"*{_PARTIAL}"), *trials.glob(f"*/{UNFINISHED}*")):
                shutil.rmtree(left)
        except OSError as error:
            folder.close()
            raise BentpipeError(f"{path}: cannot be resumed: {error}") from error
        except ValueError as error:
            folder.close()
            hint = "remove the line that is no record; its trial is then run again"
            if isinstance(error.__cause__, FormatError):
                hint = "use the version of Bentpipe that wrote it"
            raise BentpipeError(f"{path / RECORDS}: cannot be resumed: {error}", hint) from error
        return folder, found

    def close(self) -> None:
        self.records.close()
        os.close(self._lock)

    def append(self, record: Record) -> None:
        """Add a record, or replace that of its trial; DiskError, and the file as it was before, if it cannot
        be written completely.
        """
        try:
            self.records.add(record)
        except OSError as error:
            raise self._disk_error(RECORDS, error) from error

    def write_manifest(self, values: manifest.Manifest) -> None:
        try:
            values.write(self.path)
        except OSError as error:
            raise self._disk_error(manifest.FILE, error) from error

    def complete(self, values: manifest.Manifest, order: Sequence[str]) -> None:
        """Seal the records of a run that has ended; its manifest says when that was, and of which versions
        the stacks were.
        """
        values.finished = manifest.now()
        values.versions["stacks"] = manifest.stack_versions(self.records[trial] for trial in order)
        self.seal(order)
        self.write_manifest(values)

    def seal(self, order: Sequence[str]) -> None:
        """Give each trial one line, and write `records.parquet`, with the trials in `order`."""
        from bentpipe.runs.table import write_parquet

        try:
            self.records.compact(order)
        except OSError as error:
            raise self._disk_error(RECORDS, error) from error
        try:
            write_parquet(lambda: (self.records[trial] for trial in order), self.path / "records.parquet")
        except OSError as error:
            raise self._disk_error("records.parquet", error) from error

    def trial_in_work(self, trial: str) -> Path:
        """The folder of a trial's files while it runs; nothing is there yet."""
        folder = self.path / "trials" / f"{trial}{_PARTIAL}"
        if folder.exists():
            shutil.rmtree(folder)
        return folder

    def keep_trial(self, trial: str) -> None:
        """Move a trial's files, if there are any, to their final place, replacing those of an earlier
        execution.
        """
        work, final = self.path / "trials" / f"{trial}{_PARTIAL}", self.trial(trial)
        if work.exists():
            if final.exists():
                shutil.rmtree(final)
            work.rename(final)

    def drop_trial(self, trial: str) -> None:
        """Remove the files of an execution that did not end."""
        shutil.rmtree(self.path / "trials" / f"{trial}{_PARTIAL}", ignore_errors=True)

    def has_trace(self, trial: str) -> bool:
        return is_traced(self.trial(trial))

    def forget_trace(self, trial: str) -> None:
        """Remove a trial's trace, analysis, events, requests and qlogs; what explains a failure is kept."""
        folder = self.trial(trial)
        hops = [path.name for path in folder.glob(HOP_TRACES)]
        for name in (TRACE, *hops, PACKETS, SUMMARY, REQUESTS, LINK_EVENTS):
            (folder / name).unlink(missing_ok=True)
        shutil.rmtree(folder / "qlog", ignore_errors=True)
        if folder.exists() and not any(folder.iterdir()):
            folder.rmdir()

    def trial(self, trial: str) -> Path:
        return self.path / "trials" / trial

    @property
    def resume_command(self) -> str:
        """The shell command that continues the run."""
        return shlex.join(["bentpipe", "run", "--resume", str(self.path), *self.resume_options])

    def disk_full(self, detail: str, scratch: str) -> DiskError:
        """The error for a write that failed because the disk is full, to this folder or to that of scratch
        files.
        """
        places = f"the run's folder {self.path} or the scratch folder {scratch}"
        return DiskError(f"the disk of {places} is full: {detail}", self._room_hint())

    def _disk_error(self, name: str, error: OSError) -> DiskError:
        hint = self._room_hint() if is_full(error) else f"then continue with: {self.resume_command}"
        return DiskError(f"{self.path / name}: cannot be written: {error.strerror}", hint)

    def _room_hint(self) -> str:
        return f"finished trials are kept; make room, then continue with: {self.resume_command}"


def read(folder: Path, *, courses: bool = True) -> tuple[manifest.Manifest, list[Record]]:
    """The manifest and the records of the run in `folder`, which is not changed. Without `courses` records
    have no curves, which take most of their memory. BentpipeError if that is no run, or has no records.
    """
    return manifest.read(folder), read_records(folder, courses=courses)


def read_records(folder: Path, *, courses: bool = True) -> list[Record]:
    """As `read`, the records alone."""
    records = _records(folder, courses)
    if not records:
        raise _without_records(folder)
    return records


def stored(folder: Path) -> StoredRecords:
    """The records of the run in `folder`, left on the disk; to be closed. BentpipeError if it has none, or
    invalid lines.
    """
    try:
        found = StoredRecords(folder)
    except FileNotFoundError:
        raise _without_records(folder) from None
    if not found:
        found.close()
        raise _without_records(folder)
    return found


def _without_records(folder: Path) -> BentpipeError:
    hint = f"continue it with: bentpipe run --resume {shlex.quote(str(folder))}"
    return BentpipeError(f"{folder}: no trial of this run has finished, so there are no records", hint)


def read_unfinished(folder: Path) -> tuple[manifest.Manifest, list[Record]]:
    """As `read`, of a run that may have no records yet."""
    return manifest.read(folder), _records(folder, True)


def _records(folder: Path, courses: bool) -> list[Record]:
    path = folder / RECORDS
    try:
        with readable(path):
            records = read_jsonl(path) if courses else map(without_courses, read_jsonl(path))
            # Of a trial that was run again the last line counts; a run that is complete has no other.
            return list({(record.cell_key, record.trial): record for record in records}.values())
    except FileNotFoundError:
        return []


def _is_fresh(folder: Path) -> bool:
    """Whether nothing is in `folder`, or no more than a run leaves that ended before it had its manifest."""
    left = (RECORDS, f"{manifest.FILE}{_PARTIAL}")
    return all(
        entry.name in left and entry.is_file() and (entry.name != RECORDS or entry.stat().st_size == 0)
        for entry in folder.iterdir()
    )
