"""`bentpipe objectives derive`."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from bentpipe import progress
from bentpipe.cli import completing
from bentpipe.cli.run_options import Folder, split, split_treatments
from bentpipe.errors import UsageError
from bentpipe.objectives import derivation
from bentpipe.objectives.derivation import DerivedObjective, Reached
from bentpipe.objectives.derivation_request import DerivationRequest, DerivationRun
from bentpipe.runs.records import Record
from bentpipe.runs.run_folder import unused_folder

_STEP_S = 0.1


@click.command()
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    shell_complete=completing.scenario,
    callback=split,
    required=True,
    metavar="NAME,…",
    help="Paths: names, or .toml files; comma-separated, can be repeated.",
)
@click.option(
    "--treatment",
    multiple=True,
    callback=split_treatments,
    shell_complete=completing.treatment,
    metavar="WHAT,…",
    help="As in bentpipe run (default: direct,tcp-pep). tcp-pep without a chain is run with each of the "
    "configurations A to D of Kuhn et al. 2020, table III.",
)
@click.option(
    "--stack", default="linux:cc=cubic", show_default=True, metavar="STACK", help="Of TCP; a server."
)
@click.option("--bytes", "size", default="100MB", show_default=True, metavar="SIZE", help="Of the file.")
@click.option("--iterations", type=click.IntRange(1), default=5, show_default=True, metavar="N")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, metavar="N")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Trials at a time, as in bentpipe run.")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE.toml", help="Write the suite.")
@click.option(
    "--figure",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw received data over time.",
)
@click.option("--run", "folder", type=Folder(), metavar="DIR", help="Its folder (default: runs/derive-TIME).")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def derive(
    scenarios: tuple[str, ...],
    out: Path | None,
    figure: Path | None,
    folder: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Derive objectives from what TCP achieves with an operator's proxies and without: the best times, in
    whole seconds, as a suite for `bentpipe check`.

    \b
    Examples:
      bentpipe objectives derive --scenario cnes-50-10 --treatment direct,tcp-pep
      bentpipe objectives derive --scenario mine.toml -o mine-objectives.toml --figure received.svg
      bentpipe check mine-objectives.toml --server quinn
    """
    if out is not None and out.suffix != ".toml":
        raise UsageError(f"-o: {out} is no .toml file", "name it FILE.toml")
    for option, path in (("-o", out), ("--figure", figure)):
        if path is not None and not path.parent.is_dir():
            raise UsageError(
                f"{option}: there is no folder {path.parent}", "name a file in one that is there"
            )
    run = DerivationRequest(scenarios, **given).run(folder or unused_folder("derive"))
    records = run.in_order
    found = derivation.reached(records)
    made = derivation.derive(found)
    if figure is not None:
        _draw(records, figure)
    if out is not None:
        files = [Path(one) for one in scenarios if one.endswith(".toml")]
        # In a suite a path counts from where that is.
        named = {one.stem: os.path.relpath(one, out.parent) for one in files}
        command = shlex.join(["bentpipe", *sys.argv[1:]])
        out.write_text(derivation.suite_toml(made, named, command))
    if as_json:
        click.echo(json.dumps(_mapping(found, made), indent=1))
        return
    _print(found, made, run)
    if out is not None:
        click.echo(f"suite: {out}")


def _print(found: Sequence[Reached], made: Sequence[DerivedObjective], run: DerivationRun) -> None:
    console = Console(highlight=False)
    for scenario in dict.fromkeys(one.key.scenario for one in found):
        here = [one for one in found if one.key.scenario == scenario]
        sizes = sorted({size for one in here for size in one.times_s})
        title = derivation.title_of(scenario, run.scenarios)
        console.print(title, style="bold", markup=False, soft_wrap=True)
        width = max(len("derived objective"), *(len(one.name) for one in here))
        heads = "".join(f"{f'{size} MB':>10}{'request':>9}" for size in sizes)
        click.echo(f"{'first bytes after':<{width}}{heads}")
        for one in here:
            times = "".join(
                f"{_seconds(one.times_s[size]):>10}{_seconds(one.from_request_s[size]):>9}" for size in sizes
            )
            click.echo(f"{one.name:<{width}}{times}")
        wanted = {one.megabytes: one for one in made if one.scenario == scenario}
        texts = [f"{wanted[size].within_s} s" if size in wanted else "-" for size in sizes]
        objective = "".join(f"{text:>10}{'':>9}" for text in texts)
        click.echo(f"{'derived objective':<{width}}{objective}")
    trials = max(one.trials for one in found)
    click.echo(
        f"seconds, medians of {progress.count(trials)}, from the client's first packet; request: from its"
    )
    click.echo("request on, without the handshakes of TCP and TLS. Objectives: the best, in whole seconds.")
    click.echo(f"run: {run.path}")


def _seconds(time: float) -> str:
    return f"{time:.2f}" if math.isfinite(time) else "never"


def _mapping(found: Sequence[Reached], made: Sequence[DerivedObjective]) -> dict[str, Any]:
    def known(times: Any) -> dict[str, float | None]:
        return {f"{size} MB": time if math.isfinite(time) else None for size, time in times.items()}

    return {
        "reached": [
            one.key._asdict()
            | {
                "trials": one.trials,
                "times_s": known(one.times_s),
                "from_request_s": known(one.from_request_s),
            }
            for one in found
        ],
        "objectives": [
            {
                "scenario": one.scenario,
                "megabytes": one.megabytes,
                "within_s": one.within_s,
                "by": one.by.name,
            }
            for one in made
        ],
    }


def _draw(records: Sequence[Record], path: Path) -> None:
    """Received data over time since the request: the middle trial, in a band of quartiles."""
    from bentpipe.analysis.cells import cells
    from bentpipe.study.curves import MeanCurve, quartiles

    found = cells(records)
    several = len({cell.key.scenario for cell in found}) > 1
    until = max(len(one.received_bytes) * one.received_step_s - (one.handshake_s or 0) for one in records)
    times = [number * _STEP_S for number in range(int(until / _STEP_S) + 1)]
    curves = []
    for number, cell in enumerate(found):
        each = [derivation.curve_mb(one, times) for one in cell.records]
        name = derivation.name_of(cell.key.treatment)
        title = f"{cell.key.scenario}, {name}" if several else name
        curves.append(MeanCurve(title, times, list(zip(*each, strict=True)), number))
    quartiles(curves, ("time since the request (s)", "received (MB)"), path)
