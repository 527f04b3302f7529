"""A trial: one execution of (scenario, workload, client, server, treatment, iteration), and its seed."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cached_property

from bentpipe import labels
from bentpipe.plan.treatments import DIRECT
from bentpipe.schema.manifest import Draws

IP_VERSIONS = (4, 6)


@dataclass(frozen=True)
class Trial:
    """The identity of a trial."""

    campaign_seed: int
    scenario: str  # its label
    workload: str
    size_bytes: int
    client: str
    server: str
    iteration: int  # from 1
    treatment: str = DIRECT  # in canonical form
    testbed: str = "sim"
    ip: int = 4  # the version that programs speak
    draws: Draws = "independent"

    @cached_property
    def seed(self) -> str:
        """64 bits in hexadecimal: with independent draws from the trial's identity, with common ones from the
        campaign's seed and the iteration alone. Neither order nor parallelism, nor testbed nor version of IP
        changes it.
        """
        return _digest([self.campaign_seed, self.iteration]) if self.draws == "common" else self._digest

    @cached_property
    def _digest(self) -> str:
        """64 bits in hexadecimal, of the trial's identity."""
        identity = [
            self.campaign_seed,
            self.scenario,
            self.workload,
            self.client,
            self.server,
            self.treatment,
            self.iteration,
        ]
        return _digest(identity)

    @cached_property
    def id(self) -> str:
        """The name of the trial's folder: readable, unique by a digest, safe in any file system."""
        between = "" if self.treatment == DIRECT else f"{labels.treatment(self.treatment).kind}_"
        words = f"{self.scenario}_{self.client}_{self.server}_{between}{self.iteration}"
        return f"{re.sub(r'[^A-Za-z0-9._=-]+', '-', words)[:120]}-{self._digest[:8]}"


def _digest(values: list[object]) -> str:
    canonical = json.dumps(values, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).digest()[:8].hex()
