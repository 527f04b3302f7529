"""How fast `bentpipe-trace packets` decodes a trace, beside tshark printing the same of it: number and time
of each captured packet, type and number of each QUIC packet, its frames, their stream offsets and ACK ranges.

    benches/traces.py [--json] [--repeat 5] [--bytes 10485760,104857600] [--gigabyte] [--smallest]

The trace is that of a quinn transfer over `sat`, both sides in one file with its secrets, in the page cache.
The two programs take turns, each time as a new process; both write to /dev/null. For each size: the medians
of their wall times and CPU seconds, the medians of the ratios of neighbouring runs, and peak memory (resident
set) beside the size of the file.
`--gigabyte` decodes, besides, a capture of 1 GB: the last trace over and over, as sections of one file;
tshark is not asked to.

Of each trace, what `bentpipe-trace analyze` takes is printed too, and the same for the trace with packets cut
to 96 bytes by editcap, as captures of headers are: then memory is what is noted of each packet.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import settings

from bentpipe import paths
from bentpipe.execution.jobs import LocalFlow, LocalTrial, TrialProcesses
from bentpipe.plan import scenarios
from bentpipe.plan.trial import Trial
from bentpipe.stacks import catalogue
from bentpipe.workload import www_file

SCENARIO = "sat"
STACK = "quinn"
SEED = 1
TARGET = 60  # times as fast as tshark
CPU_TARGET = 40  # the same by CPU time
MEMORY_TARGET = 1  # times the file
HEADERS = 96  # bytes kept of each packet in a capture of headers
GIGABYTE = 10**9
FIELDS = (
    "frame.number",
    "frame.time_epoch",
    "quic.long.packet_type",
    "quic.packet_number",
    "quic.frame_type",
    "quic.stream.stream_id",
    "quic.stream.offset",
    "quic.stream.length",
    "quic.ack.largest_acknowledged",
    "quic.ack.ack_range_count",
    "quic.ack.first_ack_range",
    "quic.ack.gap",
    "quic.ack.ack_range",
)


@dataclass(frozen=True)
class Cost:
    """The resources of a run."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True)
class Row:
    """One program and one trace."""

    command: str
    file_bytes: int
    wall_s: float
    cpu_s: float
    memory_bytes: int
    tshark_wall_s: float | None = None
    tshark_cpu_s: float | None = None
    ratio: float | None = None
    cpu_ratio: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="repetitions (default 5)")
    parser.add_argument("--bytes", default="10485760,104857600", help="sizes of the transfers")
    parser.add_argument("--gigabyte", action="store_true", help="a capture of 1 GB, besides")
    arguments = settings.read(parser, bytes="100000", repeat=1)
    tshark = shutil.which("tshark")
    if tshark is None:
        sys.exit("error: tshark is not installed (hint: apt install tshark)")
    editcap = shutil.which("editcap")
    if editcap is None:
        sys.exit("error: editcap is not installed (hint: apt install wireshark-common)")
    rows = []
    with tempfile.TemporaryDirectory(prefix="bentpipe-bench-") as name:
        folder = Path(name)
        for size in map(int, arguments.bytes.split(",")):
            trace = make_trace(folder, size)
            rows.append(compare(trace, tshark, arguments.repeat))
            rows += [
                alone(analysis(capture, folder / "analysis"), capture, arguments.repeat)
                for capture in (trace, headers(trace, editcap))
            ]
        if arguments.gigabyte:
            long = lengthen(trace)
            rows.append(alone(decoder(long), long, arguments.repeat))
    if arguments.json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
    else:
        print("\n".join([HEADING, *map(line, rows), *map(verdict, rows)]))


def make_trace(folder: Path, size: int) -> Path:
    """The trace of one transfer; SystemExit if it fails."""
    www_file(folder / "www", size)
    one = catalogue.variant(STACK, catalogue.discover())
    name = Trial(SEED, SCENARIO, f"transfer:{size}", size, STACK, STACK, iteration=1)
    trial = LocalTrial(
        scenario=scenarios.resolve(SCENARIO).scenario,
        flows=(LocalFlow("transfer", (f"/{size}",), one, one),),
        www=folder / "www",
        seed=name.seed,
        folder=folder / f"trial-{size}",
        trace=True,
    )
    answer = TrialProcesses(folder).run(trial)
    if answer.values is None or answer.values["outcome"] != "ok":
        sys.exit(f"error: the transfer failed: {answer.values or answer.failure}")
    return trial.folder / "trace.pcapng"


