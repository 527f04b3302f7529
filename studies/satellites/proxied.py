"""The proxies of a path, which are one sender whatever the server, and the stacks without them beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.inference import Ratio, adjusted, ratio
from bentpipe.plan.treatments import DIRECT
from bentpipe.study.claims import MARGIN, MeasuredValue
from bentpipe.study.means import GeometricMean

from . import switched


@dataclass(frozen=True)
class Proxies:
    """What all trials through the proxies of a path take, and what servers take without them."""

    seconds: MeasuredValue  # the mean over all trials
    share: MeasuredValue | None  # of the ideal sender's speed, in percent
    faster: int  # servers that take less without proxies, by more than 5 % and beyond chance
    slower: int
    of: int

    def beside(self) -> str:
        """As the cell of a table."""
        return f"{self.seconds.written(2, ' s')}; {self.faster} faster, {self.slower} slower of {self.of}"


def proxied(stacks: Sequence[Cell]) -> dict[tuple[str, str], Proxies]:
    """The proxies by path and transport, with the stacks beside them.

    Whatever the server, the proxies' sender is the same: all their trials over a path are one sample, with
    which each stack without proxies is compared that has both and no trial that failed; p is adjusted over
    all of these.
    """
    whole = [one for one in stacks if not one.failures]
    behind: dict[tuple[str, str], list[Cell]] = {}
    for one in whole:
        if one.key.treatment != DIRECT:
            behind.setdefault(_path(one), []).append(one)
    beside: dict[tuple[tuple[str, str], str], Ratio] = {}
    for one in whole:
        mine = behind.get(_path(one), [])
        if one.key.treatment == DIRECT and one.key.server in {other.key.server for other in mine}:
            times = ratio(_values(mine, "completion_s"), one.values("completion_s"))
            if times is not None:
                beside[_path(one), one.key.server] = times
    chances = adjusted([one.p for one in beside.values()])
    found: dict[tuple[str, str], list[Ratio]] = {}
    for ((path, _), times), p in zip(beside.items(), chances, strict=True):
        found.setdefault(path, []).append(replace(times, p=p))
    return {path: counted for path, ratios in found.items() if (counted := _counted(behind[path], ratios))}


def _path(cell: Cell) -> tuple[str, str]:
    return cell.key.scenario, cell.records[0].transport or "quic"


def _values(cells: Sequence[Cell], column: str) -> list[float]:
    return [value for one in cells for value in one.values(column)]


def _counted(behind: Sequence[Cell], ratios: Sequence[Ratio]) -> Proxies | None:
    seconds = switched.measured(GeometricMean.of(_values(behind, "completion_s")))
    if seconds is None:
        return None
    share = switched.measured(GeometricMean.of(_values(behind, "share_of_limit")), 100)
    sides = [switched.side(one, 1 + MARGIN) for one in ratios]
    return Proxies(seconds, share, sides.count(-1), sides.count(1), len(sides))
