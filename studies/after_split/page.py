"""The page on what comes after split proxies: what each treatment does to files, pages and frames, and which
to choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe.analysis.cells import Cell, cells
from bentpipe.plan.treatments import DIRECT
from bentpipe.study import closing, markdown
from bentpipe.study.markdown import number, table
from bentpipe.study.quantiles import median_of
from bentpipe.study.source import Source, pooled

from . import costs, drawn, effects, several_paths, tables
from .effects import FASTER, PATHS, SLOWER, Effect, Setting

CUBIC, OURS = "noq:cc=cubic", "noq:cc=bentpipe"
LEAST = 1_000_000  # bytes: smaller files are over before a treatment of the hop can do anything
NONE = "none"
_ADVICE = {
    "quic-pep": "split connections",
    "fec": "repair losses in advance",
    "sidecar": "send again what is lost",
    "masque, not nested": "tunnel without congestion control",
    NONE: "leave connections alone",
}
_CAPTION = """How many times as long as direct a file takes, from a server with CUBIC: left of the grey band
is faster. Lines are intervals of 95 %."""
_HOW = """Times are medians, with quartiles where they differ by more than 2 %. ▼ is a time that is shorter
than direct's by more than 5 % and beyond chance, ▲ a longer one (t on logarithms, p < 0.05 after
Benjamini and Hochberg over all comparisons of the page). `quic-pep` and `masque` have their connection over
the satellite already, as an operator's would. Losses are on the satellite hop, both ways. Without random loss
a path repeats itself but for what programs draw, so there spread says little."""


@dataclass(frozen=True)
class Page:
    """The runs of the page, and their cells by what they fetch."""

    sources: tuple[Source, ...]

    @cached_property
    def cells(self) -> list[Cell]:
        return cells(pooled(self.sources))

    def of(self, wanted: Callable[[Cell], bool]) -> dict[Setting, dict[str, Cell]]:
        """The cells over one path, in virtual time, for which that holds, by setting and treatment."""
        return effects.by_setting(
            one
            for one in self.cells
            if one.key.scenario_label.name in PATHS and not _is_real(one) and wanted(one)
        )

    @cached_property
    def real_files(self) -> dict[Setting, dict[str, Cell]]:
        """Transfers over QUIC in real time."""
        return effects.by_setting(
            one for one in self.cells if _is_real(one) and effects.size(one.key.workload) is not None
        )

    @cached_property
    def files(self) -> dict[Setting, dict[str, Cell]]:
        """Transfers over QUIC."""
        return self.of(lambda one: _is_quic(one) and effects.size(one.key.workload) is not None)

    @cached_property
    def pages(self) -> dict[Setting, dict[str, Cell]]:
        return self.of(lambda one: one.key.workload.startswith("page:"))

    @cached_property
    def tcp(self) -> dict[Setting, dict[str, Cell]]:
        """Transfers over TCP."""
        return self.of(lambda one: not _is_quic(one) and effects.size(one.key.workload) is not None)

    @cached_property
    def frames(self) -> dict[Setting, dict[str, Cell]]:
        return self.of(lambda one: one.key.workload.startswith("frames:"))

    @cached_property
    def shared(self) -> dict[Setting, dict[str, Cell]]:
        """Two flows behind the same treatment."""
        return self.of(lambda one: " + " in one.key.workload and "middlebox" not in one.key.workload)

    @cached_property
    def beside(self) -> dict[Setting, dict[str, Cell]]:
        """A flow with repairs beside one without."""
        return self.of(lambda one: "middlebox" in one.key.workload)

    @cached_property
    def found(self) -> dict[tuple[Setting, str], Effect]:
        """All effects on files and pages."""
        return effects.effects({**self.files, **self.pages, **self.tcp})


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page to `folder`. BentpipeError if the runs compare no treatment with none over GEO."""
    page = Page(tuple(runs))
    if not any(where.path == "geo-tum" and where.sender == CUBIC for where, _ in page.found):
        why = "wanted are transfers over geo-tum from noq:cc=cubic, direct and behind a treatment"
        raise runs[0].refused(why, "run after-split")
    figure = folder / "after-split.svg"
    drawn.draw(page.files, page.found, CUBIC, figure)
    file = folder / "after-split.md"
    file.write_text(markdown.page(_sections(page)))
    return [file, figure]


