"""What epochs cost where paths are short, and so epochs many: each program is asked in each of them.

    benches/epochs.py [--json] [--repeat 3] [--bytes 1000000000] [--smallest]

Four trials between two noqs: a transfer over `sat` and one over `leo-tum`, whose one-way delay is a fifth of
that, and the page `kosek` over `geo-tum`, direct and behind two proxies, with 0.1 ms of cable to either. For
each: epochs and packets, CPU of the coordinator for each of them, of the whole trial, and how many times
more its virtual seconds are than those on the wall. All take turns; medians.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import settings

BENTPIPE = [sys.executable, "-m", "bentpipe"]


@dataclass(frozen=True)
class Row:
    """Medians of a trial."""

    what: str
    epochs: int
    packets: int
    sim_s: float  # CPU of the coordinator
    cpu_s: float  # of all programs
    times_real: float  # by the wall


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="rounds (default 3)")
    parser.add_argument("--bytes", type=int, default=10**9, metavar="N", help="of a transfer (default 1 GB)")
    given = settings.read(parser, repeat=1, bytes=1_000_000)
    wanted = trials(given.bytes)
    with tempfile.TemporaryDirectory(prefix="bentpipe-bench-") as folder:
        rounds = [
            {what: _record(words, Path(folder)) for what, words in wanted.items()}
            for _ in range(given.repeat)
        ]
    rows = [_row(what, [one[what] for one in rounds]) for what in wanted]
    if given.json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
    else:
        print("\n".join([HEADING, *map(_line, rows)]))


def trials(size: int) -> dict[str, list[str]]:
    """What `bentpipe run` is asked for, by what it is."""
    transfer = ["--workload", f"transfer:{size}", "--set", "timeout=1200s"]
    return {
        f"{size / 1e6:.0f} MB over sat": ["--scenario", "sat", *transfer],
        f"{size / 1e6:.0f} MB over leo-tum": ["--scenario", "leo-tum", *transfer],
        "a page, direct": ["--scenario", "geo-tum", "--workload", "page:kosek"],
        "a page, two proxies": [
            *("--scenario", "geo-tum", "--workload", "page:kosek"),
            *("--treatment", "quic-pep", "--pep", "terminal,gateway"),
        ],
    }


def _record(words: list[str], folder: Path) -> dict[str, Any]:
    common = ["--client", "noq", "--server", "noq", "--iterations", "1", "--trace", "none", "--no-report"]
    out = tempfile.mkdtemp(dir=folder)
    command = [*BENTPIPE, "run", *words, *common, "--json", "--out", f"{out}/run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    record = json.loads(lines[-1]) if lines else {"outcome": "invalid", "detail": done.stderr}
    if record["outcome"] != "ok":
        sys.exit(f"error: {' '.join(words)}: {record['outcome']}: {record['detail']}")
    return dict(record)


def _row(what: str, records: list[dict[str, Any]]) -> Row:
    first = records[0]
    proxies = [sum(one["cpu_s"] or 0 for one in record.get("proxies") or []) for record in records]
    ends = [record["cpu_client_s"] + record["cpu_server_s"] for record in records]
    sims = [record["cpu_sim_s"] for record in records]
    return Row(
        what=what,
        epochs=first["epochs"],
        packets=first["forward_packets"] + first["return_packets"],
        sim_s=statistics.median(sims),
        cpu_s=statistics.median([sum(parts) for parts in zip(sims, ends, proxies, strict=True)]),
        times_real=statistics.median([record["virtual_s"] / record["wall_s"] for record in records]),
    )


HEADING = """\
                          epochs  packets  coordinator, CPU s   µs/epoch   µs/packet  in all, CPU s  x real"""


def _line(row: Row) -> str:
    return (
        f"{row.what:<22}{row.epochs:>10}{row.packets:>9}{row.sim_s:>20.3f}"
        f"{1e6 * row.sim_s / row.epochs:>11.1f}{1e6 * row.sim_s / row.packets:>12.1f}"
        f"{row.cpu_s:>15.3f}{row.times_real:>8.0f}"
    )


if __name__ == "__main__":
    main()
