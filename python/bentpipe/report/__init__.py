"""The report of a run: a static site that opens from the file system, without a network or a server.

Model: Python computes every number, cell by cell, and writes it as scripts that assign a global, because a
page opened from `file://` may not fetch. Pages are thin (`pages`); the bundle built from `report-ui/` draws
them.

    RUN/report/index.html           the matrix of each scenario, distributions, failures, manifest
    RUN/report/cells/<slug>.html    all iterations of one cell
    RUN/report/data/                what the pages show; trials/<trial>.js is loaded when its plots are
    RUN/report/assets/              the bundle
"""

from __future__ import annotations

from bentpipe.report.site import ReportError, build

__all__ = ["ReportError", "build"]