def _sections(page: Page) -> list[str]:
    parts = [f"# {_title(page)}", _answer(page)]
    parts += ["![How many times as long files take behind each treatment](after-split.svg)", _CAPTION]
    parts += ["## Which to choose", _choice(page)]
    parts += ["## Why", _why(page)]
    parts += several_paths.sections(page.cells)
    parts += costs.sections(costs.Runs(page.files, page.real_files, page.shared, page.beside))
    parts += ["## All times", _HOW]
    parts += tables.folded("Files over QUIC", tables.times(page.files, page.found))
    if page.tcp:
        parts += tables.folded("Files over TCP", tables.times(page.tcp, page.found))
    if page.pages:
        parts += tables.folded("A page", tables.times(page.pages, page.found))
    if page.frames:
        text = "Media frames within 400 ms, over datagrams: medians of their share."
        parts += tables.folded("Media frames", text, tables.figures(page.frames, tables.in_time))
    parts += ["## What is left out", _left_out(page)]
    return [*parts, *closing.of_all(page.sources)]


def _is_real(cell: Cell) -> bool:
    return cell.key.testbed == "emu"


def _is_quic(cell: Cell) -> bool:
    return not cell.key.server.startswith("linux")


def winner(page: Page, path: str, loss: str, sender: str) -> str:
    """The treatment that is faster than none with one size of 1 MB or more and slower with none, by the
    geometric mean over these sizes; `none` if there is no such.
    """
    by_name: dict[str, list[Effect]] = {}
    for (where, name), one in page.found.items():
        count = effects.size(where.workload)
        if (where.path, where.loss, where.sender) == (path, loss, sender) and count and count >= LEAST:
            by_name.setdefault(name, []).append(one)
    means = {
        name: math.fsum(math.log(one.ratio.value) for one in some) / len(some)
        for name, some in by_name.items()
        if any(one.verdict == FASTER for one in some) and all(one.verdict != SLOWER for one in some)
    }
    return min(means, key=lambda name: means[name]) if means else NONE


def _title(page: Page) -> str:
    """The finding for servers with CUBIC, which most are: what to do over GEO, with loss, over LEO."""
    places = {
        "over GEO": winner(page, "geo-tum", "0 %", CUBIC),
        "over GEO with 1 % of loss": winner(page, "geo-tum", "1 %", CUBIC),
        "over LEO": winner(page, "leo-tum", "0 %", CUBIC),
    }
    where: dict[str, list[str]] = {}
    for place, name in places.items():
        where.setdefault(name, []).append(place)
    parts = [f"{_ADVICE.get(name, f'choose {name}')} {markdown.listed(some)}" for name, some in where.items()]
    return f"For servers with CUBIC: {'; '.join(parts)}"


def _answer(page: Page) -> str:
    sentences = [
        _sentence(page, "geo-tum", "0 %", "Over GEO without random loss"),
        _sentence(page, "geo-tum", "1 %", "With 1 % of loss on the satellite hop"),
        _sentence(page, "leo-tum", "0 %", "Over LEO without random loss"),
    ]
    return " ".join(one for one in sentences if one)


def _sentence(page: Page, path: str, loss: str, begin: str) -> str:
    """What the best treatment makes of each size, from a server with CUBIC, and from one of ours."""
    if not effects.on_path(page.files, path, loss):
        return ""
    best = winner(page, path, loss, CUBIC)
    ours = winner(page, path, loss, OURS)
    with_ours = (
        "and no treatment is faster than direct for a server with `cc=bentpipe`"
        if ours == NONE
        else f"and for a server with `cc=bentpipe` {_gain(page, path, loss, OURS, ours)}"
    )
    if best == NONE:
        return f"{begin} no treatment is faster than direct for a server with CUBIC, {with_ours}."
    return f"{begin} {_gain(page, path, loss, CUBIC, best)} from a server with CUBIC, {with_ours}."


