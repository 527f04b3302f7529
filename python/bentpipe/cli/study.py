"""`bentpipe study`: studies, their runs and their pages."""

from __future__ import annotations

import os
import shlex
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from bentpipe.cli import exit_code, watching
from bentpipe.cli.run import build_report, run
from bentpipe.errors import BentpipeError, Interrupted
from bentpipe.runs import manifest
from bentpipe.runs.manifest import FILE
from bentpipe.study import catalogue
from bentpipe.study import page as study_page
from bentpipe.study.catalogue import PlannedRun, Study
from bentpipe.study.page import WrittenPage

_ALL_HELP = "Also run what the page does not need. Such runs that are complete are on the page without it."


class _Studies(click.Group):
    """A command for each study that is found when it is asked for."""

    def list_commands(self, _context: click.Context) -> list[str]:
        return [catalogue.ALL, *catalogue.discover()]

    def get_command(self, _context: click.Context, name: str) -> click.Command:
        return _all if name == catalogue.ALL else _command(catalogue.find(name))


@click.group(cls=_Studies, short_help="Carry out a study: its runs, and the page that is written from them.")
def study() -> None:
    """Carry out a study: its runs, and the page that is written from them.

    A study is a folder with a study.toml: its question, its campaigns, what was published, the code that
    makes its page. Those of your own are found in folders that BENTPIPE_STUDIES names.

    \b
    Examples:
      bentpipe study reno
      bentpipe study thesis --run runs/thesis
      bentpipe study kosek --help
      bentpipe study all
    """


def _command(one: Study) -> click.Command:
    options: list[click.Parameter] = [
        click.Option(
            ["--run", "runs"],
            multiple=True,
            type=click.Path(path_type=Path),
            metavar="RUN",
            help="Write the page from this run, and run nothing; repeated for a page of several runs.",
        ),
        click.Option(
            ["--all", "every"],
            is_flag=True,
            help=_ALL_HELP,
            hidden=not _optional(one),
        ),
        click.Option(
            ["-o", "--out"],
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIR",
            help="Where the page goes (default: the study's folder; of a package, the current one).",
        ),
        click.Option(
            ["--site"],
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIR",
            help="Also build the reports of its runs, and a site of them and the page, with links both ways.",
        ),
        click.Option(["--watch"], is_flag=True, help=watching.HELP),
    ]

    def carry_out(watch: bool, **given: Any) -> int:
        with watching.watched(watch):
            return _carry_out(one, **given)

    listed = "\n".join(f"  {_shown(run)}" for run in one.runs)
    also = f"\n\nAlso called: {', '.join(one.also)}." if one.also else ""
    text = (
        f"{one.title}.{also}\n\n{one.question}\n\n\b\nIts runs, which go on where they were left:\n{listed}"
    )
    return click.Command(one.name, params=options, callback=carry_out, help=text, short_help=one.title)


@click.command(catalogue.ALL, short_help="Every study, with the runs that its page needs.")
@click.option("--all", "every", is_flag=True, help=_ALL_HELP)
@click.option(
    "--skip",
    multiple=True,
    metavar="STUDY",
    help="Leave this study out, for example if its programs are missing; can be repeated.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where pages go, to a folder for each study (default: where `bentpipe study NAME` puts each).",
)
def _all(every: bool, skip: tuple[str, ...], out: Path | None) -> int:
    """Carry out every study, with the runs that its page needs, and write all of their pages.

    If a study fails, the others still run. Finished work is kept: the same command continues it. At the
    end it prints how long each took.

    \b
    Examples:
      bentpipe study all
      bentpipe study all --skip pages --skip visits -o pages
      bentpipe study all --all
    """
    left_out = {catalogue.find(name).name for name in skip}
    wanted = [one for one in catalogue.discover().values() if one.name not in left_out]
    took: dict[str, float] = {}
    failed: dict[str, BentpipeError] = {}
    for number, one in enumerate(wanted, start=1):
        click.echo(f"study: {number} of {len(wanted)}: {one.name}", err=True)
        began = time.monotonic()
        try:
            code = _carry_out(one, runs=(), every=every, out=out / one.name if out else None)
        except BentpipeError as error:
            failed[one.name] = error
        except Exception as error:  # a study's code is not Bentpipe's, and hours of others follow it
            traceback.print_exc()
            failed[one.name] = BentpipeError(f"{type(error).__name__}: {error}; where that was is above")
        else:
            if code == Interrupted.exit_code:
                return code
            if code:
                failed[one.name] = BentpipeError(f"a run ended with {code}; its error is above")
        if one.name in failed:
            click.echo(f"study: {one.name} has no page: {failed[one.name]}", err=True)
        took[one.name] = time.monotonic() - began
    _say_what_took(took, failed)
    return 1 if failed else 0


