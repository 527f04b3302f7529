"""The page `thesis`: all pairs of stacks over the thesis's paths, beside what was published.

Source: S. Endres, Evaluation and Optimization of the IETF QUIC Protocol for Satellite Networks, 2022, and the
slides of the same group (2021); `published.toml` has the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bentpipe import workload
from bentpipe.analysis.cells import Matrix
from bentpipe.analysis.plots.canvas import GREY
from bentpipe.analysis.trial_marks import marked
from bentpipe.errors import BentpipeError
from bentpipe.study import claims as study_claims
from bentpipe.study import closing, figures, markdown
from bentpipe.study.claims import Claim
from bentpipe.study.figures import Line
from bentpipe.study.markdown import literal, mbit, pair, percent, several, table
from bentpipe.study.source import Source

from . import (
    answer,
    causes,
    claims,
    common,
    distributions,
    gallery,
    literature,
    published,
    real_time,
    then_and_now,
    virtual_time,
)
from .pairs import against
from .runs import WORKLOAD, ThesisRuns, made_of

_MATRICES = "thesis-matrices.svg"

_HOW = """Goodput is by equation 4.1, efficiency by 4.2, as in the source. A pair is one stack as client and
one as server; its figure is the mean of its trials. As in the source, a pair has failed if one of its trials
has or is unsupported, and figures are over the pairs that have not: means over pairs, maxima over their
single trials.

Two things differ. The source ran ten trials of a pair, over the real links five, and stopped at the first
that failed. And its failed pairs seem to include all those of chrome and quicly, which never worked there: of
the 78 pairs over SAT that the slides show without the two, only 4 have no value."""


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the pages and their figures to `folder`; the files, the main page first. BentpipeError if the run
    has nothing that can be compared.
    """
    page = ThesisRuns(tuple(runs), published.load())
    if not page.matrices:
        raise _nothing(page)
    drawn = [folder / _MATRICES]
    shown = [(_panel(page, name), matrix) for name, matrix in page.matrices.items()]
    figures.heat_maps(shown, drawn[0])
    for name, matrix in page.matrices.items():
        drawn.append(folder / f"thesis-{name}.svg")
        figures.distribution(matrix, _lines(page, name), drawn[-1])
    path = folder / "thesis.md"
    further = [*distributions.write(page, folder), *gallery.write(page, folder)]
    pairs = folder / "thesis-pairs.md"
    pairs.write_text(markdown.page(_pairs(page)))
    has_gallery = any(one.name == "thesis-gallery.md" for one in further)
    known = [*claims.of(page), *answer.then_and_now(page)]
    front = answer.front(page, known, folder)
    path.write_text(markdown.page([*front.parts(), *_sections(page, known, has_gallery)]))
    picture = [] if front.picture is None else [front.picture.file]
    return [path, pairs, *picture, *drawn, *further]


def _nothing(page: ThesisRuns) -> BentpipeError:
    has = sorted({f"{r.scenario} with {r.workload}" for r in page.source.records})
    listed = ", ".join(has[:5]) + (f" and {len(has) - 5} more" if len(has) > 5 else "")
    wanted = ", ".join(page.known.scenarios)
    return page.source.refused(
        f"nothing here can be compared: wanted is {WORKLOAD} over one of {wanted}; the run has {listed}",
        "run thesis",
    )


def _sections(page: ThesisRuns, known: Sequence[Claim], gallery: bool) -> list[str]:
    parts = ["## What was run", _opening(page), _others(gallery)]
    parts += ["## The thesis's claims", study_claims.rows(known, "the thesis says")] if known else []
    parts += [study_claims.RULE, claims.HOW] if known else []
    parts += ["## Then and now", *common.same_pairs(page)]
    parts += [*real_time.section(page), *common.common_servers(page)]
    parts += common.definitions(page)
    parts += causes.sections(page)
    parts += ["## All pairs", _HOW, _overview(page)]
    parts += [
        _sentences(page),
        "[All pairs of every scenario](thesis-pairs.md), with the heat maps of figure 5.1.",
    ]
    parts += then_and_now.sections(page.source.manifest, page.known, page.as_published)
    parts += literature.section(page)
    parts += closing.failures(page.records)
    parts += virtual_time.section(page.records, page.source.manifest)
    parts += virtual_time.limits([name for name in page.matrices if page.known.scenarios[name].real_link])
    parts += closing.made(page.source, page.known.sources, page.sources[1:])
    return parts


