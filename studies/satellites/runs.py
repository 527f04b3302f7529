"""The runs of the page on satellite links, their cells, and the mean shares of stacks without proxies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.inference import Ratio
from bentpipe.plan.treatments import DIRECT
from bentpipe.study.means import GeometricMean
from bentpipe.study.source import Source, pooled

from . import proxied, switched
from .cells import ONE_THING, SWITCHED
from .proxied import Proxies
from .switched import Effect, Setting


@dataclass(frozen=True)
class SatelliteRuns:
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
        return proxied.proxied(self.stacks)

    @cached_property
    def shares(self) -> dict[str, dict[str, GeometricMean]]:
        """What each server reaches of the ideal sender's speed without proxies, by path: the mean of each of
        which no trial failed, the largest first. A path over which every server has failed trials is left
        out.
        """
        found: dict[str, dict[str, GeometricMean]] = {}
        for one in self.stacks:
            mean = GeometricMean.of(one.values("share_of_limit"))
            if one.key.treatment == DIRECT and mean is not None and not one.failures:
                found.setdefault(one.key.scenario, {})[one.key.server] = mean
        return {path: in_order(mine) for path, mine in found.items()}

    def unranked(self, path: str) -> list[str]:
        """The servers without proxies of which trials over a path failed."""
        here = [one for one in self.stacks if one.key.scenario == path and one.key.treatment == DIRECT]
        return [one.key.server for one in here if one.failures]

    def of(self, campaign: str) -> list[Cell]:
        return cells(pooled(one for one in self.sources if one.manifest.campaign == campaign))


def in_order(shares: Mapping[str, GeometricMean]) -> dict[str, GeometricMean]:
    """The servers from the largest mean to the smallest."""
    return dict(sorted(shares.items(), key=lambda one: -one[1].value))


def middle(shares: Mapping[str, GeometricMean]) -> str:
    """The server in the middle, of an even number the slower one."""
    return list(shares)[len(shares) // 2]
