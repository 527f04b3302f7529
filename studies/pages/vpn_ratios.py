"""What a VPN changes of a page: ratios of page load times, through WireGuard / without, and the order of the
versions of HTTP beside the slides' words.

Source: J. Deutschmann et al., 2021, part 2, which has a word for each version with a VPN and without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.cells import Cell
from bentpipe.study import claims
from bentpipe.study.claims import (
    CONTRADICTS,
    SAME_DIRECTION,
    Claim,
    MeasuredValue,
    Published,
    judged,
    verdict,
)
from bentpipe.study.intervals import with_ends
from bentpipe.study.source import Source
from bentpipe.workload.http import TITLES

from .runs import TUNNELLED, PageRuns, http, is_tunnelled, orbit

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
LONGER, SHORTER, EQUAL = "longer", "shorter", "equal"  # or UNTOLD: what a ratio of times shows
_WORDS = ("good", "mediocre", "poor")  # from best to worst
_PAIRS = ((H2, H3), (H3, H1), (H2, H1))


@dataclass(frozen=True)
class Tunnelling:
    """What WireGuard changes of a version's page load time over a link, or over several."""

    link: str
    version: str
    measured: MeasuredValue | None  # the ratio, through WireGuard / without; None if a trial failed

    @classmethod
    def over_all(cls, place: str, version: str, links: Sequence[Tunnelling]) -> Tunnelling:
        """The geometric mean over the links, with the lowest and the highest end of their intervals: it shows
        what each link shows. None is measured unless every link has an interval.
        """
        known = [one.measured for one in links if one.measured is not None]
        lows = [one.low for one in known if one.low is not None]
        highs = [one.high for one in known if one.high is not None]
        if not links or not len(links) == len(lows) == len(highs):
            return cls(place, version, None)
        mean = geometric_mean(one.value for one in known)
        return cls(place, version, MeasuredValue(mean, min(lows), max(highs)))

    @property
    def shown(self) -> str:
        """What the interval shows, by the rule of all studies: LONGER, SHORTER, EQUAL or UNTOLD."""
        return _shown(self.measured)

    @property
    def written(self) -> str:
        """With the interval, if there is one: in three decimals where its ends are the same in two."""
        one = self.measured
        if one is None:
            return "-"
        is_short = one.low is not None and one.high is not None and f"{one.low:.2f}" == f"{one.high:.2f}"
        return with_ends(one.value, one.low, one.high, 3 if is_short else 2)


@dataclass(frozen=True)
class Order:
    """Which of two versions takes less time over a link, and which has the better word."""

    link: str
    is_tunnelled: bool
    first: str
    second: str
    claim: Claim  # of the ratio of their page load times, first / second

    @property
    def shown(self) -> str:
        """What the interval of the ratio shows, whatever the slides say."""
        return _shown(self.claim.measured)


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


def _shown(ratio: MeasuredValue | None) -> str:
    for above, word in ((True, LONGER), (False, SHORTER)):
        if verdict(ratio, Published.side(above=above)) == SAME_DIRECTION:
            return word
    return EQUAL if verdict(ratio, Published.ratio(1.0)) == claims.AGREES else UNTOLD


def _written(ratio: MeasuredValue | None) -> str:
    return "-" if ratio is None else ratio.written()
