"""What the endpoint programs of a trial cost beside their libraries alone.

    benches/reference.py [--json] [--repeat 5] [--sizes 10485760,104857600]
                         [--stacks noq,quinn,picoquic,ngtcp2,quiche] [--one-core] [--smallest]

A reference has both ends in one process, in its library's calls, without files, pipes or records, and the
same settings: `benches/reference`, and for picoquic pico_sim, its own simulator. The path is that of
`benches/cost.py`, with CUBIC. For each size and stack: CPU of both programs of a trial, of the reference, the
first as times the second in the same round, and the packets that either has sent, which must agree, or
different things would be compared (pico_sim does not count them). All take turns; medians. A trial's programs
run at once, on as many cores as there are, which costs them CPU, too; `--one-core` leaves everything on one.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import cost
import members
import settings

from bentpipe import paths
from bentpipe.stacks import catalogue
from bentpipe.stacks.model import Stack
from bentpipe.workload import www_file

STACKS = ("noq", "quinn", "picoquic", "ngtcp2", "quiche")
TARGET = 1.15  # times the CPU of the reference
TOLERANCE = 0.05  # of the packets of a trial, or this number of packets
FEW_PACKETS = 20


@dataclass(frozen=True)
class Row:
    """Medians of the trials of a stack and of its reference, in seconds of CPU."""

    stack: str
    bytes: int
    ends_s: float
    reference_s: float
    times: float  # of the same round
    packets: int  # of a trial
    reference_packets: int | None


@dataclass(frozen=True)
class Reference:
    """One run of a library alone."""

    cpu_s: float
    packets: int | None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="rounds (default 5)")
    sizes = f"{10 * 2**20},{100 * 2**20}"
    parser.add_argument("--sizes", default=sizes, help="bytes of a transfer (default 10 and 100 MiB)")
    stacks = ",".join(STACKS)
    parser.add_argument("--stacks", default=stacks, help=f"which (default {stacks})")
    parser.add_argument("--one-core", action="store_true", help="run everything on one core")
    given = settings.read(parser, repeat=1, sizes="100000")
    if given.one_core:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    known = catalogue.discover()
    wanted = [catalogue.find(name, known) for name in given.stacks.split(",")]
    for stack in [one for one in wanted if one.missing("virtual-time")]:
        print(f"left out: {stack.missing('virtual-time')}", file=sys.stderr)
        wanted.remove(stack)
    programs = {stack.name: _program(stack) for stack in wanted}
    rows = []
    with tempfile.TemporaryDirectory(prefix="bentpipe-bench-") as folder:
        for size in map(int, given.sizes.split(",")):
            www_file(Path(folder) / "www", size)
            rows += _rows(wanted, programs, size, given.repeat, Path(folder))
    if given.json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
    else:
        print("\n".join([HEADING, *map(_line, rows)]))


def _program(stack: Stack) -> Path:
    """The reference of a stack, built if it is not there."""
    name = f"bentpipe-reference-{stack.name}"
    work = paths.work()
    match stack.name:
        case "noq" | "quinn":
            return Path(members.build(name))
        case "picoquic":
            return Path(stack.command("virtual-time")[0]).with_name("pico_sim")
        case "ngtcp2":
            built = work / "reference" / name
            (built.parent / "ngtcp2").mkdir(parents=True, exist_ok=True)
            script = paths.root() / "benches" / "reference" / "ngtcp2.sh"
            subprocess.run(["sh", str(script), str(built), str(built.parent / "ngtcp2")], check=True)
            return built
        case "quiche":
            # An example of the stack's package, where it is built: BoringSSL takes minutes.
            target = work / "stacks" / "quiche"
            command = ["cargo", "build", "--release", "--locked", "--quiet", "--example", name]
            subprocess.run([*command, "--target-dir", str(target)], cwd=stack.folder, check=True)
            return target / "release" / "examples" / name
    sys.exit(f"error: {stack.name} has no reference (hint: --stacks {','.join(STACKS)})")


def _rows(stacks: list[Stack], programs: dict[str, Path], size: int, repeat: int, folder: Path) -> list[Row]:
    jobs = {stack.name: cost.trial_job(stack, size, folder) for stack in stacks}
    trials: dict[str, list[cost.Cost]] = {name: [] for name in jobs}
    references: dict[str, list[Reference]] = {name: [] for name in jobs}
    for _ in range(repeat):
        for name, job in jobs.items():
            trials[name].append(cost.run_trial(name, job))
            references[name].append(_alone(name, programs[name], size, folder))
    return [_row(name, size, trials[name], references[name]) for name in jobs]


def _alone(name: str, program: Path, size: int, folder: Path) -> Reference:
    if name == "picoquic":
        return Reference(cost.simulate(program, size, folder).cpu_s, None)
    certs = paths.root() / "endpoints" / "certs"
    before = cost.children_s()
    done = subprocess.run([str(program), str(certs), str(size)], capture_output=True, text=True, check=False)
    used = cost.children_s() - before
    if done.returncode != 0:
        sys.exit(f"error: {program}: {done.stdout}{done.stderr}")
    sent = json.loads(done.stdout)
    return Reference(used, sent["forward_packets"] + sent["return_packets"])


def _row(name: str, size: int, trials: list[cost.Cost], references: list[Reference]) -> Row:
    ours, theirs = trials[0].packets, references[0].packets
    if theirs is not None and abs(ours - theirs) > max(TOLERANCE * ours, FEW_PACKETS):
        sys.exit(f"error: {name}: {ours} packets in a trial of {size} bytes, {theirs} in its reference")
    pairs = list(zip(trials, references, strict=True))
    return Row(
        stack=name,
        bytes=size,
        ends_s=statistics.median(one.ends_s for one in trials),
        reference_s=statistics.median(one.cpu_s for one in references),
        times=statistics.median(one.ends_s / by.cpu_s for one, by in pairs),
        packets=ours,
        reference_packets=theirs,
    )


HEADING = "CPU in seconds             both ends  reference   times   packets   of the reference"


def _line(row: Row) -> str:
    missed = "" if row.times <= TARGET else f"   (goal {TARGET})"
    theirs = "" if row.reference_packets is None else str(row.reference_packets)
    return (
        f"{row.stack:<14}{row.bytes / 2**20:>7.1f} MiB{row.ends_s:>11.3f}{row.reference_s:>11.3f}"
        f"{row.times:>8.2f}{row.packets:>10}{theirs:>19}{missed}"
    )


if __name__ == "__main__":
    main()
