"""The beginning of the page on satellite links: how close servers come to an ideal sender over each, what
switching one thing off changes, and what proxies do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bentpipe.analysis.cell_ratio import EQUIVALENCE, cell_ratio
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.inference import Ratio
from bentpipe.study import dots
from bentpipe.study.claims import AGREES, MARGIN, NO_EFFECT, MeasuredValue, equality
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.intervals import span
from bentpipe.study.markdown import bytes_as, listed, literal, several
from bentpipe.study.means import GeometricMean

from . import switched
from .proxied import Proxies
from .runs import SatelliteRuns, middle
from .switched import FEATURES, Effect

PICTURE = "satellites.svg"
_WITHIN = f"{100 * (NO_EFFECT - 1):.0f} %"
_FAR = f"{100 * MARGIN:.0f} %"
_CAPTION = """Share of an ideal sender's speed over each link, in percent, with the intervals of the means: of
the servers without proxies the fastest, the one in the middle and the slowest, and of all trials through
proxies."""
HOW = f"""Shares of the ideal sender's speed are geometric means, with Student's interval of 95 % on
logarithms, unless both ends round to the value or there is one trial alone. The fastest server is the one
with the largest mean, which need not be above all others by more than chance; servers of which a trial failed
are not ranked. With one thing switched off a time is another one where the difference is beyond chance and
its whole interval beyond {_WITHIN}; it is equal within {_WITHIN} where two one-sided tests at 5 % show it."""


def front(runs: SatelliteRuns, folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    file = folder / PICTURE
    rows = [DotRow(path.replace("\\", ""), _row(runs, path)) for path in runs.shares]
    picture = None
    if rows:
        title = "how close servers come to an ideal sender over satellite links"
        unit = "share of the ideal sender's speed, percent"
        dots.draw([DotPanel("", rows)], file, unit, title, limits=(0, 104))
        picture = Picture(file, "Share of an ideal sender's speed over each link, with intervals", _CAPTION)
    return Front(_finding(runs), _answer(runs), picture, _advice(runs))


def _row(runs: SatelliteRuns, path: str) -> dict[str, MeasuredValue]:
    shares = runs.shares[path]
    servers = list(shares)
    chosen = {
        "fastest server": servers[0],
        "server in the middle": middle(shares),
        "slowest server": servers[-1],
    }
    row = {name: one for name, server in chosen.items() if (one := switched.measured(shares[server], 100))}
    for transport, name in (("quic", "QUIC, proxies"), ("tcp", "TCP, proxies")):
        proxies = runs.proxies.get((path, transport))
        if proxies is not None and proxies.share is not None:
            row[name] = proxies.share
    return row


def _ends(runs: SatelliteRuns) -> tuple[str, str]:
    """The paths over which the fastest server comes least and most close to the ideal sender."""
    best = {path: _first(runs, path).value for path in runs.shares}
    return min(best, key=lambda one: best[one]), max(best, key=lambda one: best[one])


def percent(mean: GeometricMean) -> str:
    """A mean share with its interval, in percent."""
    value = switched.measured(mean, 100)
    return "-" if value is None else value.written(0, " %")


def _first(runs: SatelliteRuns, path: str) -> GeometricMean:
    """The mean of the fastest server over a path."""
    return next(iter(runs.shares[path].values()))


def _finding(runs: SatelliteRuns) -> str:
    """The title: the fastest server's share over the hardest path, and over the easiest."""
    if not runs.shares:
        return "Over no satellite link has a server completed every trial"
    low, high = _ends(runs)
    best = f"{percent(_first(runs, low))} of the ideal"
    if failing := runs.unranked(low):
        all_servers = len(runs.shares[low]) + len(failing)
        first = f"Over {literal(low)} the fastest of {all_servers} servers reaches {best}; trials of "
        first += f"{len(failing)} failed"
    else:
        servers = several(len(runs.shares[low]), "server")
        first = f"Over {literal(low)} the fastest of {servers} reaches {best}"
    is_whole = high != low and not failing and not runs.unranked(high)
    end = f", over {literal(high)} {percent(_first(runs, high))}" if is_whole else ""
    number = several(len(runs.shares), "satellite link")
    return fitting(first + end, first, f"How close servers come to an ideal sender over {number}")


