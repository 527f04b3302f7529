"""Sends the same packets through Linux's queue disciplines, in a guest, and through ours, and says how far
they agree.

    python tools/queue_disciplines.py [--seeds 5] [--json] [--at-root]

A table for `docs/design/queue-disciplines.md`, a row for each comparison, over all seeds. The guest has a
kernel of its own, which `sh tools/queues/kernel/build.sh target/queues` builds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from typing import Any

from bentpipe import paths

KERNEL = paths.work() / "queues" / "linux"
BUILD = "sh tools/queues/kernel/build.sh target/queues"
HEAD = [
    "comparison",
    "packets",
    "dropped, ours / Linux",
    "marked",
    "another fate",
    "first after",
    "start apart, median / most",
    "mean wait",
]
Comparison = dict[str, Any]


def why_not() -> str | None:
    """The reason why nothing can be compared, in words; None if it can."""
    if not KERNEL.exists():
        return f"there is no {KERNEL}"
    check = ["sha256sum", "--check", "--status", str(KERNEL.with_name("sources"))]
    if subprocess.run(check, cwd=paths.root(), check=False).returncode:
        return f"the sources of {KERNEL} have changed since it was built"
    return None


def compare(seed: int, *words: str) -> list[Comparison]:
    """The comparisons with a seed. CalledProcessError if one fails: the program says why."""
    programs = [paths.program("bentpipe-guest"), KERNEL]
    program = paths.program("bentpipe-queue-comparison")
    command = [str(program), *map(str, programs), "--seed", str(seed), *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def table(found: list[Comparison]) -> str:
    """A table in Markdown."""
    names = list(dict.fromkeys(one["case"] for one in found))
    rows = [row(name, [one for one in found if one["case"] == name]) for name in names]
    lines = [HEAD, ["---"] * len(HEAD), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def row(name: str, found: list[Comparison]) -> list[str]:
    """The cells of a comparison: sums over its seeds, the first and the most of all."""
    packets = sum(one["packets"] for one in found)
    others = packets - sum(one["same_fate"] for one in found)
    firsts = [one["first_other_fate"] for one in found if one["first_other_fate"] is not None]
    median = statistics.median(one["start_apart_ns"]["p50"] for one in found)
    most = max(one["start_apart_ns"]["max"] for one in found)
    waits = [statistics.mean(one["mean_wait_ns"][side] for one in found) for side in ("ours", "linux")]
    return [
        name,
        str(packets),
        both(found, "dropped"),
        both(found, "marked"),
        str(others),
        f"{min(firsts) / 1e9:.2f} s" if firsts else "never",
        f"{median / 1e3:.1f} / {most / 1e3:.0f} µs",
        f"{waits[0] / 1e6:.2f} / {waits[1] / 1e6:.2f} ms",
    ]


def both(found: list[Comparison], what: str) -> str:
    return " / ".join(str(sum(one[what][side] for one in found)) for side in ("ours", "linux"))


def main() -> int:
    """Print the table; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="seeds 1 to N (default 5)")
    parser.add_argument("--json", action="store_true", help="print each comparison as an object of JSON")
    parser.add_argument("--at-root", action="store_true", help="let packets bypass Linux's empty queue")
    given = parser.parse_args()
    if why := why_not():
        print(f"error: {why}\nhint: build it with: {BUILD}", file=sys.stderr)
        return 1
    words = ["--at-root"] if given.at_root else []
    found = [one for seed in range(1, given.seeds + 1) for one in compare(seed, *words)]
    print("\n".join(map(json.dumps, found)) if given.json else table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
