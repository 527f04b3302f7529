"""`bentpipe site`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from bentpipe.report.collection import ShownStudy
    from bentpipe.study.catalogue import Study

_TITLE = "Runs"


@click.command(short_help="Build one web site of many runs.")
@click.argument("runs", type=click.Path(path_type=Path), nargs=-1, metavar="RUN...")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("site"),
    show_default=True,
    metavar="DIR",
    help="The folder of the site. One that holds an older site is replaced; one that holds anything else "
    "is not changed.",
)
@click.option("--title", default=_TITLE, show_default=True, help="The title of the site.")
@click.option(
    "--studies/--no-studies",
    "with_studies",
    default=True,
    help="Include the pages of studies.  [default: --studies]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the index of the site, as its site.json has it.")
def site(runs: tuple[Path, ...], out: Path, title: str, with_studies: bool, as_json: bool) -> None:
    """Build a static web site of the runs in the folders RUN, and print the path of its first page: the runs
    over time, what changed from one to the next, any two of them compared, distributions of every number in
    their records, failures, and the studies. It opens from the file system.

    A folder that is no run, or that this version cannot read, is left out, with a warning. The site links to
    the reports of runs where they lie: move and publish it together with the runs.

    \b
    Examples:
      bentpipe site runs/*
      bentpipe site runs/* -o public/site --title "Nightly runs"
      bentpipe site runs/before runs/after --no-studies --json
    """
    from bentpipe.report import collection

    shown = tuple(_studies()) if with_studies else ()
    data, skipped = collection.build(collection.Collection(runs, title, shown), out)
    for one in skipped:
        click.echo(f"warning: left out: {one.why}", err=True)
    click.echo(json.dumps(data, indent=1) if as_json else out / "index.html")


def _studies() -> Iterator[ShownStudy]:
    """The studies that have a page, in order of name."""
    from bentpipe.report.collection import ShownStudy
    from bentpipe.study import catalogue

    for study in catalogue.discover().values():
        if pages := _pages(study):
            campaigns = frozenset(one.campaign.stem for one in study.runs)
            yield ShownStudy(study.name, study.title, study.question, pages, campaigns)


def _pages(study: Study) -> tuple[Path, ...]:
    """The study's pages, the one of its name first."""
    return tuple(sorted(study.folder.glob("*.md"), key=lambda page: (page.stem != study.name, page.name)))
