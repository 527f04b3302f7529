"""The page on fairness: what flows leave each other that share a path, of QUIC among themselves and beside
TCP.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.study import closing, markdown, sheets
from bentpipe.study.front import folded
from bentpipe.study.markdown import literal, mbit, path, percent, several, table
from bentpipe.study.source import Source

from . import answer, beside_tcp
from .runs import (
    FairnessRuns,
    beside,
    dropped,
    further,
    goodputs,
    indices,
    measured,
    share_of_first,
    unmeasured,
)

_HOW = """**Jain's index** is that of the flows' goodputs over the time in which all of them are there: 1
where all have the same, 1/n where one of n has everything. The tables show the median over the trials, in
brackets the worst of them. Behind it the goodput of each flow in Mbit/s, in the order in which they start,
and what the queue towards the clients dropped, in percent of the packets of all flows. In bold where every
trial was measured and the worst has at least {}."""
SOURCES = {
    "index": "R. Jain, D. Chiu, W. Hawe, A Quantitative Measure of Fairness and Discrimination for Resource "
    "Allocation in Shared Computer Systems, DEC Research Report TR-301, 1984"
}
_MEASURES = {"jain_index": lambda one: one.jain_index, "first_share_percent": share_of_first}


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write to `folder` the page of the runs of QUIC alone, and that of those with TCP, as far as they are
    there, each with its picture and a sheet of all settings. BentpipeError if no trial of a run had several
    flows.
    """
    files = []
    for name in ("fairness", "fairness-tcp"):
        mine = tuple(one for one in runs if _has_tcp(one) == name.endswith("tcp"))
        if not mine:
            continue
        found = FairnessRuns(mine)
        if not found.cells:
            raise mine[0].refused(
                "wanted are trials of several flows, as with --flow; the run has none that was measured",
                f"run {name}",
            )
        write_page = _write_tcp if name.endswith("tcp") else _write
        files += write_page(found, folder)
    return files


def _has_tcp(source: Source) -> bool:
    return any(one.transport == "tcp" for one in source.records)


def _write(runs: FairnessRuns, folder: Path) -> list[Path]:
    front = answer.front(runs, folder)
    parts = [*front.parts(), "## What was run", answer.opening(runs), answer.HOW, *_equals(runs)]
    files = [folder / "fairness.md", *([] if front.picture is None else [front.picture.file])]
    return _finish(runs, parts, files)


def _write_tcp(runs: FairnessRuns, folder: Path) -> list[Path]:
    front = beside_tcp.front(runs, folder)
    parts = [*front.parts(), "## What was run", answer.opening(runs), answer.HOW]
    parts += beside_tcp.sections(runs)
    files = [folder / "fairness-tcp.md", *([] if front.picture is None else [front.picture.file])]
    return _finish(runs, parts, files)


def _finish(runs: FairnessRuns, parts: Sequence[str], files: list[Path]) -> list[Path]:
    """Write the page, which is the first of the files, with a section for each path and the sheet."""
    sheet = files[0].with_suffix(".csv")
    line = sheets.of_cells([*runs.cells, *runs.real], _MEASURES, sheet, measured)
    end = closing.of_all(runs.sources, SOURCES)
    numbers = ["## In numbers", _HOW.format(answer.FAIR), line]
    files[0].write_text(markdown.page([*parts, *numbers, *_paths(runs), *end]))
    return [*files, sheet]


def _paths(runs: FairnessRuns) -> list[str]:
    parts = []
    for one in runs.scenarios:
        rows = _over(runs, one)
        head = ["first flow", "beside", "Jain's index", "goodputs, Mbit/s", "dropped"]
        parts += [f"## {path(one)}", *folded(several(len(rows), "setting"), table(head, rows, left=2))]
    return parts


def _equals(runs: FairnessRuns) -> list[str]:
    """Each server beside its own kind, over all paths."""
    if not runs.equal_sets:
        return ["No flow of this run is beside others of its kind alone."]
    columns = [(scenario, one) for scenario in runs.scenarios for one in runs.equal_sets]
    rows = [
        [literal(server), *(marked(_index(cell), cell) for cell in row)]
        for server in runs.servers
        for row in ([runs.by_key.get((server, *column)) for column in columns],)
    ]
    head = ["server", *(f"{path(scenario)}, {len(further(one)) + 1} flows" for scenario, one in columns)]
    return folded("Jain's index among equals, over each path", table(head, rows))


def _over(runs: FairnessRuns, scenario: str) -> list[list[str]]:
    return [
        [literal(server), beside(label), *_measured(runs.by_key[server, scenario, label])]
        for label in runs.sets
        for server in runs.servers
        if (server, scenario, label) in runs.by_key
    ]


def _measured(cell: Cell) -> list[str]:
    known = measured(cell)
    each = zip(*map(goodputs, known), strict=True)
    shown = " / ".join(mbit(statistics.median(values)) for values in each)
    texts = (_index(cell), shown, percent(statistics.median(dropped(known))))
    return [marked(text, cell) for text in texts]


def _index(cell: Cell | None) -> str:
    """The median, and the worst."""
    if cell is None:
        return ""
    found = indices(cell)
    text = f"{statistics.median(found):.2f} ({min(found):.2f})"
    return f"**{text}**" if answer.is_even(cell) else f"{text}{unmeasured(cell)}"
