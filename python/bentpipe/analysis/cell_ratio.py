"""The ratio of the means of two cells: of their trials in pairs, where these have the same random draws.

Iteration N of a campaign with common draws has the same seed in every cell. Two cells whose trials that
succeeded have the same seeds are compared pair by pair; others as independent samples. So are those with
fewer than LEAST pairs: Student's t of so few is wider than what pairs save, and says nothing where they
happen to be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.inference import CONFIDENCE, Ratio, paired_ratio, ratio
from bentpipe.runs.records import Record
from bentpipe.testbed import RUNNER

Measured = Callable[[Record], float | None]
LEAST = 5  # with a correlation of 0.3 pairs are narrower from five on (`tests/python/test_inference.py`)
EQUIVALENCE = 1 - 2 * (1 - CONFIDENCE)  # the confidence of two one-sided tests at 5 %


def cell_ratio(
    first: Cell, second: Cell, measured: str | Measured, confidence: float = CONFIDENCE
) -> Ratio | None:
    """The ratio of geometric means, second / first, of a column or of what is computed from a record, over
    the trials that succeeded; None where a cell has no value, or one that is not positive and finite.

    With the confidence EQUIVALENCE its interval is that of two one-sided tests at 5 %: where it is within a
    margin, both that the ratio is below the margin and that it is above are rejected at that level, and the
    means are equal within it (D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987).
    """
    of: Measured = attrgetter(measured) if isinstance(measured, str) else measured
    both = [
        [(one.seed, value) for one in cell.ok if (value := of(one)) is not None] for cell in (first, second)
    ]
    values = [[value for _, value in side] for side in both]
    imported = any(
        record.testbed == RUNNER for record in (*first.ok, *second.ok)
    )  # without draws of its seed
    if imported or not are_paired([seed for seed, _ in side] for side in both):
        return ratio(values[0], values[1], confidence)
    partners = dict(both[1])
    return paired_ratio(values[0], [partners[seed] for seed, _ in both[0]], confidence)


def are_paired(seeds: Iterable[Iterable[str]]) -> bool:
    """Whether samples, given by the seeds of their trials, have the same seeds, each once, and enough."""
    first, *others = (sorted(one) for one in seeds)
    return LEAST <= len(first) == len(set(first)) and all(one == first for one in others)
