"""The marks of a study's page, and the cells of runs that they lead to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bentpipe.analysis import trial_marks
from bentpipe.analysis.trial_marks import RunCell
from bentpipe.study import catalogue, page


def leading(study: str, words: Sequence[str]) -> dict[str, list[RunCell | None]]:
    """The marks of a study's page from the runs that these arguments name: text of a cell of a table → where
    each cell with this text leads, None where it leads nowhere. No file of the page has a mark.
    """
    runs = [Path(word) for word in words if word != "--run"]
    written = page.write(catalogue.find(study), runs, Path("marked"))
    for file in written.files:
        assert b"trials-" not in file.read_bytes() and b"<!-- trials" not in file.read_bytes(), file
    found: dict[str, list[RunCell | None]] = {}
    for text in written.marked.values():
        for name, shown in _marks(text):
            found.setdefault(shown, []).append(written.trials.get(name))
    return found


def _marks(text: str) -> Iterator[tuple[str, str]]:
    for part in text.replace(r"\|", "/").split("|"):
        if name := trial_marks.read(part):
            yield name, trial_marks.without(part).strip()
