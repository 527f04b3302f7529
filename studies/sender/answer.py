"""The beginning of the page on Bentpipe's sender: over which paths it is faster than all others, and over
which another one is.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bentpipe.study import dots
from bentpipe.study.claims import NO_EFFECT, MeasuredValue
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, literal, several
from bentpipe.study.own_sender import BESIDE, OURS

from .comparisons import (
    FAILS,
    FASTER,
    LONG_MS,
    SLOWER,
    SenderRuns,
    SenderSetting,
    most_frequent,
)

PICTURE = "sender.svg"
MARGIN = f"{100 * (NO_EFFECT - 1):.0f} %"
_NAMED = 3  # settings or senders that a line of advice names; of more it has the number
_CAPTION = """The time of the fastest other sender / that of Bentpipe's, with intervals: right of 1 Bentpipe's
sender takes less time than every other one.{left_out}"""
HOW = f"""Bentpipe's sender is *faster* or *slower* where the whole interval is more than {MARGIN} from 1 and
the difference is beyond chance (p < 0.05 after Benjamini and Hochberg, over all comparisons of the page), and
*equal* where two one-sided tests at 5 % show that both differ by less than {MARGIN}; all else *cannot be
told*. In a setting, which is a path and a size, it is faster than every other sender where it is faster than
each; it is slower than another one where it is slower than any. Senders of which a trial failed are not
compared there: those of their trials that succeeded are the fast ones. The fastest other sender is the one
with the least mean. As it is chosen after the fact, its ratio is a little too low where several are about as
fast."""


# Of a setting's RTT: the words of a sentence and of a panel.
_GROUPS: dict[bool | None, tuple[str, str]] = {
    True: (f"with an RTT of {LONG_MS} ms or more", f"RTT of {LONG_MS} ms or more"),
    False: (f"with an RTT below {LONG_MS} ms", f"RTT below {LONG_MS} ms"),
    None: ("whose RTT is not known", "RTT not known"),
}


def front(runs: SenderRuns, folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    panels = [_panel(words, mine) for words, mine in by_rtt(runs)]
    unit, title = (
        "time of the fastest other sender / Bentpipe's",
        "Bentpipe's sender beside the fastest other",
    )
    dots.draw([one for one in panels if one.rows], folder / PICTURE, unit, title, border=1.0)
    failed = [one.name for one in runs.settings if one.ours.failures]
    left_out = f" Without {listed(failed)}, where trials of it failed." if failed else ""
    text = "The time of the fastest other sender / Bentpipe's, by path and size, with intervals"
    picture = Picture(folder / PICTURE, text, _CAPTION.format(left_out=left_out))
    return Front(_finding(runs), _answer(runs), picture, _advice(runs))


def _groups(runs: SenderRuns) -> dict[bool | None, list[SenderSetting]]:
    """The settings by whether their RTT is long, without groups that have none."""
    found = {key: [one for one in runs.settings if one.is_long is key] for key in _GROUPS}
    return {key: mine for key, mine in found.items() if mine}


def by_rtt(runs: SenderRuns) -> list[tuple[str, list[SenderSetting]]]:
    """The settings of long and of short paths, with the words that say which."""
    return [(_GROUPS[key][1], mine) for key, mine in _groups(runs).items()]


def _panel(title: str, settings: Sequence[SenderSetting]) -> DotPanel:
    rows: dict[str, dict[str, MeasuredValue]] = {}
    for one in settings:
        if one.best is not None:
            rows.setdefault(one.path.replace("\\", ""), {})[one.size] = one.best.measured
    return DotPanel(title, [DotRow(path, values) for path, values in rows.items()])


def _count(settings: Sequence[SenderSetting], result: str) -> int:
    return sum(one.result == result for one in settings)


def _finding(runs: SenderRuns) -> str:
    """The title: in how many settings no other sender is as fast, by RTT."""
    groups = _groups(runs)
    begin = "Bentpipe's sender is fastest in"
    total = f"{begin} {_count(runs.settings, FASTER)} of {several(len(runs.settings), 'setting')}"
    if set(groups) != {True, False}:
        words = _GROUPS[next(iter(groups))][0] if len(groups) == 1 else ""
        return fitting(f"{total} {words}".strip(), total)
    long, short = groups[True], groups[False]
    return fitting(
        f"{begin} {_count(long, FASTER)} of {several(len(long), 'setting')} with RTTs from {LONG_MS} ms on, "
        f"in {_count(short, FASTER)} of {len(short)} below",
        total,
    )


def _answer(runs: SenderRuns) -> list[str]:
    groups = list(_groups(runs).items())
    first, *others = [_results(mine, is_first=mine is groups[0][1]) for _, mine in groups]
    begin, *further = [_GROUPS[key][0] for key, _ in groups]
    each = [f"Over paths {begin}, {first}"]
    each += [f"over paths {words}, {text}" for words, text in zip(further, others, strict=True)]
    return [f"{'; '.join(each)}.", *_extremes(runs), BESIDE]


def _results(settings: Sequence[SenderSetting], *, is_first: bool) -> str:
    """In how many settings which sender takes less time, and in how many Bentpipe's fails."""
    who = f"`{OURS}`" if is_first else "it"
    of = f"{several(len(settings), 'setting')} of path and size" if is_first else str(len(settings))
    parts = [f"{who} takes less time than every other sender in {_count(settings, FASTER)} of {of}"]
    parts.append(f"another one takes less in {_count(settings, SLOWER)}")
    if failing := _count(settings, FAILS):
        parts.append(f"in {failing} its own trials fail")
    return listed(parts)


def _extremes(runs: SenderRuns) -> list[str]:
    """The sentence on where the fastest other sender takes the smallest and the largest share of its time."""
    found = sorted(
        ((best.ratio.value, one, best) for one in runs.settings if (best := one.best) is not None),
        key=lambda one: one[0],
    )
    shown = [
        f"{best.measured.written()} times ({literal(best.server)}, {one.name})" for _, one, best in found
    ]
    span = shown[0] if len(shown) == 1 else f"from {shown[0]} to {shown[-1]}"
    return [f"The fastest other sender takes {span} its time."]


def _advice(runs: SenderRuns) -> str:
    """The lines that this run shows: where to use it, where not, and where it fails."""
    lines = []
    for key, mine in _groups(runs).items():
        faster, slower = _count(mine, FASTER), _count(mine, SLOWER)
        over, of = f"Over paths {_GROUPS[key][0]}", several(len(mine), "setting")
        if 2 * faster > len(mine):
            lines.append(
                f"- {over} use `{OURS}` where it is alone on its link, as in these trials: it is faster than "
                f"every other sender in {faster} of {of}."
            )
        elif slower > faster:
            compared = [pair for one in mine for pair in one.compared]
            often = most_frequent(compared, SLOWER)
            who = f", most often {listed(often)}" if often else ""
            lines.append(f"- {over} compare other senders: one is faster in {slower} of {of}{who}.")
    failing = [one for one in runs.settings if one.result == FAILS]
    if len(failing) <= _NAMED:
        lines += map(_failing, failing)
    else:
        lines.append(f"- In {len(failing)} settings its trials fail where another sender completes all.")
    return "\n".join(lines)


def _failing(one: SenderSetting) -> str:
    whole = [literal(other.key.server) for other in one.others if not other.failures]
    who = listed(whole) if len(whole) <= _NAMED else f"{len(whole)} others"
    return (
        f"- For {one.name} compare other senders: of `{OURS}` {one.ours.failures.total()} of "
        f"{several(len(one.ours.records), 'trial')} fail, and none of {who}."
    )
