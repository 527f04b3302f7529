"""What a trial in virtual time costs beside picoquic's own simulator, and what its steps cost.

    benches/cost.py [--json] [--repeat 5] [--sizes 10485760,104857600] [--stacks picoquic,noq,quic-go,linux]
                    [--smallest]

CUBIC at both ends, 20 Mbit/s each way, 600 ms, a queue of 600 ms. pico_sim is picoquic with both ends in
one process, without qlogs. For each size and stack: CPU of the coordinator, of both ends, in all, and as
times pico_sim's in the same round; wall; CPU for each packet, of the coordinator and of both ends; and the
coordinator's steps: starting the programs, the run itself (messages, links, hash, log), examining files and
packets, and the measures of the record. `--pipes` adds trials without shared memory. All take turns.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import settings

from bentpipe import paths
from bentpipe.execution.jobs import LocalFlow, LocalTrial
from bentpipe.plan import scenarios
from bentpipe.stacks import catalogue, protocol
from bentpipe.stacks.model import Stack
from bentpipe.workload import www_file

PATH = ("forward.queue=600ms", "return.queue=600ms", "return.rate=20Mbit/s")
SEED = "0000000000000001"
SPECIFICATION = """main_scenario_text: =b1:*1:397:{size};
main_cc_algo: cubic
nb_connections: 1
data_rate_in_gbps: 0.02
latency: 300000
queue_delay_max: 600000
main_target_time: 600000000
"""
STACKS = ("picoquic", "noq", "quic-go", "linux")
CUBIC = ":cc=cubic"  # what makes a server use it; quic-go has nothing else
STEPS = ("start", "run", "examine", "record")
TARGET = 1.5  # times the CPU of pico_sim


@dataclass(frozen=True)
class Cost:
    """One trial, or one run of pico_sim, in seconds."""

    sim_s: float
    ends_s: float
    wall_s: float
    packets: int
    steps: Mapping[str, float]  # of the coordinator

    @property
    def cpu_s(self) -> float:
        return self.sim_s + self.ends_s


@dataclass(frozen=True)
class Row:
    """Medians of the trials of a stack, in seconds."""

    stack: str
    bytes: int
    sim_s: float
    ends_s: float
    cpu_s: float
    wall_s: float
    sim_packet_us: float | None  # CPU of the coordinator for each packet
    ends_packet_us: float | None
    times_pico_sim: float | None  # by CPU, of the same round
    steps_s: dict[str, float]

    @classmethod
    def of(cls, stack: str, size: int, costs: list[Cost], measure: list[Cost]) -> Row:
        packets = costs[0].packets

        def _per_packet(seconds: Iterable[float]) -> float:
            return 1e6 * statistics.median(seconds) / packets

        ratios = [one.cpu_s / by.cpu_s for one, by in zip(costs, measure, strict=bool(measure))]
        return cls(
            stack=stack,
            bytes=size,
            sim_s=statistics.median(one.sim_s for one in costs),
            ends_s=statistics.median(one.ends_s for one in costs),
            cpu_s=statistics.median(one.cpu_s for one in costs),
            wall_s=statistics.median(one.wall_s for one in costs),
            sim_packet_us=_per_packet(one.sim_s for one in costs) if packets else None,
            ends_packet_us=_per_packet(one.ends_s for one in costs) if packets else None,
            times_pico_sim=statistics.median(ratios) if ratios else None,
            steps_s={step: statistics.median(one.steps[step] for one in costs) for step in costs[0].steps},
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print the medians as JSON")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="rounds (default 5)")
    sizes = f"{10 * 2**20},{100 * 2**20}"
    parser.add_argument("--sizes", default=sizes, help="bytes of a transfer (default 10 and 100 MiB)")
    stacks = ",".join(STACKS)
    parser.add_argument("--stacks", default=stacks, help=f"which (default {stacks})")
    parser.add_argument("--pipes", action="store_true", help="beside each stack, without shared memory")
    given = settings.read(parser, repeat=1, sizes="100000")
    known = catalogue.discover()
    wanted = [catalogue.find(name, known) for name in given.stacks.split(",")]
    for stack in [one for one in wanted if one.missing("virtual-time")]:
        print(f"left out: {stack.missing('virtual-time')}", file=sys.stderr)
        wanted.remove(stack)
    rows = []
    with tempfile.TemporaryDirectory(prefix="bentpipe-bench-") as folder:
        for size in map(int, given.sizes.split(",")):
            rows += _rows(wanted, size, given, Path(folder))
    if given.json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
    else:
        print("\n".join([HEADING, *map(_line, rows)]))


def _rows(stacks: list[Stack], size: int, given: argparse.Namespace, folder: Path) -> list[Row]:
    """All take turns in each round."""
    www_file(folder / "www", size)
    jobs = {stack.name: trial_job(stack, size, folder) for stack in stacks}
    if given.pipes:
        jobs |= {
            f"{stack.name} pipes": trial_job(stack, size, folder, shared_memory=False) for stack in stacks
        }
    costs: dict[str, list[Cost]] = {name: [] for name in jobs}
    measure: list[Cost] = []
    picoquic = next((stack for stack in stacks if stack.name == "picoquic"), None)
    for _ in range(given.repeat):
        if picoquic is not None:
            program = Path(picoquic.command("virtual-time")[0]).with_name("pico_sim")
            measure.append(simulate(program, size, folder))
        for name, job in jobs.items():
            costs[name].append(run_trial(name, job))
    rows = [Row.of("pico_sim", size, measure, [])] if measure else []
    return rows + [Row.of(name, size, each, measure) for name, each in costs.items()]


def trial_job(stack: Stack, size: int, folder: Path, shared_memory: bool = True) -> str:
    known, name = catalogue.discover(), stack.name
    with_cubic = name if name == "quic-go" else name + CUBIC
    client, server = (catalogue.variant(words, known) for words in (name, with_cubic))
    alpn = protocol.common(stack, stack)
    assert alpn is not None
    trial = LocalTrial(
        scenario=scenarios.resolve("sat", PATH).scenario,
        flows=(LocalFlow("transfer", (f"/{size}",), client, server, alpn=alpn),),
        www=folder / "www",
        seed=SEED,
        folder=folder / "trial",
        shared_memory=shared_memory,
    )
    return json.dumps(msgspec.to_builtins(trial.job()))


def run_trial(name: str, job: str) -> Cost:
    command = [str(paths.program("bentpipe-sim")), "trial", "--costs"]
    began = time.perf_counter()
    done = subprocess.run(command, input=job, capture_output=True, text=True, check=True)
    wall = time.perf_counter() - began
    values = json.loads(done.stdout)
    if values["outcome"] != "ok":
        sys.exit(f"error: {name}: {values['outcome']}: {values['detail']}")
    steps = json.loads(done.stderr.splitlines()[-1])
    packets = values["forward_packets"] + values["return_packets"]
    ends = values["cpu_client_s"] + values["cpu_server_s"]
    return Cost(sum(steps.values()), ends, wall, packets, steps)


def simulate(program: Path, size: int, folder: Path) -> Cost:
    file = folder / "path.sim"
    file.write_text(SPECIFICATION.format(size=size))
    before, began = children_s(), time.perf_counter()
    command = [str(program), "-S", str(program.parent), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    wall = time.perf_counter() - began
    if not done.stdout.startswith("Success,"):
        sys.exit(f"error: pico_sim: {done.stdout}{done.stderr}")
    return Cost(0, children_s() - before, wall, 0, {})


def children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


HEADING = """\
CPU in seconds             coordinator  both ends   in all       x pico_sim  wall, s   µs/packet  steps, ms"""


def _line(row: Row) -> str:
    ratio = "" if row.times_pico_sim is None else f"{row.times_pico_sim:.2f}"
    if row.stack == "picoquic" and (row.times_pico_sim or 0) > TARGET:
        ratio += f" (goal {TARGET})"
    steps = ", ".join(f"{step} {1000 * row.steps_s[step]:.0f}" for step in STEPS if row.steps_s)
    a_packet = "" if row.sim_packet_us is None else f"{row.sim_packet_us:.1f} + {row.ends_packet_us:.1f}"
    return (
        f"{row.stack:<14}{row.bytes / 2**20:>7.1f} MiB{row.sim_s:>15.3f}{row.ends_s:>11.3f}"
        f"{row.cpu_s:>9.3f}{ratio:>17}{row.wall_s:>9.2f}{a_packet:>14}   {steps}"
    )


if __name__ == "__main__":
    main()
