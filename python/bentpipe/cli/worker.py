"""`bentpipe worker`: one trial bundle, run and answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import BinaryIO

import click
import msgspec

from bentpipe.errors import BentpipeError, UsageError
from bentpipe.execution import single_bundle
from bentpipe.schema import reading
from bentpipe.schema.bundle import FORMAT, Bundle, BundleAnswer
from bentpipe.stacks import catalogue


@click.command(short_help="Run one trial bundle, and print the answer.")
@click.argument("bundle", type=click.File("rb"), default="-", metavar="[BUNDLE.json]")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the trial's files there: trace, qlogs, logs of failures.  [default: nothing is kept]",
)
@click.option(
    "--stacks",
    "extra",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A further folder of stacks; can be repeated.",
)
def worker(bundle: BinaryIO, out: Path | None, extra: tuple[Path, ...]) -> int:
    """Run the trial bundle in a file, or on standard input, and print its answer as JSON.

    A bundle is everything that a trial depends on (docs/reference/bundle.md); `bentpipe run --bundles
    DIR` writes them. The stacks that it names must be here, built from the same sources. The same bundle
    gives the same packets on every machine, in virtual time. The exit code is 0 if there is an answer, 1
    if the testbed failed.

    \b
    Examples:
      bentpipe worker < bundle.json
      bentpipe worker bundle.json --out trial
    """
    asked = _read(bundle)
    known = catalogue.discover(extra)
    try:
        answer = single_bundle.execute(asked, known, out)
    except BentpipeError as error:
        raise type(error)(f"{bundle.name}: {error}", error.hint) from error
    if answer.killed:
        raise KeyboardInterrupt
    said = BundleAnswer(trial=asked.trial, seed=asked.seed, values=answer.values, failure=answer.failure)
    click.echo(json.dumps(msgspec.to_builtins(said)))
    return 0 if answer.values is not None else 1


def _read(bundle: BinaryIO) -> Bundle:
    """UsageError if it is no bundle."""
    try:
        return reading.convert(json.loads(bundle.read()), Bundle, FORMAT, numbered=True)
    except ValueError as error:
        hint = "`bentpipe run --bundles DIR` writes bundles; docs/reference/bundle.md says what is in them"
        raise UsageError(f"{bundle.name}: no bundle: {error}", hint) from error
