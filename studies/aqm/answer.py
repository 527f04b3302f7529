"""The beginning of the page on queue disciplines: what they do to queueing and to downloads, and for whom."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe.analysis.cell_ratio import Measured, cell_ratio
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.comparison import FALSE_DISCOVERIES
from bentpipe.analysis.inference import Ratio, adjusted
from bentpipe.study import dots
from bentpipe.study.claims import MARGIN, MeasuredValue
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, literal, several

from . import comparison, ecn, one_flow, two_flows
from .comparison import Effect
from .disciplines import path_of

PICTURE = "aqm.svg"
_CAPTION = """Behind a discipline / behind drop-tail; in the row on ECN, with marks / with drops, of servers
that set ECT. Means over {servers}, with their intervals: left of 1 is shorter. Queueing is the delay that
99 % of the packets do not exceed."""


@dataclass(frozen=True)
class PathEffects:
    """What disciplines and marks do over a path, to a single flow and to a sparse one beside a bulk flow."""

    path: str
    waits: dict[str, Effect]  # of the disciplines that have one
    times: dict[str, Effect]
    sparse: dict[str, Effect]
    marks_time: Effect | None
    marks_wait: Effect | None
    single: Sequence[Cell]
    shared: Sequence[Cell]

    @property
    def name(self) -> str:
        """The path as it stands in a sentence."""
        return literal(self.path)

    @property
    def shortening(self) -> list[str]:
        """The disciplines that shorten queueing, the strongest first."""
        return _shortening(self.waits)


def effects(single: Sequence[Cell], shared: Sequence[Cell]) -> list[PathEffects]:
    """The effects over each path, in the order of the run."""
    setting = ecn.setting(single)
    found = []
    for path in dict.fromkeys(map(path_of, single)):
        mine = [one for one in single if path_of(one) == path]
        others = [one for one in shared if path_of(one) == path]
        marking = comparison.with_drops(mine, setting)
        found.append(
            PathEffects(
                path,
                _by_discipline(mine, comparison.waits),
                _by_discipline(mine, lambda one: one.completion_s),
                _by_discipline(two_flows.both(others)[0], comparison.sparse_waits),
                comparison.marks(marking, "completion_s"),
                comparison.marks(marking, comparison.waits),
                mine,
                others,
            )
        )
    return found


def _by_discipline(mine: Sequence[Cell], measured: Measured) -> dict[str, Effect]:
    found = {
        name: comparison.effect(comparison.with_tail(mine, name), measured)
        for name in comparison.defaults(mine)
    }
    return {name: one for name, one in found.items() if one is not None}


def _shortening(found: dict[str, Effect]) -> list[str]:
    return sorted(
        (name for name, one in found.items() if one.is_shorter), key=lambda name: found[name].mean.value
    )


def front(paths: Sequence[PathEffects], folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    panels = [panel for one in paths if (panel := _panel(one)).rows]
    picture = None
    if panels:
        file = folder / PICTURE
        dots.draw(panels, file, "times as long", "what queue disciplines and ECN change", border=1)
        text = "Queueing and downloads behind each discipline, with intervals"
        picture = Picture(file, text, _CAPTION.format(servers=_servers(paths)))
    return Front(_finding(paths), _answer(paths), picture, _advice(paths))


def _panel(one: PathEffects) -> DotPanel:
    rows = []
    for name in comparison.defaults(one.single):
        series = {
            _QUEUEING: one.waits.get(name), _SPARSE: one.sparse.get(name), _DOWNLOAD: one.times.get(name)
        }  # fmt: skip
        rows.append(_row(name, series))
    rows.append(_row("ECN", {_QUEUEING: one.marks_wait, _DOWNLOAD: one.marks_time}))
    return DotPanel(one.path, [row for row in rows if row.values])


_QUEUEING, _SPARSE, _DOWNLOAD = (
    "queueing, 99 % of packets",
    "queueing of a sparse flow beside a bulk one",
    "download",
)


def _row(name: str, series: dict[str, Effect | None]) -> DotRow:
    return DotRow(name, {key: MeasuredValue.of(one.mean) for key, one in series.items() if one is not None})


def _finding(paths: Sequence[PathEffects]) -> str:
    """The title: over the path where a discipline shortens queueing most, what it does to a download."""
    shown = [one for one in paths if one.shortening]
    if not shown:
        known = any(effect.mean.low is not None for one in paths for effect in one.waits.values())
        over = several(len(paths), "path")
        if not known:
            return f"Queue disciplines over {over}, of too few servers for an interval"
        return f"No queue discipline is shown to shorten queueing in the mean over servers, over {over}"
    best = min(shown, key=lambda one: one.waits[one.shortening[0]].mean.value)
    name = best.shortening[0]
    cuts = f"{name} cuts queueing by {best.waits[name].size}"
    begin = f"Over {best.name} {cuts}"
    time = best.times.get(name)
    short = f"Over one of {several(len(paths), 'path')} {cuts}"  # whose label fills a title
    return fitting(*([] if time is None else [f"{begin} and {_lengthens(time)}"]), begin, short)


def _lengthens(time: Effect, of: str = "") -> str:
    """What an effect does to downloads `of` a size, with the verb that its interval allows."""
    if time.is_longer:
        return f"lengthens downloads{of} by {time.size}"
    if time.is_shorter:
        return f"shortens downloads{of} by {time.size}"
    if time.is_small:
        return f"hardly changes downloads{of}, {time.change}"
    return f"changes downloads{of} by {time.change}, not clearly"


def _answer(paths: Sequence[PathEffects]) -> list[str]:
    sentences = [_disciplines(paths), _sentence(_marks(paths)), _two_flows(paths)]
    return [one for one in sentences if one] or ["No server has trials behind drop-tail and a discipline."]


def _disciplines(paths: Sequence[PathEffects]) -> str:
    """The sentence on what a discipline that shortens queueing does over each path."""
    said: list[str] = []
    sizes = one_flow.sizes([one for path in paths for one in path.single])
    for one in filter(lambda each: each.waits, paths):
        if not one.shortening:
            said.append(f"over {one.name} no discipline is shown to cut {_it(said)}")
            continue
        name = one.shortening[0]
        time = one.times.get(name)
        cost = f" and {_lengthens(time, '' if said else f' of {sizes}')}" if time else ""
        said.append(f"over {one.name} {name} cuts {_it(said)} by {one.waits[name].size}{cost}")
    return _sentence(said)


def _servers(paths: Sequence[PathEffects]) -> str:
    """How many servers the means of the picture are over."""
    drawn = [
        effect
        for one in paths
        for effect in (
            *(*one.waits.values(), *one.times.values(), *one.sparse.values()),
            *(one.marks_time, one.marks_wait),
        )
        if effect is not None
    ]
    counts = [len(effect.by_server) for effect in drawn]
    servers = several(max(counts, default=0), "server")
    return servers if len(set(counts)) < 2 else f"{min(counts)} to {servers}"


def _it(said: Sequence[str]) -> str:
    return "it" if said else "queueing"


def _sentence(clauses: Sequence[str]) -> str:
    """The clauses as a sentence; "" of none."""
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def extremes(paths: Sequence[PathEffects]) -> str:
    """The sentence on the servers that differ most from the means; "" of none."""
    slowest = [
        (max(one.value for one in time.by_server.values()), path.name, name, time.by_server)
        for path in paths
        for name, time in path.times.items()
    ]
    clauses = []
    if slowest:
        _, path, name, ratios = max(slowest, key=lambda found: found[0])
        most, least = (pick(ratios, key=lambda server: ratios[server].value) for pick in (max, min))
        other = f", and of {literal(least)} {_times(ratios[least])}" if least != most else ""
        clauses.append(
            f"of all servers, a download of {literal(most)} behind {name} over {path} is slowed most: it "
            f"takes {_times(ratios[most])} times as long as behind drop-tail{other}"
        )
    return _sentence([*clauses, *_most_changed(paths)])


def _marks(paths: Sequence[PathEffects]) -> list[str]:
    """What marks in place of drops do to downloads, over the paths with an effect of each kind."""
    known = [(one.name, one.marks_time) for one in paths if one.marks_time is not None]
    if not known:
        return []
    kinds = {
        "lengthen {} by": [f"{one.size} over {name}" for name, one in known if one.is_longer],
        "shorten {} by": [f"{one.size} over {name}" for name, one in known if one.is_shorter],
        "hardly change {},": [f"{one.change} over {name}" for name, one in known if one.is_small],
        "have no clear effect on {},": [
            f"{one.change} over {name}" for name, one in known if one.is_unclear and not one.is_small
        ],
    }
    count = max(len(one.by_server) for _, one in known)
    texts: list[str] = []
    for words, each in kinds.items():
        if each:
            whose = "them" if texts else f"downloads of the {several(count, 'server')} with ECN"
            texts.append(f"{words.format(whose)} {listed(each)}")
    return [f"marks in place of drops {listed(texts)}"]


def _most_changed(paths: Sequence[PathEffects]) -> list[str]:
    """The server whose download marks change most, of those with an effect of more than 5 %."""
    found = [one for one in _by_marks(paths) if one.shows(is_longer=True) or one.shows(is_longer=False)]
    if not found:
        return []
    most = max(found, key=lambda one: abs(math.log(one.ratio.value)))
    return [
        f"with marks in place of drops {literal(most.server)} takes {_times(most.ratio)} times as long "
        f"behind {most.behind}"
    ]


def _times(ratio: Ratio) -> str:
    return MeasuredValue.of(ratio).written()


def _two_flows(paths: Sequence[PathEffects]) -> str:
    """The sentence on a sparse flow beside a bulk one, and on two equal flows, over each path."""
    clauses: list[str] = []
    for one in paths:
        name = next(iter(_shortening(one.sparse)), None)
        if name is not None:
            what = "it" if clauses else "the queueing of a sparse flow beside a bulk one"
            clauses.append(f"over {one.name} {name} cuts {what} by {one.sparse[name].size}")
        elif one.sparse:
            what = "it" if clauses else "queueing of a sparse flow beside a bulk one"
            clauses.append(f"over {one.name} no discipline is shown to cut {what}")
    return _sentence([*clauses, *_equal_flows(paths)])


def _equal_flows(paths: Sequence[PathEffects]) -> list[str]:
    clauses: list[str] = []
    for one in paths:
        change = two_flows.index_change(one.shared)
        if change is None:
            continue
        what = "it" if clauses else "Jain's index of two equal flows"
        if change.raised is None:
            said = f"no discipline is shown to raise {what} from {change.tail.written()}"
        else:
            said = (
                f"{change.discipline} raises {what} from {change.tail.written()} to {change.raised.written()}"
            )
        clauses.append(f"over {one.name} {said}")
    return clauses


def _advice(paths: Sequence[PathEffects]) -> str:
    """The lines that the intervals of this run show."""
    lines = []
    slowed = [
        one.name for one in paths
        if one.shortening and all(name in one.times and one.times[name].is_longer for name in one.shortening)
    ]  # fmt: skip
    if slowed:
        lines.append(
            f"- For downloads one at a time over {listed(slowed)}, keep drop-tail: each discipline that "
            "shortens queueing slows them, in the mean over servers."
        )
    free = [f"{listed(names)} over {one.name}" for one in paths if (names := _without_cost(one))]
    if free:
        lines.append(
            f"- These shorten queueing, and downloads keep their time within {100 * MARGIN:.0f} %: "
            f"{listed(free)}."
        )
    helped = [f"{listed(names)} over {one.name}" for one in paths if (names := _shortening(one.sparse))]
    if helped:
        lines.append(
            f"- Where calls or games share a queue with downloads: {listed(helped)} shorten the "
            "queueing of sparse flows."
        )
    return "\n".join([*lines, *_ecn(paths)])


def _ecn(paths: Sequence[PathEffects]) -> list[str]:
    """For which servers to turn ECN on, and for which off."""
    settings = _by_marks(paths)
    faster, slower = (_changed_by_marks(settings, is_longer=one) for one in (False, True))
    lines = []
    for mine, others, action, words in (
        (faster, slower, "Turn ECN on", ("faster", "slower")),
        (slower, faster, "Leave ECN off", ("slower", "faster")),
    ):
        servers = {
            server: f"{count} of {several(sum(one.server == server for one in settings), 'setting')}"
            for server, count in sorted(mine.items())
            if server not in others
        }
        if servers:
            each = listed(f"{literal(server)} ({count})" for server, count in servers.items())
            lines.append(
                f"- {action} for {each}: in these settings downloads with marks in place of drops are more "
                f"than {100 * MARGIN:.0f} % {words[0]}, and in none as much {words[1]}."
            )
    return lines


def _without_cost(one: PathEffects) -> list[str]:
    """The disciplines that shorten queueing, and whose interval of the download's time is within 5 %."""
    least, most = 1 / (1 + MARGIN), 1 + MARGIN
    found = [(name, one.times[name].mean) for name in one.shortening if name in one.times]
    return [
        name
        for name, mean in found
        if mean.low is not None and mean.high is not None and least <= mean.low and mean.high <= most
    ]


