"""How fast `bentpipe perf` is over loopback, beside a bulk transfer with the crate noq as it comes, and
iperf3 over TCP.

    benches/perf.py [--json] [--bytes 1000000000] [--repeat 3] [--smallest]

They take turns, one at a time, so that all see the same machine; upload and `--reverse` count apart. For
each: goodput, best and median of the repetitions; CPU seconds of sender and receiver per GB, the least; and
the ratios to noq. CPU is what a busy machine leaves comparable; goodput wants two cores of its own.

noq's bulk transfer is `benches/noq-bulk`, a program of this checkout that is built when it is first needed.
Where iperf3 is not installed, it is left out, and named (hint: apt install iperf3).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import members
import settings

from bentpipe import paths
from bentpipe.errors import BentpipeError

TARGET_BPS = 4e9


@dataclass(frozen=True)
class Sample:
    """One transfer."""

    goodput_bps: float
    cpu_sender_s: float
    cpu_receiver_s: float


@dataclass(frozen=True)
class Row:
    """All transfers of one program."""

    name: str
    goodput_best_bps: float
    goodput_median_bps: float
    cpu_sender_s_per_gb: float
    cpu_receiver_s_per_gb: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--bytes", type=int, default=10**9, help="of each transfer (default 10^9)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="repetitions (default 3)")
    arguments = settings.read(parser, bytes=10**7, repeat=1)
    programs = contestants()
    samples: dict[str, list[Sample]] = {name: [] for name in programs}
    for _ in range(arguments.repeat):
        for name, transfer in programs.items():
            samples[name].append(transfer(arguments.bytes))
    rows = [row(name, found, arguments.bytes) for name, found in samples.items()]
    if arguments.json:
        print(json.dumps([dataclasses.asdict(one) for one in rows], indent=1))
    else:
        print(table(rows))


def contestants() -> dict[str, Callable[[int], Sample]]:
    """Those that can be started; SystemExit without `bentpipe perf` itself."""
    try:
        program = [str(paths.program("bentpipe-perf"))]
    except BentpipeError as error:
        sys.exit(f"error: {error} (hint: {error.hint})")
    found: dict[str, Callable[[int], Sample]] = {
        "bentpipe perf": lambda size: perf(program, size, []),
        "bentpipe perf --reverse": lambda size: perf(program, size, ["--reverse"]),
    }
    bulk = members.build("bentpipe-noq-bulk")
    found["noq"] = lambda size: plain_noq(bulk, size)
    iperf3 = shutil.which("iperf3")
    if iperf3:
        found["iperf3 (TCP)"] = lambda size: iperf(iperf3, size)
    else:
        print("left out: iperf3 is not on the PATH (hint: apt install iperf3)", file=sys.stderr)
    return found


def perf(program: list[str], size: int, options: list[str]) -> Sample:
    server = start([*program, "server", "127.0.0.1:0", "--once"])
    assert server.stdout is not None
    port = server.stdout.readline().split("127.0.0.1:")[1].split(",")[0]
    command = [*program, "client", "127.0.0.1", "--port", port, "--bytes", str(size), "--json", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    server.communicate()
    end = json.loads(done.stdout)["end"]
    sender, receiver = end["cpu_client_s"], end["cpu_server_s"]
    if options:
        sender, receiver = receiver, sender
    return Sample(end["goodput_bps"], sender, receiver)


def plain_noq(program: str, size: int) -> Sample:
    with tempfile.TemporaryFile("w+") as out:
        server = start([program, "server"])
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        client = subprocess.Popen([program, "client", port, str(size)], stdout=out)
        sender, receiver = cpu_of(client), cpu_of(server)
        out.seek(0)
        seconds = float(out.read())
    return Sample(8 * size / seconds, sender, receiver)


def iperf(program: str, size: int) -> Sample:
    port = "5299"
    server = start([program, "--server", "--one-off", "--port", port, "--forceflush"])
    assert server.stdout is not None
    while "listening" not in server.stdout.readline():
        pass
    command = [program, "--client", "127.0.0.1", "--port", port, "--bytes", str(size), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    server.communicate()
    end = json.loads(done.stdout)["end"]
    seconds, share = end["sum_received"]["seconds"], end["cpu_utilization_percent"]
    cpu = [share[side] / 100 * seconds for side in ("host_total", "remote_total")]
    return Sample(end["sum_received"]["bits_per_second"], *cpu)


def start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def cpu_of(process: subprocess.Popen[Any]) -> float:
    """Waits for the end of a process; the CPU time that it took."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"error: a bulk transfer ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def row(name: str, samples: list[Sample], size: int) -> Row:
    rates = [one.goodput_bps for one in samples]
    return Row(
        name=name,
        goodput_best_bps=max(rates),
        goodput_median_bps=statistics.median(rates),
        cpu_sender_s_per_gb=min(one.cpu_sender_s for one in samples) / size * 1e9,
        cpu_receiver_s_per_gb=min(one.cpu_receiver_s for one in samples) / size * 1e9,
    )


def table(rows: list[Row]) -> str:
    (plain,) = (one for one in rows if one.name == "noq")
    usual = plain.cpu_sender_s_per_gb + plain.cpu_receiver_s_per_gb
    lines = [
        "                            Gbit/s        CPU s per GB        times noq's",
        "                         best  median   sender  receiver   Gbit/s  CPU s",
    ]
    for one in rows:
        cpu = one.cpu_sender_s_per_gb + one.cpu_receiver_s_per_gb
        lines.append(
            f"{one.name:<23} {one.goodput_best_bps / 1e9:>5.2f} {one.goodput_median_bps / 1e9:>7.2f}"
            f" {one.cpu_sender_s_per_gb:>8.2f} {one.cpu_receiver_s_per_gb:>9.2f}"
            f" {one.goodput_best_bps / plain.goodput_best_bps:>8.2f} {cpu / usual:>6.2f}"
        )
    ours = max(one.goodput_best_bps for one in rows if one.name.startswith("bentpipe"))
    met = "met" if ours >= TARGET_BPS else "missed"
    lines.append(f"bentpipe perf at least {TARGET_BPS / 1e9:g} Gbit/s: {met} ({ours / 1e9:.2f})")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
