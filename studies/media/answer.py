"""The beginning of the page on media: how long live streams stall, and how many frames come in time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe.analysis.cells import Cell
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.records import Record
from bentpipe.study import dots
from bentpipe.study.claims import MeasuredValue, is_narrow
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, literal, path, several
from bentpipe.study.means import arithmetic
from bentpipe.workload import known
from bentpipe.workload.frames import FrameViewing
from bentpipe.workload.live import LiveSession

PICTURE = "media.svg"
_NOTABLE = 1  # percent: a path on which every sender misses less is not drawn
_IN_TIME = 99  # percent of frames that a viewer takes for all
_CAPTION = """What a viewer misses, in percent, with the intervals of the means: of a live stream the time in
which it stalls, of its length; of frames those that come late or not at all.{others}"""
HOW = """Intervals in the text above and in the picture are those of means (95 %, Student's t); where none is
shown, both its ends round to the value, or there is one trial alone. A setting of which a trial failed has no
mean there. Paths are ranked within one length of stream, or one deadline, and only where no trial failed,
unless it is said how many did."""


@dataclass(frozen=True)
class MediaCells:
    """The cells of live streams and those of frames that were run."""

    live: Sequence[Cell]
    frames: Sequence[Cell]


def missed(record: Record) -> float | None:
    """What a viewer of the trial misses, in percent: stalls, of the stream's length; frames late or lost."""
    found = known(record.workload)
    if isinstance(found, LiveSession):
        return None if record.stalled_s is None else 100 * record.stalled_s / (found.lasts_ms / 1000)
    if record.late_frames is None or record.lost_frames is None or not record.frames:
        return None
    return 100 * (record.late_frames + record.lost_frames) / record.frames


def stalled(cell: Cell) -> MeasuredValue | None:
    """The mean time in which a stream stalls, in seconds; None where a trial failed or is unknown."""
    return _mean(cell, lambda one: one.stalled_s)


def in_time(cell: Cell) -> MeasuredValue | None:
    """The mean share of frames in time, in percent; None where a trial failed or is unknown."""
    return _mean(cell, lambda one: None if (share := missed(one)) is None else 100 - share, 100.0)


def _mean(
    cell: Cell, measure: Callable[[Record], float | None], most: float = math.inf
) -> MeasuredValue | None:
    """The mean of what lies between 0 and `most`."""
    values = [value for one in cell.ok if (value := measure(one)) is not None]
    return arithmetic(values, 0.0, most) if len(values) == len(cell.records) else None


def _missed(cell: Cell) -> MeasuredValue | None:
    return _mean(cell, missed, 100.0 if isinstance(known(cell.key.workload), FrameViewing) else math.inf)


def front(cells: MediaCells, folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    panels, others, failing = [], [], []
    for scenario, each in _by_path([*cells.live, *cells.frames]):
        for kind in (cells.live, cells.frames):
            here = [one for one in each if one in kind]
            panel = _panel(scenario, here, "stalled" if kind is cells.live else "late or lost")
            if here and any(value.value >= _NOTABLE for row in panel.rows for value in row.values.values()):
                panels.append(panel)
            elif any(one.failures for one in here):
                failing.append(f"{panel.title} ({_failed(here)})")
            elif here:
                others.append(panel.title)
    picture = None
    if panels:
        dots.draw(panels, folder / PICTURE, "percent", "what a viewer misses", limits=(-2, 102))
        left_out = f" Less than {_NOTABLE} % everywhere: {'; '.join(others)}." if others else ""
        left_out += f" Less where all trials succeeded: {'; '.join(failing)}." if failing else ""
        picture = Picture(
            folder / PICTURE, "What a viewer misses, with intervals", _CAPTION.format(others=left_out)
        )
    return Front(_finding(cells), _answer(cells), picture, _advice(cells))


def _by_path(cells: Sequence[Cell]) -> Iterator[tuple[str, list[Cell]]]:
    for scenario in dict.fromkeys(one.key.scenario for one in cells):
        yield scenario, [one for one in cells if one.key.scenario == scenario]


def name(scenario: str) -> str:
    """A path in few words: `geo-tum at 1 % of loss`."""
    text = path(scenario)
    first, *settings = text.split(",")
    losses = {one.partition("=")[2] for one in settings if ".loss=" in one}
    return f"{first} at {losses.pop().replace('%', ' %')} of loss" if len(losses) == 1 else first


def _panel(scenario: str, cells: Sequence[Cell], what: str) -> DotPanel:
    rows: dict[str, dict[str, MeasuredValue]] = {}
    for one in cells:
        value = _missed(one)
        if value is not None:
            rows.setdefault(one.key.server, {})[_series(one)] = value
    title = f"{name(scenario)}: {what}".replace("\\", "")
    return DotPanel(title, [DotRow(server, values) for server, values in rows.items()])


def _series(cell: Cell) -> str:
    found = known(cell.key.workload)
    if isinstance(found, FrameViewing):
        return f"frames over {found.over}, {_time(found.deadline_ms)}"
    kind = cell.key.treatment_label.kind
    return "live, direct" if cell.key.treatment == DIRECT else f"live, {kind}"


@dataclass(frozen=True)
class HardestPath:
    """The path on which settings without proxies are worst in the mean, at one length or one deadline."""

    scenario: str
    values: Sequence[tuple[Cell, MeasuredValue]]  # of each setting, from best to worst
    here: Sequence[Cell]  # all settings over this path, failed ones, too
    others: Sequence[tuple[Cell, MeasuredValue]]  # over other paths without failed trials
    left_out: Sequence[Cell]  # over other paths, which are not ranked, as trials failed

    @property
    def failed(self) -> str:
        """`1 of 6 trials failed`, over this path; "" if none did."""
        return _failed(self.here) if any(one.failures for one in self.here) else ""

    @property
    def where(self) -> str:
        """Behind the path's name: in what it is the hardest."""
        if self.failed:
            return f"where {self.failed}"
        return (
            "where it is hardest of the paths without failed trials"
            if self.left_out
            else "where it is hardest"
        )

    @property
    def unranked(self) -> str:
        """At the end of a sentence: the paths that are not ranked, and how many trials failed there."""
        paths = [f"over {name(scenario)} {_failed(each)}" for scenario, each in _by_path(self.left_out)]
        return f"; {listed(paths)}" if paths else ""


def _failed(cells: Sequence[Cell]) -> str:
    failed, whole = (sum(each) for each in zip(*map(_counts, cells), strict=True))
    return f"{failed} of {several(whole, 'trial')} failed"


def _counts(cell: Cell) -> tuple[int, int]:
    return cell.failures.total(), len(cell.records)


def _hardest(
    cells: Sequence[Cell], value: Callable[[Cell], MeasuredValue | None], sign: int
) -> HardestPath | None:
    """The path on which the mean over its direct settings is worst; `sign` is 1 where less is better, and -1
    where more is. Of several lengths or deadlines it is of the first that has a mean: the longest stream, the
    shortest deadline. Where trials failed over every path, it is the worst by those that succeeded.
    """
    direct = [one for one in cells if one.key.treatment == DIRECT]
    for demand in sorted(set(map(_demand, direct))):
        each = list(_by_path([one for one in direct if _demand(one) == demand]))
        means = {
            scenario: sorted(
                ((one, mean) for one in mine if (mean := value(one)) is not None),
                key=lambda one: sign * one[1].value,
            )
            for scenario, mine in each
        }
        whole = [scenario for scenario, mine in each if len(means[scenario]) == len(mine)]
        ranked = whole or [scenario for scenario, found in means.items() if found]
        if not ranked:
            continue
        worst = max(ranked, key=lambda one: sign * _level(means[one]))
        return HardestPath(
            worst,
            means[worst],
            dict(each)[worst],
            [one for scenario in whole if scenario != worst for one in means[scenario]],
            [one for scenario, mine in each if scenario not in (worst, *whole) for one in mine],
        )
    return None


def _demand(cell: Cell) -> int:
    """What a viewer asks for, the hardest first: a stream's length, below zero, or a deadline; in ms."""
    found = known(cell.key.workload)
    if isinstance(found, LiveSession):
        return -found.lasts_ms
    return found.deadline_ms if isinstance(found, FrameViewing) else 0


def _level(values: Sequence[tuple[Cell, MeasuredValue]]) -> float:
    return sum(mean.value for _, mean in values) / len(values)


def _length(cell: Cell) -> str:
    found = known(cell.key.workload)
    return _time(found.lasts_ms) if isinstance(found, LiveSession) else ""


def _time(time_ms: int) -> str:
    return f"{time_ms} ms" if time_ms % 1000 else f"{time_ms // 1000} s"


def _finding(cells: MediaCells) -> str:
    """The title: over the hardest path, the sender that stalls longest and that which stalls least."""
    live = _hardest(cells.live, stalled, 1)
    if live is not None:
        (best, least), (worst, most) = live.values[0], live.values[-1]
        failed = f"; {live.failed}" if live.failed else ""
        begin = f"Over {name(live.scenario)} a live stream stalls {{}} with {literal(worst.key.server)}"
        full, plain = begin.format(most.written(0, " s")), begin.format(f"{most.value:.0f} s")
        end = f", {least.written(0, ' s')} with {literal(best.key.server)}"
        shown = [full, *([plain] if is_narrow(most) else [])]
        texts = [f"{full}{end}{failed}"] if worst is not best else []
        texts += [f"{one}{failed}" for one in shown]
        return fitting(*texts, f"How live streams stall over {name(live.scenario)}")
    frames = _hardest(cells.frames, in_time, -1)
    if frames is None:
        return "Live streams and frames with deadlines behind a satellite"
    worst, share = frames.values[-1]
    failed = f"; {frames.failed}" if frames.failed else ""
    begin = f"Over {name(frames.scenario)} {share.written(0, ' %')} of frames come within {_deadline(worst)}"
    texts = [f"{begin} with {literal(worst.key.server)}{failed}", f"{begin}{failed}"]
    return fitting(*texts, f"How frames come in time over {name(frames.scenario)}")


def _answer(cells: MediaCells) -> list[str]:
    sentences = []
    live = _hardest(cells.live, stalled, 1)
    if live is not None:
        ends = [live.values[-1], *live.values[:1]] if len(live.values) > 1 else live.values
        each = listed(f"{mean.written(1, ' s')} with {literal(one.key.server)}" for one, mean in ends)
        sentences.append(
            f"Over {name(live.scenario)}, {live.where}, a live stream of {_length(live.values[0][0])} stalls "
            f"for {each}{_elsewhere(live)}{live.unranked}."
        )
        sentences += _proxied(cells, live.scenario)
    frames = _hardest(cells.frames, in_time, -1)
    if frames is not None:
        ends = [frames.values[-1], *frames.values[:1]] if len(frames.values) > 1 else frames.values
        each = listed(f"{mean.written(1, ' %')} with {_frames(one)}" for one, mean in ends)
        sentences.append(
            f"Over {name(frames.scenario)}, {frames.where}, this share of frames comes before the deadline: "
            f"{each}{frames.unranked}."
        )
    return sentences or ["In no setting did all trials succeed: the tables below have how many failed."]


def _elsewhere(live: HardestPath) -> str:
    if not live.others:
        return ""
    most = max((mean for _, mean in live.others), key=lambda one: one.value)
    return f", and over the other paths{' without failed trials' if live.left_out else ''} for " + (
        f"{most.written(1, ' s')} at most"
    )


def _proxied(cells: MediaCells, scenario: str) -> list[str]:
    """The sentence on streams through proxies over a path; none without a mean of one."""
    here = [one for one in cells.live if one.key.scenario == scenario and one.key.treatment != DIRECT]
    means = [(one, mean) for one in here if (mean := stalled(one)) is not None]
    if not means:
        return []
    least, most = (pick(means, key=lambda one: one[1].value) for pick in (min, max))
    failed = f"; {_failed(here)}" if any(one.failures for one in here) else ""
    return [f"Behind proxies it stalls there for {_through(*least)} to {_through(*most)}{failed}."]


def _deadline(cell: Cell) -> str:
    found = known(cell.key.workload)
    return _time(found.deadline_ms) if isinstance(found, FrameViewing) else ""


def _through(cell: Cell, mean: MeasuredValue) -> str:
    return f"{mean.written(1, ' s')} ({literal(cell.key.server)}, {cell.key.treatment_label.kind})"


def _frames(cell: Cell) -> str:
    found = known(cell.key.workload)
    over = f" ({found.over}, {_time(found.deadline_ms)})" if isinstance(found, FrameViewing) else ""
    return f"{literal(cell.key.server)}{over}"


def _advice(cells: MediaCells) -> str:
    """The lines that this run's trials show."""
    lines = []
    smooth = _everywhere(cells.live, lambda one: one.stalled_s == 0)
    if smooth:
        lines.append(f"- For live streams: {listed(smooth)}, which stall in no trial over any path.")
    timely = _everywhere(cells.frames, _is_timely)
    if timely:
        lines.append(
            f"- For frames with a deadline: {listed(timely)}, with at least {_IN_TIME} % in time in every "
            "trial over every path."
        )
    for is_longer, word in ((True, "longer"), (False, "shorter")):
        found = [f"{literal(server)} over {name(scenario)}" for scenario, server in
                 _behind_proxies(cells, is_longer=is_longer)]  # fmt: skip
        if found:
            lines.append(f"- Behind proxies these stall {word} than without: {listed(found)}.")
    return "\n".join(lines)


def _is_timely(record: Record) -> bool:
    """Whether so many frames came in time; what is not known did not."""
    share = missed(record)
    return share is not None and share <= 100 - _IN_TIME


def _everywhere(cells: Sequence[Cell], is_good: Callable[[Record], bool]) -> list[str]:
    """The servers without proxies of which each trial over each path succeeded, and is good; none if that is
    true of all of them.
    """
    direct = [one for one in cells if one.key.treatment == DIRECT]
    servers = list(dict.fromkeys(one.key.server for one in direct))
    good = [
        literal(server)
        for server in servers
        if all(not one.failures and all(map(is_good, one.ok)) for one in direct if one.key.server == server)
    ]
    return good if len(good) < len(servers) else []


def _behind_proxies(cells: MediaCells, *, is_longer: bool) -> list[tuple[str, str]]:
    """(path, server) of which the interval with proxies lies beyond that without."""
    direct = {(one.key.scenario, one.key.server): stalled(one) for one in cells.live
              if one.key.treatment == DIRECT}  # fmt: skip
    found = []
    for one in cells.live:
        key = (one.key.scenario, one.key.server)
        mine, without = stalled(one), direct.get(key)
        if one.key.treatment == DIRECT or mine is None or without is None:
            continue
        if mine.low is None or mine.high is None or without.low is None or without.high is None:
            continue
        if mine.low > without.high if is_longer else mine.high < without.low:
            found.append(key)
    return list(dict.fromkeys(found))