def lengthen(trace: Path) -> Path:
    """A capture of at least a gigabyte: the trace, section after section."""
    long = trace.with_name("long.pcapng")
    with long.open("wb") as out:
        while out.tell() < GIGABYTE:
            out.write(trace.read_bytes())
    return long


def headers(trace: Path, editcap: str) -> Path:
    """The trace with packets cut to their headers."""
    cut = trace.with_name("headers.pcapng")
    subprocess.run([editcap, "-s", str(HEADERS), str(trace), str(cut)], check=True)
    return cut


def compare(trace: Path, tshark: str, repeat: int) -> Row:
    """Both programs, in turns."""
    columns = [part for name in FIELDS for part in ("-e", name)]
    command = [tshark, "-r", str(trace), "-T", "fields", "-E", "separator=;", *columns]
    pairs = [(run(decoder(trace)), run(command)) for _ in range(repeat)]
    return dataclasses.replace(
        row([ours for ours, _ in pairs], decoder(trace), trace),
        tshark_wall_s=statistics.median(theirs.wall_s for _, theirs in pairs),
        tshark_cpu_s=statistics.median(theirs.cpu_s for _, theirs in pairs),
        ratio=statistics.median(theirs.wall_s / ours.wall_s for ours, theirs in pairs),
        cpu_ratio=statistics.median(theirs.cpu_s / ours.cpu_s for ours, theirs in pairs),
    )


def alone(command: list[str], trace: Path, repeat: int) -> Row:
    return row([run(command) for _ in range(repeat)], command, trace)


def decoder(trace: Path) -> list[str]:
    return [str(paths.program("bentpipe-trace")), "packets", str(trace)]


def analysis(trace: Path, out: Path) -> list[str]:
    return [str(paths.program("bentpipe-trace")), "analyze", str(trace), "-o", str(out)]


def row(costs: list[Cost], command: list[str], trace: Path) -> Row:
    return Row(
        command=f"{command[1]} {trace.stem}",
        file_bytes=trace.stat().st_size,
        wall_s=statistics.median(cost.wall_s for cost in costs),
        cpu_s=statistics.median(cost.cpu_s for cost in costs),
        memory_bytes=peak_memory(command),
    )


def start(command: list[str]) -> int:
    """Starts a program with its output to /dev/null."""
    nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    return os.posix_spawn(command[0], command, os.environ, file_actions=nowhere)


def run(command: list[str]) -> Cost:
    """Runs a program to its end."""
    before = time.perf_counter()
    _, status, usage = os.wait4(start(command), 0)
    wall = time.perf_counter() - before
    if status != 0:
        sys.exit(f"error: {' '.join(command)}: status {os.waitstatus_to_exitcode(status)}")
    return Cost(wall, usage.ru_utime + usage.ru_stime)


def peak_memory(command: list[str]) -> int:
    """The largest resident set of a program, in bytes, looked at all the time. What the system says at its
    end would count this process too, which it was before it became that program.
    """
    child, peak = start(command), 0
    status = Path(f"/proc/{child}/status")
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text()):
            peak = int(found[1]) * 1024
    return peak


HEADING = """\
bentpipe-trace        file                                   tshark              times as fast
                        MB     wall s    CPU s   memory MB      wall s    CPU s      wall      CPU"""


def line(row: Row) -> str:
    costs = f"{row.wall_s:>10.4f} {row.cpu_s:>8.4f} {row.memory_bytes / 1e6:>11.1f}"
    ours = f"{row.command:<16} {row.file_bytes / 1e6:>9.1f} {costs}"
    if row.ratio is None:
        return ours
    ratios = f"{row.ratio:>9.1f} {row.cpu_ratio:>8.1f}"
    return f"{ours} {row.tshark_wall_s:>11.3f} {row.tshark_cpu_s:>8.3f} {ratios}"


def verdict(row: Row) -> str:
    """The targets, and whether they are met."""
    size = f"{row.command}, {row.file_bytes / 1e6:.1f} MB"
    times = row.memory_bytes / row.file_bytes
    within = "met" if times <= MEMORY_TARGET else "missed"
    said = f"{size}: memory {times:.2f} times the file, at most {MEMORY_TARGET}: {within}"
    if row.ratio is None or row.cpu_ratio is None:
        return said
    is_fast = row.ratio >= TARGET and row.cpu_ratio >= CPU_TARGET
    goal = f"at least {TARGET} times as fast as tshark, {CPU_TARGET} by CPU"
    return f"{said}; {goal}: {'met' if is_fast else 'missed'}"


if __name__ == "__main__":
    main()
