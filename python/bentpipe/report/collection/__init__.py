"""The site of many runs: their results over time, compared with each other and together, without a server.

Model: Python writes what was measured as columns, a script each, which a page loads when it needs them; the
bundle built from `report-ui/src/collection` groups, compares and draws them. Each page is thin, as those of
the report of one run are.

    DIR/index.html      the runs; changes, compare, distributions, failures and studies.html beside it
    DIR/studies/        a page for each page of a study, and its pictures
    DIR/data/           site.js, failures.js, and columns/<number>.js
    DIR/assets/         the bundle
    DIR/site.json       what `bentpipe site --json` prints; by it a later call knows the folder as its own
"""

from __future__ import annotations

from bentpipe.report.collection.site import Collection, build
from bentpipe.report.collection.studies import ShownStudy, page_names

__all__ = ["Collection", "ShownStudy", "build", "page_names"]
