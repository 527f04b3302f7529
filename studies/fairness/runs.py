"""The runs of a page on fairness: their cells, and the sets of flows that these have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bentpipe import labels, workload
from bentpipe.analysis.cells import Cell, cells
from bentpipe.plan import flows
from bentpipe.plan.flows import FurtherFlow
from bentpipe.runs.records import Record
from bentpipe.study.claims import MeasuredValue
from bentpipe.study.markdown import literal, several
from bentpipe.study.means import arithmetic
from bentpipe.study.source import Source, pooled
from bentpipe.study.variants import short_names

DEFAULT_QUEUE = "1 BDP"  # the path that a title is about, where the run has it


@dataclass(frozen=True)
class FairnessRuns:
    """The runs of a page, and their cells."""

    sources: tuple[Source, ...]

    @cached_property
    def cells(self) -> list[Cell]:
        """Of all runs in virtual time."""
        return self._cells(is_real_time=False)

    @cached_property
    def real(self) -> list[Cell]:
        """Of all runs in real time."""
        return self._cells(is_real_time=True)

    def _cells(self, *, is_real_time: bool) -> list[Cell]:
        records = pooled(one for one in self.sources if one.is_real_time == is_real_time)
        return [one for one in cells(records) if measured(one)]

    @cached_property
    def scenarios(self) -> list[str]:
        return list(dict.fromkeys(one.key.scenario for one in self.cells))

    @cached_property
    def sets(self) -> list[str]:
        """Workloads: each with another set of further flows."""
        return list(dict.fromkeys(one.key.workload for one in self.cells))

    @cached_property
    def equal_sets(self) -> list[str]:
        """Those of flows of one kind, the fewest flows first."""
        return sorted(filter(is_among_equals, self.sets), key=lambda one: len(further(one)))

    @cached_property
    def servers(self) -> list[str]:
        return list(dict.fromkeys(one.key.server for one in self.cells))

    @cached_property
    def names(self) -> dict[str, str]:
        """Server → a short name."""
        return short_names(self.servers)

    @cached_property
    def by_key(self) -> dict[tuple[str, str, str], Cell]:
        """(server, scenario, workload) → cell."""
        return {(one.key.server, one.key.scenario, one.key.workload): one for one in self.cells}

    @property
    def usual(self) -> str:
        """The scenario that a title is about: that with a queue of 1 BDP, or else the first."""
        queues = {one: one_queue(one) for one in self.scenarios}
        return next((one for one, queue in queues.items() if queue == DEFAULT_QUEUE), self.scenarios[0])


def one_queue(scenario: str) -> str:
    """The queue that was set; "" without one."""
    return labels.scenario(scenario).queue


def further(label: str) -> list[FurtherFlow]:
    """The further flows of a workload."""
    return flows.of(workload.parse(label, "the run"))


def is_among_equals(label: str) -> bool:
    """Whether the further flows are of the first one's kind."""
    return all(one.server is None for one in further(label))


def beside(label: str) -> str:
    """A set of further flows, in words."""
    kinds = ["of its kind" if one.server is None else literal(one.server) for one in further(label)]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    return ", ".join(
        kind if kind != "of its kind" and n == 1 else f"{n} {kind}" for kind, n in counts.items()
    )


def starts(label: str) -> str:
    """A set of further flows, with when they start."""
    times = [f"{one.start_ms / 1000:g}" for one in further(label)]
    listed = times[0] if len(times) == 1 else f"{', '.join(times[:-1])} and {times[-1]}"
    return f"{beside(label)}, from {listed} s on"


def measured(cell: Cell) -> list[Record]:
    """The trials in which the flows were measured. An invalid one says nothing of the flows."""
    return [one for one in cell.records if one.jain_index is not None and one.outcome != "invalid"]


def is_whole(cell: Cell) -> bool:
    """Whether the flows were measured in every trial."""
    return len(measured(cell)) == len(cell.records)


def unmeasured(cell: Cell | None) -> str:
    """`, 2 of 30 trials not measured`, to stand behind a mean; "" where all were."""
    if cell is None or is_whole(cell):
        return ""
    missing, whole = len(cell.records) - len(measured(cell)), len(cell.records)
    return f", {missing} of {several(whole, 'trial')} not measured"


def indices(cell: Cell) -> list[float]:
    """Jain's index of each trial."""
    return [one.jain_index for one in measured(cell) if one.jain_index is not None]


def goodputs(record: Record) -> list[float]:
    """In bit/s, of each flow, the first one first."""
    return [one.goodput_bps or 0.0 for one in record.flows]


def shares_of_first(cell: Cell) -> list[float]:
    """What the flow that starts first receives of what all do, while all are there, in percent."""
    return [share for one in measured(cell) if (share := share_of_first(one)) is not None]


def share_of_first(record: Record) -> float | None:
    """That of one trial; None where nothing was received."""
    values = goodputs(record)
    return 100 * values[0] / sum(values) if sum(values) else None


def index(cell: Cell | None) -> MeasuredValue | None:
    """The mean of Jain's index, with its interval."""
    return None if cell is None else arithmetic(indices(cell), 0.0, 1.0)


def first_share(cell: Cell | None) -> MeasuredValue | None:
    """The mean of the first flow's share, in percent, with its interval."""
    return None if cell is None else arithmetic(shares_of_first(cell), 0.0, 100.0)


def dropped(records: Sequence[Record]) -> list[float]:
    """Of each trial, the share of the packets of all flows that the queue dropped."""
    return [_sum(one, "queue_drops") / (_sum(one, "packets") or 1) for one in records]


def _sum(record: Record, what: str) -> int:
    return sum(getattr(one, f"forward_{what}") for one in record.flows)
