"""Write the site of a run: read the run folder, write beside the old site, then take its place."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

from bentpipe.errors import BentpipeError
from bentpipe.records import Record, read_jsonl
from bentpipe.report import pages
from bentpipe.report.analyses import read_traces
from bentpipe.report.model import RunModel, cell_data, run_data
from bentpipe.traces import Run

ASSETS = ("report.js", "report.css", "licenses.txt")


class ReportError(BentpipeError):
    """The folder holds no run that can be reported; the message names the file, the hint what to do."""


def build(run: Path) -> Path:
    """Build the site of the run folder `run` at `run/report` and return its index page.

    An older site is replaced, and kept if anything goes wrong. Raises ReportError for a folder that is not
    a run or a file in it that cannot be read, OSError if the site cannot be written.
    """
    assets = _assets()
    model = RunModel(run, _manifest(run), _records(run))
    site, partial = run / "report", run / "report.partial"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        _write(model, partial, assets)
        shutil.rmtree(site, ignore_errors=True)
        partial.rename(site)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return site / "index.html"


def _write(model: RunModel, site: Path, assets: list[Path]) -> None:
    for folder in ("cells", "data/cells", "data/trials", "assets"):
        (site / folder).mkdir(parents=True)
    run = Run(model.run, model.manifest["scenarios"], {record.trial: record for record in model.records})
    model = dataclasses.replace(model, traces=read_traces(run, site))
    for asset in assets:
        pages.write(site / "assets" / asset.name, asset.read_bytes())
    _write_text(site / "data" / "run.js", pages.data_script("bentpipeRun", run_data(model)))
    _write_text(site / "index.html", pages.index(model.heading))
    for slug, cell in model.slugs.items():
        _write_text(
            site / "data" / "cells" / f"{slug}.js", pages.data_script("bentpipeCell", cell_data(model, slug))
        )
        _write_text(site / "cells" / f"{slug}.html", pages.cell(model.heading, slug, cell.key))


def _write_text(path: Path, text: str) -> None:
    pages.write(path, text.encode())


def _assets() -> list[Path]:
    folder = Path(__file__).parent / "assets"
    files = [folder / name for name in ASSETS]
    for file in files:
        if not file.is_file():
            raise ReportError(f"{file}: no such file", "build it: cd report-ui && npm ci && npm run build")
    return files


def _manifest(run: Path) -> dict[str, Any]:
    path = run / "manifest.json"
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        hint = "name the folder of a run, as given to bentpipe run --out"
        raise ReportError(f"{path}: no such file", hint) from None
    except ValueError as error:
        raise ReportError(f"{path}: not JSON: {error}", "restore the file or repeat the run") from error
    if not isinstance(manifest, dict):
        found = type(manifest).__name__
        raise ReportError(
            f"{path}: expected a JSON object, found {found}", "restore the file or repeat the run"
        )
    for key, kind in (("campaign", str), ("options", dict), ("scenarios", dict)):
        if not isinstance(manifest.get(key), kind):
            what = "is missing" if key not in manifest else f"is {json.dumps(manifest[key])[:60]}"
            raise ReportError(f'{path}: the key "{key}" {what}', "restore the file or repeat the run")
    return manifest


def _records(run: Path) -> list[Record]:
    path = run / "records.jsonl"
    try:
        return list(read_jsonl(path))
    except FileNotFoundError:
        raise ReportError(f"{path}: no such file", "no trial of this run has finished yet") from None
    except TypeError as error:
        hint = "make the report with the version in manifest.json"
        raise ReportError(f"{path}: written by another version of bentpipe: {error}", hint) from error
    except ValueError as error:
        raise ReportError(str(error), "remove the line and resume the run") from error
