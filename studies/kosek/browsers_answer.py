"""The beginning of the page on a page in Chromium: what proxies change of its load time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe.study import forest
from bentpipe.study.claims import SAME_DIRECTION, Claim, Published, tally, verdict
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, several
from bentpipe.workload.http import TITLES

GEO = "geo-tum"
ORBITS = {GEO: "GEO", "leo-tum": "LEO"}
PICTURE = "kosek-browsers-claims.svg"
_CAPTION = """Page load time in Chromium behind proxies / without, of the paper and of our trials, with
intervals of 95 %: left of 1 pages are there earlier behind proxies."""


@dataclass(frozen=True)
class ProxyEffect:
    """What proxies change of the page load time over a path and a version of HTTP, at a loss."""

    scenario: str
    version: str
    loss: str
    claim: Claim

    @property
    def setting(self) -> str:
        """As in `HTTP/3 over GEO`."""
        return f"{TITLES[self.version]} over {ORBITS[self.scenario]}"


def front(effects: Sequence[ProxyEffect], folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    picture, shown = None, forest.drawable([one.claim for one in effects])
    if shown:
        file = folder / PICTURE
        forest.draw(shown, file, "page load time, behind proxies / without", "what proxies change")
        picture = Picture(file, "Ratios of page load times, published and ours, with intervals", _CAPTION)
    return Front(finding(effects), _answer(effects), picture, _advice(effects))


def finding(effects: Sequence[ProxyEffect]) -> str:
    """What proxies change of HTTP/3 over GEO: without losses, and with the most."""
    mine = [one for one in effects if (one.scenario, one.version) == (GEO, "h3") and one.claim.measured]
    if not mine:
        return "What proxies change of a page in Chromium cannot be told from these runs"
    first, last = mine[0], mine[-1]
    if not _is_shown(first):
        return f"What proxies change of HTTP/3 in Chromium over GEO cannot be told at {first.loss} of loss"
    begin = f"takes {first.claim.here} times as long over GEO"
    plain = f"Behind proxies HTTP/3 in Chromium {begin} at {first.loss} loss"
    if first is last or not _is_shown(last):
        return fitting(plain, f"Behind proxies Chromium {begin} at {first.loss} loss")
    both = f"{first.claim.here} times as long, {last.claim.here} at {last.loss}"
    return fitting(
        f"HTTP/3 in Chromium over GEO behind proxies: {both} loss",
        f"Chromium over GEO behind proxies: {both}",
    )


def _is_shown(effect: ProxyEffect) -> bool:
    """Whether it is no chance that pages take longer, or less long."""
    sides = (verdict(effect.claim.measured, Published.side(above=way)) for way in (True, False))
    return SAME_DIRECTION in sides


def _answer(effects: Sequence[ProxyEffect]) -> list[str]:
    sentences = []
    for version in dict.fromkeys(one.version for one in effects):
        over: dict[str, list[str]] = {}
        for one in effects:
            if one.version == version:
                over.setdefault(ORBITS[one.scenario], []).append(
                    f"{one.claim.here} times as long at {one.loss}"
                )
        ends = {orbit: list(dict.fromkeys((some[0], some[-1]))) for orbit, some in over.items()}
        each = [f"over {orbit} {listed(some)} of loss" for orbit, some in ends.items()]
        sentences.append(f"Over {TITLES[version]} a page takes behind proxies {'; '.join(each)}.")
    verdicts = tally(one.claim.verdict for one in effects)
    return [*sentences, f"Of {several(len(effects), 'ratio')} of the paper's table, {verdicts}."]


def _advice(effects: Sequence[ProxyEffect]) -> str:
    """The lines that the intervals of our ratios show, whatever the source says."""
    lines = []
    for words, above in (
        ("Proxies shorten the page load time of", False),
        ("Leave proxies out, which lengthen it, of", True),
    ):
        losses: dict[str, list[str]] = {}
        for one in effects:
            if verdict(one.claim.measured, Published.side(above=above)) == SAME_DIRECTION:
                losses.setdefault(one.setting, []).append(one.loss.removesuffix(" %"))
        if losses:
            each = [f"{setting} at {listed(some)} % of loss" for setting, some in losses.items()]
            lines.append(f"- {words} {'; '.join(each)}.")
    return "\n".join(lines)
