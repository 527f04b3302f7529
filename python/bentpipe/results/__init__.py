"""Pages of `docs/results`: what a campaign came to, beside what was published, written from a run's records.

A page's numbers are those of records or of the files of published figures in this folder; its sentences are
about method, or depend on the numbers. So a page can be made again from another run and stays true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bentpipe.results import agreement, fairness, limit, pep, reno, search, slow_start, thesis
from bentpipe.results.source import Source

# Name of a page → what writes it: from a run, to a folder; the files that it wrote, the page first.
PAGES: dict[str, Callable[[Source, Path], list[Path]]] = {
    "fairness": fairness.write,
    "limit": limit.write,
    "reno": reno.write,
    "search": search.write,
    "slow-start": slow_start.write,
    "thesis": thesis.write,
}

# Likewise of pages that are written from a run, and may have more from further ones.
PAGES_OF_MORE: dict[str, Callable[[Source, Path, Sequence[Source]], list[Path]]] = {"pep": pep.write}

# Likewise of pages that are written from two runs.
PAGES_OF_TWO: dict[str, Callable[[Source, Source, Path], list[Path]]] = {"agreement": agreement.write}
