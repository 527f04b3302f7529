"""The page of a study: the runs that it is written from, and the folder that it goes to."""

from __future__ import annotations

import logging
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe import paths
from bentpipe.analysis import trial_marks
from bentpipe.analysis.cells import cells
from bentpipe.analysis.trial_marks import RunCell
from bentpipe.errors import BentpipeError, UsageError
from bentpipe.runs import run_folder
from bentpipe.study.catalogue import Study
from bentpipe.study.source import Source


@dataclass(frozen=True)
class WrittenPage:
    """The page of a study, and what leads from its numbers to their trials."""

    files: Sequence[Path]
    marked: Mapping[Path, str]  # of each Markdown file: its text with the marks that the file has not
    trials: Mapping[str, RunCell]  # the cells of its runs, by the digest that marks have


def write(one: Study, folders: Sequence[Path], out: Path | None) -> WrittenPage:
    """Write a study's page from the runs in `folders`, to `out` or where its pages are."""
    _check_number(one, len(folders))
    # Where matplotlib cannot keep its settings, it takes a temporary folder, and warns of that.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    given = [word for run in folders for word in ("--run", str(run))]
    command = shlex.join(["bentpipe", "study", one.name, *given])
    sources = [Source.read(folder, command) for folder in folders]
    shipped = paths.is_package() and one.folder.is_relative_to(paths.root())
    place = out or (Path() if shipped else one.folder)
    write_page = one.page()
    is_new = not place.exists()
    place.mkdir(parents=True, exist_ok=True)
    try:
        files = write_page(sources, place)
    except BentpipeError:
        if is_new:  # of what is refused, nothing is left
            shutil.rmtree(place)
        raise
    return WrittenPage(files, _unmarked(files), _trials(sources))


def _unmarked(files: Sequence[Path]) -> dict[Path, str]:
    """Take the marks out of the pages among the files; the texts with them."""
    texts = {file: file.read_text() for file in files if file.suffix == ".md"}
    for file, text in texts.items():
        if (plain := trial_marks.without(text)) != text:
            file.write_text(plain)
    return texts


def _trials(sources: Sequence[Source]) -> dict[str, RunCell]:
    """Without those that two runs have: nobody can tell whose trials are in which nothing was measured."""
    found: dict[str, RunCell] = {}
    shared = set()
    for source in sources:
        for cell in cells(source.records):
            name = trial_marks.digest(cell.records)
            if name in found and found[name].run.resolve() != source.folder.resolve():
                shared.add(name)
            found.setdefault(name, RunCell(source.folder, cell.key))
    return {name: cell for name, cell in found.items() if name not in shared}


def _check_number(one: Study, given: int) -> None:
    """UsageError if the page of a study is not written from that many runs."""
    needed = sum(planned.needed for planned in one.runs)
    # A page that can do without a run takes further ones, too: more trials of the same, or real time.
    takes_more = needed < len(one.runs)
    if given < needed or not given or (given > needed and not takes_more):
        many = f"{needed} runs" if needed > 1 else "one run"
        raise UsageError(
            f"{one.name}: its page is written from {many}{' or more' if takes_more else ''}; given: {given}",
            "repeat --run, in the order in which `--help` lists them",
        )


def invalid_trials(folder: Path) -> int:
    """The number of trials of a run in which the testbed failed. BentpipeError if the run is not complete."""
    manifest, records = run_folder.read_unfinished(folder)
    if manifest.finished is None:
        again = shlex.join(["bentpipe", "run", "--resume", str(folder)])
        raise BentpipeError(f"{folder}: the run did not come to its end", f"go on with: {again}")
    return sum(record.outcome == "invalid" for record in records)
