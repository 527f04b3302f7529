"""Write the site of a run: read the run folder, write beside the old site, then take its place."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.traces import TracedRun
from bentpipe.errors import BentpipeError
from bentpipe.report import pages
from bentpipe.report.analyses import read_traces
from bentpipe.report.cell_page import cell_data
from bentpipe.report.outline import RunOutline
from bentpipe.report.overview import CellSummary, run_json
from bentpipe.report.pages import UsedBy
from bentpipe.runs import manifest, trial_files
from bentpipe.runs.records import CellKey
from bentpipe.runs.stored_records import RECORDS, RecordsByTrial, StoredRecords

ASSETS = ("report.js", "report.css", "licenses.txt")


class ReportError(BentpipeError):
    """A file that the site is made of is not there; the message names it, the hint says what to do."""


def build(run: Path, used_by: Sequence[UsedBy] = ()) -> Path:
    """Build the site of the run folder `run` at `run/report` and return its index page. `used_by`: the
    studies that its pages name.

    An older site is replaced, and kept if anything goes wrong. BentpipeError for a folder that is not a run
    or a file in it that cannot be read, OSError if the site cannot be written.
    """
    site, partial = run / "report", run / "report.partial"
    _build(run, site, partial, under_way=False, used_by=used_by)
    return site / "index.html"


def build_under_way(run: Path, site: Path) -> int:
    """Build the site of a run that may be under way at `site`, elsewhere than in the run's own folder: with
    all cells that are planned, and without traces, which the run may still remove. How many trials have
    ended. Errors are those of `build`.
    """
    return _build(run, site, site.with_name(f"{site.name}.partial"), under_way=True)


def _build(run: Path, site: Path, partial: Path, under_way: bool, used_by: Sequence[UsedBy] = ()) -> int:
    assets = bundle(ASSETS)
    found = manifest.read(run)
    try:
        stored = StoredRecords(run)  # of a run that has none yet, too: its page says so
    except FileNotFoundError:
        file = run / RECORDS
        raise ReportError(f"{file}: no such file", "no trial of this run has finished yet") from None
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with closing(stored):
            planned = [CellKey.of(one) for one in found.trials()] if under_way else []
            cells = dict.fromkeys([*planned, *stored.cells])
            outline = RunOutline(run, found, list(cells), len(planned) if under_way else None)
            _write(outline, stored, partial, assets, used_by)
            ended = len(stored)
        shutil.rmtree(site, ignore_errors=True)
        partial.rename(site)
    except (OSError, BentpipeError):
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return ended


def _write(
    outline: RunOutline, stored: StoredRecords, site: Path, assets: list[Path], used_by: Sequence[UsedBy]
) -> None:
    for folder in ("cells", "data/cells", "data/trials", "assets"):
        (site / folder).mkdir(parents=True)
    traces = read_traces(_traced(outline, stored), site)
    for asset in assets:
        pages.write(site / "assets" / asset.name, asset.read_bytes())
    summaries = {}
    begun = set(stored.cells)
    for slug, key in outline.slugs.items():  # one after the other: all records take much memory
        if key not in begun:
            continue
        cell = Cell.of(key, stored.of_cell(key))
        summaries[key] = CellSummary.of(cell, slug)
        script = pages.data_script("bentpipeCell", cell_data(outline, slug, cell, traces))
        _write_text(site / "data" / "cells" / f"{slug}.js", script)
        _write_text(site / "cells" / f"{slug}.html", pages.cell(outline.heading, slug, key, used_by))
    run_script = pages.script_of("bentpipeRun", run_json(outline, summaries))
    _write_text(site / "data" / "run.js", run_script)
    _write_text(site / "index.html", pages.index(outline.heading, used_by))


def _traced(outline: RunOutline, stored: StoredRecords) -> TracedRun:
    """The trials that have a trace; of a run under way none."""
    under_way = outline.planned is not None
    cells = {
        trial: key
        for key in ([] if under_way else stored.cells)
        for trial in stored.trials(key)
        if trial_files.is_traced(outline.folder / "trials" / trial)
    }
    return TracedRun(outline.folder, outline.manifest.scenarios, RecordsByTrial(stored, cells))


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
