"""Pairs of stacks by the thesis's rules: a scenario over all of them, and a server then and now.

The thesis ends a pair's series at its first failed iteration and leaves the pair out of means and maxima. A
pair counts here in the same way: as failed if a trial of it failed or was unsupported, and in figures only if
none did. Its means are over pairs, its maxima are of single iterations: in its section 5.5.1 no pair's mean
efficiency is above 55 % over ASTRA and 30 % over EUTELSAT, in its table 5.1 the maxima are 68 and 35 %.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from bentpipe.analysis.cells import Cell, Matrix

Pair = tuple[str, str]  # client, server


@dataclass(frozen=True)
class PairGoodputs:
    """The mean goodputs of pairs of stacks."""

    source: str
    bps: dict[Pair, float]

    def of_server(self, server: str) -> dict[str, float]:
        """Client → mean goodput."""
        return {client: bps for (client, other), bps in self.bps.items() if other == server}

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(sorted({server for _, server in self.bps}))


_TIMEOUTS = ("handshake_timeout", "transfer_timeout")


@dataclass(frozen=True)
class ScenarioResult:
    """The result of a scenario over all pairs of a run, by the thesis's rules."""

    pairs: int
    failed: int  # pairs
    timeout: int  # pairs
    unsupported: int  # pairs, all of whose trials are
    mean_bps: float | None
    max_bps: float | None  # of a trial
    mean_efficiency: float | None
    max_efficiency: float | None  # of a trial

    def share(self, pairs: int) -> float | None:
        return pairs / self.pairs if self.pairs else None


def over_pairs(matrix: Matrix) -> ScenarioResult:
    """The result of a scenario over all pairs."""
    clean = [cell for cell in matrix.cells if not cell.failures]
    goodputs = [cell.goodput_mean_bps for cell in clean if cell.goodput_mean_bps is not None]
    efficiencies = [cell.efficiency_mean for cell in clean if cell.efficiency_mean is not None]
    trials = [one for cell in clean for one in cell.records]
    return ScenarioResult(
        pairs=len(matrix.cells),
        failed=sum(bool(cell.failures) for cell in matrix.cells),
        timeout=sum(any(cell.failures[word] for word in _TIMEOUTS) for cell in matrix.cells),
        unsupported=sum(all(r.outcome == "unsupported" for r in cell.records) for cell in matrix.cells),
        mean_bps=statistics.fmean(goodputs) if goodputs else None,
        max_bps=max((one.goodput_bps for one in trials if one.goodput_bps is not None), default=None),
        mean_efficiency=statistics.fmean(efficiencies) if efficiencies else None,
        max_efficiency=max((one.efficiency for one in trials if one.efficiency is not None), default=None),
    )


def against(now: float, then: float) -> str:
    """Two numbers in words: `about as much`, `2.1 times as much`."""
    ratio = now / then
    if abs(ratio - 1) < 0.1:
        return "about as much"
    return f"{ratio:.{1 if ratio > 0.5 else 2}f} times as much"


@dataclass(frozen=True)
class ServerChange:
    """A stack as a server over a scenario, in the publication and in a run: client → goodput."""

    stack: str
    then: dict[str, float]
    now: dict[str, float]

    @property
    def verdict(self) -> str:
        """The conclusion from the two sets of pairs. Their clients are not the same ones, so more than they
        must differ only where the slowest of one time is faster than the fastest of the other.
        """
        if not self.then and not self.now:
            return "failed with every client, then and now"
        if not self.then:
            return "failed with every client then, succeeds now"
        if not self.now:
            return "succeeded then, fails with every client now"
        if min(self.now.values()) > max(self.then.values()):
            return "faster with every client"
        if max(self.now.values()) < min(self.then.values()):
            return "slower with every client"
        return f"{against(max(self.now.values()), max(self.then.values()))} with its best client"


def changes(matrix: Matrix, then: PairGoodputs) -> list[ServerChange]:
    """The stacks that are servers in both."""
    found = []
    for stack in matrix.servers:
        if stack in _tested(then):
            clean = [cell for cell in matrix.column(stack) if not cell.failures]
            now = {c.key.client: c.goodput_mean_bps for c in clean if c.goodput_mean_bps is not None}
            found.append(ServerChange(stack, then.of_server(stack), now))
    return found


def _tested(then: PairGoodputs) -> set[str]:
    """Stacks that the publication has a row or a column of; one that always failed may have but a row."""
    return {name for pair in then.bps for name in pair}


def published_cells(matrix: Matrix, then: PairGoodputs) -> list[tuple[Cell, float]]:
    """The cells that the publication has a number for, with that number."""
    return [
        (cell, then.bps[cell.key.client, cell.key.server])
        for cell in matrix.cells
        if (cell.key.client, cell.key.server) in then.bps
    ]
