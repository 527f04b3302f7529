"""The cost of a site of many runs.

    benches/site.py [--runs 20] [--trials 5000] [--smallest]

So many runs of so many trials are made up: how long their site took, and how large it is.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "python"))

import fake_run  # noqa: E402
import msgspec  # noqa: E402
import settings  # noqa: E402

from bentpipe.report import collection  # noqa: E402
from bentpipe.runs.records import Record  # noqa: E402

ITERATIONS = 10
SPREAD = 0.1  # by so much made-up numbers vary, either way


def varied(record: Record, client: str, number: int, draw: random.Random) -> Record:
    """The record with other numbers: columns of equal ones would be compressed too well."""
    values = msgspec.to_builtins(record)
    measured = {
        name: type(value)(value * draw.uniform(1 - SPREAD, 1 + SPREAD))
        for name, value in values.items()
        if type(value) in (int, float) and name not in ("format", "ip", "size_bytes")
    }
    told = {"client": client, "iteration": number // 1000 + 1, "trial": f"trial-{number}"}
    return Record.from_mapping(values | measured | told)


def write(folder: Path, day: int, trials: int) -> None:
    """A run of that many trials: cells of ten iterations."""
    made = fake_run.write(folder, iterations=1)
    told = json.loads((folder / "manifest.json").read_text()) | {"started": f"2026-03-{day:02}T00:00:00Z"}
    (folder / "manifest.json").write_text(json.dumps(told))
    draw, cells = random.Random(day), max(1, trials // ITERATIONS)
    with (folder / "records.jsonl").open("w") as file:
        for number in range(trials):
            cell = number % cells
            client = f"quinn:iw={10 + cell // len(made)}"
            file.write(f"{varied(made[cell % len(made)], client, number, draw).to_json()}\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="(default 20)")
    parser.add_argument("--trials", type=int, default=5000, metavar="N", help="of each (default 5000)")
    given = settings.read(parser, runs=2, trials=40)
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch, f"run-{day}") for day in range(1, given.runs + 1)]
        for day, folder in enumerate(folders, start=1):
            write(folder, day, given.trials)
        began = time.perf_counter()
        collection.build(collection.Collection(folders, "Made-up runs"), Path(scratch, "site"))
        took_s = time.perf_counter() - began
        size = sum(file.stat().st_size for file in Path(scratch, "site").rglob("*") if file.is_file())
    print(f"{given.runs} runs of {given.trials} trials: made in {took_s:.0f} s, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