def _answer(runs: SatelliteRuns) -> list[str]:
    """Three sentences: servers, what is switched off, and proxies."""
    found = [_stacks(runs), _switched(runs), _proxies(runs)]
    return [one for one in found if one] or ["The tables below have how many trials failed."]


def _stacks(runs: SatelliteRuns) -> str:
    """The fastest server and that in the middle, over the hardest path and the easiest."""
    if not runs.shares:
        return ""
    paths = list(dict.fromkeys(_ends(runs)))
    firsts = [f"{literal(next(iter(runs.shares[path])))}{_left_out(runs, path)}" for path in paths]
    fastest = listed(
        f"{percent(_first(runs, path))} over {literal(path)} ({first})"
        for path, first in zip(paths, firsts, strict=True)
    )
    middles = [(middle(runs.shares[path]), runs.shares[path]) for path in paths]
    between = listed(f"{percent(shares[server])} ({literal(server)})" for server, shares in middles)
    sizes = sorted({one.records[0].size_bytes for one in runs.stacks})
    size = listed(f"{one / 2**20:g} MiB" if one % 2**20 == 0 else bytes_as(one) for one in sizes)
    unranked = [literal(path) for path in runs.scenarios if path not in runs.shares]
    failing = f"; over {listed(unranked)} trials of every server failed" if unranked else ""
    return (
        f"Of an ideal sender's speed for {size} the fastest server reaches {fastest}, the one in the middle "
        f"{between}{failing}."
    )


def _left_out(runs: SatelliteRuns, path: str) -> str:
    """Behind a server's name: how many are not ranked over the path."""
    failing = runs.unranked(path)
    return f"; {several(len(failing), 'server')} with failed trials left out" if failing else ""


def _switched(runs: SatelliteRuns) -> str:
    """What switching off ACM, capacity on demand and handovers changes most."""
    cells = switched.changes(runs.settings)
    parts = []
    for feature in FEATURES.values():
        mine = {key: cells[key] for key in cells if key.feature == feature}
        if text := _change(runs, mine):
            parts.append(f"{feature} {text}")
    parts += _failing(cells)
    return f"{parts[0][0].upper()}{parts[0][1:]}{''.join(f'; {one}' for one in parts[1:])}." if parts else ""


def _change(runs: SatelliteRuns, cells: Mapping[Effect, tuple[Cell, Cell]]) -> str:
    """The smallest and the largest effect beyond 2 %, or that there is none; "" without an effect."""
    effects = {key: runs.effects[key] for key in cells if key in runs.effects}
    if not effects:
        return ""
    clear = {key: one.value for key, one in effects.items() if switched.side(one, NO_EFFECT)}
    if clear:
        least, most = (pick(clear, key=lambda one: clear[one]) for pick in (min, max))
        if clear[least] < 1 < clear[most]:
            return f"transfers take from {_times(runs, least)} to {_times(runs, most)}"
        if clear[most] > 1:
            return f"transfers take up to {_times(runs, most)}"
        return f"transfers take as little as {_times(runs, least)}"
    if _are_equal([cells[key] for key in effects]):
        return f"transfers take equally long within {_WITHIN}"
    return f"no difference of more than {_WITHIN} is beyond chance"


def _times(runs: SatelliteRuns, key: Effect) -> str:
    value = MeasuredValue.of(runs.effects[key])
    shown = "" if value is None else value.written()
    return (
        f"{shown} times as long ({literal(key.server)}, {key.way} over {literal(key.scenario)}; {_what(key)})"
    )


def _what(key: Effect) -> str:
    return key.change.removeprefix("no ACM: ")


def _are_equal(cells: Sequence[tuple[Cell, Cell]]) -> bool:
    """Whether all of these times are shown to differ by less than 2 %."""
    ratios = [cell_ratio(base, cell, "completion_s", EQUIVALENCE) for base, cell in cells]
    return all(equality(one, NO_EFFECT - 1) == AGREES for one in ratios)