def _pairs(page: ThesisRuns) -> list[str]:
    """The page on every pair."""
    parts = ["# The thesis's matrix, every pair", "What it says is on [the main page](thesis.md)."]
    parts += [f"![Mean efficiency of every pair, in percent]({_MATRICES})", _map_key(page)]
    for name, matrix in page.matrices.items():
        parts += _of_scenario(page, name, matrix)
    return [*parts, *closing.made(page.source, page.known.sources, page.sources[1:])]


def _others(gallery: bool) -> str:
    text = (
        "[How goodput is distributed](thesis-distributions.md) over trials, pairs and roles, how "
        "scenarios are "
        "related, and how much of the variance is due to client and server, is a page of its own"
    )
    traces = "; so are [our traces beside the thesis's](thesis-gallery.md)."
    return text + (traces if gallery else ".")


def _opening(page: ThesisRuns) -> str:
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


def _overview(page: ThesisRuns) -> str:
    head = ["", "mean, Mbit/s", "published", "best trial", "published", "best efficiency", "published"]
    head += ["pairs failed", "published", "pairs with a timeout", "published", "pairs"]
    rows = []
    for name, ours in page.results.items():
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
    origin = "; ".join(sorted({page.known.scenarios[name].source for name in page.results}))
    return f"{table(head, rows)}\n\nPublished: {origin}."


def _sentences(page: ThesisRuns) -> str:
    """The overview in words."""
    lines = []
    for name, ours in page.results.items():
        then = page.known.scenarios[name]
        if ours.mean_bps is None or ours.max_bps is None:
            lines.append(f"- **{name}**: no pair is without a failed trial, so there is no mean.")
            continue
        mean = against(ours.mean_bps / 1e6, then.mean)
        best = against(ours.max_bps / 1e6, then.max)
        text = f"- **{name}**: the mean pair has {mean} goodput as was published, the best trial {best}."
        if ours.unsupported:
            text += f" Of the failed pairs {ours.unsupported} are unsupported."
        if then.real_link:
            text += " The published figures are of a real link, these of a stand-in with its nominal figures."
        lines.append(text)
    return "\n".join(lines)


def _map_key(page: ThesisRuns) -> str:
    return (
        f"{made_of(page.records)}. Numbers are percent of the forward rate, of goodput as "
        "[ours](thesis.md#two-definitions-of-goodput); `!`: some trials failed, and the mean is over the "
        "others; `x`: no trial succeeded; white: no record. The means in headings and pictures are over "
        "pairs that never failed, by equations 4.1 and 4.2, as the published ones. The tables below have the "
        "mean goodput of every pair in Mbit/s, ours, in brackets how many trials failed, and a word, the "
        "most frequent outcome, where all did."
    )


def _panel(page: ThesisRuns, name: str) -> str:
    mean = page.results[name].mean_efficiency
    then = page.known.scenarios[name].mean_efficiency
    return f"{name}: mean {percent(mean)}, published {then:g} %"


def _lines(page: ThesisRuns, name: str) -> list[Line]:
    rate = page.rate_bps(name)
    mean = page.results[name].mean_bps
    lines = [Line(rate, f"rate of the link, {rate / 1e6:g} Mbit/s")]
    if mean is not None:
        lines.append(Line(mean, f"mean here, {mbit(mean)} Mbit/s", "--", GREY))
    then = page.known.scenarios[name].mean
    return [*lines, Line(then * 1e6, f"mean published, {then:.2f} Mbit/s", ":", GREY)]


def _of_scenario(page: ThesisRuns, name: str, matrix: Matrix) -> list[str]:
    summary = page.source.manifest.scenarios[name].summary
    title = str(summary.get("title", name))
    head = ["client \\\\ server", *map(literal, matrix.servers)]
    by_pair = {(cell.key.client, cell.key.server): cell for cell in matrix.cells}
    rows = [
        [literal(client), *(marked(pair(cell), cell) for cell in row)]
        for client in matrix.clients
        for row in ([by_pair.get((client, server)) for server in matrix.servers],)
    ]
    return [
        f"## {name}",
        f"{literal(title)}. {_facts(summary)}",
        table(head, rows),
        f"![Goodput of pairs over {name}](thesis-{name}.svg)",
        f"{made_of([one for one in page.records if one.scenario == name])}: a dot for each pair.",
    ]


def _facts(summary: dict[str, object]) -> str:
    """Queue, loss and timeout of the path, as far as the manifest has them."""
    known = [
        ("Queue", "forward_queue", ""),
        ("loss", "forward_loss", ""),
        ("timeout", "timeout_s", " s"),
    ]
    said = [f"{word} {literal(_plain(summary[key]))}{unit}" for word, key, unit in known if key in summary]
    return f"{', '.join(said)}." if said else ""


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
