"""The cost of a trial of one flow that lasts for a given virtual time."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from bentpipe.execution.jobs import LocalFlow, LocalTrial, TrialProcesses
from bentpipe.plan import scenarios
from bentpipe.stacks import catalogue

STACK = "quinn"
SEED = "0000000000000001"
NS = 10**9


@dataclass(frozen=True)
class Cost:
    """The cost of a trial."""

    packets: int  # those of sources, and of other terminals, included
    cpu_sim_s: float
    cpu_s: float  # of all three processes
    wall_s: float

    @property
    def per_packet_us(self) -> float:
        return 1e6 * self.cpu_sim_s / self.packets


def cost(scenario: str, size: int, seconds: int, folder: Path) -> Cost:
    """One trial in virtual time that ends after `seconds`, at the latest; SystemExit if it is not ok.
    `folder` has the file of that size in `www`.
    """
    one = catalogue.variant(STACK, catalogue.discover())
    flow = LocalFlow("transfer", (f"/{size}",), one, one, duration_ns=seconds * NS)
    there = LocalTrial(
        scenario=scenarios.resolve(scenario).scenario,
        flows=(flow,),
        www=folder / "www",
        seed=SEED,
        folder=folder / "trial",
    )
    answer = TrialProcesses(folder).run(there)
    values = answer.values or {"outcome": "invalid", "detail": answer.failure}
    if values["outcome"] != "ok":
        sys.exit(f"error: {scenario}: {values['outcome']}: {values['detail']}")
    parts = ("forward_packets", "return_packets", "forward_source_packets", "return_source_packets")
    ends = values["cpu_client_s"] + values["cpu_server_s"]
    return Cost(
        packets=sum(values[part] or 0 for part in parts),
        cpu_sim_s=values["cpu_sim_s"],
        cpu_s=values["cpu_sim_s"] + ends,
        wall_s=values["wall_s"],
    )
