"""The beginning of the page on flows of QUIC: who shares with its own kind, and who takes from others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bentpipe.analysis.cells import Cell
from bentpipe.study import dots
from bentpipe.study.claims import MeasuredValue, is_narrow
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, literal, path, several, trials

from .runs import (
    FairnessRuns,
    beside,
    first_share,
    further,
    index,
    indices,
    is_among_equals,
    is_whole,
    starts,
    unmeasured,
)

PICTURE = "fairness.svg"
FAIR = 0.9
_LISTED = 3  # servers that a sentence lists; of more it has the ends
_CAPTION = """Jain's index among flows of one kind, of each server, with the interval of its mean: 1 where all
have the same."""
HOW = """Intervals are those of the mean over the trials in which the flows were measured (95 %, Student's
t); how many were not stands beside it. Where none is shown, both its ends round to the value, or there is one
trial alone."""


def front(runs: FairnessRuns, folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    picture = None
    if runs.equal_sets:
        file = folder / PICTURE
        unit, title = "Jain's index", "how flows of one kind share a path"
        dots.draw([_panel(runs, one) for one in runs.scenarios], file, unit, title, limits=(0, 1.03))
        picture = Picture(file, "Jain's index among flows of one kind, with intervals", _CAPTION)
    return Front(_finding(runs), _answer(runs), picture, _advice(runs))


def _panel(runs: FairnessRuns, scenario: str) -> DotPanel:
    return DotPanel(
        path(scenario).replace("\\", ""),
        [
            DotRow(
                runs.names[server],
                {
                    f"{len(further(label)) + 1} flows": one
                    for label in runs.equal_sets
                    if (one := index(runs.by_key.get((server, scenario, label)))) is not None
                },
            )
            for server in runs.servers
        ],
    )


def among_equals(runs: FairnessRuns) -> dict[str, MeasuredValue]:
    """Server → Jain's index over the usual path, of the largest set of flows of one kind."""
    if not runs.equal_sets:
        return {}
    found = {one: index(runs.by_key.get((one, runs.usual, runs.equal_sets[-1]))) for one in runs.servers}
    known = {one: value for one, value in found.items() if value is not None}
    return dict(sorted(known.items(), key=lambda one: -one[1].value))


def _finding(runs: FairnessRuns) -> str:
    """The title: the most and the least even server, over the usual path."""
    found = among_equals(runs)
    if not found:
        return "What flows of QUIC leave each other that share a path"
    over, flows = path(runs.usual), len(further(runs.equal_sets[-1])) + 1
    begin = f"{flows} equal flows over {over}: Jain's index"
    first, last = next(iter(found)), list(found)[-1]
    # Of how many trials there is no index stands beside a mean, or there is none in the title.
    least = f"{found[last].written()} with {literal(runs.names[last])}{_missing(runs, last)}"
    candidates = [f"{begin} {least}"]
    if first != last:
        name, most = f"{literal(runs.names[first])}{_missing(runs, first)}", found[first]
        short = [f"{most.value:.2f}"] if is_narrow(most) else []  # an interval that is left out is narrow
        candidates = [f"{begin} {least}, {one} with {name}" for one in (most.written(), *short)] + candidates
    return fitting(*candidates, f"How {flows} equal flows share a path")


def _missing(runs: FairnessRuns, server: str) -> str:
    """How many trials of a server's largest set of equal flows, over the usual path, were not measured."""
    return unmeasured(runs.by_key.get((server, runs.usual, runs.equal_sets[-1])))


def _answer(runs: FairnessRuns) -> list[str]:
    sentences = []
    found = among_equals(runs)
    if len(found) > 1:
        texts = [
            f"{one.written()} with {literal(runs.names[server])}{_missing(runs, server)}"
            for server, one in found.items()
        ]
        each = listed(texts) if len(texts) <= _LISTED else f"{texts[-1]} to {texts[0]}"
        flows = len(further(runs.equal_sets[-1])) + 1
        sentences.append(f"Over {path(runs.usual)} {flows} flows of one kind have a Jain's index of {each}.")
    if runs.equal_sets:
        even = _even(runs)
        who = listed(literal(runs.names[one]) for one in even) if even else "no server"
        settings = len(runs.scenarios) * len(runs.equal_sets)
        sentences.append(
            f"In every trial among equals, over {several(settings, 'setting')}, it is at least {FAIR:g} with "
            f"{who}."
        )
    ends = _extremes(runs)
    if ends is not None:
        sentences.append(
            f"Beside another kind, the flow that starts first takes from {ends[0]} to {ends[1]} of what both "
            "receive."
        )
    return sentences or [f"{several(len(runs.cells), 'setting')} are in the tables below."]


