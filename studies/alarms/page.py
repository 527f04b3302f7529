"""The page on what `bentpipe check --against` gets wrong and what it finds: draws from many trials of noq."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bentpipe.study import closing, markdown
from bentpipe.study.claims import MeasuredValue
from bentpipe.study.front import folded
from bentpipe.study.markdown import literal, several, table
from bentpipe.study.source import Source

from . import answer
from .checks import DRAWS, SMALLER, DrawnChecks, pools_of, share

_OPENING = """`bentpipe check --against` compares pairs of trials with the same seed. It says *better* or
*worse* where a measure's median changed by more than 1 % and not by chance: the intervals of all changes of a
check hold together in 99 % of cases. Checks are drawn from {trials} of each path and variant. Each has one
objective for each of {paths}, the time of a file of 5 MB, with 14 or 28 pairs, as many as it needs. Each
share is of {draws} checks."""
_EQUAL = """Both sides are the same stack, so that every *better* and *worse* is a false alarm. *Same seeds*:
each pair has the same random draws, and the client of one side has a flow control window that is larger than
it needs to be. That changes a few bytes. A version that sends other packets meets other losses: its pairs
differ by more, at most by as much as those of *other seeds*.
*Other seeds*: both sides are noq, each trial with draws of its own: as if the new version had no draw in
common with the old one. *One in ten late*: as *other seeds*, and on both sides one trial in ten takes four
times as long."""
_UNEQUAL = f"""*{answer.PERCENT}*: the times of one side, drawn as above, are made so much longer; the columns
have the share of checks that call the path worse. *Smaller window*: the client's flow control window is
1.32 MB, which is too small for some paths. *Longer* is by how much that lengthens the time in the mean, with
its interval of 95 % over pairs with the same seed; *called worse* is the share of checks that say so.
*Spread* is the standard deviation of the logarithms of times, in percent, and *of pairs* that of the
logarithms of their ratios, with the same seed and a larger window; pairs with other seeds have 1.4 times the
spread."""


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its picture to `folder`. BentpipeError if a path has too few trials or pairs, or a
    trial that did not succeed.
    """
    checks = DrawnChecks(pools_of(runs[0]))
    front = answer.front(checks, folder)
    file = folder / "alarms.md"
    file.write_text(markdown.page([*front.parts(), *_sections(runs[0], checks)]))
    return [file, folder / answer.PICTURE]


def _sections(source: Source, checks: DrawnChecks) -> list[str]:
    opening = _OPENING.format(
        trials=several(len(checks.pools[0].base_s), "trial"),
        paths=several(len(checks.pools), "path"),
        draws=DRAWS,
    )
    return [
        "## What was run",
        opening,
        answer.HOW,
        "## Equal stacks",
        _EQUAL,
        *folded("Checks with a false alarm", _alarms(checks)),
        "## A slower stack",
        _UNEQUAL,
        *folded("Shares of checks that find a slowdown", _slower(checks)),
        *closing.of_all([source]),
    ]


def _alarms(checks: DrawnChecks) -> str:
    rows = [
        [name, str(DRAWS), str(count), share(count).written(1, " %")] for name, count in checks.alarms.items()
    ]
    return table(["pairs of", "checks", "with a false alarm", "share"], rows)


def _slower(checks: DrawnChecks) -> str:
    rows = [
        [
            literal(one.pool.scenario),
            f"{100 * one.pool.spread:.2f} %",
            f"{100 * one.pool.pair_spread:.2f} %",
            *(found.written(1, " %") for found in (one.other, one.same)),
            _longer(one.pool.change(SMALLER)),
            one.window.written(1, " %"),
        ]
        for one in checks.slower
    ]
    head = ["path", "spread", "of pairs", f"{answer.PERCENT}, other seeds", f"{answer.PERCENT}, same seeds"]
    return table([*head, "smaller window: longer", "called worse"], rows)


def _longer(change: MeasuredValue | None) -> str:
    return "-" if change is None else change.written(1, " %")
