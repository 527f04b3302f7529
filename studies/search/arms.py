"""The changes of SEARCH that the source leaves to later, each beside the baseline of its setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bentpipe.runs.records import Record
from bentpipe.study.markdown import literal, number, several, table
from bentpipe.study.quantiles import median
from bentpipe.study.slow_starts import BASELINE, VariantTrials
from bentpipe.study.source import Source, pooled
from bentpipe.study.variants import slow_start

from .intervals import ShareInterval, ShiftInterval, shift
from .saving import gains
from .study import SlowStartComparison
from .varied import changed, shifted

JUMP = "jump-start"  # without SEARCH: what of search-jump is the jump's
_AFTER_JUMP = "search-jump"
NAMES = {
    "search-below": "section 7.1.1: leaves with 80 % of what the path holds",
    "search-rtt": "section 7.1.2: grows less while the RTT rises",
    _AFTER_JUMP: "section 7.2.2: Jump Start first",
    JUMP: "for comparison: Jump Start without SEARCH",
}
_LOGS = BASELINE[0]
_SIZES_MB = (50, 100, 150, 200)
_TEXT = f"""The source proposes changes of SEARCH and has tried none of them. Each row is one of them beside
`{_LOGS}` of the same setting, as above. *Acts*: clean runs in which slow start ends by itself before the
first loss, with Wilson's 95 % interval. *Dropped* is the median of the packets that the queue dropped, of the
change and of the baseline. *Saved*: how much earlier that many MB can be read, the middle of all differences
between a run of one kind and one of the other, with the 95 % interval of Mann and Whitney's test; below zero:
later."""


@dataclass(frozen=True)
class ProposedChange:
    """A slow start that the source proposes, beside the baseline over the same path."""

    setting: str  # in words; "": the base
    runs: SlowStartComparison
    baseline: VariantTrials
    trials: VariantTrials

    @property
    def name(self) -> str:
        return self.trials.slow_start

    @property
    def acts(self) -> ShareInterval:
        """The clean runs in which slow start ends by itself before the first loss."""
        clean = self.trials.clean
        return ShareInterval(sum(one.acted for one in clean), len(clean))

    def saved(self, size_mb: int) -> ShiftInterval | None:
        """How much earlier a size in MB can be read than by the baseline."""
        return shift(*(one.times(size_mb * 1_000_000) for one in (self.baseline, self.trials)))


def proposed(runs: Sequence[Source]) -> list[ProposedChange]:
    """All changes that were tried, those in the base first."""
    first = runs[0].records[0]
    settings: dict[str, list[Record]] = {}
    for record in pooled(runs):
        if record.workload == first.workload and slow_start(record.server) in (_LOGS, *NAMES):
            settings.setdefault(changed(record, first), []).append(record)
    found = []
    for words, records in settings.items():
        here = SlowStartComparison(records, otherwise_s=_line_s(settings))
        by_name = {one.slow_start: one for one in here.groups}
        if _LOGS in by_name:
            mine = (by_name[name] for name in NAMES if name in by_name)
            found += [ProposedChange(words, here, by_name[_LOGS], one) for one in mine]
    return sorted(found, key=lambda one: one.setting != "")


def _line_s(settings: dict[str, list[Record]]) -> float:
    """Before that, a loss is one of the medium, where every trial has lost something there."""
    base = settings.get("", [])
    return SlowStartComparison(base).groups[0].earliest_s if base else 0.0


def sections(found: Sequence[ProposedChange]) -> list[str]:
    """The section; none without a run that has one of them."""
    if not found:
        return []
    meanings = "\n".join(f"- `{name}`, {NAMES[name]}." for name in NAMES if name in {it.name for it in found})
    head = ["slow start", "setting", "trials", "acts", "dropped", "baseline"]
    head += [f"saved at {size} MB" for size in _SIZES_MB]
    rows = [_row(one) for one in found]
    parts = ["## What the source leaves to later", _TEXT, meanings, table(head, rows, left=2)]
    return [*parts, _said(found)]


def _row(one: ProposedChange) -> list[str]:
    counts = dict.fromkeys((len(one.trials.clean), len(one.baseline.clean)))
    return [
        f"`{one.name}`",
        one.setting or "the base",
        " and ".join(map(str, counts)),
        one.acts.written(),
        *(number(_drops(each), 0) for each in (one.trials, one.baseline)),
        *(shifted(one.saved(size)) for size in _SIZES_MB),
    ]


def _drops(trials: VariantTrials) -> float | None:
    return median(one.record.forward_queue_drops for one in trials.clean)


def _compared(mine: float | None, baseline: float | None) -> str:
    """What a change drops beside the baseline, behind a comma; "" where that is not known."""
    if mine is None or baseline is None:
        return ""
    if mine == 0 or baseline == 0:
        beside = "" if mine == 0 else f" beside {baseline:.0f}"
        return f", with {mine:.0f} packets dropped{beside}"
    return f", with {mine / baseline:.2f} times the packets dropped"


def _said(found: Sequence[ProposedChange], size: int = 150) -> str:
    """Which of them are earlier or later at one size, and what they drop."""
    base = [one for one in found if not one.setting]
    words = []
    for one in base:
        saved, mine, baseline = one.saved(size), _drops(one.trials), _drops(one.baseline)
        if saved is None or not math.isfinite(saved.value):
            continue
        is_apart = saved.low > 0 or saved.high < 0
        how = (
            ("earlier" if saved.value > 0 else "later") if is_apart else "not earlier or later beyond chance"
        )
        by = f"{abs(saved.value):.1f} s {how}" if is_apart else how
        words.append(f"`{one.name}` is {by}{_compared(mine, baseline)}")
    if not words:
        return "None of them was tried in the base."
    return f"In the base, at {size} MB: {'; '.join(words)}."


def tried(found: Sequence[ProposedChange]) -> str:
    """In words, how many of the source's proposals were tried; "" if none was."""
    names = {one.name for one in found} - {JUMP}
    return f"{several(len(names), 'change')} of SEARCH that it proposes" if names else ""


def listed_gains(found: Sequence[ProposedChange], least_s: float, beyond_mb: int) -> list[str]:
    """The changes that save so much, each with its setting, and whether Jump Start alone does so there."""
    such = [one for one in found if gains(one.runs, one.trials, least_s, beyond_mb)]
    alone = {one.setting for one in such if one.name == JUMP}
    return [
        literal(one.name)
        + (f" with {one.setting}" if one.setting else "")
        + (" (Jump Start alone has it, too)" if one.name == _AFTER_JUMP and one.setting in alone else "")
        for one in such
        if one.name != JUMP
    ]
