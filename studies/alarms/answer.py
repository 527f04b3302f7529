"""The beginning of the page on false alarms: how often a check is wrong, and over which paths it finds a
slowdown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from bentpipe.study import dots
from bentpipe.study.claims import MeasuredValue
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, path, several

from .checks import DRAWS, ERROR, MOST, SLOWER, DrawnChecks, SlowerPath, share

PICTURE = "alarms.svg"
FOUND = 90  # percent of checks: a slowdown is found where the interval is above
MISSED = 10  # percent: it is missed where the interval is below
PERCENT = f"{100 * (SLOWER - 1):.0f} %"
_ALLOWED = 100 * ERROR
_CAPTION = f"""Checks that call a path better or worse, in percent, with intervals: false alarms above, where
both sides are equal; below, those that find a slowdown of {PERCENT}."""
HOW = f"""Shares have Wilson's interval of 95 %: it has the chance of drawing {DRAWS} checks, and not that of
the trials, from which all of them are drawn. Pairs differ by the standard deviation of the logarithms of
their ratios. A slowdown counts as found over a path if its interval is above {FOUND} %, and as missed
if it is below {MISSED} %."""


def front(checks: DrawnChecks, folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    alarms = [DotRow(name, {"false alarms": share(count)}) for name, count in checks.alarms.items()]
    slower = [
        DotRow(one.pool.scenario, {"found, same seeds": one.same, "found, other seeds": one.other})
        for one in checks.slower
    ]
    panels = [
        DotPanel("both sides are equal", alarms),
        DotPanel(f"one side is {PERCENT} slower", slower),
    ]
    title = "false alarms, and slowdowns that are found"
    dots.draw(panels, folder / PICTURE, "checks, percent", title, limits=(-2, 102))
    picture = Picture(
        folder / PICTURE, "False alarms and slowdowns found, in percent, with intervals", _CAPTION
    )
    return Front(_finding(checks), _answer(checks), picture, _advice(checks))


def most_alarms(checks: DrawnChecks) -> MeasuredValue:
    """The share of checks with a false alarm, of the ways to draw pairs the one that has most of them."""
    return share(max(checks.alarms.values()))


def found(checks: DrawnChecks, way: Callable[[SlowerPath], MeasuredValue]) -> list[SlowerPath]:
    """The paths over which checks find the slowdown."""
    return [one for one in checks.slower if (way(one).low or 0.0) > FOUND]


def missed(checks: DrawnChecks) -> list[SlowerPath]:
    """The paths over which they miss it, with the same seeds."""
    return [one for one in checks.slower if _high(one.same) < MISSED]


def _high(one: MeasuredValue) -> float:
    return 100.0 if one.high is None else one.high


def same(one: SlowerPath) -> MeasuredValue:
    return one.same


def other(one: SlowerPath) -> MeasuredValue:
    return one.other


def _finding(checks: DrawnChecks) -> str:
    alarms = most_alarms(checks).written(1, " %")
    paths = several(len(checks.slower), "path")
    count, fewer = len(found(checks, same)), len(found(checks, other))
    begin = f"Checks find a slowdown of {PERCENT} over {count} of {paths}"
    if fewer != count:
        begin += f" with the same draws, over {fewer} with others"
    return fitting(f"{begin}, with {alarms} of false alarms", begin)


def _answer(checks: DrawnChecks) -> list[str]:
    alarms = most_alarms(checks)
    sentences = [
        "Of checks in which both sides are equal, `bentpipe check --against` calls a path better or worse in "
        f"{alarms.written(1, ' %')} at most, however pairs are drawn: {_beside_allowed(alarms)} "
        f"{_ALLOWED:g} % that a check allows."
    ]
    known = found(checks, same)
    if known:
        sentences.append(
            f"With up to {MOST} pairs of the same seed, checks find a slowdown of {PERCENT} over "
            f"{_paths(known)}, each time in more than {FOUND} % of them{_with_others(known)}."
        )
    rest = [one for one in checks.slower if one not in known]
    if rest:
        each = listed(
            f"{one.same.written(1, ' %')} over {path(one.pool.scenario)}, where even pairs with the same "
            f"seed differ by {100 * one.pool.pair_spread:.2g} %"
            for one in rest
        )
        sentences.append(f"{'They' if known else 'Checks'} find it in {each}.")
    return sentences


def _with_others(known: Sequence[SlowerPath]) -> str:
    """The clause on pairs without a draw in common, over those of the paths where they find less."""
    less = [one for one in known if (one.other.low or 0.0) <= FOUND]
    each = [f"{one.other.written(1, ' %')} over {path(one.pool.scenario)}" for one in less]
    return f"; with pairs of other seeds in {listed(each)}" if each else ""


def _beside_allowed(alarms: MeasuredValue) -> str:
    """How the share is beside what is allowed, by its interval."""
    if _high(alarms) < _ALLOWED:
        return "less than the"
    return "more than the" if (alarms.low or 0.0) > _ALLOWED else "not to be told from the"


def _paths(known: Sequence[SlowerPath]) -> str:
    return listed(path(one.pool.scenario) for one in known)


def _advice(checks: DrawnChecks) -> str:
    """The lines that these checks show."""
    lines = []
    alarms = _high(most_alarms(checks))
    if alarms < _ALLOWED:
        lines.append(
            "- Take *better* and *worse* as a change of the stack: chance alone causes them in at most "
            f"{alarms:.1f} % of checks."
        )
    known = [one for one in found(checks, same) if one in found(checks, other)]
    if known:
        lines.append(
            f"- Watch for regressions over paths like {_paths(known)}, on which up to {MOST} pairs find "
            f"{PERCENT} even without a draw in common."
        )
    lines += [
        f"- Over {path(one.pool.scenario)} a check finds {PERCENT} only where the new version sends what "
        "the old one sent, and so meets the same losses: a version whose pairs differ as much as those of "
        f"other seeds needs some {checks.pairs_needed(math.sqrt(2) * one.pool.spread)} pairs."
        for one in found(checks, same)
        if one not in known
    ]
    lines += [
        f"- Over {path(one.pool.scenario)} do not take *undecided* as *unchanged*: to find {PERCENT} there, "
        f"a check needs some {checks.pairs_needed(one.pool.pair_spread)} pairs."
        for one in missed(checks)
    ]
    return "\n".join(lines)
