"""The outline of a run's site: its cells, in their matrices, with the names of their pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bentpipe.analysis.cells import MatrixKey
from bentpipe.plan import treatments
from bentpipe.report import slugs
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.records import CellKey

# The name that `bentpipe run` gives a run that is no campaign.
_UNNAMED = "run"
_NAMED = 4  # names that a heading lists before it counts them


@dataclass(frozen=True)
class RunOutline:
    """A run without the results of its trials."""

    folder: Path
    manifest: Manifest
    cells: Sequence[CellKey]  # in the order in which they first appear
    planned: int | None = None  # trials of a run that may be under way; its cells are all that are planned

    @cached_property
    def matrices(self) -> dict[MatrixKey, list[CellKey]]:
        """The matrices in the manifest's order of scenarios, then of workloads and of treatments; others are
        last.
        """
        labels, plan = list(self.manifest.scenarios), self.manifest.plan
        between = treatments.labels(plan.treatments, plan.pep)

        def place(key: MatrixKey) -> tuple[int, int, int, MatrixKey]:
            first = _place(labels, key.scenario), _place(plan.workloads, key.workload)
            return *first, _place(between, key.treatment), key

        groups: dict[MatrixKey, list[CellKey]] = {}
        for cell in self.cells:
            groups.setdefault(MatrixKey.of(cell), []).append(cell)
        return {key: groups[key] for key in sorted(groups, key=place)}

    @cached_property
    def slugs(self) -> dict[str, CellKey]:
        """The cells by file name, over all matrices."""
        return slugs.assign(cell for cells in self.matrices.values() for cell in cells)

    @cached_property
    def heading(self) -> str:
        """The campaign's name; for a run without one of its own, what it ran over which scenarios."""
        campaign = self.manifest.campaign or self.folder.resolve().name
        if campaign != _UNNAMED or not self.cells:
            return campaign
        ordered = [cell for cells in self.matrices.values() for cell in cells]
        clients = _distinct(cell.client for cell in ordered)
        servers = _distinct(cell.server for cell in ordered)
        stacks = f"{_named(clients, 'clients')} to {_named(servers, 'servers')}"
        if sorted(clients) == sorted(servers):
            stacks = _named(clients, "stacks")
        return f"{stacks} over {_named(_distinct(cell.scenario for cell in ordered), 'scenarios')}"

    def summary(self, scenario: str) -> dict[str, Any]:
        """The manifest's summary of a scenario; empty if it has none. Several paths are told in words, as
        `each_path`.
        """
        known = self.manifest.scenarios.get(scenario)
        if known is None:
            return {}
        summary = dict(known.summary)
        if paths := summary.pop("paths", None):
            summary["each_path"] = _told(paths)
        return summary


def _told(paths: Sequence[Mapping[str, Any]]) -> str:
    """Several paths, each with its name, round trip and rates."""
    return "; ".join(f"{one['name']}: {one['rtt_ms']:g} ms, {_rates(one)}" for one in paths)


def _rates(path: Mapping[str, Any]) -> str:
    """The rates of a path, forward and return."""
    both = [path["forward_rate_bps"], path["return_rate_bps"]]
    return "/".join("unlimited" if one is None else f"{one / 1e6:g}" for one in both) + " Mbit/s"


def _place(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _named(names: list[str], plural: str) -> str:
    return ", ".join(names) if len(names) <= _NAMED else f"{len(names)} {plural}"
