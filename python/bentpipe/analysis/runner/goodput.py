"""Goodputs as measurements write them: `8643 (± 143) kbps` of the runner's repetitions, `9287 kbps` of one.

The unit is the measurement's own: the runner has kbps, and a file that says Mbps means that. A number without
a unit, as among the fork's `values`, is in the unit that the entry's `details` say, otherwise in kbps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

KBIT = 1e3
LARGEST_KBPS = 1e15
FORMS = "8643 (± 143) kbps, 9287 kbps or 9.3 Mbps"
_NUMBER = r"\d{1,15}(?:\.\d{1,15})?"
_TEXT = re.compile(
    rf"(?P<mean>{_NUMBER})(?: ?\((?:±|\+/-) ?(?P<deviation>{_NUMBER})\))? ?(?P<unit>[kKMG]?)(?:bps|bit/s)"
)
_IN_KBPS = {"": Decimal("1e-3"), "k": Decimal(1), "K": Decimal(1), "M": Decimal("1e3"), "G": Decimal("1e6")}


_MEAN = re.compile(rf"a mean, ± (?P<deviation>{_NUMBER}) kbit/s")


@dataclass(frozen=True)
class Goodput:
    """A goodput in a text, in kbit/s."""

    mean: float
    deviation: float | None
    unit: float  # of the text

    @property
    def note(self) -> str:
        """The note of a record on a mean of several repetitions; empty for a single one."""
        return "" if self.deviation is None else f"a mean, ± {self.deviation:.12g} kbit/s"


def deviation(note: str) -> float | None:
    """The deviation in a record's note."""
    found = _MEAN.fullmatch(note)
    return float(found["deviation"]) if found else None


def parse(text: str) -> Goodput:
    """ValueError for a text of another form."""
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'"{text[:100]}" is not of the form {FORMS}')
    unit, spread = _IN_KBPS[found["unit"]], found["deviation"]
    mean = in_range(float(Decimal(found["mean"]) * unit))
    return Goodput(mean, None if spread is None else float(Decimal(spread) * unit), float(unit))


def in_range(kbps: float) -> float:
    """ValueError for a value that no goodput can have."""
    if not 0 <= kbps <= LARGEST_KBPS:
        raise ValueError(f"{kbps!r} is no number from 0 to {LARGEST_KBPS:g}")
    return kbps
