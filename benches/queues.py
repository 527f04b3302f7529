"""The cost of each queue discipline in virtual time, beside drop-tail, and how many times faster than real
time a busy link is: 100 web-like sources beside one flow of quinn.

    benches/queues.py [--json] [--repeat 3] [--queues fq-codel,pie,…] [--seconds 120] [--smallest]

The path is that of `sat` with queues of 1 BDP. Twice: with the flow alone, and with sources of 100 kbit/s
each that share the way to the client. All disciplines take turns, drop-tail first in each round. For each:
the packets of a trial, those of sources included; CPU of the coordinator for each of them (the median);
the median of the ratios to the round's drop-tail, with the least and the largest; CPU of the whole trial,
coordinator and both programs (the median); how many times more the virtual seconds are than those of CPU, and
than those of the clock on the wall (medians). A busy machine shows in the wall's.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import settings
import timed_trial
from timed_trial import Cost

from bentpipe.workload import www_file

DROP_TAIL = "drop-tail"
QUEUES = {
    DROP_TAIL: '"1 BDP"',
    "head-drop": '{ size = "1 BDP", aqm = "head-drop" }',
    "step": '{ size = "1 BDP", aqm = "step", mark_above = "5 ms" }',
    "red": '{ size = "1 BDP", aqm = "red", min = "0.1 BDP", max = "0.3 BDP" }',
    "pie": '{ size = "1 BDP", aqm = "pie" }',
    "pi2": '{ size = "1 BDP", aqm = "pi2" }',
    "dualpi2": '{ size = "1 BDP", aqm = "dualpi2" }',
    "codel": '{ size = "1 BDP", aqm = "codel" }',
    "fq": '{ size = "1 BDP", aqm = "fq" }',
    "fq-codel": '{ size = "1 BDP", aqm = "fq-codel" }',
}
LOADS = {"one flow": 0, "100 sources beside it": 100}
PATH = """\
title = "A link that {sources} sources share"
source = "sat, with longer queues"
timeout = "{seconds} s"
[satellite.forward]
rate = "20 Mbit/s"
delay = "300 ms"
queue = {queue}
sources = [{each}]
[satellite.return]
rate = "2 Mbit/s"
delay = "300 ms"
queue = "1 BDP"
"""
CPU_TARGET = 1.3  # times drop-tail's, for each packet
SPEED_TARGET = 20  # times real time
BYTES_PER_S = 2_500_000  # the link carries no more


@dataclass(frozen=True)
class Row:
    """A discipline under a load: medians."""

    load: str
    queue: str
    packets: int
    per_packet_us: float
    ratio: float  # to drop-tail's
    least_ratio: float
    largest_ratio: float
    cpu_s: float
    times_cpu: float
    times_wall: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="rounds (default 3)")
    parser.add_argument("--queues", default=",".join(QUEUES), help="beside drop-tail (default all)")
    parser.add_argument("--seconds", type=int, default=120, metavar="N", help="of each trial (default 120)")
    arguments = settings.read(parser, repeat=1, seconds=5)
    wanted = dict.fromkeys([DROP_TAIL, *arguments.queues.split(",")])
    if unknown := [queue for queue in wanted if queue not in QUEUES]:
        sys.exit(f"error: --queues: {unknown[0]} is unknown (hint: it is one of {', '.join(QUEUES)})")
    rows = []
    with tempfile.TemporaryDirectory(prefix="bentpipe-bench-") as name:
        folder = Path(name)
        www_file(folder / "www", BYTES_PER_S * arguments.seconds)
        for load in LOADS:
            rows += measure(load, list(wanted), folder, arguments)
    if arguments.json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
    else:
        print("\n".join([HEADING, *map(line, rows), *verdicts(rows)]))


def measure(load: str, queues: list[str], folder: Path, given: argparse.Namespace) -> list[Row]:
    """All disciplines in turns."""
    rounds = [
        {queue: trial(load, queue, given.seconds, folder) for queue in queues} for _ in range(given.repeat)
    ]
    return [row(load, queue, rounds, given.seconds) for queue in queues]


def row(load: str, queue: str, rounds: list[dict[str, Cost]], seconds: int) -> Row:
    costs = [one[queue] for one in rounds]
    ratios = [one[queue].per_packet_us / one[DROP_TAIL].per_packet_us for one in rounds]
    cpu_s = statistics.median(cost.cpu_s for cost in costs)
    return Row(
        load=load,
        queue=queue,
        packets=costs[0].packets,
        per_packet_us=statistics.median(cost.per_packet_us for cost in costs),
        ratio=statistics.median(ratios),
        least_ratio=min(ratios),
        largest_ratio=max(ratios),
        cpu_s=cpu_s,
        times_cpu=seconds / cpu_s,
        times_wall=seconds / statistics.median(cost.wall_s for cost in costs),
    )


def trial(load: str, queue: str, seconds: int, folder: Path) -> Cost:
    """One trial in virtual time."""
    web = f'{{ kind = "web", load = "100 kbit/s", stop = "{seconds} s" }}'
    sources = LOADS[load]
    path = folder / "path.toml"
    path.write_text(
        PATH.format(seconds=seconds, sources=sources, queue=QUEUES[queue], each=", ".join([web] * sources))
    )
    return timed_trial.cost(str(path), BYTES_PER_S * seconds, seconds, folder)


HEADING = """\
                                               coordinator's CPU for each packet   CPU s  times faster, by
load                    queue       packets      us   ratio   least   largest   in all     CPU    wall"""


def line(row: Row) -> str:
    return (
        f"{row.load:<23} {row.queue:<10} {row.packets:>8} {row.per_packet_us:>7.2f} {row.ratio:>7.2f}"
        f" {row.least_ratio:>7.2f} {row.largest_ratio:>9.2f} {row.cpu_s:>8.2f} {row.times_cpu:>7.0f}"
        f" {row.times_wall:>7.0f}"
    )


def verdicts(rows: list[Row]) -> list[str]:
    """The targets, and whether they are met."""
    (busy,) = {row.load for row in rows if LOADS[row.load]}
    dearest = max(rows, key=lambda row: row.ratio)
    slowest = min((row for row in rows if row.load == busy), key=lambda row: row.times_wall)
    dear = "met" if dearest.ratio <= CPU_TARGET else f"missed ({dearest.queue}, {dearest.load})"
    slow = "met" if slowest.times_wall >= SPEED_TARGET else f"missed ({slowest.queue})"
    return [
        f"each discipline at most {CPU_TARGET:g} times drop-tail's CPU for each packet: {dear}",
        f"{busy}: at least {SPEED_TARGET} times faster than real time, by the wall: {slow}",
    ]


if __name__ == "__main__":
    main()
