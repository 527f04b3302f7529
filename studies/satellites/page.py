"""The page on satellite links as they are built: every stack with and without proxies, and what ACM, capacity
on demand and handovers each do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.inference import Ratio, adjusted, ratio
from bentpipe.plan.treatments import DIRECT
from bentpipe.study import closing, markdown
from bentpipe.study.markdown import literal, percent, several, table
from bentpipe.study.quantiles import median, median_of
from bentpipe.study.source import Source, pooled, title

from . import opensand, switched
from .cells import ATTENUATION, HANDSHAKES, ONE_THING, SWITCHED, of_stacks
from .switched import Effect, Setting

_BESIDE = 0.05  # times that differ by less count as equal
_HOW = """A file of 10 MiB. *direct* is without proxies; *with proxies* has one at the terminal and one at
the gateway, for QUIC or for TCP, which split the connection. Then a server sends to the gateway alone, and
the gateway's own sender over the satellite: noq's with CUBIC for every QUIC server, Linux's with CUBIC for
TCP. So the QUIC rows of a path with proxies repeat one measurement, with other clients and seeds. The first
table has it once: the median over the servers, and how many of them without proxies take less time or more,
by more than 5 % and beyond chance (p < 0.05, Welch's t on logarithms, after Benjamini and Hochberg over all
paths). Seconds are medians over the trials, from the client's first packet on, with the least and the most
where they differ by more than 2 %; the *ideal* is a sender that knows the path. Every stack is its own
client; servers have what their library begins with."""
_LEFT_OUT = """- aioquic, qh3 and msquic were not run with proxies: they take half of the time of all
  trials.
- 10 MiB are over before the first handover of `leo-walker` (45 s) and `oneweb-like` (90 s), whose trials
  begin at time 0: those tables show their delays and rates, and `starlink` alone shows handovers.
- ACM is switched off over `dvb-s2-rain` alone.
- Handovers are switched off over `starlink` alone, at a steady rate, with two senders: noq's and Linux's TCP.
- What is not bold may be chance, which does not say that there is no effect.
- No scenario has two paths, such as GEO and LEO at once: a scenario has one."""


class Proxies(NamedTuple):
    """The time with proxies over a path, and what the servers take without them."""

    seconds: float  # the median over the servers
    faster: int  # servers that take less without proxies, beyond chance
    slower: int
    of: int


@dataclass(frozen=True)
class Page:
    """The runs of the page, and their cells."""

    sources: tuple[Source, ...]

    @cached_property
    def stacks(self) -> list[Cell]:
        """Of every stack, with and without proxies."""
        return cells(pooled(one for one in self.sources if one.manifest.campaign not in ONE_THING))

    @cached_property
    def scenarios(self) -> list[str]:
        return list(dict.fromkeys(one.key.scenario for one in self.stacks))

    @cached_property
    def settings(self) -> list[Setting]:
        return switched.settings(self.of(SWITCHED))

    @cached_property
    def effects(self) -> dict[Effect, Ratio]:
        return switched.effects(self.settings)

    @cached_property
    def proxies(self) -> dict[tuple[str, str], Proxies]:
        """By path and transport."""
        return proxied(self.stacks)

    def of(self, campaign: str) -> list[Cell]:
        return cells(pooled(one for one in self.sources if one.manifest.campaign == campaign))


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page to `folder`. BentpipeError if no run has stacks without proxies."""
    page = Page(tuple(runs))
    if not any(one.key.treatment == DIRECT for one in page.stacks):
        raise runs[0].refused("wanted are stacks without proxies, over satellite links", "run satellites")
    file = folder / "satellites.md"
    file.write_text(markdown.page(_sections(page)))
    return [file]


def _sections(page: Page) -> list[str]:
    parts = ["# Satellite links as they are built", _answer(page), _glance(page), _HOW]
    for name in page.scenarios:
        mine = [one for one in page.stacks if one.key.scenario == name]
        parts += [f"## {name}", literal(title(page.sources, name)) + ".", of_stacks(mine)]
    parts += switched.sections(page.settings)
    parts += opensand.handshakes(page.of(HANDSHAKES))
    parts += opensand.attenuation(page.of(ATTENUATION))
    parts += ["## What is left out", _LEFT_OUT]
    return [*parts, *closing.of_all(page.sources)]


def _answer(page: Page) -> str:
    """Three sentences: stacks, proxies, and what is switched off."""
    found = [_stacks(page), _proxies(page), _switched(page)]
    return " ".join(one for one in found if one)


def _glance(page: Page) -> str:
    """The answers path by path."""
    head = ["path", "best server", "share of the ideal", "median server"]
    head += ["QUIC proxies; servers without them", "TCP proxies; Linux without them", "widest effect"]
    rows = []
    for name, shares in _shares(page).items():
        best = max(shares, key=lambda server: shares[server])
        rows.append(
            [
                literal(name),
                literal(best),
                percent(shares[best]),
                percent(_middle(shares)),
                *(_beside(page.proxies.get((name, transport))) for transport in ("quic", "tcp")),
                _effect(page, name),
            ]
        )
    return table(head, rows)