def _gain(page: Page, path: str, loss: str, sender: str, name: str) -> str:
    """`quic-pep` takes 2.1 s in place of 4.0 for 1 MB, …"""
    parts = []
    for where in effects.on_path(page.files, path, loss):
        row = page.files[where]
        count = effects.size(where.workload)
        if where.sender != sender or not count or count < LEAST or name not in row or DIRECT not in row:
            continue
        with_it, without = (median_of(row[one], "completion_s") for one in (name, DIRECT))
        parts.append(
            f"{number(with_it, 1)} s in place of {number(without, 1)} for {effects.named(where.workload)}"
        )
    return f"`{name}` takes {markdown.listed(parts)}"


def _choice(page: Page) -> str:
    """The treatment of each path, by the server's sender."""
    rows = []
    for path, words in PATHS.items():
        for loss in dict.fromkeys(one.loss for one in effects.in_order(page.files) if one.path == path):
            mine = [winner(page, path, loss, sender) for sender in (CUBIC, OURS)]
            rows.append([words, loss, *(name if name != NONE else "direct" for name in mine)])
    return table(["path", "loss", "for servers with CUBIC", "for servers with `cc=bentpipe`"], rows, left=4)


def _why(page: Page) -> str:
    """Each cause as the one thing that was changed, for the largest file without random loss."""
    causes = [
        (
            "**Splitting gains by its sender**, which faces the satellite in place of the server's",
            "geo-tum",
            {
                "CUBIC at the server": (CUBIC, DIRECT),
                "`cc=bentpipe` there": (OURS, DIRECT),
                "CUBIC there and `quic-pep`": (CUBIC, "quic-pep"),
            },
        ),
        (
            "**A tunnel gains nothing, and loses where two congestion controls are one in the other**",
            "dvb-s2-rain",
            {
                "`masque`": (OURS, "masque"),
                "the same, not nested": (OURS, "masque, not nested"),
                "direct": (OURS, DIRECT),
            },
        ),
        (
            "**Repairs in advance cost their bytes** where nothing is lost",
            "geo-tum",
            {"`fec`": (OURS, "fec"), "direct": (OURS, DIRECT)},
        ),
    ]
    lines = []
    for what, path, shown in causes:
        largest, took = _largest(page, path)
        values = [f"{words} {took[key]}" for words, key in shown.items() if key in took]
        if len(values) > 1:
            lines.append(f"- {what}. {largest} over {PATHS[path]}: {', '.join(values)}.")
    return "\n".join(lines) or "These runs change no single thing."


def _largest(page: Page, path: str) -> tuple[str, dict[tuple[str, str], str]]:
    """The largest file over a path without random loss, and its seconds by sender and treatment."""
    clear = effects.on_path(page.files, path, "0 %")
    largest = max((count for one in clear if (count := effects.size(one.workload))), default=0)
    rows = {one.sender: page.files[one] for one in clear if effects.size(one.workload) == largest}
    took = {
        (sender, name): f"{number(median_of(cell, 'completion_s'), 1)} s"
        for sender, row in rows.items()
        for name, cell in row.items()
    }
    return markdown.bytes_as(largest), took


def _left_out(page: Page) -> str:
    """The subjects of which these runs have nothing, and those that other pages have."""
    there = {
        "files of 100 MB without handovers": any(
            effects.size(one.workload) == 100 * LEAST and one.path != "starlink" for one in page.files
        ),
        "what each treatment costs in CPU time": bool(page.real_files),
        "files over TCP": bool(page.tcp),
        "pages": bool(page.pages),
        "media frames": bool(page.frames),
        "two flows": bool(page.shared or page.beside),
        "handovers": any(one.path == "starlink" for one in page.files),
        "two paths": bool(several_paths.sections(page.cells)),
    }
    missing = [name for name, has in there.items() if not has]
    lines = [
        "- Tunnels from the client, `vpn`, are for emulation: [their page](../../docs/design/vpn.md).",
        "- Memory of paths behind a terminal: [its page](../../docs/design/careful-resume.md).",
    ]
    if missing:
        lines.insert(0, f"- No run of these is in this page: {markdown.listed(missing)}.")
    return "\n".join(lines)