def _say_what_took(took: Mapping[str, float], failed: Mapping[str, BentpipeError]) -> None:
    width = max((len(name) for name in took), default=0)
    for name, seconds in took.items():
        why = failed.get(name)
        click.echo(
            f"{name:{width}}  {seconds / 60:6.1f} min  {f'failed: {why}' if why else 'its page is written'}"
        )
        if why and why.hint:
            click.echo(f"{'':{width}}              {why.hint}")
    click.echo(f"{'together':{width}}  {sum(took.values()) / 60:6.1f} min")


def _carry_out(
    one: Study, runs: tuple[Path, ...], every: bool, out: Path | None, site: Path | None = None
) -> int:
    folders = list(runs)
    for number, planned in enumerate(one.runs if not runs else ()):
        folder = Path("runs") / f"study-{one.name}-{number + 1}-{planned.campaign.stem}"
        if planned.optional and not every and not _is_complete(folder):
            continue
        if code := _run_whole(one, planned, folder):
            return code
        folders.append(folder)
    written = study_page.write(one, folders, out)
    for file in written.files:
        click.echo(file)
    if site is not None:
        click.echo(_build_site(one, folders, written, site))
    return 0


def _build_site(one: Study, folders: Sequence[Path], written: WrittenPage, site: Path) -> Path:
    """Build the reports of a study's runs, and the site of these and of its pages; its first page."""
    from bentpipe.report import collection
    from bentpipe.report.pages import UsedBy

    pages = tuple(written.marked)
    campaigns = frozenset(planned.campaign.stem for planned in one.runs)
    shown = collection.ShownStudy(
        one.name, one.title, one.question, pages, campaigns, written.marked, written.trials
    )
    name = collection.page_names([shown])[pages[0].resolve()]
    for folder in folders:
        there = os.path.relpath(site.resolve() / "studies" / f"{name}.html", folder.resolve() / "report")
        used_by = UsedBy(one.title, f"bentpipe study {one.name}", quote(Path(there).as_posix()))
        build_report(folder, [used_by])
    collection.build(collection.Collection(folders, one.title, [shown]), site)
    return site / "studies" / f"{name}.html"


def _run_whole(one: Study, planned: PlannedRun, folder: Path) -> int:
    """Carry out a run to its end; its exit code. Trials in which the testbed failed are repeated once the
    others are done. BentpipeError if some still have: the page would be of the others alone.
    """
    for _ in range(2):
        if code := _run(planned, folder):
            return code
        if not (invalid := study_page.invalid_trials(folder)):
            return 0
    page = shlex.join(["bentpipe", "study", one.name, "--run", str(folder)])
    raise BentpipeError(
        f"{folder}: {invalid} trials are invalid: they say nothing about the stacks",
        f"the same command repeats them; or write the page all the same: {page}",
    )


def _run(planned: PlannedRun, folder: Path) -> int:
    """Carry out a run, or go on with it, also with trials in which the testbed failed; its exit code."""
    where = ["--resume", str(folder), "--retry-invalid"]
    if not (folder / FILE).is_file():
        where = ["--out", str(folder)]
    words = [str(planned.campaign), *planned.options, *where]
    click.echo(f"study: bentpipe run {shlex.join(words)}", err=True)
    code = exit_code.of(run, [*words, "--no-report"], "bentpipe run")
    return 0 if code == 1 else code  # records and manifest say what failed


def _is_complete(folder: Path) -> bool:
    return (folder / FILE).is_file() and manifest.read(folder).finished is not None


def _optional(one: Study) -> bool:
    return any(run.optional for run in one.runs)


def _shown(run: PlannedRun) -> str:
    words = shlex.join([run.campaign.stem, *run.options])
    return f"{words}: {run.about}{' (with --all)' if run.optional else ''}"
