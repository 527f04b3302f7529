"""Sweeps the constants of Bentpipe's sender over the path model of the tests of crates/congestion.

    python tools/sender/sweep.py [--only NAME] [--jobs N] [--check] [--smallest]

It reads the constants from the sources, changes one at a time in a copy of the crate in a temporary folder,
runs `crates/congestion/examples/sender_paths.rs` there, and writes `tools/sender/measured.json` and
`docs/design/sender-constants.md`. A new constant needs no entry here.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sender_page
from sender_constants import ROOT, SOURCES, Constant, Row, Setting, constants, digest, rows

MEASURED = ROOT / "tools" / "sender" / "measured.json"
PAGE = ROOT / "docs" / "design" / "sender-constants.md"
LIBRARIES = ROOT / "target" / "sender-sweep"
PLACES = ("crates/congestion", "crates/units")
EXAMPLE = "sender_paths"
SETS = 5  # of seeds, the first of which the sweep uses
LONGEST = 300  # seconds that all paths may take
# As programs are built, but for overflows and debug assertions, which show in a sweep.
PROFILE = {"DEBUG_ASSERTIONS": "true", "OVERFLOW_CHECKS": "true", "INCREMENTAL": "true"}
Json = dict[str, Any]


@dataclass(frozen=True)
class Transfer:
    """A transfer over a path of the model."""

    taken: int  # ns
    drops: int
    sent: int


@dataclass(frozen=True)
class Outcome:
    """All transfers with one value of a constant."""

    transfers: dict[str, Transfer]
    failed: list[str]  # in words: it does not compile, does not end, or a path's transfer panics


class Workshop:
    """A copy of the crate, in which one constant at a time is another one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._building = threading.Lock()
        self._numbers = iter(range(1_000_000))
        for place in PLACES:
            shutil.copytree(ROOT / place, folder / place, ignore=shutil.ignore_patterns("target"))
            manifest = folder / place / "Cargo.toml"
            # The tests' own needs are not built.
            manifest.write_text(manifest.read_text().partition("\n[dev-dependencies]\n")[0] + "\n")
        workspace = (ROOT / "Cargo.toml").read_text()
        # The profiles of packages are about others.
        workspace = workspace.partition("\n[profile.release.package]\n")[0]
        members = f"members = {json.dumps(list(PLACES))}"
        (folder / "Cargo.toml").write_text(re.sub(r"^members = .*$", members, workspace, flags=re.MULTILINE))
        shutil.copy2(ROOT / "Cargo.lock", folder / "Cargo.lock")
        self._copy_libraries()

    def _copy_libraries(self) -> None:
        """Others' libraries, which are built once and kept for the next sweep."""
        manifests = [tomllib.loads((self._folder / place / "Cargo.toml").read_text()) for place in PLACES]
        needed = {name for manifest in manifests for name in manifest["dependencies"]}
        words = [word for name in sorted(needed) if not name.startswith("bentpipe-") for word in ("-p", name)]
        done = self._cargo(LIBRARIES, *words)
        if done.returncode:
            raise SystemExit(f"error: {done.stderr}")
        shutil.copytree(LIBRARIES, self._folder / "target")

    def _cargo(self, target: Path, *words: str) -> subprocess.CompletedProcess[str]:
        profile = {f"CARGO_PROFILE_RELEASE_{key}": value for key, value in PROFILE.items()}
        return subprocess.run(
            ["cargo", "build", "--release", "--quiet", *words],
            cwd=self._folder,
            env={**os.environ, **profile, "CARGO_TARGET_DIR": str(target)},
            capture_output=True,
            text=True,
            check=False,
        )

    def build(self, constant: Constant | None = None, setting: Setting | None = None) -> Path | str:
        """The program with another value of a constant; or the compiler's error."""
        with self._building:
            if constant is None or setting is None:
                return self._build()
            source = self._folder / SOURCES / constant.file
            text = source.read_text()
            source.write_text(text[: constant.start] + setting.text + text[constant.end :])
            try:
                return self._build()
            finally:
                source.write_text(text)

    def _build(self) -> Path | str:
        target = self._folder / "target"
        done = self._cargo(target, "-p", "bentpipe-congestion", "--example", EXAMPLE)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("error")]
            return (errors or done.stderr.splitlines() or ["no word of the compiler"])[0]
        program = self._folder / f"program-{next(self._numbers)}"
        shutil.copy2(target / "release" / "examples" / EXAMPLE, program)
        return program


def run(program: Path, *words: str) -> Outcome:
    """The transfers of a program."""
    try:
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return Outcome({}, [f"the transfers have not ended after {LONGEST} s"])
    transfers, failed = {}, []
    for path, *figures in (line.split("\t") for line in done.stdout.splitlines()):
        if figures[0] == "failed":
            failed.append(f"{path}: {figures[1]}")
        else:
            transfers[path] = Transfer(*map(int, figures))
    if done.returncode:
        failed.append(f"the program ends with {done.returncode}")
    return Outcome(transfers, failed)


def measure(workshop: Workshop, row: Row, setting: Setting, words: Iterable[str]) -> Outcome:
    """The transfers with another value."""
    program = workshop.build(row.constant, setting)
    if isinstance(program, str):
        return Outcome({}, [f"it does not compile: {program}"])
    try:
        return run(program, *words)
    finally:
        program.unlink()


