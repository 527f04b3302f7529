"""A trial: one execution of (scenario, workload, client, server, treatment, iteration), its seed and its
record.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bentpipe.records import OUTCOMES, Record
from bentpipe.treatments import DIRECT

_IDENTITY = (
    "trial",
    "scenario",
    "workload",
    "size_bytes",
    "client",
    "server",
    "treatment",
    "testbed",
    "iteration",
    "seed",
)
_MEASURED = frozenset(field.name for field in dataclasses.fields(Record)) - frozenset(_IDENTITY)


@dataclass(frozen=True)
class Trial:
    """Which trial it is."""

    campaign_seed: int
    scenario: str  # its label
    workload: str
    size_bytes: int
    client: str
    server: str
    iteration: int  # from 1
    treatment: str = DIRECT  # in canonical form
    testbed: str = "sim"

    @cached_property
    def seed(self) -> str:
        """64 bits in hexadecimal, from what the trial is; neither order nor parallelism nor testbed changes
        it.
        """
        identity = [
            self.campaign_seed,
            self.scenario,
            self.workload,
            self.client,
            self.server,
            self.treatment,
            self.iteration,
        ]
        canonical = json.dumps(identity, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).digest()[:8].hex()

    @cached_property
    def id(self) -> str:
        """The name of the trial's folder: readable, unique by its seed, safe in any file system."""
        between = "" if self.treatment == DIRECT else f"{self.treatment.partition(' ')[0]}_"
        words = f"{self.scenario}_{self.client}_{self.server}_{between}{self.iteration}"
        return f"{re.sub(r'[^A-Za-z0-9._=-]+', '-', words)[:120]}-{self.seed[:8]}"

    def record(self, values: Mapping[str, Any]) -> Record:
        """The record from what the testbed measured. ValueError if the columns are not the measured ones."""
        if frozenset(values) != _MEASURED:
            odd = sorted(frozenset(values) ^ _MEASURED)
            raise ValueError(f"the testbed's columns are not those of a record: {', '.join(odd)}")
        if values["outcome"] not in OUTCOMES:
            raise ValueError(f'the testbed\'s outcome "{values["outcome"]}" is none of {", ".join(OUTCOMES)}')
        return Record(**self._identity(), **values)

    def unmeasured(self, outcome: str, detail: str) -> Record:
        """The record of a trial in which nothing was measured."""
        nothing: dict[str, Any] = {
            field.name: _NOTHING[str(field.type)]
            for field in dataclasses.fields(Record)
            if field.name in _MEASURED
        }
        return Record(**self._identity(), **(nothing | {"outcome": outcome, "detail": detail}))

    def _identity(self) -> dict[str, Any]:
        return {"trial": self.id, **{name: getattr(self, name) for name in _IDENTITY[1:]}}


_NOTHING: Mapping[str, Any] = {
    "str": "",
    "int": 0,
    "float": 0.0,
    "float | None": None,
    "str | None": None,
    "int | None": None,
    "bool | None": None,
    "list[int]": [],
    "list[str]": [],
    "dict[str, Any]": {},
    "list[dict[str, Any]]": [],
}