def _failing(cells: Mapping[Effect, tuple[Cell, Cell]]) -> list[str]:
    """How many trials fail with each change with which some do, where none fails without it."""
    counts: dict[str, tuple[int, int]] = {}
    for key, (base, cell) in cells.items():
        if not base.failures:
            failed, whole = counts.get(_what(key), (0, 0))
            counts[_what(key)] = failed + cell.failures.total(), whole + len(cell.records)
    return [
        f"with {words}, {failed} of {several(whole, 'trial')} {'fails' if failed == 1 else 'fail'}"
        for words, (failed, whole) in counts.items()
        if failed
    ]


def _quic(runs: SatelliteRuns) -> dict[str, Proxies]:
    return {path: one for (path, transport), one in runs.proxies.items() if transport == "quic"}


def _proxies(runs: SatelliteRuns) -> str:
    """Over which paths the most servers over QUIC are slower and faster than the proxies' one sender."""
    quic = _quic(runs)
    if not quic:
        return ""
    slow = max(quic, key=lambda name: quic[name].slower)
    fast = max(quic, key=lambda name: quic[name].faster)
    texts = []
    if quic[slow].slower:
        texts.append(_beside(slow, quic[slow].slower, quic[slow].of, "less"))
    if quic[fast].faster:
        texts.append(_beside(fast, quic[fast].faster, quic[fast].of, "more"))
    if not texts:
        return f"No server over QUIC differs by more than {_FAR} from its time through proxies."
    return f"Through proxies QUIC takes, by more than {_FAR}, {listed(texts)}."


def _beside(path: str, count: int, of: int, word: str) -> str:
    return f"{word} time than without for {count} of {several(of, 'server')} over {literal(path)}"


def _advice(runs: SatelliteRuns) -> str:
    """The lines that the intervals of this run show."""
    lines = [*_leaders(runs), *_through_proxies(runs), *_eased(runs)]
    return "\n".join(lines)


def _leaders(runs: SatelliteRuns) -> list[str]:
    """The servers that are faster than all others over a path: whole intervals apart, by more than 2 %."""
    paths: dict[str, list[str]] = {}
    for path, shares in runs.shares.items():
        first, *others = shares.items()
        if others and all(_is_above(first[1], one) for _, one in others):
            paths.setdefault(first[0], []).append(literal(path))
    if not paths:
        return []
    each = [f"{literal(server)} over {listed(where)}" for server, where in paths.items()]
    return [f"- Without proxies choose the one that is faster than all others: {'; '.join(each)}."]


def _is_above(one: GeometricMean, other: GeometricMean) -> bool:
    return one.low is not None and other.high is not None and one.low > NO_EFFECT * other.high


def _through_proxies(runs: SatelliteRuns) -> list[str]:
    """The paths over which proxies save most servers over QUIC time, and those over which they cost it."""
    lines = []
    for words, count in (("Put proxies on", "slower"), ("Do without proxies on", "faster")):
        paths = [
            f"{literal(path)} ({getattr(one, count)} of {one.of})"
            for path, one in _quic(runs).items()
            if 2 * getattr(one, count) > one.of
        ]
        if paths:
            lines.append(f"- {words} links where most QUIC servers are {count} without: {listed(paths)}.")
    return lines


def _eased(runs: SatelliteRuns) -> list[str]:
    """The changes by which each of several servers gains, or loses, more than 2 % of a transfer's time."""
    groups: dict[tuple[str, str, str], list[Ratio | None]] = {}
    for key in switched.changes(runs.settings):
        if key.feature is not None:
            groups.setdefault((key.change, key.way, key.scenario), []).append(runs.effects.get(key))
    found: dict[tuple[str, str], list[str]] = {}
    for (change, way, path), effects in groups.items():
        sides = {0 if one is None else switched.side(one, NO_EFFECT) for one in effects}
        if len(effects) > 1 and len(sides) == 1 and sides != {0}:
            values = span(one.value for one in effects if one is not None)
            word = "less" if sides == {-1} else "more"
            found.setdefault((change, word), []).append(
                f"{way} over {literal(path)}, {values} times the time"
            )
    words = {
        "less": "Ask an operator for this, with which every server takes less time",
        "more": "Avoid this, with which every server takes more time",
    }
    return [f"- {words[word]}: *{change}* ({'; '.join(each)})." for (change, word), each in found.items()]
