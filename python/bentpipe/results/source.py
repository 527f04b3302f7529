"""The run that a page is written from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe import manifest
from bentpipe.errors import BentpipeError
from bentpipe.manifest import Manifest
from bentpipe.records import Record, read_jsonl

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
        found = manifest.read(folder)
        path = folder / "records.jsonl"
        try:
            records = list(read_jsonl(path))
        except FileNotFoundError:
            records = []
        except (OSError, ValueError, TypeError) as error:
            hint = "the run may be of another version of Bentpipe; repeat it"
            raise BentpipeError(f"{path}: cannot be read: {error}", hint) from error
        if not records:
            hint = f"continue it with: bentpipe run --resume {folder}"
            raise BentpipeError(f"{folder}: no trial of this run has finished, so there are no records", hint)
        return cls(folder, found, records, command)

    @cached_property
    def in_order(self) -> list[Record]:
        """The records in the order of the run's plan: they were written as trials ended."""
        plan = self.manifest.plan
        orders = [
            {label: place for place, label in enumerate(labels)}
            for labels in (plan.labels(), map(str, plan.parsed_workloads), plan.clients, plan.servers)
        ]

        def place(one: Record) -> tuple[int, ...]:
            labels = (one.scenario, one.workload, one.client, one.server)
            known = [order.get(label, len(order)) for order, label in zip(orders, labels, strict=True)]
            return (*known, one.iteration)

        return sorted(self.records, key=place)


def without_folders(text: str) -> str:
    """`text` with the files of this machine named without their folders: pages are read elsewhere."""
    return _ABSOLUTE.sub(r"\1", text)
