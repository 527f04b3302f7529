"""Write the site of many runs: all of it beside the old one, then in its place."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe.analysis.trial_marks import RunCell
from bentpipe.errors import UsageError
from bentpipe.report import pages
from bentpipe.report.collection import columns, failures, read_run, studies
from bentpipe.report.collection.columns import Numbers
from bentpipe.report.collection.model import ShownParts, site_data
from bentpipe.report.collection.read_run import ReadRun
from bentpipe.report.collection.studies import RenderedPage, ShownRun, ShownStudy
from bentpipe.report.site import bundle
from bentpipe.runs import several
from bentpipe.runs.several import SeveralRuns, SkippedFolder

INDEX = "site.json"
# File → what it is called, and the scripts with data that it starts from.
PAGES = {
    "index": ("Runs", ("site",)),
    "changes": ("Changes", ("site",)),
    "compare": ("Compare", ("site",)),
    "distributions": ("Distributions", ("site",)),
    "failures": ("Failures", ("site", "failures")),
    "studies": ("Studies", ("site",)),
}
_ASSETS = ("collection.js", "collection.css", "licenses.txt")


@dataclass(frozen=True)
class Collection:
    """The request for a site."""

    runs: Sequence[Path]
    title: str
    studies: Sequence[ShownStudy] = ()


def build(collection: Collection, out: Path) -> tuple[dict[str, Any], Sequence[SkippedFolder]]:
    """Write the site to the folder `out`; the content of its `site.json`, and the folders that were skipped.

    An older site is replaced, and kept if anything goes wrong. UsageError where `out` holds anything else,
    BentpipeError if no run can be read, OSError if the site cannot be written.
    """
    assets = bundle(_ASSETS)
    out = out.resolve()
    partial = out.with_name(f"{out.name or 'site'}.partial")
    for folder in (out, partial):
        _check_own(folder)
    # One run after the other: the records of all take much memory.
    found = several.each(collection.runs, lambda run: read_run.read(run, out))
    if not found.runs:
        raise several.nothing_to_read(found)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        data = _write(found, collection, partial, assets)
        shutil.rmtree(out, ignore_errors=True)
        partial.rename(out)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return data, found.skipped


def _check_own(folder: Path) -> None:
    """UsageError unless the folder is not there, or is empty, or a site."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"--out: {folder} is not a folder", "choose another --out")
    if any(folder.iterdir()) and not _is_site(folder):
        hint = "choose a new folder, or that of an older site"
        raise UsageError(f"--out: {folder} holds something else than a site of runs: it stays as it is", hint)


def _is_site(folder: Path) -> bool:
    try:
        index = json.loads((folder / INDEX).read_text())
    except (OSError, ValueError):
        return False
    return isinstance(index, dict) and "site_format" in index


def _write(
    found: SeveralRuns[ReadRun], collection: Collection, site: Path, assets: Sequence[Path]
) -> dict[str, Any]:
    """Write everything to the folder `site`; the index."""
    (site / "data" / "columns").mkdir(parents=True)
    _write_text(site / INDEX, json.dumps({"site_format": None}))  # so that what is left of it is known again
    table = columns.joined([run.columns for run in found.runs])
    shown = [ShownRun(run.name, run.outline.manifest.campaign, run.links.index) for run in found.runs]
    made = studies.rendered(collection.studies, shown, lambda cell: _of_cell(found.runs, cell))
    of_studies = [[made[page] for page in study.pages] for study in collection.studies]
    parts = ShownParts(collection.title, table, collection.studies, of_studies)
    data = site_data(found, parts)
    numbers = {key: number for number, key in enumerate(table.cells)}
    failed = failures.groups([run.not_ok for run in found.runs], numbers)
    _write_text(site / "data" / "site.js", pages.data_script("bentpipeSite", data))
    _write_text(site / "data" / "failures.js", pages.data_script("bentpipeFailures", failed))
    for name, codes in table.codes.items():
        _write_column(site, name, codes)
    for number, column in enumerate(table.names):
        _write_column(site, str(number), table.values(column))
    _write_pages(site, collection.title, made.values(), assets)
    _write_text(site / INDEX, json.dumps(data, indent=1, allow_nan=False) + "\n")
    return data


def _of_cell(runs: Sequence[ReadRun], cell: RunCell) -> str | None:
    """The page of a cell in the report of its run; None where the site has none."""
    folder = cell.run.resolve()
    return next((run.links.of_cell(cell.key) for run in runs if run.outline.folder.resolve() == folder), None)


def _write_column(site: Path, name: str, values: Numbers) -> None:
    script = pages.data_script("bentpipeColumn", columns.packed(values))
    _write_text(site / "data" / "columns" / f"{name}.js", script)


def _write_pages(site: Path, title: str, made: Iterable[RenderedPage], assets: Sequence[Path]) -> None:
    for name, (heading, scripts) in PAGES.items():
        shown = pages.ThinPage(
            title=f"{heading} · {title} · Bentpipe",
            page=name,
            data=[f"data/{script}.js" for script in scripts],
            bundle="collection",
        )
        _write_text(site / f"{name}.html", shown.html)
    (site / "studies").mkdir()
    for one in made:
        shown = pages.ThinPage(
            title=f"{one.title} · {title} · Bentpipe", page="study", data=["../data/site.js"], root="../",
            bundle="collection", body=f'<article id="study">{one.body}</article>',
        )  # fmt: skip
        _write_text(site / "studies" / f"{one.name}.html", shown.html)
        for name, file in one.pictures.items():
            pages.write(site / "studies" / name, file.read_bytes())
    (site / "assets").mkdir()
    for asset in assets:
        pages.write(site / "assets" / asset.name, asset.read_bytes())


def _write_text(path: Path, text: str) -> None:
    pages.write(path, text.encode())
