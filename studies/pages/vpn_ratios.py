"""What a VPN changes of a page: ratios of page load times, through WireGuard / without, and the order of the
versions of HTTP beside the slides' words.

Source: J. Deutschmann et al., 2021, part 2, which has a word for each version with a VPN and without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.cells import Cell
from bentpipe.labels import VPN
from bentpipe.study.claims import (
    CONTRADICTS,
    SAME_DIRECTION,
    Claim,
    MeasuredValue,
    Published,
    judged,
    verdict,
)
from bentpipe.study.source import Source
from bentpipe.workload.http import TITLES

from .runs import TUNNELLED, PageRuns, http, orbit

H1, H2, H3 = TITLES["h1"], TITLES["h2"], TITLES["h3"]
VERSIONS = (H1, H2, H3)
LEO = "starlink"  # the other links are GEO
# The slides' words: the version of HTTP, whether through the VPN, and how it was.
SAID = {
    (H1, False): "poor",
    (H2, False): "good",
    (H3, False): "mediocre",
    (H1, True): "poor",
    (H2, True): "poor",
    (H3, True): "mediocre",
}
WAYS = {False: "without WireGuard", True: "through WireGuard"}
AGREES, CONTRADICTED, UNTOLD = "agrees", "is contradicted", "cannot be told"
_WORDS = ("good", "mediocre", "poor")  # from best to worst
_PAIRS = ((H2, H3), (H3, H1), (H2, H1))


@dataclass(frozen=True)
class Tunnelling:
    """What WireGuard changes of a version's page load time over a link."""

    link: str
    version: str
    measured: MeasuredValue | None  # the ratio, through WireGuard / without; None if a trial failed

    @property
    def side(self) -> int:
        """1 if the whole interval is above 1, -1 if it is below, else 0: nothing is shown."""
        one = self.measured
        if one is None or one.low is None or one.high is None:
            return 0
        return (one.low > 1) - (one.high < 1)

    @property
    def written(self) -> str:
        return _written(self.measured)


@dataclass(frozen=True)
class Order:
    """Which of two versions takes less time over a link, and which has the better word."""

    link: str
    is_tunnelled: bool
    first: str
    second: str
    claim: Claim  # of the ratio of their page load times, first / second

    def shows(self, *, above: bool) -> bool:
        """Whether the ratio is on that side of 1, whatever the slides say."""
        return verdict(self.claim.measured, Published.side(above=above)) == SAME_DIRECTION


@dataclass(frozen=True)
class VpnRuns:
    """The cells of the runs with a VPN: by version, those without WireGuard first."""

    cells: tuple[Cell, ...]

    @classmethod
    def of(cls, sources: Sequence[Source]) -> VpnRuns:
        runs = PageRuns(tuple(sources))
        found = [one for name in TUNNELLED for one in runs.of_campaign(name)]
        return cls(tuple(sorted(found, key=lambda one: (http(one), is_tunnelled(one)))))

    @property
    def links(self) -> list[str]:
        """The GEO links first."""
        return sorted(dict.fromkeys(map(orbit, self.cells)), key=lambda one: one == LEO)

    @property
    def orbits(self) -> dict[str, list[str]]:
        """The links by what they are called together."""
        geo = [one for one in self.links if one != LEO]
        return {name: links for name, links in (("GEO links", geo), (LEO, self.links[len(geo) :])) if links}

    def tunnelling(self) -> Iterator[Tunnelling]:
        """Of each version over each link."""
        for version in VERSIONS:
            for link in self.links:
                through, without = (self._cell(link, version, way) for way in (True, False))
                if through and without:
                    yield Tunnelling(link, version, _ratio(through, without))

    def orders(self) -> Iterator[Order]:
        """Of each two versions over each link, those without WireGuard first."""
        for way in WAYS:
            for link in self.links:
                for first, second in _PAIRS:
                    above, below = (self._cell(link, one, way) for one in (first, second))
                    if above and below:
                        claim = _claim(link, way, (first, second), _ratio(above, below))
                        yield Order(link, way, first, second, claim)

    def of_way(self, version: str, way: bool) -> list[Cell]:
        """The cells of a version over all links."""
        return [one for one in self.cells if (http(one), is_tunnelled(one)) == (version, way)]

    def _cell(self, link: str, version: str, way: bool) -> Cell | None:
        return next((one for one in self.of_way(version, way) if orbit(one) == link), None)


def is_tunnelled(cell: Cell) -> bool:
    return cell.key.treatment_label.kind == VPN


def capital(words: str) -> str:
    """At the beginning of a sentence."""
    return words[0].upper() + words[1:]


def by_verdict(orders: Iterable[Order], way: bool) -> dict[str, list[str]]:
    """The links over which our order agrees with the slides', is contradicted, or cannot be told."""
    known: dict[str, set[str]] = {}
    for one in orders:
        if one.is_tunnelled == way and judged([one.claim]):
            known.setdefault(one.link, set()).add(one.claim.verdict)
    found: dict[str, list[str]] = {AGREES: [], CONTRADICTED: [], UNTOLD: []}
    for link, verdicts in known.items():
        agreement = AGREES if verdicts == {SAME_DIRECTION} else UNTOLD
        found[CONTRADICTED if CONTRADICTS in verdicts else agreement].append(link)
    return {word: links for word, links in found.items() if links}


def _ratio(above: Cell, below: Cell) -> MeasuredValue | None:
    """Of page load times; None if a trial of either failed: those that succeed are the fast ones."""
    if above.failures or below.failures:
        return None
    return MeasuredValue.of(cell_ratio(below, above, "plt_s"))


def _claim(link: str, way: bool, pair: tuple[str, str], ratio: MeasuredValue | None) -> Claim:
    words = [SAID[one, way] for one in pair]
    first, second = map(_WORDS.index, words)
    said = Published() if first == second else Published.side(above=first > second)
    return Claim(f"{' / '.join(pair)} {WAYS[way]}, {link}", " / ".join(words), said, ratio, _written(ratio))


def _written(ratio: MeasuredValue | None) -> str:
    return "-" if ratio is None else ratio.written()
