"""Settings that the source does not state, changed one at a time, and their effect on SEARCH."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bentpipe import labels
from bentpipe.analysis.inference import adjusted
from bentpipe.runs.records import Record
from bentpipe.study.markdown import percent, table
from bentpipe.study.slow_starts import BASELINE
from bentpipe.study.source import Source, pooled
from bentpipe.study.variants import slow_start

from .intervals import ShareInterval, ShiftInterval, chance_of, share_above, shift
from .published import Search
from .study import ArrivalComparison, SlowStartComparison

COMPARED = "search-keep"
EQUAL_S = 0.25  # times that differ by less are equal
_CHANCE = 0.05
_BY_CHANCE = 0.05  # of intervals that hold the truth in 95 % of cases
_EACH_MB = 5
_LOGS = BASELINE[0]
_AT_MB = (150, 200)
_RATE = re.compile(r"(\d)([MG]bit)")
_WORDS = {
    "forward.rate=150Mbit/s": "a steady 150 Mbit/s",
    "forward.rate=100Mbit/s": "a steady 100 Mbit/s",
    'forward.rate={mean="150Mbit/s",spread="50%",every="1s"}': "75 to 225 Mbit/s",
    'forward.rate={full="150Mbit/s",floor="5Mbit/s",request_every="1s",granted_after="550ms",hold="2s"}':
        "5 Mbit/s, and up to 150 on demand",
    "forward.queue=36MB": "36 MB of queue that overflow, no random drops",
    'forward.queue={size="18MB",drop_above="9MB",drop_ratio="25%"}': "half the queue: drops above 9 MB",
    'forward.loss={model="gilbert-elliott",p_bad_given_good="0.001%",p_bad_given_bad="35.5%"}':
        "ten times as many bursts on the medium",
    'forward.loss={model="handover",every="1000s",first="850ms",lasts="200ms",loss="2%"}':
        "2 % of loss for the first packets, none later",
    "cc=newreno": "Reno in place of CUBIC",
    "cc=tolerant": "an avoidance that hardly answers losses",
    "pacing=on": "pacing",
}  # fmt: skip


@dataclass(frozen=True)
class OpenSetting:
    """A path and a sender, with SEARCH that only looks on and SEARCH that acts."""

    words: str  # what is changed
    runs: SlowStartComparison

    @property
    def before(self) -> ShareInterval:
        """The runs in which SEARCH's exit comes before the first loss."""
        return share_above(self.runs.leads or [], 0)

    @property
    def by_a_round_trip(self) -> ShareInterval:
        """Of these, those in which it does by more than a round trip."""
        return share_above([one for one in self.runs.leads or [] if one > 0], 1)

    def takes_more(self, than: float) -> ShareInterval:
        """The runs of the baseline in which SEARCH would take off more of the window."""
        return share_above(self.runs.taken_off(self.runs.baseline), than)

    def sooner(self, size_mb: int) -> ShiftInterval | None:
        """The time by which `size_mb` MB are there sooner with SEARCH."""
        return shift(*(self.runs.times(one, size_mb) for one in (self.runs.baseline, self.runs.others[0])))

    @cached_property
    def most(self) -> tuple[float, int] | None:
        return self.runs.most_saved(self.runs.others[0])

    @cached_property
    def least(self) -> tuple[float, int] | None:
        return self.runs.least_saved(self.runs.others[0])


def settings(runs: Sequence[Source]) -> list[OpenSetting]:
    """The base, which is the first run's, and what differs from it in one thing."""
    first = runs[0].records[0]
    here = [
        record
        for record in pooled(runs)
        if slow_start(record.server) in (_LOGS, COMPARED) and record.workload == first.workload
    ]
    found: dict[str, list[Record]] = {}
    for record in here:
        found.setdefault(changed(record, first), []).append(record)
    line_s = SlowStartComparison(found.get("", [])).groups[0].earliest_s if "" in found else 0.0
    made = [
        OpenSetting(words, SlowStartComparison(records, otherwise_s=line_s))
        for words, records in found.items()
    ]
    usable = [one for one in made if one.runs.is_one and one.runs.leads]
    return sorted(usable, key=lambda one: one.words != "")


