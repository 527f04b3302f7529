"""The runs of the page on slow starts: their cells, as slow starts against queues over each path."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from bentpipe.analysis.cells import Cell, cells
from bentpipe.study.grid import Grid
from bentpipe.study.slow_starts import SlowStartTrial
from bentpipe.study.source import Source, pooled
from bentpipe.study.variants import short_names, slow_start

_USUAL = "sat"  # the path that a title is about, where the runs have it


def is_tcp(cell: Cell) -> bool:
    """Whether a cell is of TCP."""
    return any(one.transport == "tcp" for one in cell.records)


@dataclass(frozen=True)
class SlowStartRuns:
    """The runs of the page, and their cells."""

    sources: tuple[Source, ...]

    @cached_property
    def cells(self) -> list[Cell]:
        return [
            one
            for one in cells(pooled(self.sources))
            if one.key.scenario_label.queue and (slow_start(one.key.server) or is_tcp(one))
        ]

    @cached_property
    def tcp(self) -> list[str]:
        """The servers of TCP."""
        return list(dict.fromkeys(one.key.server for one in self.cells if is_tcp(one)))

    @cached_property
    def variants(self) -> dict[str, str]:
        """Server → what it is called."""
        return short_names(list(dict.fromkeys(one.key.server for one in self.cells)))

    @property
    def tells(self) -> bool:
        """Whether any server said how it left slow start."""
        return any(SlowStartTrial(record).left_by for cell in self.cells for record in cell.records)

    @cached_property
    def over(self) -> dict[tuple[str, str], Grid]:
        """Of each scenario, without its queue, and workload: slow starts against queues."""
        grids: dict[tuple[str, str], Grid] = {}
        for path in dict.fromkeys(map(_path, self.cells)):
            mine = [one for one in self.cells if _path(one) == path]
            found = {(one.key.server, one.key.scenario_label.queue): one for one in mine}
            grids[path] = Grid(self.variants, list(dict.fromkeys(queue for _, queue in found)), found)
        return grids

    @property
    def usual(self) -> tuple[str, str]:
        """The path that a title is about."""
        return next((one for one in self.over if one[0] == _USUAL), next(iter(self.over)))

    @cached_property
    def leading(self) -> dict[str, list[tuple[tuple[str, str], str]]]:
        """Variant → the (path, queue) in which it is shown to be best, or within 5 % of the best."""
        found: dict[str, list[tuple[tuple[str, str], str]]] = {one: [] for one in self.variants}
        for path, grid in self.over.items():
            for queue in grid.settings:
                for one in grid.leaders(queue):
                    found[one].append((path, queue))
        return found


def _path(cell: Cell) -> tuple[str, str]:
    return str(cell.key.scenario_label.without_queue), cell.key.workload
