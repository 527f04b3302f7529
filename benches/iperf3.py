"""Goodput of the stack `linux` through an emulated path, beside `iperf3` in a shell on the same path.

    benches/iperf3.py [--json] [--scenario goodput] [--bytes 10000000] [--cc cubic,bbr] [--repeat 5]
                      [--smallest]

Real time, in turns: a trial of one file without TLS, and `iperf3` with as many bytes in the same direction
and with the same congestion control. For each: the median of the goodput, that is bytes over the time that
the client itself gives, from its first packet on. The ratio of the two is to be within 2 %.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import settings

from bentpipe.runs import run_folder

BENTPIPE = str(Path(sys.executable).parent / "bentpipe")
WITHIN = 0.02


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON")
    parser.add_argument("--scenario", default="goodput", help="the path (default goodput)")
    parser.add_argument(
        "--bytes", type=int, default=10**7, metavar="N", help="of each transfer (default 10000000)"
    )
    parser.add_argument("--cc", default="cubic,bbr", help="congestion controls (default cubic,bbr)")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="repetitions (default 5)")
    given = settings.read(parser, bytes=10**5, cc="cubic", repeat=1)
    if shutil.which("iperf3") is None:
        sys.exit("error: iperf3 is not on the PATH\nhint: apt install iperf3")
    rows = []
    for cc in given.cc.split(","):
        ours, theirs = [], []
        for number in range(given.repeat):
            ours.append(trial(given.scenario, given.bytes, cc, number))
            theirs.append(iperf3(given.scenario, given.bytes, cc))
        rows.append({"cc": cc, "linux_bps": ours, "iperf3_bps": theirs,
                     "ratio": statistics.median(ours) / statistics.median(theirs)})  # fmt: skip
    print(json.dumps(rows, indent=1) if given.json else "\n".join(map(line, rows)))


def trial(scenario: str, size: int, cc: str, number: int) -> float:
    """The goodput of a trial in bit/s."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "run")
        command = [BENTPIPE, "run", "--testbed", "emu", "--scenario", scenario, "--bytes", f"{size}"]
        command += ["--client", "linux:tls=off", "--server", f"linux:tls=off:cc={cc}", "--seed", f"{number}"]
        command += ["--iterations", "1", "--trace", "none", "--no-report", "--out", str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, (record,) = run_folder.read(out)
    if record.completion_s is None:
        sys.exit(f"error: the trial ended as {record.outcome}: {record.detail}")
    return record.size_bytes * 8 / record.completion_s


def iperf3(scenario: str, size: int, cc: str) -> float:
    """The goodput that iperf3's receiver reports, in bit/s."""
    client = ["iperf3", "-c", "server", "--reverse", "-n", f"{size}", "-C", cc, "--json"]
    command = [BENTPIPE, "shell", scenario, "--server", "iperf3 -s --logfile /dev/null", "--", *client]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    received = json.loads(done.stdout)["end"]["sum_received"]
    return float(received["bits_per_second"])


def line(row: dict[str, Any]) -> str:
    met = "met" if abs(row["ratio"] - 1) <= WITHIN else "missed"
    ours, theirs = (statistics.median(row[name]) / 1e6 for name in ("linux_bps", "iperf3_bps"))
    return (
        f"{row['cc']:<8} linux {ours:.2f} Mbit/s, iperf3 {theirs:.2f}: {row['ratio']:.3f} of it, "
        f"within {WITHIN:.0%}: {met}"
    )


if __name__ == "__main__":
    main()
