"""How many times faster than real time carriers and low orbits are, with one flow of quinn.

    benches/satellites.py [--json] [--repeat 3] [--scenarios rcs2-shared,…] [--seconds 60] [--smallest]

All scenarios take turns. For each: the terminals that share its carriers; the packets of a trial, those of
other terminals' sources included; CPU of the coordinator for each of them, and of the whole trial,
coordinator and both programs; how many times more the virtual seconds are than those of CPU, and than those
of the clock on the wall. All are medians. A busy machine shows in the wall's.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

import settings
import timed_trial

from bentpipe.workload import www_file

TERMINALS = {
    "dvb-s2-clear": 1,
    "dvb-s2-rain": 1,
    "viasat-dama": 1,
    "rcs2-shared": 8,
    "starlink": 1,
    "oneweb-like": 1,
    "leo-walker": 1,
}
BYTES_PER_S = 20_000_000  # no link of these carries more
ALONE_TARGET, SHARED_TARGET = 50, 20  # times real time


@dataclass(frozen=True)
class Row:
    """A scenario: medians."""

    scenario: str
    terminals: int
    packets: int
    per_packet_us: float
    cpu_s: float
    times_cpu: float
    times_wall: float

    @property
    def target(self) -> int:
        """How many times faster than real time it is to be."""
        return ALONE_TARGET if self.terminals == 1 else SHARED_TARGET


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="rounds (default 3)")
    parser.add_argument("--scenarios", default=",".join(TERMINALS), help="which (default all)")
    parser.add_argument("--seconds", type=int, default=60, metavar="N", help="of each trial (default 60)")
    arguments = settings.read(parser, repeat=1, seconds=5)
    wanted = arguments.scenarios.split(",")
    if unknown := [one for one in wanted if one not in TERMINALS]:
        parser.error(f"--scenarios: {unknown[0]} is unknown (hint: it is one of {', '.join(TERMINALS)})")
    size = BYTES_PER_S * arguments.seconds
    with tempfile.TemporaryDirectory(prefix="bentpipe-bench-") as name:
        folder = Path(name)
        www_file(folder / "www", size)
        rounds = [
            {one: timed_trial.cost(one, size, arguments.seconds, folder) for one in wanted}
            for _ in range(arguments.repeat)
        ]
    rows = [row(one, [costs[one] for costs in rounds], arguments.seconds) for one in wanted]
    if arguments.json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
    else:
        print("\n".join([HEADING, *map(line, rows), verdict(rows)]))


def row(scenario: str, costs: list[timed_trial.Cost], seconds: int) -> Row:
    cpu_s = statistics.median(cost.cpu_s for cost in costs)
    return Row(
        scenario=scenario,
        terminals=TERMINALS[scenario],
        packets=costs[0].packets,
        per_packet_us=statistics.median(cost.per_packet_us for cost in costs),
        cpu_s=cpu_s,
        times_cpu=seconds / cpu_s,
        times_wall=seconds / statistics.median(cost.wall_s for cost in costs),
    )


HEADING = """\
                                      coordinator's CPU   CPU s  times faster, by
scenario       terminals   packets    us for each packet  in all      CPU    wall"""


def line(row: Row) -> str:
    return (
        f"{row.scenario:<14} {row.terminals:>9} {row.packets:>9} {row.per_packet_us:>21.2f}"
        f" {row.cpu_s:>7.2f} {row.times_cpu:>8.0f} {row.times_wall:>7.0f}"
    )


def verdict(rows: list[Row]) -> str:
    """The targets, and whether they are met."""
    missed = [row.scenario for row in rows if row.times_wall < row.target]
    said = f"missed ({', '.join(missed)})" if missed else "met"
    return (
        f"at least {ALONE_TARGET} times faster than real time, by the wall, and {SHARED_TARGET} with several "
        f"terminals: {said}"
    )


if __name__ == "__main__":
    main()
