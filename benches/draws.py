"""How much less chance there is between cells with common random draws.

    benches/draws.py [--trials 100]

Two senders, or one without proxies and with, over paths with losses, jitter or a rate that varies. For each:
the correlation of the logarithm of goodput between trials with the same draws, and how wide the interval of
the ratio is, as a part of that of independent samples of the same spread.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import settings

from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.inference import Ratio, paired_ratio, ratio
from bentpipe.runs import run_folder

_PROXIES = "quic-pep=terminal:iw=100:cc=newreno,gateway:iw=100:cc=newreno"
_LOSSY = ("--set", "forward.loss=0.1%", "--set", "return.loss=0.1%")
# The path and its settings, the servers, whether with proxies, the workload.
COMPARED = {
    "geo-tum, 0.1 % of loss, 18 s: direct, quic-pep": (
        *("--scenario", "geo-tum", *_LOSSY, "--client", "noq:cc=cubic:iw=10", "--server"),
        *(
            "noq:cc=cubic:iw=10",
            "--treatment",
            "direct",
            "--treatment",
            _PROXIES,
            "--workload",
            "duration:18s",
        ),
    ),
    "starlink, 10 MB: noq:cc=cubic, noq:cc=bentpipe": (
        *("--scenario", "starlink", "--client", "noq", "--server", "noq:cc=cubic,noq:cc=bentpipe"),
        *("--bytes", "10MB"),
    ),
    "satloss-2021, 1 MB: noq:cc=cubic, quinn": (
        *(
            "--scenario",
            "satloss-2021",
            "--client",
            "noq",
            "--server",
            "noq:cc=cubic,quinn",
            "--bytes",
            "1MB",
        ),
    ),
    "sat-2021, 10 MiB: noq:cc=cubic, noq:cc=newreno": (
        *("--scenario", "sat-2021", "--client", "noq", "--server", "noq:cc=cubic,noq:cc=newreno"),
        *("--bytes", "10MiB", "--set", "forward.delay.jitter=0.2ms"),
    ),
    "satloss-2021, 1 MB: noq:cc=cubic, noq:cc=bbr3": (
        *("--scenario", "satloss-2021", "--client", "noq", "--server", "noq:cc=cubic,noq:cc=bbr3"),
        *("--bytes", "1MB"),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=100, help="of each (default 100)")
    arguments = settings.read(parser, trials=4)
    print(f"{'compared':<50} correlation  width of the interval")
    for title, options in COMPARED.items():
        first, second = carried_out(options, arguments.trials)
        print(f"{title:<50} {correlation(first, second):>11.2f}  {width(first, second):>21.2f}")


def carried_out(options: tuple[str, ...], trials: int) -> tuple[Cell, Cell]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [sys.executable, "-m", "bentpipe", "run", *options, "--iterations", str(trials)]
        subprocess.run([*command, "--trace", "none", "--out", str(out)], check=True, capture_output=True)
        first, second = cells(run_folder.read(out, courses=False)[1])
    return first, second


def correlation(first: Cell, second: Cell) -> float:
    logs = [[math.log(value) for value in cell.values("goodput_bps")] for cell in (first, second)]
    return statistics.correlation(*logs)


def width(first: Cell, second: Cell) -> float:
    goodputs = first.values("goodput_bps"), second.values("goodput_bps")
    return reach(paired_ratio(*goodputs)) / reach(ratio(*goodputs))


def reach(one: Ratio | None) -> float:
    assert one is not None and one.low is not None and one.high is not None
    return math.log(one.high / one.low)


if __name__ == "__main__":
    main()
