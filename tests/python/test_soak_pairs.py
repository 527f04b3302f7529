"""Every pair of the stacks that are installed, in virtual time, with a seed that nobody has tried: what does
not depend on how stacks are tuned. `make soak` runs this; each seed draws a path and a test case.
"""

from __future__ import annotations

from random import Random

import chance
import pytest
from conftest import Command
from test_determinism import EXCEPTIONS

from bentpipe.stacks import catalogue

pytestmark = [pytest.mark.soak, pytest.mark.virtual_time]
PATHS = (
    "goodput",
    "sat",
    "satloss",
    "leo-tum",
    "4sat-variable",
    "starlink",
    "sat-allocation",
    "viasat-varying",
)
WORKLOADS = ("transfer:300kB", "handshake:3x1000", "multiplexing:200x50", "upload:200kB")
# What a stack may come to over a bad path. Anything else is a defect: of the stack, its program, or Bentpipe.
RESULTS = {"ok", "unsupported", "handshake_timeout", "transfer_timeout"}


def test_pairs_repeat_and_neither_crash_nor_corrupt(bentpipe: Command) -> None:
    seed = chance.soak_seed() or 0
    draw = Random(seed)
    path, workload = draw.choice(PATHS), draw.choice(WORKLOADS)
    here = [
        stack
        for name, stack in catalogue.discover().items()
        if name not in ("toy", "hostile") and stack.missing("virtual-time") is None
    ]
    clients, servers = (
        ",".join(stack.name for stack in here if role in stack.roles) for role in ("client", "server")
    )
    run = ["run", "--scenario", path, "--workload", workload, "--client", clients, "--server", servers,
           "--seed", str(seed), "--iterations", "1", "--trace", "none", "--no-report", "--json"]  # fmt: skip
    once = bentpipe(*run, "--out", "A")
    assert once.code == 0, once.err
    first = once.records()
    assert first
    assert [(one["trial"], one["detail"]) for one in first if one["outcome"] not in RESULTS] == []
    again = {one["trial"]: one for one in bentpipe(*run, "--jobs", "1", "--shuffle", "--out", "B").records()}
    differ = [
        one["trial"]
        for one in first
        if one["packet_log_hash"] != again[one["trial"]]["packet_log_hash"]
        and not {one["client"], one["server"]} & EXCEPTIONS.keys()
    ]
    assert differ == [], f"{path}, {workload}"
