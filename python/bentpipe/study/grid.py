"""Variants against settings: how near each gets to the ideal sender, and what its overshoot loses.

A square is a variant in a setting. Its share of the limit is the geometric mean over the trials that
succeeded, by which variants are also ranked; bytes that a queue dropped are given as a share of the file, by
their median. Speed that is bought with loss is no gain, so the best of a setting is sought among those that
lose no more than CUBIC with HyStart++ does, if that is in the run. It is marked only where its interval is
above all others'. Who leads, or is as good, is shown by intervals too: that chance could have made a
difference is no point for anyone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.runs.records import Record
from bentpipe.study.claims import MARGIN
from bentpipe.study.figures import HeatSquare
from bentpipe.study.markdown import literal, percent, table
from bentpipe.study.means import GeometricMean
from bentpipe.study.quantiles import median

_LITTLE = 0.0995  # shares below have a decimal


def dropped(record: Record) -> float | None:
    """Bytes dropped by the queue towards the client, as a share of the file; None if unknown."""
    if not record.forward_packets or not record.size_bytes:
        return None
    if record.forward_bytes is None or record.forward_queue_drops is None:
        return None
    packet_bytes = record.forward_bytes / record.forward_packets
    return record.forward_queue_drops * packet_bytes / record.size_bytes


@dataclass(frozen=True)
class GridCell:
    """The cell of a grid: a variant in a setting."""

    cell: Cell

    @property
    def share(self) -> float | None:
        """The mean share of the trials that succeeded; None without one."""
        return None if self.mean is None else self.mean.value

    @cached_property
    def mean(self) -> GeometricMean | None:
        """The geometric mean of the shares, with its interval."""
        return GeometricMean.of(self.cell.values("share_of_limit"))

    @cached_property
    def dropped(self) -> float | None:
        return median(dropped(one) for one in self.cell.ok)

    @property
    def failed(self) -> int:
        return sum(self.cell.failures.values())

    def written(self, best: bool) -> list[str]:
        """The share of the limit and the drops, as text with the mark of their trials."""
        if self.share is None:
            return [marked(self.cell.failures.most_common(1)[0][0].replace("_", " "), self.cell), "-"]
        text = percent(self.share)
        text = (f"**{text}**" if best else text) + (f" ({self.failed})" if self.failed else "")
        lost = "-" if self.dropped is None else _fine(self.dropped)
        return [marked(text, self.cell), marked(lost, self.cell)]

    def square(self) -> HeatSquare:
        if self.share is None:
            return HeatSquare(float("nan"), "x")
        return HeatSquare(min(self.share, 1), f"{100 * self.share:.0f}" + ("!" if self.failed else ""))


def _fine(share: float) -> str:
    return f"{_in_percent(share)} %" if 0 < share < _LITTLE else percent(share)


def _in_percent(share: float) -> float:
    """The share in percent, rounded as it is shown."""
    return round(100 * share, 1 if 0 < share < _LITTLE else 0)


@dataclass(frozen=True)
class Grid:
    """Variants, in their order, and settings: (variant, setting) → cell."""

    names: dict[str, str]  # variant → what it is called
    settings: Sequence[str]
    cells: dict[tuple[str, str], Cell]

    @cached_property
    def spots(self) -> dict[tuple[str, str], GridCell]:
        return {key: GridCell(cell) for key, cell in self.cells.items()}

    @cached_property
    def variants(self) -> list[str]:
        return [one for one in self.names if any((one, setting) in self.cells for setting in self.settings)]

    def best(self, setting: str) -> set[str]:
        """The variants with the highest share that lose no more than the reference, and never failed
        there.
        """
        fit = self._fit(setting)
        highest = max((round(share, 2) for share in fit.values()), default=0.0)
        return {one for one, share in fit.items() if round(share, 2) == highest}

    def rivals(self, setting: str) -> set[str]:
        """The variants that are not significantly behind the best: their intervals overlap, or one has none,
        with a single trial.
        """
        best = self.best(setting)
        means = {one: self.spots[one, setting].mean for one in self._fit(setting)}
        return {
            one
            for one, mean in means.items()
            if one not in best
            and any(mean is None or (top := means[first]) is None or not top.is_above(mean) for first in best)
        }

    def bold(self, setting: str) -> set[str]:
        """The best, if their lead is more than chance."""
        return set() if self.rivals(setting) else self.best(setting)

    def leaders(self, setting: str) -> set[str]:
        """The variants that are shown to be best or as good: the best where its lead is more than chance, and
        those whose interval lies within 5 % of the best, if its own does. What cannot be told apart, as with
        wide intervals or a single trial, leads nowhere.
        """
        means = {one: mean for one in self._fit(setting) if (mean := self.spots[one, setting].mean)}
        if not means:
            return set()
        top = max(means.values(), key=lambda one: one.value)
        level = {one for one, mean in means.items() if _is_level(mean, top.value)}
        sure = {one for one in self.bold(setting) if means[one].low is not None}
        return sure | (level if _is_level(top, top.value) else set())

    def _fit(self, setting: str) -> dict[str, float]:
        """The shares of the variants that qualify as best."""
        here = {one: self.spots[one, setting] for one in self.variants if (one, setting) in self.spots}
        allowed = [
            _in_percent(spot.dropped)
            for one, spot in here.items()
            if is_reference(one) and spot.dropped is not None
        ]
        return {
            one: spot.share
            for one, spot in here.items()
            if spot.share is not None
            and not spot.failed
            and (not allowed or (spot.dropped is not None and _in_percent(spot.dropped) <= max(allowed)))
        }

    def markdown(self, first: str) -> str:
        """A table with a row for each variant, and two columns for each setting."""
        best = {setting: self.bold(setting) for setting in self.settings}
        rows = [
            [literal(one), *(text for setting in self.settings for text in self._written(one, setting, best))]
            for one in self.variants
        ]
        head = [first, *(text for setting in self.settings for text in (setting, "dropped"))]
        return table(head, rows)

    def _written(self, variant: str, setting: str, best: dict[str, set[str]]) -> list[str]:
        spot = self.spots.get((variant, setting))
        return ["", ""] if spot is None else spot.written(variant in best[setting])

    def squares(self, variants: Sequence[str]) -> list[list[HeatSquare]]:
        """The squares of a heat map, a row for each of `variants`."""
        nothing = HeatSquare(float("nan"), "")
        return [
            [
                self.spots[one, setting].square() if (one, setting) in self.spots else nothing
                for setting in self.settings
            ]
            for one in variants
        ]


def _is_level(mean: GeometricMean, best: float) -> bool:
    """Whether all of an interval lies within 5 % of the best."""
    if mean.low is None or mean.high is None:
        return False
    return best / (1 + MARGIN) <= mean.low and mean.high <= best * (1 + MARGIN)


def is_reference(label: str) -> bool:
    """Whether it is CUBIC with HyStart++."""
    chosen = labels.variant(label).options
    return (chosen.get("cc"), chosen.get("ss")) == ("cubic", "hystart++")
