"""File names for cells."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.records import CellKey

_LONGEST = 120  # file names may have 255 bytes; longer names would be cut by some archives


def assign(cells: Iterable[CellKey]) -> dict[str, CellKey]:
    """A file name without suffix for each cell: readable, portable, and unique also where case is ignored."""
    slugs: dict[str, CellKey] = {}
    for key in cells:
        slug = _slug(key)
        if slug.casefold() in slugs:
            slug = f"{slug}-{_digest(key)}"
        slugs[slug.casefold()] = key
    return slugs


def _slug(key: CellKey) -> str:
    between = [] if key.treatment == DIRECT else [key.treatment_label.kind]
    parts = [key.scenario, key.client, key.server, *between]
    plain = "--".join(re.sub(r"[^A-Za-z0-9._=-]+", "_", part) for part in parts)
    whole = not between or key.treatment in between
    if whole and plain == "--".join(parts) and len(plain) <= _LONGEST and not plain.startswith("."):
        return plain
    return f"{plain[:_LONGEST].lstrip('.')}-{_digest(key)}"


def _digest(key: CellKey) -> str:
    return hashlib.sha256("\0".join(key).encode()).hexdigest()[:8]
