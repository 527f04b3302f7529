"""The trials of the page on SEARCH, with the measures of the source, computed from records.

The source counts a baseline run as clean if its first loss comes later than 9 s, which is when its link
begins to be full; a loss before that it takes for one of the medium. Here that time is the earliest loss
that ended slow start in a run that lost nothing on the medium: of the baseline among its runs alone, and of
any other slow start among its own, as one that sends more at first fills the queue earlier. One without such
a run has the baseline's time. As there, a run of SEARCH that left slow start by itself counts, whenever that
was.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bentpipe.runs.records import Record
from bentpipe.study.quantiles import median
from bentpipe.study.variants import slow_start

MB = 1_000_000
_LOSSES = ("loss", "jump_lost")  # reasons for which slow start ends: the second of packets of a jump start
BASELINE = (
    "search-log",
    "standard",
)  # slow starts that end with the first loss; the first also says what SEARCH would do


@dataclass(frozen=True)
class SlowStartTrial:
    """A trial, and how its slow start ended."""

    record: Record

    def _said(self, name: str) -> float | None:
        value = self.record.server_statistics.get(name)
        return float(value) if isinstance(value, int | float) else None

    @property
    def left_s(self) -> float | None:
        """The time at which slow start ended, from the client's first packet on."""
        return self._said("slow_start_left_s")

    @property
    def left_mb(self) -> float | None:
        """The congestion window at the end of slow start, before any reduction, in MB."""
        size = self._said("slow_start_left_from_bytes")
        return None if size is None else size / MB

    @property
    def left_by(self) -> str | None:
        """The reason: `loss`, or the algorithm that ended it."""
        word = self.record.server_statistics.get("slow_start_left_by")
        return word if isinstance(word, str) else None

    @property
    def lost_s(self) -> float | None:
        """The time at which a loss ended slow start; None if something else did."""
        return self.left_s if self.left_by in _LOSSES else None

    @property
    def acted(self) -> bool:
        """Whether slow start ended by itself, or slowed down, as HyStart++ does, before the first loss."""
        slowed_s, ended_s = self._said("css_entered_s"), None if self.left_by in _LOSSES else self.left_s
        times = [one for one in (slowed_s, ended_s) if one is not None]
        return bool(times) and min(times) <= (math.inf if self.first_loss_s is None else self.first_loss_s)

    @property
    def first_loss_s(self) -> float | None:
        """The time at which the server noticed its first loss."""
        return self._said("first_loss_s")

    @property
    def declared_s(self) -> float | None:
        """When SEARCH first signalled that slow start should end, whether it then ended or not."""
        return self._said("search_exit_s")

    @property
    def lead_round_trips(self) -> float | None:
        """The lead of this declaration over the first loss, in round trips of that time; below zero: after
        the loss, or not at all, which is minus infinity. None where it is not known.
        """
        loss, declared, rtt_s = self.first_loss_s, self.declared_s, self._said("search_exit_rtt_s")
        if loss is None:
            return None
        if declared is None or not rtt_s:
            return -math.inf
        return (loss - declared) / rtt_s

    @property
    def taken_off(self) -> float | None:
        """The share by which SEARCH reduced the window, or would have, when it found the link full."""
        before, after = self._said("search_exit_from_bytes"), self._said("search_exit_to_bytes")
        return None if not before or after is None else 1 - after / before

    @cached_property
    def overhead(self) -> float | None:
        """UDP payload that arrived for each byte of the file; None if it is not complete."""
        received = self.record.received_bytes
        return received[-1] / self.record.size_bytes if self.record.ok and received else None

    def reached_s(self, size: int) -> float:
        """The time at which the client could read the first bytes of the file up to this number, without a
        gap; infinite if that was not observed.
        """
        return self._whole_s if size >= self.record.size_bytes else self._at(self.record.in_order_bytes, size)

    def arrived_s(self, size: int, overhead: float) -> float:
        """The time at which this many bytes of the file had arrived, in any order; infinite if that was not
        observed.
        """
        if size >= self.record.size_bytes:
            return self._whole_s
        return self._at(self.record.received_bytes, size * overhead)

    @property
    def _whole_s(self) -> float:
        return self.record.completion_s if self.record.completion_s is not None else math.inf

    def _at(self, curve: Sequence[int], wanted: float) -> float:
        """When a curve reaches that, by linear interpolation."""
        behind = bisect.bisect_left(curve, wanted)
        if behind == len(curve):
            return math.inf
        before = curve[behind - 1] if behind else 0
        return (behind + (wanted - before) / (curve[behind] - before)) * self.record.received_step_s


@dataclass(frozen=True)
class VariantTrials:
    """All trials of a variant."""

    server: str
    runs: Sequence[SlowStartTrial]
    earliest_s: float  # a loss before is one of the medium
    overhead: float

    @property
    def slow_start(self) -> str:
        return slow_start(self.server)

    @cached_property
    def clean(self) -> list[SlowStartTrial]:
        return [one for one in self.runs if not self._left_early(one)]

    def _left_early(self, run: SlowStartTrial) -> bool:
        return run.lost_s is not None and run.lost_s < self.earliest_s

    def times(self, size: int) -> list[float]:
        """The times at which each clean run could read this many bytes."""
        return [one.reached_s(size) for one in self.clean]

    def arrivals(self, size: int) -> list[float]:
        """The times at which this many bytes had arrived in each clean run, in any order."""
        return [one.arrived_s(size, self.overhead) for one in self.clean]

    def reaching(self, size: int) -> int:
        return sum(math.isfinite(one) for one in self.times(size))


def groups(records: Sequence[Record], otherwise_s: float = 0.0) -> list[VariantTrials]:
    """A group per variant, in the order of the records. Trials without measurements are left out. Where no
    trial of a variant or of the baseline shows when the link is full, a loss before `otherwise_s` counts as
    one of the medium.
    """
    runs = [SlowStartTrial(one) for one in records if one.received_bytes]
    known = [one.overhead for one in runs if one.overhead is not None]
    overhead = median(known) or 1.0
    each = {
        server: [one for one in runs if one.record.server == server]
        for server in dict.fromkeys(one.record.server for one in runs)
    }
    lines_s = {server: _full_s(mine) for server, mine in each.items()}
    bases = [lines_s[server] for name in BASELINE for server in each if slow_start(server) == name]
    base_s = next((one for one in bases[:1] if one is not None), otherwise_s)
    return [
        VariantTrials(server, mine, base_s if (line_s := lines_s[server]) is None else line_s, overhead)
        for server, mine in each.items()
    ]


def _full_s(runs: Sequence[SlowStartTrial]) -> float | None:
    """The earliest loss that ended slow start in a run without losses on the medium; None without one."""
    found = (one.lost_s for one in runs if one.record.forward_losses == 0)
    return min((one for one in found if one is not None), default=None)