def noise(base: Outcome, others: list[Outcome]) -> dict[str, float]:
    """By how much a path's time differs with other seeds, at most."""
    return {
        path: max((abs(other.transfers[path].taken / its.taken - 1) for other in others), default=0.0)
        for path, its in base.transfers.items()
    }


def summary(setting: Setting, base: Outcome, noises: dict[str, float], found: Outcome) -> Json:
    """What is kept of a value: all that the page needs."""
    ratios = {path: its.taken / base.transfers[path].taken for path, its in found.transfers.items()}
    # What other seeds would do as well says nothing.
    told = {path: 1.0 if abs(it - 1) <= noises[path] else it for path, it in ratios.items()}
    drops = {path: [base.transfers[path].drops, its.drops] for path, its in found.transfers.items()}
    return {
        "value": setting.shown,
        "failed": found.failed,
        "median": round(statistics.median(ratios.values()), 4) if ratios else None,
        "ratios": {path: round(it, 4) for path, it in sorted(told.items()) if abs(it - 1) > 0.005},
        "untouched": all(it == 1.0 for it in ratios.values()),
        "drops": {path: both for path, both in sorted(drops.items()) if changed_much(*both)},
    }


def changed_much(before: int, after: int) -> bool:
    """Whether so many drops are worth a line: 50 packets and a quarter more or less."""
    return abs(after - before) > max(50, before // 4)


def sweep(
    workshop: Workshop, chosen: list[Row], jobs: int, words: list[str], factors: set[float]
) -> Iterator[tuple[Json, dict[str, Json]]]:
    """The paths as they are today, and the rows swept so far, by their keys; after each row."""
    sources = digest()
    program = workshop.build()
    if isinstance(program, str):
        raise SystemExit(f"error: {program}")
    base = run(program, *words)
    if base.failed:
        raise SystemExit(f"error: {base.failed[0]}")
    with ThreadPoolExecutor(jobs) as pool:
        others = [pool.submit(run, program, *words, "--seeds", str(number)) for number in range(1, SETS)]
        noises = noise(base, [one.result() for one in others])
        paths = {
            path: {"taken": its.taken, "drops": its.drops, "noise": round(noises[path], 4)}
            for path, its in base.transfers.items()
        }
        wanted = {
            (at, setting): [factor for factor, it in row.settings.items() if it == setting]
            for at, row in enumerate(chosen)
            for factor, setting in row.settings.items()
            if factor in factors
        }
        tasks = {pool.submit(measure, workshop, chosen[at], it, words): (at, it) for at, it in wanted}
        found: dict[str, Json] = {}
        swept: dict[str, Json] = {}
        began = time.monotonic()
        for number, task in enumerate(as_completed(tasks), 1):
            at, setting = tasks[task]
            row = chosen[at]
            its = summary(setting, base, noises, task.result())
            values = swept.setdefault(row.key, {})
            values |= {f"{factor:g}": its for factor in wanted[at, setting]}
            took = time.monotonic() - began
            print(f"{number} of {len(tasks)}, {took:.0f} s: {row.key}: {setting.shown}", file=sys.stderr)
            if len(values) == len(factors & {*row.settings}):
                found[row.key] = {
                    "constant": row.constant.key,
                    "value": row.constant.value,
                    "sources": sources,
                    "factors": {
                        f"{factor:g}": values[f"{factor:g}"] for factor in sorted(factors & {*row.settings})
                    },
                }
                yield paths, found


def main() -> int:
    """Sweep, or check the page; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", metavar="NAME", action="append", help="sweep these constants, keep other rows"
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N")
    parser.add_argument("--page", action="store_true", help="sweep nothing; write the page anew")
    parser.add_argument("--check", action="store_true", help="sweep nothing; fail if the page is another one")
    parser.add_argument("--smallest", action="store_true", help="one value of one constant; write nothing")
    given = parser.parse_args()
    there = constants()
    if given.page:
        PAGE.write_text(sender_page.text(there, json.loads(MEASURED.read_text())))
    if given.check or given.page:
        return check(there)
    every = [row for constant in there for row in rows(constant)]
    chosen = [row for row in every if not given.only or row.constant.name in given.only]
    if unknown := {*(given.only or [])} - {row.constant.name for row in chosen}:
        print(f"error: no constant is called {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    words: list[str] = []
    factors = {factor for row in every for factor in row.settings}
    if given.smallest:
        chosen, words, factors = chosen[:1], ["--smallest"], {2.0}
    kept = json.loads(MEASURED.read_text())["rows"] if given.only else {}
    with tempfile.TemporaryDirectory(prefix="sender-sweep-") as folder:
        for paths, found in sweep(Workshop(Path(folder)), chosen, given.jobs, words, factors):
            if given.smallest:
                print(json.dumps({"paths": paths, "rows": found}, indent=1))
                continue
            # After each row: what ends early can go on with --only.
            now = kept | found
            measured = {"paths": paths, "rows": {row.key: now[row.key] for row in every if row.key in now}}
            MEASURED.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n")
    if given.smallest:
        return 0
    PAGE.write_text(sender_page.text(there, json.loads(MEASURED.read_text())))
    return check(there)


def check(there: list[Constant]) -> int:
    """Whether the page has today's constants and values; 1 if not."""
    measured = json.loads(MEASURED.read_text())
    stale = sender_page.stale(there, measured)
    if not stale and PAGE.read_text() != sender_page.text(there, measured):
        stale = ["the page is not as it is made of tools/sender/measured.json"]
    for one in stale:
        print(f"error: {one}\nhint: python tools/sender/sweep.py --only NAME", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
