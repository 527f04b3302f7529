"""The beginning of the page on drop-tail queues: where Bentpipe and pico_sim take the same time."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

from bentpipe.study import dots
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, percent, several

from .comparisons import CLOSE, Comparison, DropTailRun
from .difference import Difference, widest

PICTURE = "witness.svg"
_CAPTION = f"""By how much Bentpipe's time is above pico_sim's, in percent, with the intervals that decide
whether both are equal within {percent(CLOSE)}: a panel for each queue."""
# What is left in → its words, and the advice where that alone makes the two differ.
_ADVICE = {
    "certificate": "Name the server's certificate with a time: one of two datagrams in place of one changes "
    "it by up to {most}.",
    "end": "Compare simulators by the arrival of the last byte: the end of the connection is up to {most} "
    "away.",
    "link": "Say whether a link's rate has headers in it: that changes times by up to {most}.",
}


def front(run: DropTailRun, folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    queues = dict.fromkeys(one.setting.queue_ms for one in run.comparisons)
    panels = [
        DotPanel(
            f"queue {queue:g} ms",
            [
                DotRow(one.setting.congestion, {"": one.difference().of_two_tests})
                for one in run.comparisons
                if one.setting.queue_ms == queue
            ],
        )
        for queue in queues
    ]
    file = folder / PICTURE
    dots.draw(panels, file, "Bentpipe above pico_sim, percent", "Bentpipe beside pico_sim", border=0)
    picture = Picture(file, "Bentpipe's times beside pico_sim's, with intervals", _CAPTION)
    return Front(_finding(run), _answer(run), picture, _advice(run))


def _equal(run: DropTailRun) -> list[Comparison]:
    return [one for one in run.comparisons if one.difference().is_equal]


def _widest(run: DropTailRun) -> Comparison:
    return max(run.comparisons, key=lambda one: one.difference().size)


def name(one: Comparison) -> str:
    """A setting in words."""
    return f"{one.setting.congestion} and a queue of {one.setting.queue_ms:g} ms"


def _finding(run: DropTailRun) -> str:
    begin = (
        f"Bentpipe and pico_sim take the same time within {percent(CLOSE)} in {len(_equal(run))} of "
        f"{several(len(run.comparisons), 'setting')}"
    )
    return fitting(f"{begin}; widest {_widest(run).difference().written()}", begin)


def _answer(run: DropTailRun) -> list[str]:
    equal, farthest = _equal(run), _widest(run)
    differing = [one for one in run.comparisons if one.difference().differs]
    text = (
        f"picoquic's own simulator, pico_sim, and Bentpipe take the same time for the same transfer, within "
        f"{percent(CLOSE)}, in {len(equal)} of {several(len(run.comparisons), 'setting')} of queue and "
        "congestion control, once three known differences are taken out"
    )
    if differing:
        text += f"; they differ with {listed(map(name, differing))}"
    whole = [one.difference(end=True, link=True, certificate=True) for one in run.comparisons]
    return [
        f"{text}.",
        f"The widest difference is {farthest.difference().written()}, with {name(farthest)}.",
        f"With the three left in, it is {statistics.median(one.size for one in whole):.1f} % in the median, "
        f"either way, and {widest(whole).written()} at most.",
    ]


_KEPT: dict[str, Callable[[Comparison], Difference]] = {
    "certificate": lambda one: one.difference(certificate=True),
    "end": lambda one: one.difference(end=True),
    "link": lambda one: one.difference(link=True),
}


def _advice(run: DropTailRun) -> str:
    """The lines that these comparisons show."""
    lines = []
    if len(_equal(run)) == len(run.comparisons):
        lines.append(
            f"- Where times differ by more than {percent(CLOSE)}, look for the cause in stacks and paths, "
            "and not in Bentpipe's links, drop-tail queues or clock."
        )
    for what, kept in _KEPT.items():
        apart = [found for one in run.comparisons if (found := kept(one)).differs]
        if apart:
            lines.append(f"- {_ADVICE[what].format(most=f'{widest(apart).size:.1f} %')}")
    return "\n".join(lines)
