"""pico_sim, the simulator that is part of picoquic, run over a path of ours.

It takes a text file: a rate for both ways, a delay one way, how long a queue may be in time, what is
transferred, and by which congestion control. It prints when the client had disconnected, in microseconds; its
qlog says what arrived when. Both of its ends are picoquic in one process, as it is in the stack of that name.

Two more programs give its links picoquic's queue disciplines (endpoints/picoquic/simulator.sh).
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from bentpipe.errors import BentpipeError
from bentpipe.stacks import catalogue

# A request of 397 bytes, as picoquic's own tests have it, and a response.
_SPECIFICATION = """main_scenario_text: =b1:*1:397:{size};
main_cc_algo: {congestion}
qlog_dir: {qlog}
nb_connections: 1
data_rate_in_gbps: {rate:.9f}
latency: {delay}
queue_delay_max: {queue}
main_target_time: 600000000
"""


@dataclass(frozen=True)
class TwoQueues:
    """picoquic's queues for L4S and others (dualq_aqm.c), in microseconds: of L4S all are marked that waited
    for as long as `mark_all_us`, and none that waited for 800.
    """

    mark_all_us: int


@dataclass(frozen=True)
class Red:
    """picoquic's RED (red_aqm.c): none is dropped below one mean delay, all are above the other."""

    threshold_us: int
    max_us: int


@dataclass(frozen=True)
class SimulatedPath:
    """A path and a transfer over it, the same both ways."""

    congestion: str
    size_bytes: int
    rate_bps: float  # of UDP payload: pico_sim knows no headers
    delay_ms: float  # one way
    queue_ms: float
    discipline: TwoQueues | Red | None = None  # None: drop-tail


@dataclass(frozen=True)
class Times:
    """The times of a simulation, in seconds after the client began."""

    last_data_s: float  # the last packet with data of the stream reached the client
    disconnected_s: float


@dataclass(frozen=True)
class PicoSim:
    """The program. Its certificates lie beside it."""

    program: Path

    @classmethod
    def installed(cls) -> PicoSim:
        """The simulator of the stack picoquic; BentpipeError if it is not installed."""
        stack = catalogue.find("picoquic", catalogue.discover())
        if (missing := stack.missing("virtual-time")) is not None:
            raise BentpipeError(f"pico_sim comes with the stack picoquic: {missing}", stack.how_to_install)
        return cls(Path(stack.command("virtual-time")[0]).with_name("pico_sim"))

    @property
    def with_disciplines(self) -> PicoSim:
        """With picoquic's queue disciplines as they are, and packets that carry their sender's codepoint."""
        return replace(self, program=self.program.with_name("pico_sim_disciplines"))

    @property
    def changed(self) -> PicoSim:
        """The same with what is suspected changed in each discipline."""
        return replace(self, program=self.program.with_name("pico_sim_changed"))

    def run(self, path: SimulatedPath, seed: int = 1) -> Times:
        """Simulate a transfer. It draws connection IDs at random, and times differ a little with them. `seed`
        is that of a RED that draws.
        """
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            specification = folder / "path.sim"
            specification.write_text(_specification(path, folder))
            command = [str(self.program), "-S", str(self.program.parent), str(specification)]
            environment = {**os.environ, "PICO_SIM_SEED": str(seed), "PICO_SIM_MARK_AS": path.congestion}
            if isinstance(path.discipline, Red):
                environment["PICO_SIM_RED"] = f"{path.discipline.threshold_us},{path.discipline.max_us}"
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            if done.returncode or not done.stdout.startswith("Success,"):
                raise BentpipeError(f"pico_sim over {path}: {done.stdout}{done.stderr}".strip())
            (qlog,) = folder.glob("*.client.qlog")
            return Times(_last_data_s(qlog), int(done.stdout.split(",")[2]) / 1e6)


def _specification(path: SimulatedPath, folder: Path) -> str:
    text = _SPECIFICATION.format(
        size=path.size_bytes,
        congestion=path.congestion,
        qlog=folder,
        rate=path.rate_bps / 1e9,
        delay=round(path.delay_ms * 1000),
        queue=round(1000 * (path.queue_ms + _counted_ms(path))),
    )
    match path.discipline:
        case TwoQueues(mark_all_us):
            return f"{text}l4s_max: {mark_all_us}\n"
        case Red():
            return f"{text}l4s_max: 1\n"  # any: it asks for a discipline
    return text


def _counted_ms(path: SimulatedPath) -> float:
    """What two queues take for their limit counts the link's delay."""
    return path.delay_ms if isinstance(path.discipline, TwoQueues) else 0


def _last_data_s(qlog: Path) -> float:
    """The arrival of the last packet with stream data. Events are lists: time, category, event, data."""
    (trace,) = json.loads(qlog.read_text())["traces"]
    return 1e-6 * max(
        int(event[0])
        for event in trace["events"]
        if event[2] == "packet_received" and any(one["frame_type"] == "stream" for one in event[3]["frames"])
    )
