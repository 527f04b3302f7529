"""`bentpipe results`."""

from __future__ import annotations

import logging
import shlex
from pathlib import Path

import click

from bentpipe import paths

# Those of `bentpipe.results`, which takes long to import.
PAGES = ("fairness", "limit", "reno", "search", "slow-start", "thesis")


@click.command(short_help="Write a page of results from the records of a run.")
@click.argument("page", type=click.Choice(PAGES), metavar="PAGE")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Default: docs/results of the checkout.",
)
def results(page: str, run: Path, out: Path | None) -> None:
    """Write PAGE from the records of the run in the folder RUN: Markdown, and figures beside it.

    \b
    Pages:
      fairness    a run of the campaign fairness: what flows leave each other
      limit       a run of the campaign limit: how near variants come to an ideal sender
      reno        a run of the campaign reno, beside the known formula and an ideal sender
      search      a run of the campaign search, beside what was published of SEARCH in QUIC
      slow-start  a run of the campaign slow-start: slow starts side by side, over queues
      thesis      a run of the campaign thesis, beside what was published of these paths

    \b
    Examples:
      bentpipe run thesis --out runs/thesis
      bentpipe results thesis runs/thesis
    """
    # Where it cannot keep its settings, it takes a temporary folder, and warns of that.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from bentpipe.results import PAGES as pages
    from bentpipe.results.source import Source

    source = Source.read(run, shlex.join(["bentpipe", "results", page, str(run)]))
    folder = out or paths.root() / "docs" / "results"
    for file in pages[page](source, folder):
        click.echo(file)
