"""The data that all pages of a site share, as JSON values: its runs, cells, columns and studies.

`report-ui/src/collection/model.ts` declares the same shapes. `bentpipe site --json` prints it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

import bentpipe
from bentpipe import labels
from bentpipe.analysis.comparison import FALSE_DISCOVERIES, MEASURES
from bentpipe.analysis.inference import CONFIDENCE
from bentpipe.report.collection.columns import TrialColumns
from bentpipe.report.collection.read_run import ReadRun
from bentpipe.report.collection.studies import RenderedPage, ShownStudy
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.several import SeveralRuns
from bentpipe.testbed import RUNNER

FORMAT = 1
_BUILD = 8  # digits of the hash of a stack's sources that tell two builds apart


@dataclass(frozen=True)
class ShownParts:
    """The parts of a site besides its runs."""

    title: str
    columns: TrialColumns
    studies: Sequence[ShownStudy]
    pages: Sequence[Sequence[RenderedPage]]  # of each study


def site_data(found: SeveralRuns[ReadRun], parts: ShownParts) -> dict[str, Any]:
    """The index of the site."""
    columns = parts.columns
    return {
        "site_format": FORMAT,
        "title": parts.title,
        "bentpipe": bentpipe.__version__,
        "confidence": CONFIDENCE,
        "false_discoveries": FALSE_DISCOVERIES,
        "runs": [_run(run) | {"cells": columns.cells_of(number)} for number, run in enumerate(found.runs)],
        "cells": [key._asdict() for key in columns.cells],
        "testbeds": columns.testbeds,
        "outcomes": columns.outcomes,
        "protocols": columns.protocols,
        "columns": columns.names,
        "measures": [
            {"column": one.column, "title": one.title, "factor": one.factor, "digits": one.digits}
            for one in MEASURES.values()
            if one.column in columns.names
        ],
        "skipped": [
            # Where it lies on this machine is nothing to publish.
            {"folder": one.folder.name, "why": one.why.replace(str(one.folder), one.folder.name)}
            for one in found.skipped
        ],
        "studies": [
            {
                "name": study.name,
                "title": study.title,
                "question": study.question,
                "pages": [{"title": page.title, "href": f"studies/{page.name}.html"} for page in pages],
            }
            for study, pages in zip(parts.studies, parts.pages, strict=True)
        ],
    }


def _run(run: ReadRun) -> dict[str, Any]:
    found = run.outline.manifest
    commit = found.versions.get("commit")
    return {
        "name": run.name,
        "heading": run.outline.heading,
        "campaign": found.campaign,
        "title": found.title,
        "started": found.started,
        "finished": found.finished,
        "bentpipe": found.versions.get("bentpipe"),
        "commit": commit if isinstance(commit, str) else None,
        "testbeds": sorted({cell.testbed for cell in run.outline.cells}),
        "ip": found.plan.ip,
        "seed": found.plan.seed,
        "stacks": _stacks(run),
        "imported": found.plan.testbed == RUNNER,
        "paths": {label: _digest(state.scenario) for label, state in found.scenarios.items()},
        "scenarios": sorted({cell.scenario for cell in run.outline.cells}),
        "trials": run.outcomes.total(),
        "failed": run.failed,
        "outcomes": dict(run.outcomes.most_common()),
        "left_out": found.left_out,
        "report": run.links.index,
    }


def _stacks(run: ReadRun) -> list[dict[str, Any]]:
    """The stacks that took part: what they call their version, and the build, by its sources."""
    manifest = run.outline.manifest
    listed = manifest.versions.get("stacks")
    reported = {name: str(version) for name, version in listed.items()} if isinstance(listed, dict) else {}
    names = {label for cell in run.outline.cells for label in (cell.client, cell.server)}
    return [
        {
            "name": name,
            "version": run.stack_versions.get(name) or reported.get(name),
            "build": _build(manifest, name),
        }
        for name in sorted({labels.variant(label).stack for label in names})
    ]


def _build(run: Manifest, stack: str) -> str | None:
    """The begin of the hash of what a stack was built from; null where the manifest does not say."""
    entry = run.stacks.get(stack)
    sources = (entry.installation or {}).get("inputs_sha256") if entry else None
    return sources[:_BUILD] if isinstance(sources, str) else None


def _digest(scenario: Any) -> str:
    """By it the same path is known again."""
    text = json.dumps(msgspec.to_builtins(scenario), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
