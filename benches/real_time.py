"""How exact real time is on this machine, beside how exactly it wakes a thread at all: `bentpipe-emu bench`.

    benches/real_time.py [--json] [--seconds 5] [--repeat 1] [--smallest]

So long each: the timer alone, asleep and kept awake; delays of 300 ms behind drop-tail and behind FQ-CoDel;
three rates; 1 Gbit/s in packets of 1200 and of 600 bytes, behind each of the two. With `--repeat`, all of it
so many times, and the medians of what drop-tail and FQ-CoDel did side by side: where a busy machine stands
still, it hits one of them and not the other.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import settings

from bentpipe import paths


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON")
    parser.add_argument("--seconds", type=int, default=5, metavar="N", help="of each (default 5)")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="repetitions (default 1)")
    given = settings.read(parser, seconds=1)
    command = [str(paths.program("bentpipe-emu")), "bench", "--seconds", str(given.seconds)]
    if given.repeat == 1:
        return subprocess.run([*command, *(["--json"] if given.json else [])]).returncode
    found = []
    for _ in range(given.repeat):
        done = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            return done.returncode
        found.append(json.loads(done.stdout))
    print(json.dumps(found, indent=1) if given.json else "\n".join([HEADING, *lines(found)]))
    return 0


HEADING = """\
medians of the repetitions                         late by ms           Mbit/s  packets   share of
                                             p50     p99   p99.9      seen /s  a processor"""


def lines(found: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each queue and load."""
    said = []
    for number, first in enumerate(found[0]["delays"]):
        same = [one["delays"][number] for one in found]
        said.append(f"{'20 Mbit/s and 300 ms, ' + first['queue']:<40}{_late(same)}")
    for number, first in enumerate(found[0]["gigabits"]):
        same = [one["gigabits"][number] for one in found]
        what = f"1 Gbit/s of {first['ip_bytes']} B, {first['queue']}"
        mbit = _median(one["seen_bps"] / 1e6 for one in same)
        packets = _median(one["seen_pps"] for one in same)
        cpu = _median(one["cpu"] for one in same)
        said.append(f"{what:<40}{_late(same)} {mbit:>8.0f} {packets:>8.0f} {cpu:>10.0%}")
    return said


def _late(same: Sequence[dict[str, Any]]) -> str:
    errors = [one["release_error"] for one in same]
    return "".join(
        f" {_median(one[part] for one in errors):>7.3f}" for part in ("p50_ms", "p99_ms", "p999_ms")
    )


def _median(values: Any) -> float:
    return float(statistics.median(values))


if __name__ == "__main__":
    sys.exit(main())
