"""The page `thesis`: all pairs of stacks over the thesis's paths, beside what was published.

Source: S. Endres, Evaluation and Optimization of the IETF QUIC Protocol for Satellite Networks, 2022, and the
slides of the same group (2021); `published.toml` has the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe import workload
from bentpipe.analysis.cells import Matrix, matrices
from bentpipe.analysis.plots.canvas import GREY
from bentpipe.errors import BentpipeError
from bentpipe.runs.records import Record
from bentpipe.study import compare, figures, footing, markdown
from bentpipe.study.compare import ScenarioResult
from bentpipe.study.figures import Line
from bentpipe.study.markdown import literal, mbit, pair, percent, several, table
from bentpipe.study.source import Source

from . import published
from . import then_and_now as then_and_now
from .published import Published

WORKLOAD = "transfer:10485760"
_MATRICES = "thesis-matrices.svg"

_HOW = """\
Goodput is 8 · size / time from the first packet of the reply to its last byte; efficiency is goodput / rate
of the forward link. A pair is one stack as client and one as server; its figure is the mean of its trials.
As in the source, a pair has failed if one of its trials has or is unsupported, and figures are over the pairs
that have not: means over pairs, maxima over their single trials.

Three things differ. The source's time is from the first to the last packet that the client received, so it
can be longer by what came before the reply and what was repeated after its last byte. It ran ten trials of a
pair, over the real links five, and stopped at the first that failed. And its failed pairs seem to include all
those of chrome and quicly, which never worked there: of the 78 pairs over SAT that the slides show without
the two, only 4 have no value."""


@dataclass(frozen=True)
class Page:
    """What the page is written from."""

    source: Source
    known: Published

    @cached_property
    def records(self) -> list[Record]:
        """Those that can be compared: the source's scenarios as they are, and its workload."""
        return [
            one
            for one in self.source.records
            if one.scenario in self.known.scenarios and one.workload == WORKLOAD
        ]

    @cached_property
    def matrices(self) -> dict[str, Matrix]:
        """By scenario, in the order of the source's table."""
        found = {matrix.key.scenario: matrix for matrix in matrices(self.records)}
        return {name: found[name] for name in self.known.scenarios if name in found}

    @cached_property
    def ours(self) -> dict[str, ScenarioResult]:
        return {name: compare.over_pairs(one) for name, one in self.matrices.items()}

    @cached_property
    def planned(self) -> Counter[str]:
        """Scenario → trials that the run was to have."""
        manifest = self.source.manifest
        trials = manifest.plan.trials(tuple(manifest.left_out))
        mine = [one.scenario for one in trials if one.workload == WORKLOAD]
        return Counter(name for name in mine if name in self.known.scenarios)

    @property
    def missing(self) -> Counter[str]:
        """Scenario → trials without a record."""
        return self.planned - Counter(one.scenario for one in self.records)

    def rate_bps(self, scenario: str) -> float:
        return float(self.source.manifest.scenarios[scenario].summary["forward_rate_bps"])


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its figures to `folder`; the files, the page first. BentpipeError if the run has
    nothing that can be compared.
    """
    source = runs[0]
    page = Page(source, published.load())
    if not page.matrices:
        raise _nothing(page)
    drawn = [folder / _MATRICES]
    shown = [(_panel(page, name), matrix) for name, matrix in page.matrices.items()]
    figures.heat_maps(shown, drawn[0])
    for name, matrix in page.matrices.items():
        drawn.append(folder / f"thesis-{name}.svg")
        figures.distribution(matrix, _lines(page, name), drawn[-1])
    path = folder / "thesis.md"
    path.write_text(markdown.page(_sections(page)))
    return [path, *drawn]


def _nothing(page: Page) -> BentpipeError:
    has = sorted({f"{r.scenario} with {r.workload}" for r in page.source.records})
    listed = ", ".join(has[:5]) + (f" and {len(has) - 5} more" if len(has) > 5 else "")
    wanted = ", ".join(page.known.scenarios)
    return BentpipeError(
        f"{page.source.folder}: nothing here can be compared: wanted is {WORKLOAD} over one of {wanted}; "
        f"the run has {listed}",
        "make such a run with: bentpipe run thesis",
    )


def _sections(page: Page) -> list[str]:
    parts = ["# The thesis's matrix, then and now", _opening(page), "## All pairs", _HOW, _overview(page)]
    parts += [_sentences(page), f"![Mean efficiency of every pair, in percent]({_MATRICES})", _map_key()]
    for name, matrix in page.matrices.items():
        parts += _of_scenario(page, name, matrix)
    parts += then_and_now.sections(page.source.manifest, page.known, page.matrices)
    parts += footing.failures(page.records)
    parts += footing.cost(page.records, page.source.manifest)
    parts += footing.limits([name for name in page.matrices if page.known.scenarios[name].real_link])
    parts += footing.made(page.source, page.known.sources)
    return parts


def _opening(page: Page) -> str:
    clients, servers = (
        sorted({getattr(r, role) for r in page.records}, key=str.casefold) for role in ("client", "server")
    )
    who = f"{several(len(clients), 'client')} and {several(len(servers), 'server')}"
    if clients == servers:
        each = "with itself" if len(clients) == 1 else "each as a client and as a server of every one"
        who = f"{several(len(clients), 'stack')}, {each}"
    text = (
        f"{who[0].upper()}{who[1:]}, over {', '.join(page.matrices)}: {workload.title(WORKLOAD)}, "
        f"{several(len(page.records), 'trial')} in virtual time. Published figures are from "
        f"{page.known.sources['endres']}, and {page.known.sources['deutschmann']}."
    )
    absent = [name for name in page.known.scenarios if name not in page.matrices.keys() | page.planned]
    if absent:
        text += f"\n\nNot in this run, and so not on this page: {', '.join(absent)}."
    if page.source.manifest.left_out:
        text += (
            f"\n\nStacks that were left out, why is said below: {', '.join(page.source.manifest.left_out)}."
        )
    if page.missing:
        listed = ", ".join(f"{count} over {name}" for name, count in page.missing.items())
        text += f"\n\nThe run is not complete. Trials without a record: {listed}."
    return text


def _overview(page: Page) -> str:
    head = ["", "mean, Mbit/s", "published", "best trial", "published", "best efficiency", "published"]
    head += ["pairs failed", "published", "pairs with a timeout", "published", "pairs"]
    rows = []
    for name, ours in page.ours.items():
        then = page.known.scenarios[name]
        rows.append(
            [
                name,
                mbit(ours.mean_bps),
                f"{then.mean:.2f}",
                mbit(ours.max_bps),
                f"{then.max:.1f}",
                percent(ours.max_efficiency),
                f"{then.max_efficiency:g} %",
                percent(ours.share(ours.failed)),
                f"{then.failed:g} %",
                percent(ours.share(ours.timeout)),
                f"{then.timeout:g} %",
                str(ours.pairs),
            ]
        )
    origin = "; ".join(sorted({page.known.scenarios[name].source for name in page.ours}))
    return f"{table(head, rows)}\n\nPublished: {origin}."


def _sentences(page: Page) -> str:
    """What the overview says, in words."""
    lines = []
    for name, ours in page.ours.items():
        then = page.known.scenarios[name]
        if ours.mean_bps is None or ours.max_bps is None:
            lines.append(f"- **{name}**: no pair is without a failed trial, so there is no mean.")
            continue
        mean = compare.against(ours.mean_bps / 1e6, then.mean)
        best = compare.against(ours.max_bps / 1e6, then.max)
        text = f"- **{name}**: the mean pair has {mean} goodput as was published, the best trial {best}."
        if ours.unsupported:
            text += f" Of the failed pairs {ours.unsupported} are unsupported."
        if then.real_link:
            text += " The published figures are of a real link, these of a stand-in with its nominal figures."
        lines.append(text)
    return "\n".join(lines)


def _map_key() -> str:
    return (
        "Numbers are percent of the forward rate; `!`: some trials failed, and the mean is over the others; "
        "`x`: no trial succeeded; white: no record. The tables below have the mean goodput of every pair in "
        "Mbit/s, in brackets how many trials failed, and a word, the most frequent outcome, where all did."
    )


def _panel(page: Page, name: str) -> str:
    mean = page.ours[name].mean_efficiency
    then = page.known.scenarios[name].mean_efficiency
    return f"{name}: mean {percent(mean)}, published {then:g} %"


def _lines(page: Page, name: str) -> list[Line]:
    rate = page.rate_bps(name)
    mean = page.ours[name].mean_bps
    lines = [Line(rate, f"rate of the link, {rate / 1e6:g} Mbit/s")]
    if mean is not None:
        lines.append(Line(mean, f"mean here, {mbit(mean)} Mbit/s", "--", GREY))
    then = page.known.scenarios[name].mean
    return [*lines, Line(then * 1e6, f"mean published, {then:.2f} Mbit/s", ":", GREY)]


def _of_scenario(page: Page, name: str, matrix: Matrix) -> list[str]:
    summary = page.source.manifest.scenarios[name].summary
    title = str(summary.get("title", name))
    head = ["client \\\\ server", *map(literal, matrix.servers)]
    by_pair = {(cell.key.client, cell.key.server): cell for cell in matrix.cells}
    rows = [
        [literal(client), *(pair(by_pair.get((client, server))) for server in matrix.servers)]
        for client in matrix.clients
    ]
    return [
        f"## {name}",
        f"{literal(title)}. {_facts(summary)}",
        table(head, rows),
        f"![Goodput of pairs over {name}](thesis-{name}.svg)",
    ]


def _facts(summary: dict[str, object]) -> str:
    """What else the path has, as far as the manifest says it."""
    known = [
        ("Queue", "forward_queue", ""),
        ("loss", "forward_loss", ""),
        ("timeout", "timeout_s", " s"),
    ]
    said = [f"{word} {literal(_plain(summary[key]))}{unit}" for word, key, unit in known if key in summary]
    return f"{', '.join(said)}." if said else ""


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
