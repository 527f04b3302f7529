"""`bentpipe results`."""

from __future__ import annotations

import logging
import shlex
from pathlib import Path

import click

from bentpipe import paths
from bentpipe.errors import UsageError

# Those of `bentpipe.results`, which takes long to import, and how many runs each is written from.
_ONE, _TWO, _MORE = "one run", "two runs, of virtual and of real time", "one run, and further ones"
PAGES = {
    "agreement": _TWO,
    "fairness": _ONE,
    "limit": _ONE,
    "pep": _MORE,
    "reno": _ONE,
    "search": _ONE,
    "slow-start": _ONE,
    "thesis": _ONE,
}


@click.command(short_help="Write a page of results from the records of a run.")
@click.argument("page", type=click.Choice(list(PAGES)), metavar="PAGE")
@click.argument("runs", type=click.Path(path_type=Path), metavar="RUN...", nargs=-1, required=True)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Default: docs/results of the checkout; where Bentpipe is an installed package, the current folder.",
)
def results(page: str, runs: tuple[Path, ...], out: Path | None) -> None:
    """Write PAGE from the records of the run in the folder RUN: Markdown, and figures beside it.

    \b
    Pages:
      agreement   two runs of the campaign agreement: virtual time first, then real time
      fairness    a run of the campaign fairness: what flows leave each other
      limit       a run of the campaign limit: how near variants come to an ideal sender
      pep         a run of the campaign pep, beside what was published of QUIC proxies; and what that left
                  open, from runs of pep-more and pep-aside, and of pep in real time
      reno        a run of the campaign reno, beside the known formula and an ideal sender
      search      a run of the campaign search, beside what was published of SEARCH in QUIC
      slow-start  a run of the campaign slow-start: slow starts side by side, over queues
      thesis      a run of the campaign thesis, beside what was published of these paths

    \b
    Examples:
      bentpipe run thesis --out runs/thesis
      bentpipe results thesis runs/thesis
    """
    if (PAGES[page] == _ONE and len(runs) != 1) or (PAGES[page] == _TWO and len(runs) != 2):
        raise UsageError(
            f"the page {page} is written from {PAGES[page]}; given: {len(runs)}", "name their folders"
        )
    # Where it cannot keep its settings, it takes a temporary folder, and warns of that.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from bentpipe.results import PAGES as pages
    from bentpipe.results import PAGES_OF_MORE, PAGES_OF_TWO
    from bentpipe.results.source import Source

    command = shlex.join(["bentpipe", "results", page, *map(str, runs)])
    first, *more = (Source.read(run, command) for run in runs)
    folder = out or paths.pages()
    if page in PAGES_OF_MORE:
        files = PAGES_OF_MORE[page](first, folder, more)
    else:
        files = PAGES_OF_TWO[page](first, more[0], folder) if more else pages[page](first, folder)
    for file in files:
        click.echo(file)
