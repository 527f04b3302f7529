"""The beginning of the page on visits: what session tickets, early data and a cache save a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bentpipe.study import dots
from bentpipe.study.claims import MARGIN, MeasuredValue
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.intervals import span
from bentpipe.study.markdown import listed, literal, path, several, table, trials
from bentpipe.testbed import SIM
from bentpipe.workload.page.visit import FIRST, VISITS

from .settings import CACHE, EARLY, STEPS, TICKET, VisitSetting, keeps, lengthens, shortens

PICTURE = "visits.svg"
_CAPTION = """Page load time on a later visit, in percent of that on a first visit over the same path and
version of HTTP{real}."""
_FIRST_PERCENT = 100
_HALF_DIGIT = 0.005  # of a second: less is written as 0.00, without a sign
_EXACT_S = 0.02  # an interval whose ends are no further from the value is not written
_RATIOS = "../../docs/reference/study-verdicts.md#intervals-of-ratios"
HOW = f"""Each saving is that of one step: of a ticket beside a first visit, of early data beside a ticket
alone, of a cache beside the same visit without one. Where a trial of either visit failed, there is none. The
text above is about settings in virtual time. There, over a path without anything drawn at random, a trial
with the same seed repeats, and a single one has no interval: with other seeds stacks draw other IDs and keys,
which moves times by hundredths of a second. Others have [an interval of 95 %]({_RATIOS}) if there are several
of each; one of seconds whose ends are within {_EXACT_S:g} s of the value is not shown. A page's time is
shorter, or longer, where the whole interval is beyond {100 * MARGIN:.0f} %, and
kept where it is within."""


def front(found: Sequence[VisitSetting], folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    picture = None
    scenario = _longest(_virtual(found)) or _longest(found)
    if scenario is not None:
        here = [one for one in found if one.key.scenario == scenario]
        panels = [panel for http in _versions(here) if (panel := _panel(here, http)).rows]
        file = folder / PICTURE
        title = "page load time on later visits"
        dots.draw(panels, file, "percent of the first visit's page load time", title, limits=(0, 125),
                  border=_FIRST_PERCENT)  # fmt: skip
        clients = dict.fromkeys(one.key.client for one in here if _is_real(one))
        real = f"; {listed(clients)} are in real time, with intervals" if clients else ""
        picture = Picture(
            file, "Page load time on later visits, by page and pair", _CAPTION.format(real=real)
        )
    return Front(_finding(found), _answer(found), picture, _advice(found))


def _is_real(one: VisitSetting) -> bool:
    return one.key.testbed != SIM.name


def _virtual(found: Sequence[VisitSetting]) -> list[VisitSetting]:
    return [one for one in found if not _is_real(one)]


def _longest(found: Sequence[VisitSetting]) -> str | None:
    """The path with the longest first visit, of those over which a step has an interval or repeats."""
    known = [
        (time, one.key.scenario)
        for one in found
        if (time := one.seconds(FIRST)) is not None and any(_saved([one], step) for step in STEPS)
    ]
    return max(known, default=(0.0, None), key=lambda each: each[0])[1]


def _versions(found: Sequence[VisitSetting]) -> list[str]:
    """The versions of HTTP, the newest first."""
    return sorted({one.http for one in found}, reverse=True)


def _panel(here: Sequence[VisitSetting], http: str) -> DotPanel:
    rows = []
    for one in here:
        values = {
            VISITS[visit].title: _percent(ratio)
            for visit in VISITS
            if visit != FIRST and (ratio := one.between(FIRST, visit)) is not None
        }
        if one.http == http and values:
            rows.append(DotRow(f"{one.visit.name}, {one.pair}".replace("\\", ""), values))
    return DotPanel(f"{path(here[0].key.scenario)}, {http}".replace("\\", ""), rows)


def _percent(ratio: MeasuredValue) -> MeasuredValue:
    low, high = (None if end is None else 100 * end for end in (ratio.low, ratio.high))
    return MeasuredValue(100 * ratio.value, low, high)


def _saved(found: Sequence[VisitSetting], step: str) -> list[MeasuredValue]:
    """What a step saves in each setting that has an interval or repeats, in seconds, the least first."""
    saved = [value for one in found if (value := one.saved_s(step)) is not None and value.low is not None]
    return sorted(saved, key=lambda one: one.value)


def _range(saved: Sequence[MeasuredValue]) -> str:
    """The least and the most, each with its interval; one if both are written the same."""
    least, most = _written(saved[0]), _written(saved[-1])
    return f"{least} s" if least == most else f"{least} to {most} s"


def _written(one: MeasuredValue) -> str:
    value = one.value if abs(one.value) >= _HALF_DIGIT else 0.0
    reach = max((abs(end - one.value) for end in (one.low, one.high) if end is not None), default=0.0)
    low, high = (None, None) if reach <= _EXACT_S else (one.low, one.high)
    return MeasuredValue(value, low, high).written()


def _first(found: Sequence[VisitSetting]) -> tuple[str, str] | None:
    """The path and the version of HTTP of the title: over the path with the longest first visit, in virtual
    time, the version with most steps, of several the newest.
    """
    virtual = _virtual(found)
    scenario = _longest(virtual)
    if scenario is None:
        return None
    here = [one for one in virtual if one.key.scenario == scenario]
    steps = {http: sum(bool(_saved(_over(here, scenario, http), step)) for step in STEPS)
             for http in _versions(here)}  # fmt: skip
    return scenario, max(steps, key=lambda http: steps[http])


def _over(found: Sequence[VisitSetting], scenario: str, http: str) -> list[VisitSetting]:
    return [one for one in found if (one.key.scenario, one.http) == (scenario, http)]


def _finding(found: Sequence[VisitSetting]) -> str:
    """The title: what each step saves, over the path and the version of HTTP that it names."""
    first = _first(found)
    if first is None:
        return "Pages on first and later visits: too few trials succeeded to tell what they save"
    scenario, http = first
    here = _over(_virtual(found), scenario, http)
    known = {step: saved for step in STEPS if (saved := _saved(here, step))}
    ranges, most = (
        [f"{step} {show(saved)}" for step, saved in known.items()]
        for show in (_range, lambda saved: f"{_written(saved[-1])} s")
    )
    begin, saves = f"Over {path(scenario)}", f"saves {http} pages"
    return fitting(
        f"{begin} {_with_verb(ranges, saves)}",
        f"{begin} {_with_verb(most, f'{saves} at most')}",
        f"{begin} later visits save {http} pages at most {_most(known.values())} s",
        f"Later visits save {http} pages at most {_most(known.values())} s over the longest of the paths",
    )


def _most(saved: Iterable[Sequence[MeasuredValue]]) -> str:
    return _written(max((each[-1] for each in saved), key=lambda one: one.value))


def _with_verb(steps: Sequence[str], verb: str, last: str = ", ") -> str:
    """`a ticket saves HTTP/3 pages 0.08 s, early data 0.66 s`: the verb stands behind the first step."""
    first, *others = steps
    name = next(one for one in STEPS if first.startswith(one))
    text = [f"{name} {verb}{first.removeprefix(name)}", *others]
    return f"{', '.join(text[:-1])}{last}{text[-1]}" if others else text[0]


def _answer(found: Sequence[VisitSetting]) -> list[str]:
    first = _first(found)
    if first is None:
        return ["The tables below have the trials that succeeded."]
    virtual = _virtual(found)
    scenario, http = first
    others = [one for one in _paths(virtual) if one != scenario]
    older = [one for one in _versions(virtual) if one != http]
    groups = [
        [_clause(virtual, scenario, [http], first_visit=True)],
        [_clause(virtual, one, [http], first_visit=True) for one in others],
        [_clause(virtual, one, older, first_visit=False) for one in _paths(virtual)],
    ]
    sentences = ["; ".join(filter(None, clauses)) for clauses in groups]
    return [f"{one[0].upper()}{one[1:]}." for one in sentences if one]


def _paths(found: Sequence[VisitSetting]) -> list[str]:
    return list(dict.fromkeys(one.key.scenario for one in found))


def _clause(
    found: Sequence[VisitSetting], scenario: str, versions: Sequence[str], *, first_visit: bool
) -> str:
    """What each step saves over a path with some versions of HTTP; "" if none was measured."""
    here = [one for http in versions for one in _over(found, scenario, http)]
    steps = [f"{step} {_range(saved)}" for step in STEPS if (saved := _saved(here, step))]
    if not steps:
        return ""
    times = [time for one in here if (time := one.seconds(FIRST)) is not None]
    where = f", where pages take {span(times)} s on a first visit," if first_visit and times else ""
    return f"over {path(scenario)} with {listed(versions)}{where} {_with_verb(steps, 'saves', ' and ')}"


def _advice(found: Sequence[VisitSetting]) -> str:
    """The lines that the settings in virtual time show, each of one step."""
    texts = {
        EARLY: "- Turn early data on for requests that may be repeated",
        CACHE: "- Let browsers cache what does not change",
    }
    lines = []
    for step, text in texts.items():
        ratios = _ratios(found, step)
        shorter = sum(map(shortens, ratios))
        if shorter and not any(map(lengthens, ratios)):
            lines.append(
                f"{text}: {step} shortens a page by more than {100 * MARGIN:.0f} % in "
                f"{_of(shorter, found, step)}, and lengthens it as much in none."
            )
    tickets = _ratios(found, TICKET)
    if tickets and all(map(keeps, tickets)):
        lines.append(
            f"- Do not count on a ticket alone: it keeps a page's time within {100 * MARGIN:.0f} % in "
            f"{_of(len(tickets), found, TICKET)}."
        )
    return "\n".join(lines)


def _of(count: int, found: Sequence[VisitSetting], step: str) -> str:
    """`3 of 4 settings`, `all 4 settings`: of those in which a step was run, also if trials failed."""
    total = sum(one.has(step) for one in _virtual(found))
    every = several(total, "setting")
    return f"{count} of {every}" if count < total or count == 1 else f"all {every}"


def _ratios(found: Sequence[VisitSetting], step: str) -> list[MeasuredValue]:
    return [ratio for one in _virtual(found) if (ratio := one.ratio(step)) is not None]


def steps_table(found: Sequence[VisitSetting]) -> str:
    """Settings against steps: page load time with a step / without it, and what it saves."""
    rows = [[*_named(one), *(_step(one, step) for step in STEPS)] for one in found]
    return table(["path", "page", "HTTP", "client → server", "of each visit", *STEPS], rows, left=5)


def _named(one: VisitSetting) -> list[str]:
    counts = {len(each.records) for each in one.cells.values()}
    return [path(one.key.scenario), literal(one.visit.name), one.http, one.pair, trials(counts)]


def _step(one: VisitSetting, step: str) -> str:
    ratio, saved = one.ratio(step), one.saved_s(step)
    return "" if ratio is None or saved is None else f"{ratio.written()}; {_written(saved)} s"