def changed(record: Record, base: Record) -> str:
    """In words, what a record's path and server have that those of the base have not; "" if it is one."""
    told = []
    path = record.scenario.removeprefix(base.scenario).lstrip(",")
    if path:
        told.append(_named(path))
    mine, known = (labels.variant(one.server).options for one in (record, base))
    told += [
        _named(f"{key}={mine.get(key, 'on' if key == 'pacing' else 'default')}")
        for key in sorted({*mine, *known} - {"ss"})
        if mine.get(key) != known.get(key)
    ]
    return ", ".join(told)


def _named(change: str) -> str:
    key, _, value = change.partition("=")
    if change not in _WORDS and key == "ground.forward.rate":
        spaced = _RATE.sub(r"\1 \2", value)
        return f"the server's own link at {spaced}"
    return _WORDS.get(change) or f"`{change}`"


_TEXT = f"""Each row changes one thing of the base, which is the first row. Trials of all runs count once.
*Before*: clean runs of `{_LOGS}` in which SEARCH's exit comes before the first loss, with Wilson's 95 %
interval; *by a round trip*: of these, those in which it does by more than one. *Saved* is what
`{COMPARED}` saves: at most and at least, by medians, with the MB at which that is (below zero: later);
and at 150 and at 200 MB, the middle of all differences between a run of one kind and one of the other,
with the 95 % interval of Mann and Whitney's test. The last three are of the distributions of the time to
150 MB. *Trials* are the clean ones, of `{_LOGS}` and of `{COMPARED}` where they are not as many; where every
trial lost something on the medium, the line before which a loss is one of the medium is the base's. Shares
are compared with the base's by Fisher's exact test, with the p of all rows adjusted after Benjamini and
Hochberg to 5 %. *Takes more off*: runs of `{_LOGS}` with an exit in which SEARCH would take more off the
window than CUBIC does after a loss."""


def sections(runs: Sequence[Source], known: Search) -> list[str]:
    """The section; none without a run that changes something."""
    found = settings(runs)
    if len(found) < 2 or found[0].words:
        return []
    arriving = OpenSetting(
        "bytes that have arrived, in whatever order", ArrivalComparison(found[0].runs.records)
    )
    rows = [_row(one, known.beta_cut) for one in (found[0], arriving, *found[1:])]
    head = [
        "changed",
        "trials",
        "before",
        "by a round trip",
        "saved at most",
        "at least",
        *(f"saved at {mb} MB" for mb in _AT_MB),
    ]
    head += ["equal", "sooner", "later", "takes more off"]
    said = [_of_exits(found[0], found[1:], known.exit_first), _of_times(found[0], found[1:], arriving)]
    return [
        "## What the source leaves open",
        _TEXT,
        table(head, rows),
        *said,
        _of_cuts(found, known.beta_cut),
    ]


def _row(one: OpenSetting, beta: float) -> list[str]:
    runs, other = one.runs, one.runs.others[0]
    counts = dict.fromkeys((len(runs.baseline.clean), len(other.clean)))
    gaps = runs.gaps(other, _AT_MB[0])
    equal, sooner = sum(abs(gap) <= EQUAL_S for gap in gaps), sum(gap > EQUAL_S for gap in gaps)
    return [
        one.words or "the base",
        " and ".join(map(str, counts)),
        one.before.written(),
        one.by_a_round_trip.written(),
        _at_size(one.most),
        _at_size(one.least),
        *(shifted(one.sooner(size)) for size in _AT_MB),
        *(f"{count} %" for count in (equal, sooner, len(gaps) - equal - sooner)),
        one.takes_more(beta).written(),
    ]


def _at_size(found: tuple[float, int] | None) -> str:
    return "-" if found is None else f"{found[0]:.1f} s at {found[1]} MB".replace("-0.0", "0.0")


def shifted(one: ShiftInterval | None) -> str:
    """Seconds saved, with the interval; a dash where there is none."""
    if one is None or not math.isfinite(one.value):
        return "-"
    ends = f"{one.low:.1f} to {one.high:.1f}" if math.isfinite(one.low) else "too few"
    return f"{one.value:.1f} s ({ends})".replace("-0.0", "0.0")


