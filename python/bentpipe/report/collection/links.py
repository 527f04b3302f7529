"""Links from the site to the reports of its runs.

They are relative, and reports stay where they are: their own links lead to traces and logs beside them, which
a copy would lose or have to include. Who publishes the site publishes the folder that holds it and the
runs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from bentpipe.report.outline import RunOutline
from bentpipe.runs.records import CellKey


@dataclass(frozen=True)
class ReportLinks:
    """The links from a page in the folder `site` to the report of a run."""

    run: RunOutline
    site: Path

    @cached_property
    def index(self) -> str | None:
        """The link to its first page; None where there is none."""
        return self._link("index.html")

    def of_cell(self, key: CellKey) -> str | None:
        """The link to the page of a cell; None where there is none."""
        return None if self.index is None else self._cells.get(key)

    @cached_property
    def _cells(self) -> dict[CellKey, str | None]:
        return {key: self._link(f"cells/{slug}.html") for slug, key in self.run.slugs.items()}

    def _link(self, page: str) -> str | None:
        file = self.run.folder.resolve() / "report" / page
        if not file.is_file():
            return None
        return quote(Path(os.path.relpath(file, self.site.resolve())).as_posix())
