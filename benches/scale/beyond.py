"""How many slots one client and its scheduler can keep busy: a simulation, from what they take per trial.

    benches/scale/beyond.py [--hub-ms 8] [--trial-s 0.3] [--trials 100000] [--smallest]

The hub, client and scheduler in one process, deals with one answer at a time: it takes it, writes the record,
and submits the next trial to that slot, in `--hub-ms` (what `cluster.py overhead` measures). A slot runs one
trial after the other and has up to two more waiting, as `dask_executor` has it; trials take `--trial-s` on
average, exponentially distributed. What a network takes is left out.
"""

from __future__ import annotations

import argparse
import heapq
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path.append(str(Path(__file__).resolve().parents[1]))
import settings

WAITING = 2  # tasks of a slot, beside the one that runs
SLOTS = (2, 8, 32, 64, 128, 256, 1024)
MANY = (10**5, 10**7)


@dataclass(frozen=True)
class Course:
    """The results of a simulated run."""

    per_s: float
    used: float  # share of the slots' time in which a trial ran
    hub: float  # share of the hub's time in which it worked


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hub-ms", type=float, default=8.0, metavar="MS")
    parser.add_argument("--trial-s", type=float, default=0.3, metavar="S")
    parser.add_argument("--trials", type=int, default=100_000, metavar="N")
    asked = settings.read(parser, trials=1000)
    hours = " ".join(f"{f'10^{len(str(many)) - 1} trials':>12}" for many in MANY)
    print(f"{'slots':>6} {'trials/s':>9} {'slots used':>11} {'hub used':>9} {hours}")
    for slots in SLOTS:
        one = simulate(slots, asked.hub_ms / 1e3, asked.trial_s, asked.trials)
        hours = " ".join(f"{many / one.per_s / 3600:>10.1f} h" for many in MANY)
        print(f"{slots:>6} {one.per_s:>9.1f} {one.used:>11.0%} {one.hub:>9.0%} {hours}")


def simulate(slots: int, hub_s: float, trial_s: float, trials: int) -> Course:
    draw, ran_s, hub_free = Random(1), 0.0, 0.0
    waiting = [WAITING] * slots  # trials at each slot
    idle = [False] * slots
    events: list[tuple[float, int, bool]] = []  # when, slot, whether a trial has come; else one has ended
    now, ended = 0.0, 0

    def begin(slot: int) -> None:
        nonlocal ran_s
        lasts = draw.expovariate(1 / trial_s)
        ran_s += lasts
        heapq.heappush(events, (now + lasts, slot, False))

    for slot in range(slots):
        begin(slot)
    while ended < trials:
        now, slot, has_come = heapq.heappop(events)
        if not has_come:
            ended += 1
            hub_free = max(now, hub_free) + hub_s
            heapq.heappush(events, (hub_free, slot, True))
            idle[slot] = waiting[slot] == 0
        elif not idle[slot]:
            waiting[slot] += 1
            continue
        if not has_come and not idle[slot]:
            waiting[slot] -= 1
            begin(slot)
        elif has_come:
            idle[slot] = False
            begin(slot)
    return Course(ended / now, ran_s / (slots * now), min(1.0, ended * hub_s / now))


if __name__ == "__main__":
    main()