def _of_exits(base: OpenSetting, others: Sequence[OpenSetting], known: float) -> str:
    apart = _apart(others, [one.before for one in others], base.before)
    less = [one for one in apart if one.before.value < base.before.value]
    more = [one for one in apart if one not in less]
    told = [f"{words} often with {_listed(some)}" for words, some in (("less", less), ("more", more)) if some]
    said = (
        f"The exit comes before the loss, beyond what chance allows, {'; '.join(told)}. "
        if told
        else "In no row does the exit come before the loss more often or less, beyond what chance allows. "
    )
    allow = [one for one in (base, *others) if one.before.ends[0] <= known / 100 <= one.before.ends[1]]
    return (
        f"**Exits.** {said}What was published, {known:g} %, is within the interval of {len(allow)} of "
        f"{len(others) + 1} rows: {_listed(allow)}."
        if allow
        else f"**Exits.** {said}No row has what was published, {known:g} %, in its interval."
    )


def _of_times(base: OpenSetting, others: Sequence[OpenSetting], arriving: OpenSetting) -> str:
    size = _AT_MB[0]

    named = (base, *others)
    sooner = [one for one in named if _surely(one, size) > 0]
    later = [one for one in named if _surely(one, size) < 0]
    told = [
        f"SEARCH is {word} at {size} MB by more than {EQUAL_S:g} s, with {_timed(some)}"
        for word, some in (("sooner", sooner), ("later", later))
        if some
    ]
    text = "; ".join(told) or f"In no row is SEARCH sooner or later at {size} MB by more than {EQUAL_S:g} s"
    judged = sum(1 for one in named if (found := one.sooner(size)) and math.isfinite(found.low))
    text += (
        f", with an interval that leaves out 0. Each is judged by itself: of the {judged} rows with an "
        f"interval chance alone makes {_BY_CHANCE * judged:.1f} such, or fewer"
    )
    counted = [
        f"{'read in order' if one is base else 'as bytes arrive'} {one.most[0]:.1f} s at {one.most[1]} MB"
        for one in (base, arriving)
        if one.most is not None
    ]
    sizes = [mb for mb in range(_EACH_MB, _AT_MB[1] + 1, _EACH_MB) if _surely(base, mb) > 0]
    where = (
        f" In order, the base is sooner by more than {EQUAL_S:g} s at {len(sizes)} of "
        f"{_AT_MB[1] // _EACH_MB} sizes, each judged by itself, the first {sizes[0]} MB, the last "
        f"{sizes[-1]} MB."
        if sizes
        else ""
    )
    return f"**Times.** {text}. What the base saves at most: {', '.join(counted)}.{where}"


def _surely(one: OpenSetting, size_mb: int) -> int:
    """1: SEARCH is sooner; -1: later; 0: equal, or chance can have made it."""
    found = one.sooner(size_mb)
    if found is None or abs(found.value) <= EQUAL_S:
        return 0
    return int(found.low > 0) - int(found.high < 0)


def _timed(some: Sequence[OpenSetting]) -> str:
    size = _AT_MB[0]
    return ", ".join(
        f"{one.words or 'the base'} ({found.value:.1f} s)" for one in some if (found := one.sooner(size))
    )


def _listed(some: Sequence[OpenSetting]) -> str:
    return ", ".join(f"{one.words or 'the base'} ({one.before.written()})" for one in some)


def _apart(
    others: Sequence[OpenSetting], shares: Sequence[ShareInterval], base: ShareInterval
) -> list[OpenSetting]:
    """The settings whose share differs from the base's by more than chance."""
    chances = adjusted([chance_of(one, base) if one.trials and base.trials else None for one in shares])
    return [one for one, p in zip(others, chances, strict=True) if p is not None and p <= _CHANCE]


def _of_cuts(found: Sequence[OpenSetting], beta: float) -> str:
    """Which change makes it more seldom, or more often, that more is taken off than by CUBIC."""
    base, others = found[0].takes_more(beta), found[1:]
    if not base.trials:
        return ""
    apart = _apart(others, [one.takes_more(beta) for one in others], base)
    seldom = [one for one in apart if one.takes_more(beta).value < base.value]
    often = [one for one in apart if one not in seldom]
    told = [
        f"{word} often with " + ", ".join(f"{one.words} ({one.takes_more(beta).written()})" for one in some)
        for word, some in (("less", seldom), ("more", often))
        if some
    ]
    said = "; ".join(told) or "neither more nor less often with any of these changes"
    return (
        f"**What is taken off.** Beyond what chance allows, more than CUBIC's {percent(beta)} is taken off "
        f"{said} than in the base ({base.written()})."
    )
