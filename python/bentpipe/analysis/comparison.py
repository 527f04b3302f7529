"""A comparison of two runs: per cell the ratio of a measure, and whether the difference is significant.

Cells are the same if scenario, workload, treatment, client and server are; the testbed may differ, and the
version of anything. Or one treatment is compared with another one: then the two runs may be one.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from bentpipe import labels
from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.inference import Ratio, adjusted, geometric_mean
from bentpipe.errors import BentpipeError, UsageError, one_of
from bentpipe.plan import treatments
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs import run_folder
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.records import Record
from bentpipe.testbed import RUNNER

FALSE_DISCOVERIES = 0.05  # the share of differences called significant that may be none


class ComparedKey(NamedTuple):
    """The key of a cell that both runs have: the properties that its trials have in common."""

    scenario: str
    workload: str
    treatment: str  # "" where one is compared with another one
    client: str
    server: str

    @property
    def title(self) -> str:
        """The key in a line of text."""
        between = f", {self.treatment}" if self.treatment not in ("", DIRECT) else ""
        return f"{self.scenario} {self.client} → {self.server}{between}"


@dataclass(frozen=True)
class Measure:
    """A measure: a column of records whose values are 0 or more, and how people read it."""

    column: str
    title: str
    factor: float = 1.0
    digits: int = 2

    def of(self, record: Record) -> float | None:
        value: float | None = getattr(record, self.column)
        return value

    def text(self, value: float | None) -> str:
        return "-" if value is None else f"{value * self.factor:.{self.digits}f}"


MEASURES = {
    one.column: one
    for one in (
        Measure("goodput_bps", "goodput in Mbit/s", 1e-6),
        Measure("efficiency", "efficiency in percent", 100, 1),
        Measure("share_of_limit", "share of the limit in percent", 100, 1),
        Measure("completion_s", "completion in s", digits=3),
        Measure("transfer_s", "transfer in s", digits=3),
        Measure("ttfb_s", "first byte in s", digits=4),
        Measure("handshake_s", "handshake in s", digits=4),
        Measure("plt_s", "page load time in s", digits=3),
        Measure("stalled_s", "time without a picture in s", digits=3),
        Measure("media_rate_bps", "rate of what was played in Mbit/s", 1e-6),
        Measure("latency_s", "age of what is shown in s", digits=3),
        Measure("in_time_share", "frames in time in percent", 100, 1),
        Measure("lost_frames", "frames that never came", digits=0),
        Measure("late_frames", "frames that came late", digits=0),
        Measure("frame_age_p99_s", "age that 99 % of the frames did not exceed in s", digits=4),
        Measure("rtt_median_ms", "median RTT in ms", digits=1),
        Measure("in_flight_max_bytes", "most in flight in kB", 1e-3, 0),
        Measure("forward_packets", "packets from the server", digits=0),
        Measure("return_packets", "packets from the client", digits=0),
        Measure("cpu_client_s", "CPU time of the client in s", digits=3),
        Measure("cpu_server_s", "CPU time of the server in s", digits=3),
        Measure("memory_client_bytes", "memory of the client in MB", 1e-6, 1),
        Measure("memory_server_bytes", "memory of the server in MB", 1e-6, 1),
        Measure("wall_s", "wall time in s", digits=2),
    )
}


@dataclass(frozen=True)
class ComparedRun:
    """One of the two runs that are compared."""

    folder: Path
    manifest: Manifest
    records: list[Record]
    treatment: str | None = None  # the one of which alone its records are

    @classmethod
    def read(cls, folder: Path) -> ComparedRun:
        return cls(folder, *run_folder.read(folder, courses=False))

    def of(self, treatment: str) -> ComparedRun:
        """Its cells of one treatment. UsageError if this name means none of them, or several."""
        present = list(dict.fromkeys(record.treatment for record in self.records))
        found = [one for one in present if treatment in (one, labels.treatment(one).kind)]
        if treatment not in present and not found:
            found = [one for one in present if one == _canonical(treatment)]
        if not found:
            raise UsageError(
                f'--treatments: {self.folder} has no "{treatment}"', one_of(treatment, present, "treatments")
            )
        if len(found) > 1:
            hint = f"name one of them in full: {', '.join(map(repr, found))}"
            raise UsageError(f'--treatments: {self.folder} has several "{treatment}"', hint)
        kept = [record for record in self.records if record.treatment == found[0]]
        return dataclasses.replace(self, records=kept, treatment=found[0])

    @cached_property
    def cells(self) -> dict[ComparedKey, Cell]:
        found = ((cell.key, cell) for cell in cells(self.records))
        return {
            ComparedKey(
                k.scenario, k.workload, "" if self.treatment else k.treatment, k.client, k.server
            ): cell
            for k, cell in found
        }

    @property
    def testbed(self) -> str:
        return " and ".join(sorted({record.testbed for record in self.records}))


@dataclass(frozen=True)
class CellMeasures:
    """The measures of a cell in one of the runs."""

    trials: int
    failures: Counter[str]  # outcome → how often
    values: tuple[float, ...]  # of the trials that succeeded, where the measure was taken
    alpn: tuple[str, ...]  # the application protocols of these trials, as far as they are known

    @classmethod
    def of(cls, cell: Cell, measure: Measure) -> CellMeasures:
        taken = [value for value in map(measure.of, cell.ok) if value is not None]
        protocols = tuple(sorted({record.alpn for record in cell.ok if record.alpn}))
        return cls(len(cell.records), cell.failures, tuple(taken), protocols)

    @property
    def ok(self) -> int:
        return self.trials - self.failures.total()

    @property
    def mean(self) -> float | None:
        """The geometric mean; where a value is 0 the arithmetic one. None if there are no values."""
        if self.values and min(self.values) == 0:
            return statistics.fmean(self.values)
        return geometric_mean(self.values)

    @property
    def is_everywhere(self) -> bool:
        """Whether every trial that succeeded has a value above 0, and one did."""
        return 0 < self.ok == self._positive

    @property
    def is_nowhere(self) -> bool:
        """Whether no trial that succeeded has a value above 0, though one did."""
        return self._positive == 0 < self.ok

    @property
    def _positive(self) -> int:
        return sum(value > 0 for value in self.values)


@dataclass(frozen=True)
class ComparedCell:
    """A cell of both runs, with the ratio of its measures."""

    key: ComparedKey
    a: CellMeasures
    b: CellMeasures
    ratio: Ratio | None  # b / a; None if one of them has no values, or a 0 among them
    adjusted_p: float | None

    @property
    def significant(self) -> bool:
        return self.adjusted_p is not None and self.adjusted_p <= FALSE_DISCOVERIES

    @property
    def distance(self) -> float:
        """The distance of the ratio from 1, either way; infinite if only one side has values, or values above
        0; 0 if nothing is known.
        """
        if self.ratio is not None:
            return abs(math.log(self.ratio.value))
        one_sided = bool(self.a.values) != bool(self.b.values)
        return math.inf if one_sided or self.on_one_side else 0.0

    @property
    def on_one_side(self) -> bool:
        """Whether all trials of one side have the measure, above 0, and none of the other, though trials of
        both succeeded: no ratio says how far apart they are.
        """
        a, b = self.a, self.b
        return (a.is_everywhere and b.is_nowhere) or (a.is_nowhere and b.is_everywhere)

    @property
    def lost(self) -> bool:
        """Whether it succeeded in A, and never in B."""
        return bool(self.a.ok) and not self.b.ok

    @property
    def mixed(self) -> bool:
        """Whether different application protocols were spoken: that alone may make a difference."""
        return bool(self.a.alpn and self.b.alpn) and self.a.alpn != self.b.alpn

    def beyond(self, share: float) -> bool:
        """Whether the sides differ by more than `share`, either way, and significantly; for single trials,
        which have no significance, whether they differ by as much. What only one side has is beyond any
        share.
        """
        if self.lost or self.on_one_side:
            return True
        far = self.ratio is not None and self.distance > math.log1p(share)
        return far and (self.significant or self.adjusted_p is None)


@dataclass(frozen=True)
class Comparison:
    """Two runs, measured by one column."""

    a: ComparedRun
    b: ComparedRun
    measure: Measure
    cells: tuple[ComparedCell, ...]  # the largest difference first

    @cached_property
    def only_a(self) -> list[ComparedKey]:
        return [key for key in self.a.cells if key not in self.b.cells]

    @cached_property
    def only_b(self) -> list[ComparedKey]:
        return [key for key in self.b.cells if key not in self.a.cells]

    @property
    def unmeasured(self) -> list[ComparedCell]:
        """Cells that succeeded on both sides, of which one has no values."""
        both = (cell for cell in self.cells if cell.a.ok and cell.b.ok)
        return [cell for cell in both if not (cell.a.values and cell.b.values)]

    @property
    def gappy(self) -> list[ComparedCell]:
        """Cells with values of both sides, of which one has none in some of the trials that succeeded."""
        both = (cell for cell in self.cells if cell.a.values and cell.b.values)
        return [cell for cell in both if any(len(one.values) < one.ok for one in (cell.a, cell.b))]

    @property
    def with_zeros(self) -> list[ComparedCell]:
        """Cells with values of both sides, of which one has a 0 among them, so that there is no ratio."""
        both = (cell for cell in self.cells if cell.a.values and cell.b.values)
        return [cell for cell in both if 0 in (*cell.a.values, *cell.b.values)]

    @property
    def single(self) -> list[ComparedCell]:
        """Cells with a ratio that has no interval."""
        return [cell for cell in self.cells if cell.ratio is not None and cell.ratio.p is None]

    def beyond(self, share: float) -> list[ComparedCell]:
        return [cell for cell in self.cells if cell.beyond(share)]


def compare(a: ComparedRun, b: ComparedRun, measure: Measure) -> Comparison:
    """Every cell that both runs have. BentpipeError if there is none."""
    common = [key for key in a.cells if key in b.cells]
    if not common:
        raise _nothing_in_common(a, b)
    sides = [
        (CellMeasures.of(a.cells[key], measure), CellMeasures.of(b.cells[key], measure)) for key in common
    ]
    ratios = [cell_ratio(a.cells[key], b.cells[key], measure.of) for key in common]
    p_values = adjusted([None if one is None else one.p for one in ratios])
    compared = [
        ComparedCell(key, *both, found, p)
        for key, both, found, p in zip(common, sides, ratios, p_values, strict=True)
    ]
    return Comparison(a, b, measure, tuple(sorted(compared, key=lambda cell: -cell.distance)))


def _nothing_in_common(a: ComparedRun, b: ComparedRun) -> BentpipeError:
    for axis, name in enumerate(ComparedKey._fields):
        left, right = ({key[axis] for key in run.cells} for run in (a, b))
        if left.isdisjoint(right):
            listed = f"{a.folder} has {_some(left)}, {b.folder} has {_some(right)}"
            hint = f"compare runs that share a {name}"
            return BentpipeError(f"no cell is in both runs, as no {name} is: {listed}", hint)
    hint = "compare runs of the same scenarios and pairs"
    return BentpipeError(f"no cell is in both runs: {a.folder} and {b.folder} combine other things", hint)


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:3]) + (f" and {len(ordered) - 3} more" if len(ordered) > 3 else "")


def remarks(both: Comparison) -> list[str]:
    """Remarks on the two runs and the cells that a reader of the table needs, a sentence each."""
    unfinished = [name for name, run in (("A", both.a), ("B", both.b)) if run.manifest.finished is None]
    return [
        *(f"{name} is not finished: what is still to come is not in it" for name in unfinished),
        *_settings(both),
        *_programs(both.a.manifest, both.b.manifest),
        *_gaps(both),
    ]


def _settings(both: Comparison) -> Iterator[str]:
    """Scenarios whose label is the same, and whose path is not, or not known to be."""
    imported = [name for name, run in (("A", both.a), ("B", both.b)) if run.manifest.plan.testbed == RUNNER]
    if imported:
        yield f"what the paths of {' and '.join(imported)} were is not known: that was imported"
        return
    for label in dict.fromkeys(cell.key.scenario for cell in both.cells):
        left, right = (run.manifest.scenarios[label].scenario for run in (both.a, both.b))
        if left != right:
            yield f"{label} is not the same path in both runs: compare the scenarios in their manifests"


def _programs(a: Manifest, b: Manifest) -> Iterator[str]:
    """Stacks that have different versions, or were built from different sources."""
    versions = [one.versions.get("stacks", {}) for one in (a, b)]
    for name in sorted(a.stacks.keys() & b.stacks.keys()):
        left, right = (one.get(name) for one in versions)
        if left != right and left and right:
            yield f"{name} is {left} in A, {right} in B"
            continue
        built = [(one.stacks[name].installation or {}).get("inputs_sha256") for one in (a, b)]
        if None not in built and built[0] != built[1]:
            yield f"{name} has the same version in both, but was built from other sources"


def _gaps(both: Comparison) -> Iterator[str]:
    several: Sequence[tuple[int, str]] = [
        (sum(cell.mixed for cell in both.cells), "with different application protocols"),
        (len(both.single), "with a single trial on a side: no interval, and nothing can be significant"),
        (len(both.unmeasured), f"without {both.measure.column} on a side though trials succeeded"),
        (len(both.gappy), f"without {both.measure.column} in some trials that succeeded: they do not count"),
        (len(both.with_zeros), f"with a {both.measure.column} of 0: no ratio, and arithmetic means"),
        (sum(cell.lost for cell in both.cells), "that succeeded in A and never in B"),
        (len(both.only_a), f"only in A: {_some(key.title for key in both.only_a)}"),
        (len(both.only_b), f"only in B: {_some(key.title for key in both.only_b)}"),
    ]
    for count, what in several:
        if count:
            yield f"{count} cell{'s' if count > 1 else ''} {what}"


def _canonical(treatment: str) -> str:
    """As records have it, of a chain that the user wrote in another order; "" if it is none."""
    try:
        if labels.treatment(treatment).chain:
            return str(treatments.parse(treatment, ""))
        return str(treatments.chain(treatment, ""))
    except UsageError:
        return ""
