"""The notebooks of docs/notebooks: their cells run, one after the other, as plain Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, present

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
# What each leaves behind, beside its runs.
FIGURES = {
    "one-run": {"distributions.pdf", "efficiency.pdf", "courses.pdf"},
    "runs-over-time": {"over-time.pdf"},
}
LINK = "../how-to/use-with-the-interop-runner.md"


def cells(notebook: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(notebook.read_text())["cells"]
    return found


def test_each_notebook_is_run() -> None:
    assert {notebook.stem for notebook in NOTEBOOKS} == set(FIGURES)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_nothing_is_kept_that_was_not_made_by_running(notebook: Path) -> None:
    for cell in cells(notebook):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    names = [cell["id"] for cell in cells(notebook)]
    assert len(set(names)) == len(names)


@pytest.mark.virtual_time
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    """Twice: the second time its runs are there already."""
    present()
    code = ["".join(cell["source"]) for cell in cells(notebook) if cell["cell_type"] == "code"]
    (tmp_path / "notebook.py").write_text("\n".join(code))
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "notebook.py"],
            cwd=tmp_path,
            env=os.environ | {"MPLBACKEND": "Agg", "MPLCONFIGDIR": str(tmp_path / "matplotlib")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[1] and said[0].endswith(said[1])
    figures = {file.name: file.read_bytes()[:5] for file in tmp_path.glob("*.pdf")}
    assert figures == dict.fromkeys(FIGURES[notebook.stem], b"%PDF-")


def test_links_of_notebooks_lead_somewhere() -> None:
    text = "".join(notebook.read_text() for notebook in NOTEBOOKS)
    assert LINK in text and (NOTEBOOKS[0].parent / LINK).is_file()
    assert (NOTEBOOKS[0].parent / "../reference/records.md").is_file()
