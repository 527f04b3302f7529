"""Looks for what no test has shown yet: properties with new seeds and many more cases, every pair, storms.

`make soak MINUTES=30` goes through all searches in turn until the time is over, and stops at the first
failure. It prints each seed; `make soak SEED=… SEARCH=…` runs that search again. What it finds gets a test of
its own in `make test`.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "target" / "soak"
CASES = 4096  # of each property in Rust
PYTEST = [str(ROOT / ".venv" / "bin" / "python"), "-m", "pytest", "--quiet", "-x", "-p", "no:cacheprovider"]
CARGO = ["cargo", "test", "--release", "--locked", "--quiet"]
GIVE_UP_S = 5.0  # between asking a search to end and ending it


@dataclass(frozen=True)
class Search:
    """A command that draws all that it draws from one seed."""

    name: str
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)


def searches(seed: int) -> Iterator[Search]:
    """All searches, in the order in which they are gone through."""
    properties = {"PROPTEST_RNG_SEED": str(seed), "PROPTEST_CASES": str(CASES)}
    soak = {"BENTPIPE_SOAK_SEED": str(seed)}
    for crate in (
        "units",
        "link",
        "congestion",
        "unpack",
        "wire",
        "analysis",
        "qlog",
        "trace",
        "endpoint",
        "perf",
    ):
        yield Search(f"properties-{crate}", [*CARGO, "-p", f"bentpipe-{crate}"], properties)
    yield Search("properties-python", [*PYTEST, "-m", "hypothesis", "-n", "2"], soak)
    # Each case is a whole proxy, or a whole connection: fewer of them.
    dear = properties | {"PROPTEST_CASES": str(CASES // 16)}
    yield Search("properties-pep", [*CARGO, "-p", "bentpipe-pep"], dear)
    yield Search(
        "properties-noq", [*CARGO, "-p", "bentpipe-endpoint-noq", "-p", "bentpipe-endpoint-quinn"], dear
    )
    yield Search("pairs", [*PYTEST, "tests/python/test_soak_pairs.py", "-m", "soak"], soak)
    yield Search("refusals", [*PYTEST, "tests/python/test_conformance.py", "-m", "soak"], soak)
    yield Search("memory", [*PYTEST, "tests/python/test_pep_command.py", "-m", "soak"], soak)
    yield Search("crowds", [*CARGO, "-p", "bentpipe-pep", "--", "--ignored"])
    yield Search("explore", [*PYTEST, "tests/python/test_explore.py", "-m", "soak"], soak)
    yield Search("storms", [*PYTEST, "tests/python/test_soak_storms.py", "-m", "soak"], soak)


def main() -> int:
    options = arguments()
    LOGS.mkdir(parents=True, exist_ok=True)
    # A seed that is given is tried to its end: what it is to show again may take long.
    deadline = math.inf if options.seed is not None else time.monotonic() + 60 * options.minutes
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    names = [search.name for search in searches(seed)]
    if options.search not in (None, *names):
        print(
            f'error: there is no search "{options.search}"\nhint: one of {", ".join(names)}', file=sys.stderr
        )
        return 2
    ended = 0
    while time.monotonic() < deadline:
        for search in searches(seed):
            if options.search in (None, search.name) and time.monotonic() < deadline:
                code, seconds = run(search, seed, deadline)
                if code:
                    print(f"soak: again: make soak SEED={seed} SEARCH={search.name}")
                    print(f"soak: {ended} searches passed, 1 failed")
                    return 1
                ended += code == 0 and seconds > 0
        if options.seed is not None:
            break  # it would only be the same again
        seed = random.SystemRandom().getrandbits(32)
    print(f"soak: {ended} searches passed, 0 failed")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to search (default 10)")
    parser.add_argument("--seed", type=int, help="go through the searches once, with this seed")
    parser.add_argument("--search", help="this search alone")
    return parser.parse_args()


def run(search: Search, seed: int, deadline: float) -> tuple[int, float]:
    """Run a search, at most until the deadline: its exit code, and how many seconds it took; (0, 0) if the
    time was over first.
    """
    log = LOGS / f"{search.name}-{seed}.log"
    print(f"soak: {search.name}, seed {seed} … ", end="", flush=True)
    begin = time.monotonic()
    with log.open("wb") as kept:
        process = subprocess.Popen(search.command, cwd=ROOT, env=os.environ | search.env, stdout=kept,
                                   stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
        try:
            code = process.wait(None if deadline == math.inf else deadline - begin)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as end:
            stop(process)
            print("the time is over" if isinstance(end, subprocess.TimeoutExpired) else "interrupted")
            if isinstance(end, KeyboardInterrupt):
                raise SystemExit(130) from None
            return 0, 0.0
    seconds = time.monotonic() - begin
    print(f"{'ok' if code == 0 else 'FAILED'}, {seconds:.1f} s", flush=True)
    if code == 0:
        log.unlink()
    else:
        print(log.read_text(errors="replace")[-4000:])
        print(f"soak: the whole log: {log.relative_to(ROOT)}")
    return code, seconds


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a search and all that it started."""
    with contextlib.suppress(subprocess.TimeoutExpired, ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(GIVE_UP_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    sys.exit(main())