def _beside(one: Proxies | None) -> str:
    if one is None:
        return "-"
    return f"{one.seconds:.2f} s; {one.faster} faster, {one.slower} slower of {one.of}"


def _shares(page: Page) -> dict[str, dict[str, float]]:
    """What each server reaches of the ideal sender's speed without proxies, by path."""
    found: dict[str, dict[str, float]] = {}
    for one in page.stacks:
        share = median_of(one, "share_of_limit")
        if one.key.treatment == DIRECT and share is not None:
            found.setdefault(one.key.scenario, {})[one.key.server] = share
    return found


def _middle(shares: Mapping[str, float]) -> float:
    return sorted(shares.values())[(len(shares) - 1) // 2]


def _stacks(page: Page) -> str:
    """Over which paths the median server comes least and most near to the ideal sender."""
    shares = _shares(page)
    low = min(shares, key=lambda name: _middle(shares[name]))
    high = max(shares, key=lambda name: _middle(shares[name]))
    most = max(shares[low].values())
    return (
        f"Of an ideal sender's speed for 10 MiB, the median server has from {percent(_middle(shares[low]))} "
        f"over {literal(low)}, where the best has {percent(most)}, to {percent(_middle(shares[high]))} over "
        f"{literal(high)}."
    )


def _proxies(page: Page) -> str:
    """Over which paths the most stacks over QUIC are slower and faster than the proxies' one sender."""
    quic = {name: one for (name, transport), one in page.proxies.items() if transport == "quic"}
    if not quic:
        return ""
    slow = max(quic, key=lambda name: quic[name].slower)
    fast = max(quic, key=lambda name: quic[name].faster)
    parts = [
        f"{quic[name].seconds:.2f} s over {literal(name)}, where without proxies {quic[name].slower} of "
        f"{several(quic[name].of, 'server')} are slower and {quic[name].faster} faster"
        for name in dict.fromkeys((slow, fast))
    ]
    return (
        "With proxies the server's sender does not matter, as the gateway's sends over the satellite, noq's "
        f"with CUBIC for all of QUIC: that takes {'; and '.join(parts)} (by more than {percent(_BESIDE)} and "
        "beyond chance)."
    )


def proxied(stacks: Sequence[Cell]) -> dict[tuple[str, str], Proxies]:
    """The time with proxies by path and transport, and the stacks beside it.

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
            times = ratio([s for other in mine for s in other.values("completion_s")],
                          one.values("completion_s"))  # fmt: skip
            if times is not None:
                beside[_path(one), one.key.server] = times
    chances = adjusted([one.p for one in beside.values()])
    far: dict[tuple[str, str], list[float]] = {}
    for (path, _), times, p in zip(beside, beside.values(), chances, strict=True):
        is_far = switched.is_shown(replace(times, p=p)) and abs(times.value - 1) > _BESIDE
        far.setdefault(path, []).append(times.value if is_far else 1.0)
    return {path: _counted(behind[path], values) for path, values in far.items()}


def _path(cell: Cell) -> tuple[str, str]:
    return cell.key.scenario, cell.records[0].transport or "quic"


def _counted(behind: Sequence[Cell], ratios: Sequence[float]) -> Proxies:
    seconds = median(median_of(one, "completion_s") for one in behind)
    assert seconds is not None
    return Proxies(seconds, sum(one < 1 for one in ratios), sum(one > 1 for one in ratios), len(ratios))


def _switched(page: Page) -> str:
    """The widest effect that chance could not have made."""
    key = _widest(page.effects)
    if key is None:
        return ""
    times = page.effects[key].value
    return (
        f"Of one thing switched off, the widest effect is {times:.2f} times the time over "
        f"{literal(key.scenario)} ({_named(key)})."
    )


def _effect(page: Page, name: str) -> str:
    """The widest effect over a path; "-" if nothing was switched off over it."""
    mine = {key: one for key, one in page.effects.items() if key.scenario == name}
    if not mine:
        return "-"
    key = _widest(mine)
    if key is None:
        return "none beyond chance"
    return f"{mine[key].value:.2f} times ({_named(key)})"


def _widest(effects: Mapping[Effect, Ratio]) -> Effect | None:
    """The effect furthest from 1 of those that chance could not have made."""
    shown = {key: one.value for key, one in effects.items() if switched.is_shown(one)}
    return max(shown, key=lambda it: max(shown[it], 1 / shown[it]), default=None)


def _named(effect: Effect) -> str:
    way = "upload" if effect.workload.startswith("upload") else "download"
    return f"{way}; {effect.change}; {literal(effect.server)}"
