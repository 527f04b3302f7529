"""The runs of the page on the limit: their cells, as variants against sizes and against paths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from bentpipe import labels, workload
from bentpipe.analysis.cells import Cell
from bentpipe.schema.manifest import ScenarioState
from bentpipe.study.grid import Grid, is_reference
from bentpipe.study.markdown import bytes_as
from bentpipe.study.source import Source, pooled, single_transfers
from bentpipe.study.variants import short_names

_USUAL_PATH, _USUAL_SIZE = "sat", "10 MB"  # that a title is about, where the runs have them


@dataclass(frozen=True)
class LimitRuns:
    """The runs of the page, and their cells."""

    sources: tuple[Source, ...]

    @cached_property
    def cells(self) -> list[Cell]:
        return single_transfers(pooled(self.sources))

    @cached_property
    def variants(self) -> dict[str, str]:
        """Server → what it is called."""
        return short_names(list(dict.fromkeys(one.key.server for one in self.cells)))

    @cached_property
    def scenarios(self) -> list[str]:
        return list(dict.fromkeys(one.key.scenario for one in self.cells))

    @cached_property
    def sizes(self) -> list[str]:
        found = {workload.parse(one.key.workload, "the run").size_bytes for one in self.cells}
        return [bytes_as(one) for one in sorted(found)]

    @cached_property
    def clients(self) -> list[str]:
        """One for each stack."""
        return list(dict.fromkeys(one.key.client for one in self.cells))

    @cached_property
    def tcp(self) -> list[str]:
        """The servers of TCP."""
        return [
            one
            for one in self.variants
            if any(
                cell.key.server == one and record.transport == "tcp"
                for cell in self.cells
                for record in cell.records
            )
        ]

    def state(self, scenario: str) -> ScenarioState:
        known = (one.manifest.scenarios for one in self.sources)
        return next(one[scenario] for one in known if scenario in one)

    @cached_property
    def over(self) -> dict[str, Grid]:
        """Of each path: variants against sizes."""
        grids = {}
        for scenario in self.scenarios:
            mine = [one for one in self.cells if one.key.scenario == scenario]
            found = {(one.key.server, bytes_as(one.records[0].size_bytes)): one for one in mine}
            sizes = [size for size in self.sizes if any(s == size for _, s in found)]
            grids[scenario] = Grid(self.variants, sizes, found)
        return grids

    def of_size(self, size: str) -> Grid:
        """Variants against scenarios."""
        mine = [one for one in self.cells if bytes_as(one.records[0].size_bytes) == size]
        return Grid(self.variants, self.scenarios, {(one.key.server, one.key.scenario): one for one in mine})

    @cached_property
    def reference(self) -> str | None:
        """CUBIC with HyStart++, if it is in the runs."""
        return next((one for one in self.variants if is_reference(one)), None)

    @property
    def usual_path(self) -> str:
        """The path that a title is about."""
        named = [one for one in self.scenarios if labels.scenario(one).name == _USUAL_PATH]
        return (named or self.scenarios)[0]

    @property
    def usual_size(self) -> str:
        """The size that a title is about."""
        known = self.over[self.usual_path].settings
        return _USUAL_SIZE if _USUAL_SIZE in known else known[-1]

    @cached_property
    def leading(self) -> dict[str, list[tuple[str, str]]]:
        """Variant → the (path, size) in which it is shown to be best, or within 5 % of the best; the most
        frequent one first.
        """
        found: dict[str, list[tuple[str, str]]] = {one: [] for one in self.variants}
        for scenario, grid in self.over.items():
            for size in grid.settings:
                for one in grid.leaders(size):
                    found[one].append((scenario, size))
        return dict(sorted(found.items(), key=lambda one: -len(one[1])))
