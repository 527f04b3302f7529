"""The beginning of the page on the limit: how close a cold start comes to an ideal sender, and with what."""

from __future__ import annotations

from pathlib import Path

from bentpipe import labels
from bentpipe.study import dots
from bentpipe.study.claims import MeasuredValue
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, literal, several
from bentpipe.study.means import GeometricMean
from bentpipe.study.own_sender import BESIDE, OURS

from .runs import LimitRuns

PICTURE = "limit-shares.svg"
_DRAWN = 2  # variants beside the reference and TCP
_CAPTION = """Share of an ideal sender's speed over each path, in percent: the two variants that are most
often best{reference}, with the intervals of their means."""
HOW = """Intervals are those of geometric means (95 %, Student's t on logarithms). Where none is shown, both
its ends round to the value, or there is one trial alone. A variant leads where its interval is above all
others, or lies within 5 % of the best, as that of the best itself does: what cannot be told apart leads
nowhere."""
_REFERENCE = "CUBIC with HyStart++"


def front(runs: LimitRuns, folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    file = folder / PICTURE
    panels = [_panel(runs, size) for size in runs.sizes]
    dots.draw(panels, file, "share of the limit, percent", "how close a cold start comes", limits=(0, 108))
    caption = _CAPTION.format(reference=f", and {_REFERENCE}" if runs.reference else "")
    picture = Picture(file, "Share of the limit by path and size, with intervals", caption)
    return Front(_finding(runs), _answer(runs), picture, _advice(runs))


def _drawn(runs: LimitRuns) -> list[str]:
    """The variants of the picture: those that lead most often, the reference, the first one of TCP."""
    first = [one for one in runs.leading if one != runs.reference and one not in runs.tcp][:_DRAWN]
    return list(dict.fromkeys([*first, *([runs.reference] if runs.reference else []), *runs.tcp[:1]]))


def _panel(runs: LimitRuns, size: str) -> DotPanel:
    rows = []
    for scenario in runs.scenarios:
        values = {
            runs.variants[one]: mean
            for one in _drawn(runs)
            if (mean := _percent(share(runs, one, scenario, size))) is not None
        }
        rows.append(DotRow(labels.scenario(scenario).name, values))
    return DotPanel(size, rows)


def share(runs: LimitRuns, variant: str, scenario: str, size: str) -> GeometricMean | None:
    """The mean share of the limit of a variant; None where it was not run, or a trial failed."""
    spot = runs.over[scenario].spots.get((variant, size))
    return None if spot is None or spot.failed else spot.mean


def _percent(mean: GeometricMean | None) -> MeasuredValue | None:
    if mean is None:
        return None
    low, high = (None if end is None else 100 * end for end in (mean.low, mean.high))
    return MeasuredValue(100 * mean.value, low, high)


def _written(mean: GeometricMean | None) -> str:
    found = _percent(mean)
    return "-" if found is None else found.written(0, " %")


def _best(runs: LimitRuns, scenario: str, size: str) -> str | None:
    """The first of the best variants; None where none succeeded."""
    best = runs.over[scenario].best(size)
    return next((one for one in runs.variants if one in best), None)


def _finding(runs: LimitRuns) -> str:
    """The title: the best and the reference, over the usual path and for the usual size."""
    scenario, size = runs.usual_path, runs.usual_size
    name, best = labels.scenario(scenario).name, _best(runs, scenario, size)
    if best is None:
        return f"No variant completes {size} over {name}"
    begin = f"{size} over {name} reach {_written(share(runs, best, scenario, size))} of the limit"
    texts = [f"{begin} with {literal(runs.variants[best])}"]
    other = None if runs.reference in (None, best) else share(runs, runs.reference or "", scenario, size)
    if other is not None:
        texts = [f"{one}, {_written(other)} with {_REFERENCE}" for one in (texts[0], begin)] + texts
    return fitting(*texts, begin)


def _answer(runs: LimitRuns) -> list[str]:
    sentences = [_by_size(runs), _over_paths(runs)]
    counts = [(one, len(found)) for one, found in runs.leading.items() if found]
    settings = sum(len(grid.settings) for grid in runs.over.values())
    if counts:
        most = counts[0][1]
        first = listed(literal(runs.variants[one]) for one, count in counts if count == most)
        rest = (f", {literal(runs.variants[one])} in {count}" for one, count in counts if count < most)
        sentences.append(
            f"Most often best, or within 5 % of the best, of {several(settings, 'setting')}: {first} in "
            f"{most}{next(rest, '')}."
        )
    return [one for one in sentences if one]


def _by_size(runs: LimitRuns) -> str:
    """The reference by size over the usual path; without one the best."""
    scenario = runs.usual_path
    who = runs.reference
    parts = [
        f"{_written(mean)} for {size}"
        for size in runs.over[scenario].settings
        if (one := who or _best(runs, scenario, size)) is not None
        and (mean := share(runs, one, scenario, size)) is not None
    ]
    if not parts:
        return ""
    name = _REFERENCE if who else "the best variant of each size"
    over = labels.scenario(scenario).name
    return f"Over {over} {name} reaches these shares of an ideal sender's speed: {listed(parts)}."


def _over_paths(runs: LimitRuns) -> str:
    """The range over all paths, of the usual size: of the best, and of the reference."""
    size, parts = runs.usual_size, []
    ways = [("the best variant", [_best(runs, one, size) for one in runs.scenarios])]
    if runs.reference:
        ways.append((_REFERENCE, [runs.reference for _ in runs.scenarios]))
    for name, variants in ways:
        known = [
            (mean.value, mean, scenario)
            for scenario, one in zip(runs.scenarios, variants, strict=True)
            if one is not None and (mean := share(runs, one, scenario, size)) is not None
        ]
        if len(known) > 1:
            ends = (min(known, key=lambda one: one[0]), max(known, key=lambda one: one[0]))
            texts = [f"{_written(mean)} ({labels.scenario(scenario).name})" for _, mean, scenario in ends]
            parts.append(f"{name} reaches {texts[0]} to {texts[1]}")
    return f"For {size} over {several(len(runs.scenarios), 'path')} {listed(parts)}." if parts else ""


def _advice(runs: LimitRuns) -> str:
    """For each size the variants that lead over most paths, if that is over more than half of them; and
    which are faster by what they lose.
    """
    lines, named = [], set()
    for size in runs.sizes:
        counts = {one: sum(s == size for _, s in found) for one, found in runs.leading.items()}
        paths = sum(size in grid.settings for grid in runs.over.values())
        most = max(counts.values(), default=0)
        if 2 * most > paths:
            leading = [one for one in counts if counts[one] == most]
            named |= set(leading)
            names = listed(literal(runs.variants[one]) for one in leading)
            lines.append(
                f"- For {size}: {names}, best or within 5 % of the best over {most} of "
                f"{several(paths, 'path')}."
            )
    if OURS in named:
        lines.append(f"- {BESIDE}")
    faster = _faster_with_drops(runs)
    if faster:
        each = listed(f"{literal(runs.variants[one])} in {count}" for one, count in faster.items())
        lines.append(
            f"- These reach more than the best, and drop more than {_REFERENCE} does: {each} of "
            f"{several(sum(len(one.settings) for one in runs.over.values()), 'setting')}."
        )
    return "\n".join(lines)


def _faster_with_drops(runs: LimitRuns) -> dict[str, int]:
    """Variant → in how many settings its interval is above that of the best, which it is not among for what
    it drops.
    """
    found: dict[str, int] = {}
    for scenario, grid in runs.over.items():
        for size in grid.settings:
            best = _best(runs, scenario, size)
            top = None if best is None else share(runs, best, scenario, size)
            for one in runs.variants:
                mean = share(runs, one, scenario, size)
                if top is not None and mean is not None and mean.is_above(top):
                    found[one] = found.get(one, 0) + 1
    return dict(sorted(found.items(), key=lambda one: -one[1]))
