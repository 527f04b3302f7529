"""The page on satellite links as they are built: every stack with and without proxies, and what ACM, capacity
on demand and handovers each do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.inference import Ratio, adjusted, ratio
from bentpipe.plan.treatments import DIRECT
from bentpipe.study import closing, markdown
from bentpipe.study.markdown import listed, literal, percent, several
from bentpipe.study.quantiles import median_of
from bentpipe.study.source import Source, pooled, title

from . import opensand, switched
from .cells import ATTENUATION, HANDSHAKES, ONE_THING, SWITCHED, of_stacks
from .switched import Setting

_BESIDE = 0.05  # times that differ by less are alike
_HOW = """A file of 10 MiB. *direct* is without proxies; *with proxies* has one at the terminal and one at
the gateway, for QUIC or for TCP, which split the connection. Seconds are medians over the trials, from the
client's first packet on, with the least and the most where they differ by more than 2 %; the *ideal* is a
sender that knows the path. Every stack is its own client; servers have what their library begins with."""
_LEFT_OUT = """- aioquic, qh3 and msquic were not run with proxies: they take half of the time of all
  trials.
- 10 MiB are over before the first handover of `leo-walker` (45 s) and `oneweb-like` (90 s), whose trials
  begin at time 0: those tables show their delays and rates, and `starlink` alone shows handovers.
- Handovers are switched off over `starlink` alone, ACM over `dvb-s2-rain` alone, with four senders at most.
  Times by which a change of the path cannot tell from chance are not bold, which does not say that there is
  no effect.
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
    parts = ["# Satellite links as they are built", _answer(page), _HOW]
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


def _stacks(page: Page) -> str:
    """How near to the ideal sender the best and the median stack come, over each path."""
    parts = []
    for name in page.scenarios:
        mine = [one for one in page.stacks if one.key.scenario == name and one.key.treatment == DIRECT]
        shares = {one.key.server: it for one in mine if (it := median_of(one, "share_of_limit")) is not None}
        if shares:
            best = max(shares, key=lambda server: shares[server])
            middle = sorted(shares.values())[(len(shares) - 1) // 2]
            parts.append(
                f"{percent(shares[best])} over {literal(name)} ({literal(best)}; median {percent(middle)})"
            )
    return f"Of an ideal sender's speed for 10 MiB, the best server has {listed(parts)}."


def _proxies(page: Page) -> str:
    """How many servers proxies make faster and slower over each path, beyond chance."""
    counts = {name: [0, 0] for name, _ in proxied(page.stacks)}
    for (name, _), times in proxied(page.stacks).items():
        if switched.is_shown(times) and abs(times.value - 1) > _BESIDE:
            counts[name][times.value > 1] += 1
    if not counts:
        return ""
    of = max(sum(name == one for one, _ in proxied(page.stacks)) for name in counts)
    said = [
        f"over {literal(name)} {faster} faster and {slower} slower"
        for name, (faster, slower) in counts.items()
        if faster or slower
    ]
    if not said:
        return f"With proxies none of {several(of, 'server')} is faster or slower beyond chance."
    return (
        f"With proxies, of {several(of, 'server')} these are more than {percent(_BESIDE)} faster or slower, "
        f"beyond chance: {listed(said)}; over the other paths none."
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
    """The widest effect of each change that chance could not have made."""
    times = switched.effects(page.settings)
    shown = {key: one for key, one in times.items() if switched.is_shown(one)}
    parts = []
    for scenario, file in dict.fromkeys((key[0], key[1]) for key in times):
        known = {key: one for key, one in shown.items() if key[:2] == (scenario, file)}
        if not known:
            parts.append(f"nothing that chance could not have made over {literal(scenario)} ({_short(file)})")
            continue
        key = max(known, key=lambda it: max(known[it].value, 1 / known[it].value))
        parts.append(
            f"{known[key].value:.2f} times the time over {literal(scenario)} "
            f"({_short(file)}; {key[2]}; {literal(key[3])})"
        )
    return f"Of one thing switched off, the widest effect is {listed(parts)}." if parts else ""


def _short(file: str) -> str:
    return "upload" if file.startswith("upload") else "download"
