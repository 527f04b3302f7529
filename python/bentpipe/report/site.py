"""Write the site of a run: read the run folder, write beside the old site, then take its place."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from bentpipe.analysis.traces import TracedRun
from bentpipe.errors import BentpipeError
from bentpipe.report import pages
from bentpipe.report.analyses import read_traces
from bentpipe.report.model import RunModel, cell_data, run_data
from bentpipe.runs import manifest, run_folder
from bentpipe.runs.run_folder import StoredRecords

ASSETS = ("report.js", "report.css", "licenses.txt")


class ReportError(BentpipeError):
    """A file that the site is made of is not there; the message names it, the hint says what to do."""


def build(run: Path) -> Path:
    """Build the site of the run folder `run` at `run/report` and return its index page.

    An older site is replaced, and kept if anything goes wrong. BentpipeError for a folder that is not a run
    or a file in it that cannot be read, OSError if the site cannot be written.
    """
    assets = bundle(ASSETS)
    found = manifest.read(run)
    try:
        stored = StoredRecords(run)
    except FileNotFoundError:
        file = run / run_folder.RECORDS
        raise ReportError(f"{file}: no such file", "no trial of this run has finished yet") from None
    site, partial = run / "report", run / "report.partial"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with closing(stored):
            _write(RunModel(run, found, stored.records), stored, partial, assets)
        shutil.rmtree(site, ignore_errors=True)
        partial.rename(site)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return site / "index.html"


def _write(model: RunModel, stored: StoredRecords, site: Path, assets: list[Path]) -> None:
    for folder in ("cells", "data/cells", "data/trials", "assets"):
        (site / folder).mkdir(parents=True)
    run = TracedRun(model.run, model.manifest.scenarios, {record.trial: record for record in model.records})
    model = dataclasses.replace(model, traces=read_traces(run, site))
    for asset in assets:
        pages.write(site / "assets" / asset.name, asset.read_bytes())
    _write_text(site / "data" / "run.js", pages.data_script("bentpipeRun", run_data(model)))
    _write_text(site / "index.html", pages.index(model.heading))
    for slug, cell in model.slugs.items():
        data = cell_data(model, slug, stored.whole(cell.records))
        _write_text(site / "data" / "cells" / f"{slug}.js", pages.data_script("bentpipeCell", data))
        _write_text(site / "cells" / f"{slug}.html", pages.cell(model.heading, slug, cell.key))


def _write_text(path: Path, text: str) -> None:
    pages.write(path, text.encode())


def bundle(names: Iterable[str]) -> list[Path]:
    """The files of that name that were built from `report-ui`. ReportError if one is not there."""
    folder = Path(__file__).parent / "assets"
    files = [folder / name for name in names]
    for file in files:
        if not file.is_file():
            raise ReportError(f"{file}: no such file", "build it: cd report-ui && npm ci && npm run build")
    return files
