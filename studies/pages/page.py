"""The page on pages: how long one takes over each version of HTTP, behind proxies and without, beside what a
paper and slides have of browsers. `vpn` makes another, of pages through a VPN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bentpipe.analysis.trial_marks import marked
from bentpipe.study import claims as study_claims
from bentpipe.study import closing, markdown
from bentpipe.study.front import folded
from bentpipe.study.markdown import several, table, trials
from bentpipe.study.source import Source
from bentpipe.workload.http import TITLES

from . import answer, browsers, experiments, glance, published, senders, vpn
from .published import Published, TableRow
from .runs import H1, H3, QUIC, TCP, TUNNELLED, PageRuns, refuse_others, seconds

_MEASURES = {"rs_s": "Response start", "fcp_s": "First contentful paint", "plt_s": "Page load time"}
_TEXT = """How long a page takes behind a satellite, over HTTP/1.1, HTTP/2 and HTTP/3, in virtual time: a
client with a browser's rules of fetching, real stacks below it. Beside it stands what a paper measured with
Chromium over an emulated satellite, and what slides say of five operators."""
_DIFFERS = """- **The page.** The source's is the ETSI Kepler reference page: 75 objects, about 880 kB. Which
  object is how large, of which type, and what leads to it is not stated: here it is drawn from a seed
  (`bentpipe page show kosek`).
- **The client** is no browser: it parses nothing, scripts are times that pass, and first contentful paint is
  when what blocks rendering is there, not when something was painted.
- **The stacks.** The source has Chromium's QUIC and H2O's quicly, quicly in the proxies, Linux 5.4's TCP and
  PEPsal. Here these are noq, Bentpipe's proxies, and Linux 6.12's TCP. HTTP/1.1 is in the clear in both.
- **The link.** The source's satellite is OpenSAND, here it is a model with the same rates, one
  bandwidth-delay product of queue, and losses that are independent from packet to packet.
- **More than the path** is in the source's times: over LEO its response over HTTP/3 begins 0.2 s later than
  two round trips take, and with proxies 1.2 s later, before anything of the page matters. What takes them was
  not tried here."""


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write to `folder` the page of the runs with a VPN, if both are there, and that of the others, if there
    are any. BentpipeError unless the runs are those of the study.
    """
    refuse_others(runs)
    tunnelled = [one for one in runs if one.manifest.campaign in TUNNELLED]
    others = [one for one in runs if one.manifest.campaign not in TUNNELLED]
    if {one.manifest.campaign for one in tunnelled} != {*TUNNELLED}:
        return _write(others or runs, folder)
    return [*(_write(others, folder) if others else []), *vpn.write(tunnelled, folder)]


def _write(runs: Sequence[Source], folder: Path) -> list[Path]:
    found, said = PageRuns.of(runs), published.load()
    known = answer.claims(found, said)
    front = answer.front(found, said, known, folder)
    parts = [*front.parts(), "## What was run", _TEXT]
    if known:
        parts += ["## The paper's claims", study_claims.RULE, answer.HOW]
        parts += folded(several(len(known), "ratio"), study_claims.rows(known, "of the paper's table"))
    parts += [*glance.section(found, said), *_table_two(found, said)]
    parts += experiments.at_once(found, said)
    parts += experiments.at_loss(found, said)
    parts += senders.section(found, QUIC, "Other senders and proxies of QUIC")
    parts += senders.section(found, TCP, "HTTP/1.1 and HTTP/2 over TLS")
    parts += senders.operators(found)
    parts += browsers.section(found)
    parts += closing.of_all(runs, {"Kosek": said.source, "Deutschmann": said.slides})
    file = folder / "pages.md"
    file.write_text(markdown.page(parts))
    return [file, *([] if front.picture is None else [front.picture.file])]


def _table_two(runs: PageRuns, said: Published) -> Iterator[str]:
    yield "## A paper's table again"
    counts = {len(one.records) for name in (H3, H1) for one in runs.of_campaign(name)}
    yield (
        f"Table II of Kosek et al.: medians in seconds, here / published, of {trials(counts)} here and "
        f"{said.iterations} there; in brackets the quartiles here where they differ by more than 2 %. What "
        "differs from the source, and so limits what the numbers say of each other:"
    )
    yield _DIFFERS
    for column, title in _MEASURES.items():
        head = [title, *said.losses]
        rows = [[_row_title(row), *_row(runs, said, row, column)] for row in said.table]
        yield from folded(title, table(head, rows))


def _row_title(row: TableRow) -> str:
    return f"{row.scenario}, {TITLES[row.http]}{', proxies' if row.proxies else ''}"


def _row(runs: PageRuns, said: Published, row: TableRow, column: str) -> Iterator[str]:
    for at, theirs in zip(said.losses, getattr(row, column.removesuffix("_s")), strict=True):
        cell = runs.of_table(row.scenario, row.http, row.proxies, at.replace(" ", ""))
        yield marked(f"{seconds(cell, column) if cell else '-'} / {theirs / 1000:.2f}", cell)
