"""The runs that the pages are written from: all pairs, and experiments beside them, by campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from bentpipe import labels
from bentpipe.analysis.cells import Cell, Matrix, cells, matrices
from bentpipe.runs.records import Record
from bentpipe.study.source import Source, pooled
from bentpipe.testbed import EMU

from .intervals import Pairs
from .pairs import ScenarioResult, over_pairs
from .published import Published

WORKLOAD = "transfer:10485760"
SAT, SATLOSS = "sat-2021", "satloss-2021"  # whose queue is that of the thesis's simulator
START, CONTROLLERS, QUEUE, RUNNER_QUEUE, SHORT_QUEUE, LITERATURE = (
    "thesis-start",
    "thesis-controllers",
    "thesis-queue",
    "thesis-runner-queue",
    "thesis-short-queue",
    "thesis-literature",
)
EMULATED = ("thesis-emulated", "thesis-emulated-queue")
GALLERY = "thesis-gallery"  # how the names of its campaigns begin
_QUEUES = {"forward.queue", "return.queue"}


@dataclass(frozen=True)
class ThesisRuns:
    """The runs of the pages, and the published values."""

    sources: tuple[Source, ...]
    known: Published

    @property
    def source(self) -> Source:
        """All pairs: the run that there always is."""
        return self.sources[0]

    @cached_property
    def whole(self) -> list[Source]:
        """The main run, and further runs of its campaign: more trials of the same pairs."""
        name = self.source.manifest.campaign
        return [self.source, *(one for one in self.sources[1:] if one.manifest.campaign == name)]

    @cached_property
    def records(self) -> list[Record]:
        """The records that can be compared: of the source's scenarios, unchanged, and its workload."""
        return [
            one
            for one in pooled(self.whole)
            if one.scenario in self.known.scenarios and one.workload == WORKLOAD
        ]

    @cached_property
    def matrices(self) -> dict[str, Matrix]:
        """By scenario, in the order of the source's table."""
        found = {matrix.key.scenario: matrix for matrix in matrices(self.records)}
        return {name: found[name] for name in self.known.scenarios if name in found}

    @cached_property
    def as_published(self) -> dict[str, Matrix]:
        """The matrices by equation 4.1 (goodput) and 4.2 (efficiency), for all that stands beside what was
        published.
        """
        found = matrices([by_equation(one, self.rate_bps(one.scenario)) for one in self.records])
        by_name = {matrix.key.scenario: matrix for matrix in found}
        return {name: by_name[name] for name in self.matrices}

    @cached_property
    def results(self) -> dict[str, ScenarioResult]:
        """Of each scenario over all pairs, as the source counts and times."""
        return {name: over_pairs(one) for name, one in self.as_published.items()}

    @cached_property
    def planned(self) -> Counter[str]:
        """Scenario → trials that the run was to have."""
        trials = [trial for one in self.whole for trial in one.manifest.trials()]
        mine = [one.scenario for one in trials if one.workload == WORKLOAD]
        return Counter(name for name in mine if name in self.known.scenarios)

    @property
    def missing(self) -> Counter[str]:
        """Scenario → trials without a record."""
        return self.planned - Counter(one.scenario for one in self.records)

    def rate_bps(self, scenario: str) -> float:
        return float(self.source.manifest.scenarios[scenario].summary["forward_rate_bps"])

    @cached_property
    def common(self) -> list[str]:
        """The stacks that are in the publication and in this run."""
        servers = dict.fromkeys(server for one in self.matrices.values() for server in one.servers)
        return [one for one in servers if one in self.known.stacks]

    def pairs(self, scenario: str, column: str = "goodput_bps") -> Pairs:
        """The mean of a column for every pair that never failed."""
        return _means(self.matrices.get(scenario), column)

    def pairs_as_published(self, scenario: str, column: str = "goodput_bps") -> Pairs:
        """The mean of a column for every pair that never failed, by equations 4.1 and 4.2."""
        return _means(self.as_published.get(scenario), column)

    def beside(self, campaign: str) -> Source | None:
        """The run of an experiment; None if it is not among the runs."""
        return next((one for one in self.sources[1:] if one.manifest.campaign == campaign), None)

    def cells_beside(self, campaign: str) -> dict[tuple[str, str, str], Cell]:
        """(scenario, client, server) → cell of an experiment."""
        source = self.beside(campaign)
        records = source.in_order if source else []
        return {(one.key.scenario, one.key.client, one.key.server): one for one in cells(records)}

    @cached_property
    def in_real_time(self) -> list[Cell]:
        """Pairs that want a clock of their own, over the links and over the longer queue, with goodput by
        equation 4.1.
        """
        found = [one for one in self.sources[1:] if one.manifest.campaign in EMULATED]
        rates = {
            name: float(link.summary["forward_rate_bps"])
            for one in found
            for name, link in one.manifest.scenarios.items()
        }
        records = [
            one
            for one in pooled(found)
            if one.testbed == EMU.name
            and one.workload == WORKLOAD
            and labels.scenario(one.scenario).values.keys() <= _QUEUES
        ]
        return cells([by_equation(one, rates[one.scenario]) for one in records])

    @property
    def galleries(self) -> list[Source]:
        return [one for one in self.sources[1:] if one.manifest.campaign.startswith(GALLERY)]


def by_equation(record: Record, rate_bps: float) -> Record:
    """The record with goodput by equation 4.1, of each trial by itself, and efficiency by 4.2."""
    seconds = record.runner_transfer_s
    goodput = 8 * record.size_bytes / seconds if record.ok and seconds else None
    efficiency = None if goodput is None else goodput / rate_bps
    return msgspec.structs.replace(record, goodput_bps=goodput, efficiency=efficiency)


def _means(matrix: Matrix | None, column: str) -> Pairs:
    found = {}
    for cell in matrix.cells if matrix else ():
        values = cell.values(column)
        if values and not cell.failures:
            found[cell.key.client, cell.key.server] = sum(values) / len(values)
    return found


def short(label: str) -> str:
    """The stack of a variant that chooses nothing but its own library's window; else the whole label."""
    variant = labels.variant(label)
    return variant.stack if dict(variant.options) in ({}, {"window": "library"}) else label


def made_of(count: Sequence[Record]) -> str:
    """`5000 trials of 100 pairs`, for the line under a picture."""
    pairs = {(one.client, one.server) for one in count}
    return f"{len(count)} trials of {len(pairs)} pairs"
