"""File names for cells."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from bentpipe.analysis.cells import Cell, CellKey
from bentpipe.plan.treatments import DIRECT

_LONGEST = 120  # file names may have 255 bytes; longer names would be cut by some archives


def assign(cells: Iterable[Cell]) -> dict[str, Cell]:
    """A file name without suffix for each cell: readable, portable, and unique also where case is ignored."""
    slugs: dict[str, Cell] = {}
    for cell in cells:
        slug = _slug(cell.key)
        if slug.casefold() in slugs:
            slug = f"{slug}-{_digest(cell.key)}"
        slugs[slug.casefold()] = cell
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
