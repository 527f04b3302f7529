"""Two flows over a queue of which SEARCH acts: what a slow start leaves to a flow beside it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bentpipe import workload
from bentpipe.analysis.cells import Cell, cells
from bentpipe.plan import flows
from bentpipe.runs.records import Record
from bentpipe.study.markdown import mbit, number, percent, table, trials
from bentpipe.study.means import arithmetic
from bentpipe.study.source import Source, pooled
from bentpipe.study.variants import slow_start

CAMPAIGN = "search-fairness"
_TEXT = """Section 7.1.1 asks for fairness between flows with SEARCH and without. SEARCH acts where the queue
holds several times the BDP: here it is 4 BDP, over 20 Mbit/s and a round trip of 600 ms with 0.2 ms of
jitter. The second flow begins {late} s after the first; CUBIC is the congestion avoidance of both, with
{trials} of each pair. *Jain's index* is that of both goodputs while both are there, the median and the worst
in brackets; goodputs are medians. *Dropped*: of the packets of both flows, by the queue. Intervals are those
of means (95 %, Student's t)."""


def sections(runs: Sequence[Source]) -> list[str]:
    """The section; none without such a run."""
    mine = [one for one in runs if one.manifest.campaign == CAMPAIGN]
    found = _pairs([one for one in cells(pooled(mine)) if _known(one)])
    if not found:
        return []
    text = _TEXT.format(late=_start_s(found[0]), trials=trials({len(_known(one)) for one in found}))
    head = ["first flow", "second flow", "Jain's index", "first, Mbit/s", "second, Mbit/s", "dropped"]
    rows = [[*_pair(one), *_row(one)] for one in sorted(found, key=_pair)]
    return ["## Fairness where SEARCH acts", text, table(head, rows, left=2), _said(found)]


def _pairs(found: Sequence[Cell]) -> list[Cell]:
    """A cell for each pair of slow starts, with the trials of all: a flow of the first one's own kind and one
    whose server is named as the first one's are the same pair.
    """
    each: dict[tuple[str, str], list[Cell]] = {}
    for one in found:
        each.setdefault(_pair(one), []).append(one)
    return [Cell.of(same[0].key, (it for one in same for it in one.records)) for same in each.values()]


def _start_s(cell: Cell) -> str:
    (further,) = flows.of(workload.parse(cell.key.workload, "the run"))
    return f"{further.start_ms / 1000:g}"


def _pair(cell: Cell) -> tuple[str, str]:
    """The slow starts of the two flows."""
    (further,) = flows.of(workload.parse(cell.key.workload, "the run"))
    return slow_start(cell.key.server), slow_start(further.server or cell.key.server)


def _known(cell: Cell) -> list[Record]:
    """The trials in which both flows were measured. An invalid one says nothing of the flows."""
    return [one for one in cell.records if one.jain_index is not None and one.outcome != "invalid"]


def _index(cell: Cell) -> list[float]:
    return [one.jain_index for one in _known(cell) if one.jain_index is not None]


def _dropped(record: Record) -> float:
    sent = sum(one.forward_packets for one in record.flows)
    return sum(one.forward_queue_drops for one in record.flows) / (sent or 1)


def _row(cell: Cell) -> list[str]:
    index = _index(cell)
    each = zip(*([one.goodput_bps or 0.0 for one in record.flows] for record in _known(cell)), strict=True)
    return [
        f"{number(statistics.median(index))} ({number(min(index))})",
        *(mbit(statistics.median(values)) for values in each),
        percent(statistics.median(map(_dropped, _known(cell)))),
    ]


def _said(found: Sequence[Cell]) -> str:
    """Where the mean index is least and where it is largest, if their intervals are apart."""
    means = {_pair(one): mean for one in found if (mean := arithmetic(_index(one), 0.0, 1.0)) is not None}
    (worst, least), (best, most) = (pick(means.items(), key=lambda it: it[1].value) for pick in (min, max))
    standard = means.get(("standard", "standard"))
    base = "" if standard is None else f" Two flows without SEARCH have {standard.written()}."
    if least.high is None or most.low is None or least.high >= most.low:
        return f"That pairs differ in fairness is not shown: the intervals of their means overlap.{base}"
    return (
        f"Least fair are `{worst[0]}` and then `{worst[1]}`, {least.written()}, most `{best[0]}` and then "
        f"`{best[1]}`, {most.written()}.{base}"
    )
