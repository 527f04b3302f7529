"""What a slow start saves: the seconds by which it has so much of a file earlier than the baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bentpipe.study.claims import MeasuredValue
from bentpipe.study.slow_starts import VariantTrials

from .intervals import shift
from .study import SlowStartComparison


@dataclass(frozen=True)
class MostSaved:
    """What the median run of a variant saves at the size at which that is most."""

    size_mb: int
    seconds: MeasuredValue

    @property
    def written(self) -> str:
        return f"{self.seconds.written(1, ' s')} at {self.size_mb} MB"


def best(study: SlowStartComparison, one: VariantTrials, beyond_mb: int) -> MostSaved | None:
    """What a variant saves at best, of sizes beyond `beyond_mb` if it has any there."""
    found = study.most_saved(one, beyond_mb) or study.most_saved(one)
    measured = None if found is None else seconds_saved(study, one, found[1])
    return None if found is None or measured is None else MostSaved(found[1], measured)


def seconds_saved(study: SlowStartComparison, one: VariantTrials, size_mb: int) -> MeasuredValue | None:
    """How much earlier a variant has a size in MB than the baseline."""
    found = shift(study.times(study.baseline, size_mb), study.times(one, size_mb))
    if found is None or not math.isfinite(found.value):
        return None
    has_ends = math.isfinite(found.low) and math.isfinite(found.high)
    return MeasuredValue(found.value, *((found.low, found.high) if has_ends else (None, None)))


def gains(study: SlowStartComparison, one: VariantTrials, least_s: float, beyond_mb: int) -> bool:
    """Whether it saves that much at best, of sizes beyond `beyond_mb`, and surely saves some."""
    found = best(study, one, beyond_mb)
    if found is None or found.seconds.low is None:
        return False
    return found.seconds.low > 0 and found.seconds.value >= least_s
