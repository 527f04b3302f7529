"""The cost of a trial: every pair of the four stacks over `sat`, beside the same stacks over real
loopback UDP.

    benches/pairs.py [--json] [--repeat 3] [--stacks noq,quinn,…] [--bytes 10485760] [--smallest]

For each pair: the client's completion time in virtual seconds; wall seconds of the whole trial, process
starts included (best and median of the repetitions); completion / wall; CPU seconds of client and server in
the trial; CPU seconds of the same two programs moving the same bytes through loopback UDP in socket mode, in
the same run; and how many times as much the trial cost. Trials and loopback transfers take turns, one at a
time, so that both see the same machine. The best of the repetitions counts for CPU, as the others measure
what else the machine did.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import settings

from bentpipe.execution.jobs import LocalFlow, LocalTrial, TrialProcesses
from bentpipe.plan import scenarios
from bentpipe.plan.trial import Trial
from bentpipe.stacks import catalogue, loopback
from bentpipe.stacks.model import Stack, Variant
from bentpipe.workload import www_file

SCENARIO = "sat"
SIZE = 10 * 2**20  # bytes of a transfer
SEED = 1
STACKS = ("noq", "quinn", "aioquic", "quic-go")
CPU_TARGET = 2.0  # times the loopback's CPU
WALL_TARGETS = {("quinn", "quinn"): 100, ("noq", "noq"): 100}  # completion / wall
GO_WALL_TARGET = 40


@dataclass(frozen=True)
class Row:
    """One pair."""

    client: str
    server: str
    completion_s: float  # of the client; what both sides do after it does not count
    wall_best_s: float
    wall_median_s: float
    cpu_client_s: float
    cpu_server_s: float
    cpu_sim_s: float
    loopback_cpu_client_s: float
    loopback_cpu_server_s: float

    @property
    def speed(self) -> float:
        return self.completion_s / self.wall_median_s

    @property
    def cpu_ratio(self) -> float:
        """CPU of the whole trial, the coordinator included, over the CPU of the loopback transfer."""
        trial = self.cpu_client_s + self.cpu_server_s + self.cpu_sim_s
        return trial / (self.loopback_cpu_client_s + self.loopback_cpu_server_s)

    @property
    def wall_target(self) -> int | None:
        if (self.client, self.server) in WALL_TARGETS:
            return WALL_TARGETS[self.client, self.server]
        return GO_WALL_TARGET if "quic-go" in (self.client, self.server) else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="repetitions (default 3)")
    parser.add_argument("--stacks", default=",".join(STACKS), help="which stacks (default all four)")
    parser.add_argument("--bytes", type=int, default=SIZE, metavar="N", help=f"(default {SIZE})")
    arguments = settings.read(parser, bytes=10**5, repeat=1)
    known = catalogue.discover()
    wanted = [catalogue.find(name, known) for name in arguments.stacks.split(",")]
    for stack in [one for one in wanted if one.missing("virtual-time")]:
        print(f"left out: {stack.missing('virtual-time')}", file=sys.stderr)
        wanted.remove(stack)
    rows = []
    with tempfile.TemporaryDirectory(prefix="bentpipe-bench-") as name:
        folder = Path(name)
        www_file(folder / "www", arguments.bytes)
        for client, server in itertools.product(wanted, wanted):
            row = measure(client, server, folder, arguments)
            rows.append(row)
            if not arguments.json:
                if len(rows) == 1:
                    print(HEADING)
                print(line(row), flush=True)
    if arguments.json:
        print(json.dumps([to_mapping(row) for row in rows], indent=1))
    else:
        print(foot(rows))


def measure(client: Stack, server: Stack, folder: Path, given: argparse.Namespace) -> Row:
    """Trials and loopback transfers of one pair, in turns."""
    trials, transfers = [], []
    for _ in range(given.repeat):
        trials.append(trial(client, server, given.bytes, folder))
        work = Path(tempfile.mkdtemp(dir=folder))
        transfer = loopback.Transfer(folder / "www", (f"/{given.bytes}",), work)
        transfers.append(loopback.run(client, server, transfer))
    best = min(trials, key=lambda one: one["cpu_client_s"] + one["cpu_server_s"] + one["cpu_sim_s"])
    ours = min(transfers, key=lambda ends: ends[0].cpu_s + ends[1].cpu_s)
    walls = [one["wall_s"] for one in trials]
    return Row(
        client=client.name,
        server=server.name,
        completion_s=best["completion_s"],
        wall_best_s=min(walls),
        wall_median_s=statistics.median(walls),
        cpu_client_s=best["cpu_client_s"],
        cpu_server_s=best["cpu_server_s"],
        cpu_sim_s=best["cpu_sim_s"],
        loopback_cpu_client_s=ours[0].cpu_s,
        loopback_cpu_server_s=ours[1].cpu_s,
    )


def trial(client: Stack, server: Stack, size: int, folder: Path) -> dict[str, Any]:
    """One trial in virtual time; SystemExit if it is not ok."""
    name = Trial(SEED, SCENARIO, f"transfer:{size}", size, client.name, server.name, iteration=1)
    one, other = (Variant(stack.name, stack, {}) for stack in (client, server))
    flow = LocalFlow("transfer", (f"/{size}",), one, other)
    trial = LocalTrial(
        scenario=scenarios.resolve(SCENARIO).scenario,
        flows=(flow,),
        www=folder / "www",
        seed=name.seed,
        folder=folder / "trial",
    )
    answer = TrialProcesses(folder).run(trial)
    values = answer.values or {"outcome": "invalid", "detail": answer.failure}
    if values["outcome"] != "ok":
        sys.exit(f"error: {client.name} → {server.name}: {values['outcome']}: {values['detail']}")
    return values


HEADING = """\
                   completion    wall s          times   CPU s in the trial      CPU s, loopback   CPU
client → server             s   best  median  real time  client  server   sim    client  server  ratio"""


def line(row: Row) -> str:
    pair = f"{row.client} → {row.server}"
    return (
        f"{pair:<21} {row.completion_s:>7.2f} {row.wall_best_s:>6.3f} {row.wall_median_s:>7.3f}"
        f" {row.speed:>10.0f}"
        f" {row.cpu_client_s:>7.3f} {row.cpu_server_s:>7.3f} {row.cpu_sim_s:>5.3f}"
        f" {row.loopback_cpu_client_s:>9.3f} {row.loopback_cpu_server_s:>7.3f} {row.cpu_ratio:>6.2f}"
    )


def foot(rows: list[Row]) -> str:
    """The targets, and whether each pair meets them."""
    within = [row for row in rows if row.cpu_ratio <= CPU_TARGET]
    lines = [f"CPU at most {CPU_TARGET:g} times the loopback's: {len(within)} of {len(rows)} pairs"]
    for row in rows:
        if row.wall_target is not None:
            met = "met" if row.speed >= row.wall_target else "missed"
            pair = f"{row.client} → {row.server}"
            lines.append(f"{pair} at least {row.wall_target} times real time: {met} ({row.speed:.0f})")
    return "\n".join(lines)


def to_mapping(row: Row) -> dict[str, Any]:
    derived = {"speed": row.speed, "cpu_ratio": row.cpu_ratio, "wall_target": row.wall_target}
    return dataclasses.asdict(row) | derived


if __name__ == "__main__":
    main()