@dataclass(frozen=True)
class MarkedSetting:
    """A server behind a discipline over a path: its download's time with marks / with drops, and the chance
    of that without an effect, adjusted for the number of settings.
    """

    server: str
    behind: str
    ratio: Ratio
    chance: float | None

    def shows(self, *, is_longer: bool) -> bool:
        """Whether it shows a time that is longer, or else shorter, by more than 5 %."""
        low, high = self.ratio.low, self.ratio.high
        if self.chance is None or self.chance > FALSE_DISCOVERIES or low is None or high is None:
            return False
        return low > 1 + MARGIN if is_longer else high < 1 / (1 + MARGIN)


def _by_marks(paths: Sequence[PathEffects]) -> list[MarkedSetting]:
    settings = [
        (server, f"{name} over {one.name}", ratio)
        for one in paths
        for (server, name), pair in comparison.with_drops(one.single, ecn.setting(one.single)).items()
        if (ratio := cell_ratio(*pair, "completion_s")) is not None
    ]
    chances = adjusted([ratio.p for _, _, ratio in settings])
    return [MarkedSetting(*each, chance) for each, chance in zip(settings, chances, strict=True)]


def _changed_by_marks(settings: Sequence[MarkedSetting], *, is_longer: bool) -> Counter[str]:
    """In how many settings a server's own trials show that marks in place of drops change the time of a
    download by more than 5 %.
    """
    return Counter(one.server for one in settings if one.shows(is_longer=is_longer))
