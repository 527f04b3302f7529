"""pico_sim, the simulator that is part of picoquic, run over a path of ours.

It takes a text file: a rate for both ways, a delay one way, how long a queue may be in time, what is
transferred, and by which congestion control. It prints when the client had disconnected, in microseconds; its
qlog says what arrived when. Both of its ends are picoquic in one process, as it is in the stack of that name.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
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
class SimulatedPath:
    """A path and a transfer over it, alike both ways."""

    congestion: str
    size_bytes: int
    rate_bps: float  # of UDP payload: pico_sim knows no headers
    delay_ms: float  # one way
    queue_ms: float


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

    def run(self, path: SimulatedPath) -> Times:
        """Simulate a transfer. It draws connection IDs at random, and times differ a little with them."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            specification = folder / "path.sim"
            specification.write_text(_specification(path, folder))
            command = [str(self.program), "-S", str(self.program.parent), str(specification)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode or not done.stdout.startswith("Success,"):
                raise BentpipeError(f"pico_sim over {path}: {done.stdout}{done.stderr}".strip())
            (qlog,) = folder.glob("*.client.qlog")
            return Times(_last_data_s(qlog), int(done.stdout.split(",")[2]) / 1e6)


def _specification(path: SimulatedPath, folder: Path) -> str:
    return _SPECIFICATION.format(
        size=path.size_bytes,
        congestion=path.congestion,
        qlog=folder,
        rate=path.rate_bps / 1e9,
        delay=round(path.delay_ms * 1000),
        queue=round(path.queue_ms * 1000),
    )


def _last_data_s(qlog: Path) -> float:
    """The arrival of the last packet with stream data. Events are lists: time, category, event, data."""
    (trace,) = json.loads(qlog.read_text())["traces"]
    return 1e-6 * max(
        int(event[0])
        for event in trace["events"]
        if event[2] == "packet_received" and any(one["frame_type"] == "stream" for one in event[3]["frames"])
    )
