"""The page on satellite links as they are built: every stack with and without proxies, and what ACM, capacity
on demand and handovers each do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.inference import Ratio, adjusted, ratio
from bentpipe.plan.treatments import DIRECT
from bentpipe.study import closing, markdown
from bentpipe.study.markdown import literal, percent, several, table
from bentpipe.study.quantiles import median_of
from bentpipe.study.source import Source, pooled, title

from . import opensand, switched
from .cells import ATTENUATION, HANDSHAKES, ONE_THING, SWITCHED, of_stacks
from .switched import Effect, Setting

_BESIDE = 0.05  # times that differ by less count as equal
_HOW = """A file of 10 MiB. *direct* is without proxies; *with proxies* has one at the terminal and one at
the gateway, for QUIC or for TCP, which split the connection. Seconds are medians over the trials, from the
client's first packet on, with the least and the most where they differ by more than 2 %; the *ideal* is a
sender that knows the path. Every stack is its own client; servers have what their library begins with."""
_LEFT_OUT = """- aioquic, qh3 and msquic were not run with proxies: they take half of the time of all
  trials.
- 10 MiB are over before the first handover of `leo-walker` (45 s) and `oneweb-like` (90 s), whose trials
  begin at time 0: those tables show their delays and rates, and `starlink` alone shows handovers.
- ACM is switched off over `dvb-s2-rain` alone, handovers over `starlink` alone, at a steady rate, with noq
  and Linux's TCP.
  What is not bold may be chance, which does not say that there is no effect.
- No scenario has two paths, such as GEO and LEO at once: a scenario has one."""


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
    def beside(self) -> dict[str, tuple[int, int, int]]:
        """How many servers proxies make faster and slower, beyond chance, and of how many, by path."""
        found: dict[str, tuple[int, int, int]] = {}
        for (name, _), times in proxied(self.stacks).items():
            is_far = switched.is_shown(times) and abs(times.value - 1) > _BESIDE
            faster, slower, of = found.get(name, (0, 0, 0))
            found[name] = (
                faster + (is_far and times.value < 1),
                slower + (is_far and times.value > 1),
                of + 1,
            )
        return found

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
    head = ["path", "best server", "share of the ideal", "median server", "with proxies", "widest effect"]
    rows = []
    for name, shares in _shares(page).items():
        best = max(shares, key=lambda server: shares[server])
        counts = page.beside.get(name)
        rows.append(
            [
                literal(name),
                literal(best),
                percent(shares[best]),
                percent(_middle(shares)),
                f"{counts[0]} faster, {counts[1]} slower of {counts[2]}" if counts else "-",
                _effect(page, name),
            ]
        )
    return table(head, rows)


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
    """How many servers proxies make faster and slower, beyond chance."""
    if not page.beside:
        return ""
    faster, slower, pairs = (sum(one[part] for one in page.beside.values()) for part in range(3))
    return (
        f"With proxies, of {several(pairs, 'pair')} of server and path {faster} are more than "
        f"{percent(_BESIDE)} faster, and {slower} slower, beyond chance."
    )


def proxied(stacks: Sequence[Cell]) -> dict[tuple[str, str], Ratio]:
    """How many times as long each server takes with proxies, by scenario and server, where no trial failed;
    p is adjusted over all of them.
    """
    known = {(one.key.scenario, one.key.server, one.key.treatment == DIRECT): one for one in stacks}
    found: dict[tuple[str, str], Ratio] = {}
    for (name, server, is_direct), cell in known.items():
        other = known.get((name, server, False))
        if is_direct and other is not None and not cell.failures and not other.failures:
            times = ratio(cell.values("completion_s"), other.values("completion_s"))
            if times is not None:
                found[name, server] = times
    chances = adjusted([one.p for one in found.values()])
    return {key: replace(one, p=p) for (key, one), p in zip(found.items(), chances, strict=True)}


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
