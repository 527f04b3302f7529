"""The runs of the page: their cells by path, HTTP version, proxies and loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bentpipe import labels
from bentpipe.analysis.cells import Cell, cells
from bentpipe.errors import BentpipeError
from bentpipe.plan.treatments import DIRECT
from bentpipe.study.intervals import with_quantiles
from bentpipe.study.source import Source, pooled
from bentpipe.workload.http import TITLES

# The campaigns, as their files are called.
H3, H1, PARALLEL, LOSS = "pages-h3", "pages-h1", "pages-parallel", "pages-loss"
QUIC, TCP = "pages-quic", "pages-tcp"
BROWSERS, BESIDE = "pages-browsers", "pages-beside-browsers"
OPERATORS = ("pages-operators-tcp", "pages-operators-quic")
TUNNELLED = ("pages-operators-vpn-tcp", "pages-operators-vpn-quic")
_LOSS = "forward.loss"
NONE = "0%"


def loss(cell: Cell) -> str:
    """The loss of the satellite link, as in labels; `0%` if the campaign sets none."""
    return labels.scenario(cell.key.scenario).values.get(_LOSS, NONE)


def orbit(cell: Cell) -> str:
    return labels.scenario(cell.key.scenario).name


def http(cell: Cell) -> str:
    """The version of HTTP, as it is written."""
    return TITLES[cell.key.workload.rpartition(":")[2]]


def is_tunnelled(cell: Cell) -> bool:
    """Whether it goes through the VPN, which no proxy of this study can split."""
    return cell.key.treatment_label.kind == labels.VPN


def has_proxies(cell: Cell) -> bool:
    return cell.key.treatment != DIRECT and not is_tunnelled(cell)


def seconds(cell: Cell, column: str, unit: str = "") -> str:
    """The median over the trials that succeeded, the quartiles where they differ by more than 2 %, and how
    many failed.
    """
    text = with_quantiles(cell.values(column), (0.25, 0.75), unit=unit)
    failed = cell.failures.total()
    return f"{text}, {failed} failed" if failed else text


def shown_loss(at: str) -> str:
    return at.replace("%", " %")


def refuse_others(sources: Sequence[Source]) -> None:
    """BentpipeError if a run is of no campaign of the study."""
    wanted = (H3, H1, PARALLEL, LOSS, QUIC, TCP, *OPERATORS, *TUNNELLED, BROWSERS, BESIDE)
    for one in sources:
        if one.manifest.campaign not in wanted:
            raise BentpipeError(
                f"{one.folder}: a run of {one.manifest.campaign}, which is no campaign of this study",
                f"these are: {', '.join(wanted)}",
            )


@dataclass(frozen=True)
class PageRuns:
    """The runs, by the names of their campaigns."""

    sources: tuple[Source, ...]

    @classmethod
    def of(cls, sources: Sequence[Source]) -> PageRuns:
        """BentpipeError if those of the paper's table are not there."""
        if not {H3, H1} <= {one.manifest.campaign for one in sources}:
            raise sources[0].refused(
                f"wanted are the runs of the paper's table, {H3} and {H1}, or of the page with a VPN, "
                f"{' and '.join(TUNNELLED)}",
                "study pages",
            )
        return cls(tuple(sources))

    @cached_property
    def by_campaign(self) -> dict[str, list[Cell]]:
        found: dict[str, list[Source]] = {}
        for one in self.sources:
            found.setdefault(one.manifest.campaign, []).append(one)
        return {name: cells(pooled(mine)) for name, mine in found.items()}

    def of_campaign(self, name: str) -> list[Cell]:
        """The cells of a campaign; none if it was not run."""
        return self.by_campaign.get(name, [])

    def of_table(self, scenario: str, version: str, proxies: bool, at: str) -> Cell | None:
        """The cell beside an entry of the paper's table."""
        name = H3 if version == "h3" else H1
        for one in self.of_campaign(name):
            key = (orbit(one), http(one), has_proxies(one), loss(one))
            if key == (scenario, TITLES[version], proxies, at):
                return one
        return None
