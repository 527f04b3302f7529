"""The cost of a run's records, by how many there are: written, replaced, sealed, and read as the report does.

    benches/scale/records.py [--records 20000,100000] [--smallest]

Records are copies of a real one, with names and seeds of their own, 20 in each cell. For each step: processor
time, and how much memory the process has at most until then beyond what it began with. The last column says
what the step takes for a record; where that grows with their number, the step is more than linear.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

sys.path.append(str(Path(__file__).resolve().parents[1]))
import settings

from bentpipe import paths
from bentpipe.analysis.cells import cells
from bentpipe.report import build, collection
from bentpipe.runs import run_folder
from bentpipe.runs.record_book import RecordBook
from bentpipe.runs.records import Record
from bentpipe.runs.table import write_parquet

EXAMPLE = paths.root() / "tests" / "runs" / "format-1"
REPLACED = 100  # one of so many records is replaced, as with --retry-failed
ITERATIONS = 20  # of a cell


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", default="20000,100000", metavar="N,…")
    counts = [int(word) for word in settings.read(parser, records="200").records.split(",")]
    print(f"{'records':>9} {'step':<36} {'CPU s':>8} {'MB more':>8} {'ms each':>8}")
    for count in counts:
        with tempfile.TemporaryDirectory(prefix="bentpipe-bench-") as name:
            # Each in a process of its own, for its memory.
            for step in (write, read_back, read_whole, read_lean, report, site):
                process = multiprocessing.get_context("spawn").Process(target=step, args=(Path(name), count))
                process.start()
                process.join()
                assert process.exitcode == 0


def write(folder: Path, count: int) -> None:
    base = Record.from_mapping(json.loads((EXAMPLE / "records.jsonl").read_text().splitlines()[0]))
    book = RecordBook(folder / "records.jsonl")

    def append() -> None:
        for number in range(count):
            book.add(copy(base, number))

    def replace() -> None:
        for number in range(0, count, REPLACED):
            book.add(copy(base, number))

    measured(count, "write as trials end", append)
    measured(count // REPLACED, "replace one in a hundred", replace)
    measured(count, "drop lines that were replaced", lambda: book.compact(list(book)))
    order = list(book)
    parquet = folder / "records.parquet"
    measured(
        count, "seal records.parquet", lambda: write_parquet(lambda: (book[one] for one in order), parquet)
    )
    lines, table = ((folder / name).stat().st_size // count for name in ("records.jsonl", "records.parquet"))
    print(f"{count:>9} bytes of a record: {lines} in records.jsonl, {table} in records.parquet")


def read_back(folder: Path, count: int) -> None:
    book = RecordBook(folder / "records.jsonl")
    measured(count, "find them, to resume", book.load)


def read_whole(folder: Path, count: int) -> None:
    shutil.copy(EXAMPLE / "manifest.json", folder)
    measured(count, "read all, as studies do", lambda: cells(run_folder.read(folder)[1]))


def read_lean(folder: Path, count: int) -> None:
    measured(
        count,
        "without courses, as comparisons do",
        lambda: cells(run_folder.read(folder, courses=False)[1]),
    )


def report(folder: Path, count: int) -> None:
    measured(count, "make the report", lambda: build(folder))
    pages = sum(file.stat().st_size for file in (folder / "report").rglob("*") if file.is_file())
    print(f"{count:>9} bytes of the report: {pages}")


def site(folder: Path, count: int) -> None:
    wanted = collection.Collection([folder], "Runs")
    measured(count, "make a site of it", lambda: collection.build(wanted, folder / "site"))
    pages = sum(file.stat().st_size for file in (folder / "site").rglob("*") if file.is_file())
    print(f"{count:>9} bytes of the site: {pages}")


def copy(base: Record, number: int) -> Record:
    cell, iteration = divmod(number, ITERATIONS)
    return msgspec.structs.replace(
        base,
        trial=f"{base.trial}-{number}",
        seed=f"{number:016x}",
        server=f"{base.server}:iw={cell + 1}",
        iteration=iteration + 1,
    )


def measured(count: int, name: str, step: Callable[[], object]) -> None:
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    kept = step()
    spent = time.process_time() - begin
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    print(f"{count:>9} {name:<36} {spent:8.1f} {more:8.0f} {1e3 * spent / count:8.3f}", flush=True)
    del kept


if __name__ == "__main__":
    main()
