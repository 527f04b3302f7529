"""`bentpipe report`."""

from __future__ import annotations

from pathlib import Path

import click

from bentpipe.cli.run import build_report
from bentpipe.errors import UsageError


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def report(folder: Path) -> None:
    """Rebuild the web site of the run in FOLDER, and print its path.

    \b
    Example:
      bentpipe report runs/demo-20260401T120000Z
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder", "give the folder of a run")
    click.echo(build_report(folder))
