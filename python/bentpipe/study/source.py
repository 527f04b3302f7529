"""The runs that a page is written from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe.analysis.cells import Cell, cells
from bentpipe.errors import BentpipeError
from bentpipe.runs import run_folder
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.records import Record

_ABSOLUTE = re.compile(r"(?<![\w.~/])(?:/[\w.+~@-]+)+/([\w.+~@-]+)")


@dataclass(frozen=True)
class Source:
    """A run's manifest and records, and the command that makes a page of them."""

    folder: Path
    manifest: Manifest
    records: list[Record]
    command: str

    @classmethod
    def read(cls, folder: Path, command: str) -> Source:
        """Read the run in `folder`. BentpipeError if that is no run, or has no records."""
        return cls(folder, *run_folder.read(folder), command)

    @cached_property
    def in_order(self) -> list[Record]:
        """The records in the order of the run's plan: they were written as trials ended."""
        plan = self.manifest.plan
        orders = [
            {label: place for place, label in enumerate(labels)}
            for labels in (
                plan.labels(),
                map(str, plan.parsed_workloads),
                map(str, plan.parsed_treatments),
                plan.clients,
                plan.servers,
            )
        ]

        def place(one: Record) -> tuple[int, ...]:
            labels = (one.scenario, one.workload, one.treatment, one.client, one.server)
            known = [order.get(label, len(order)) for order, label in zip(orders, labels, strict=True)]
            return (*known, one.iteration)

        return sorted(self.records, key=place)

    def refused(self, why: str, command: str) -> BentpipeError:
        """The error that no page can be written from this run; `command` makes a suitable one."""
        return BentpipeError(f"{self.folder}: {why}", f"make such a run with: bentpipe {command}")

    @property
    def is_real_time(self) -> bool:
        return self.manifest.plan.testbed == "emu"


def pooled(sources: Iterable[Source]) -> list[Record]:
    """The records of several runs; a trial that several of them have counts once."""
    found: dict[tuple[str, ...], Record] = {}
    for one in (record for source in sources for record in source.in_order):
        setting = (one.testbed, one.scenario, one.workload, one.treatment, one.client, one.server)
        found.setdefault((*setting, one.seed), one)
    return list(found.values())


def single_transfers(records: Iterable[Record]) -> list[Cell]:
    """The cells whose workload is the transfer of one file."""
    known = [one for one in cells(records) if one.key.workload.startswith("transfer:")]
    return [one for one in known if "x" not in one.key.workload]


def title(sources: Iterable[Source], scenario: str) -> str:
    """The title of a scenario; its label if no run has one."""
    known = (one.manifest.scenarios[scenario] for one in sources if scenario in one.manifest.scenarios)
    return next((str(one.summary.get("title", scenario)) for one in known), scenario)


def without_folders(text: str) -> str:
    """`text` with files named without their folders: pages are read on other machines."""
    return _ABSOLUTE.sub(r"\1", text)