def _even(runs: FairnessRuns) -> list[str]:
    """The servers of which every trial among equals was measured and is fair, over every path, of those with
    all settings.
    """
    fair = []
    for server in runs.servers:
        found = [
            runs.by_key.get((server, scenario, label))
            for scenario in runs.scenarios
            for label in runs.equal_sets
        ]
        if all(one is not None and is_even(one) for one in found):
            fair.append(server)
    return fair


def is_even(cell: Cell) -> bool:
    """Whether every trial was measured, and the worst is fair."""
    return is_whole(cell) and min(indices(cell)) >= FAIR


def others(runs: FairnessRuns) -> dict[tuple[str, str, str], MeasuredValue]:
    """(server, scenario, workload) → the first flow's share in percent, beside one flow of another kind."""
    return {
        key: share
        for key, cell in runs.by_key.items()
        if not is_among_equals(key[2])
        and len(further(key[2])) == 1
        and further(key[2])[0].server != key[0]
        and (share := first_share(cell)) is not None
    }


def _extremes(runs: FairnessRuns) -> tuple[str, str] | None:
    found = others(runs)
    if len(found) < 2:
        return None
    first, *_, last = sorted(found, key=lambda one: found[one].value)
    return _said(runs, first, found), _said(runs, last, found)


def _said(
    runs: FairnessRuns, key: tuple[str, str, str], found: Mapping[tuple[str, str, str], MeasuredValue]
) -> str:
    server, scenario, label = key
    return (
        f"{found[key].written(0, ' %')} ({literal(runs.names[server])} beside {beside(label)} over "
        f"{path(scenario)}{unmeasured(runs.by_key[key])})"
    )


def _advice(runs: FairnessRuns) -> str:
    """The lines that the intervals of this run show."""
    lines = []
    even = _even(runs)
    if even and len(even) < len(runs.servers):
        names = listed(literal(one) for one in even)
        lines.append(
            f"- Where flows of one kind share a queue, these share it evenly at every queue: {names}."
        )
    for label in runs.sets:
        if is_among_equals(label) or len(further(label)) > 1:
            continue
        for is_more, words in ((True, "take more from"), (False, "leave more to")):
            who = _differing(runs, label, is_more=is_more)
            if who:
                lines.append(
                    f"- These {words} {beside(label)} than it does from a flow of its own, over every path: "
                    f"{listed(literal(one) for one in who)}."
                )
    return "\n".join(lines)


def _differing(runs: FairnessRuns, label: str, *, is_more: bool) -> list[str]:
    """The servers whose share beside another is, over every path, on one side of what that other's own first
    flow takes, their intervals apart.
    """
    (other,) = further(label)
    found = []
    for server in runs.servers:
        pairs = [
            (_whole(runs.by_key.get((server, one, label))), _own(runs, other.server or "", one, label))
            for one in runs.scenarios
        ]
        if server != other.server and all(_apart(*pair, is_more=is_more) for pair in pairs):
            found.append(server)
    return found


def _own(runs: FairnessRuns, server: str, scenario: str, label: str) -> MeasuredValue | None:
    """What a server's own first flow takes from one further flow of its kind."""
    alone = [label, *(one for one in runs.equal_sets if len(further(one)) == 1)]
    known = (runs.by_key.get((server, scenario, one)) for one in alone)
    return _whole(next((one for one in known if one is not None), None))


def _whole(cell: Cell | None) -> MeasuredValue | None:
    """The first flow's share; None where a trial was not measured."""
    return first_share(cell) if cell is not None and is_whole(cell) else None


def _apart(one: MeasuredValue | None, own: MeasuredValue | None, *, is_more: bool) -> bool:
    if one is None or own is None or one.low is None or own.low is None:
        return False
    if one.high is None or own.high is None:
        return False
    return one.low > own.high if is_more else one.high < own.low


def opening(runs: FairnessRuns) -> str:
    """What was run."""
    counts = {len(one.records) for one in runs.cells}
    each = "\n".join(f"- {starts(one)}" for one in runs.sets)
    return (
        f"{several(len(runs.servers), 'variant')} as the server of the flow that starts first, over "
        f"{several(len(runs.scenarios), 'path')}, {trials(counts)} of each, beside:\n\n{each}"
    )
