"""The beginning of the page on slow starts: which one comes closest to the limit, over which queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bentpipe.study import dots
from bentpipe.study.claims import MeasuredValue
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.grid import GridCell, is_reference
from bentpipe.study.markdown import listed, literal, percent, several
from bentpipe.study.variants import slow_start

from .runs import SlowStartRuns

PICTURE = "slow-start-shares.svg"
_PLAIN = "standard"  # the slow start of RFC 9002
_CAPTION = """Share of an ideal sender's speed over each path and queue, in percent, with the intervals of the
means: the slow start of the title, and others beside it."""
HOW = """Intervals are those of geometric means (95 %, Student's t on logarithms). Where none is shown, both
its ends round to the value, or there is one trial alone. A slow start leads where its interval is above all
others, or lies within 5 % of the best, as that of the best itself does: what cannot be told apart leads
nowhere."""


def front(runs: SlowStartRuns, folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    file = folder / PICTURE
    title = "how close slow starts come to the limit"
    dots.draw(
        [_panel(runs, one) for one in runs.over], file, "share of the limit, percent", title, limits=(0, 108)
    )
    picture = Picture(file, "Share of the limit by path and queue, with intervals", _CAPTION)
    return Front(_finding(runs), _answer(runs), picture, _advice(runs))


def best(runs: SlowStartRuns) -> str | None:
    """The slow start that leads over most queues of the usual path, of those that completed every transfer
    over each of them; of several the one with the best mean over most, and then whose worst queue is best.
    """
    grid = runs.over[runs.usual]
    counts = {one: sum(path == runs.usual for path, _ in found) for one, found in runs.leading.items()}
    worst = {}
    for one in counts:
        means = [cell.mean for cell in _cells(runs, one) if cell.mean is not None and not cell.failed]
        if len(means) == len(grid.settings):
            worst[one] = min(mean.value for mean in means)
    means_best = Counter(one for queue in grid.settings for one in grid.best(queue))
    return max(worst, key=lambda one: (counts[one], means_best[one], worst[one]), default=None)


def _cells(runs: SlowStartRuns, variant: str) -> list[GridCell]:
    """Of a variant over the usual path, those of each queue that it was run with."""
    grid = runs.over[runs.usual]
    return [grid.spots[variant, queue] for queue in grid.settings if (variant, queue) in grid.spots]


def _beside(runs: SlowStartRuns) -> str | None:
    """Which slow start stands beside the best: that of RFC 9002, or else CUBIC with HyStart++."""
    plain = [one for one in runs.variants if slow_start(one) == _PLAIN]
    return next(iter([*plain, *filter(is_reference, runs.variants)]), None)


def _panel(runs: SlowStartRuns, path: tuple[str, str]) -> DotPanel:
    grid = runs.over[path]
    reference = next(filter(is_reference, runs.variants), None)
    drawn = [one for one in dict.fromkeys((best(runs), _beside(runs), reference, *runs.tcp[:1])) if one]
    rows = [
        DotRow(
            f"queue {queue}",
            {
                runs.variants[one]: mean
                for one in drawn
                if (mean := _percent(grid.spots.get((one, queue)))) is not None
            },
        )
        for queue in grid.settings
    ]
    return DotPanel(path[0], rows)


def _percent(cell: GridCell | None) -> MeasuredValue | None:
    if cell is None or cell.failed or cell.mean is None:
        return None
    low, high = (None if end is None else 100 * end for end in (cell.mean.low, cell.mean.high))
    return MeasuredValue(100 * cell.mean.value, low, high)


def _range(cells: Sequence[GridCell]) -> str:
    """The least and the largest share over the queues, with their intervals; one if both round to it. Queues
    over which a trial failed are named.
    """
    known = [one for cell in cells if (one := _percent(cell)) is not None]
    failed = [cell.cell.key.scenario_label.queue for cell in cells if cell.failed]
    without = f" (not at {listed(failed)}, where trials failed)" if failed else ""
    return (_ends(known) if known else "no share") + without


def _ends(known: Sequence[MeasuredValue]) -> str:
    first, last = (pick(known, key=lambda one: one.value) for pick in (min, max))
    if f"{first.value:.0f}" != f"{last.value:.0f}":
        least, most = first.written(0, " %"), last.written(0, " %")
        return f"{least.removesuffix(' %')} to {most}"
    lows = [one.low for one in known if one.low is not None]
    highs = [one.high for one in known if one.high is not None]
    one = MeasuredValue(first.value, min(lows, default=None), max(highs, default=None))
    return one.written(0, " %")


def _queues(runs: SlowStartRuns) -> str:
    settings = runs.over[runs.usual].settings
    first, last = settings[0], settings[-1]
    return first if first == last else f"{first.removesuffix(' BDP')} to {last}"


def _finding(runs: SlowStartRuns) -> str:
    first, other = best(runs), _beside(runs)
    begin = f"Over {runs.usual[0]}, queues of {_queues(runs)}"
    if first is None:
        return f"{begin}: no slow start completes every transfer"
    title = f"{begin}: {literal(runs.variants[first])} reaches {_range(_cells(runs, first))} of the limit"
    if other is None or other == first:
        return fitting(title, begin)
    ends = f", {literal(runs.variants[other])} {_range(_cells(runs, other))}"
    return fitting(title + ends, title, begin)


def _answer(runs: SlowStartRuns) -> list[str]:
    first, other = best(runs), _beside(runs)
    both = [one for one in dict.fromkeys((first, other)) if one is not None]
    sentences = []
    if both:
        shares = listed(f"{literal(runs.variants[one])} reaches {_range(_cells(runs, one))}" for one in both)
        drops = listed(f"{_drops(_cells(runs, one))} with {literal(runs.variants[one])}" for one in both)
        sentences.append(
            f"Over {runs.usual[0]} with queues of {_queues(runs)}, of an ideal sender's speed {shares}."
        )
        sentences.append(f"Of the file the queue drops, in the median, at most {drops}.")
    settings = sum(len(grid.settings) for grid in runs.over.values())
    counts = sorted({len(found) for found in runs.leading.values() if found}, reverse=True)[:2]
    ranked = [
        f"{listed(literal(name) for one, name in runs.variants.items() if len(runs.leading[one]) == count)} "
        f"in {count}"
        for count in counts
    ]
    begin = f"Over {several(len(runs.over), 'path')}, {several(settings, 'setting')}"
    if ranked:
        sentences.append(f"{begin}, most often best, or within 5 % of the best: {'; '.join(ranked)}.")
    else:
        sentences.append(f"{begin}, none is shown to be best, or within 5 % of the best.")
    return sentences


def _drops(cells: Sequence[GridCell]) -> str:
    known = [one.dropped for one in cells if one.dropped is not None]
    return percent(max(known)) if known else "an unknown share"


def _advice(runs: SlowStartRuns) -> str:
    """For each path the slow start that leads over most queues, if over more than half of them."""
    lines = []
    for path, grid in runs.over.items():
        counts = {one: sum(p == path for p, _ in found) for one, found in runs.leading.items()}
        most = max(counts.values(), default=0)
        if 2 * most > len(grid.settings):
            names = listed(literal(runs.variants[one]) for one in counts if counts[one] == most)
            lines.append(
                f"- Over {path[0]}: {names}, best or within 5 % of the best at {most} of "
                f"{several(len(grid.settings), 'queue')}."
            )
    return "\n".join(lines)
