"""`bentpipe losses`."""

from __future__ import annotations

import filecmp
import logging
import tempfile
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import click

from bentpipe.analysis import fitted_scenario, losses
from bentpipe.analysis.losses import DIRECTIONS, Direction, Losses
from bentpipe.analysis.traces import TracedRun, no_trace
from bentpipe.cli.captured import check_capture, check_file, is_trial
from bentpipe.cli.losses_summary import lines
from bentpipe.cli.plot import check_figure
from bentpipe.errors import BentpipeError, UsageError
from bentpipe.plan import scenarios
from bentpipe.runs import trial_files

_MOST = 2

_OPTIONS = (
    click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE…"),
    click.option(
        "--keylog",
        type=click.Path(path_type=Path),
        metavar="KEYS",
        help="TLS secrets (SSLKEYLOGFILE): they find connections of QUIC that begin midway, on any port.",
    ),
    click.option(
        "--direction",
        type=click.Choice((*DIRECTIONS, "both")),
        default="both",
        help="forward: server to client; return: client to server. Default: both.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print all of both directions as JSON."),
    click.option(
        "-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="Draw it: .pdf, .png or .svg."
    ),
    click.option(
        "--scenario-out",
        type=click.Path(path_type=Path),
        metavar="FILE.toml",
        help="Write a scenario that has these losses.",
    ),
    click.option(
        "--forward-rate",
        metavar="RATE",
        help="The forward rate of that scenario, as '20 Mbit/s'. Default: measured.",
    ),
    click.option("--return-rate", metavar="RATE", help="The return rate, as for --forward-rate."),
    click.option("--force", is_flag=True, help="Overwrite an existing file."),
)


def _options(function: Any) -> Any:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command("losses", short_help="Fit loss models to captures of both sides.")
@_options
def losses_command(
    files: tuple[Path, ...],
    keylog: Path | None,
    direction: str,
    as_json: bool,
    out: Path | None,
    scenario_out: Path | None,
    forward_rate: str | None,
    return_rate: str | None,
    force: bool,
) -> int:
    """Fit loss models to captures of both sides of the same connections, or to a trial's trace.

    It prints, with 95 % intervals, the loss rate, the simplified Gilbert model in both notations,
    Gilbert-Elliott by maximum likelihood, and which of them the losses support; how long bursts and gaps are;
    and tests: whether losses are independent, whether a Markov chain is enough, whether they return in time.

    Packets that a queue dropped are left out where the capture says so, as the traces of Bentpipe do.

    Exit code: 0; 1 if a file could not be read to its end: what there is has been printed; 2 if nothing was
    read.

    \b
    Examples:
      bentpipe losses runs/demo/trials/sat_quinn_noq_1-0a1b2c3d/trace.pcapng
      bentpipe losses client.pcap server.pcap -o losses.svg
      bentpipe losses begins-midway.pcap server.pcap --keylog keys.log
      bentpipe losses client.pcap server.pcap --scenario-out fitted.toml --forward-rate '20 Mbit/s'
    """
    captures = _captures(files)
    if keylog is not None:
        check_file("--keylog", keylog)
    rates: dict[Direction, str] = {
        way: rate for way, rate in zip(DIRECTIONS, (forward_rate, return_rate), strict=True) if rate
    }
    if out is not None:
        check_figure(out)
    if scenario_out is not None:
        _check_scenario(scenario_out, force)
    elif rates or force:
        raise UsageError(
            "--forward-rate, --return-rate and --force are for a scenario",
            "give --scenario-out FILE.toml too",
        )
    found = losses.fit(captures, keylog)
    directions = DIRECTIONS if direction == "both" else tuple(way for way in DIRECTIONS if way == direction)
    # Files first: what is printed may be read no further than its beginning.
    if scenario_out is not None:
        scenario_out.write_text(_checked(_scenario(captures, found.losses, directions, rates)))
    if out is not None:
        _draw(found.losses, directions, out)
    if as_json:
        click.echo(found.json.decode().rstrip())
    else:
        _print(found.losses, directions)
    for path in (scenario_out, out):
        if path is not None:
            click.echo(path, err=as_json)
    for error in found.losses.errors:
        click.echo(f"error: {error}", err=True)
    return 1 if found.losses.errors else 0


def _captures(files: Sequence[Path]) -> list[Path]:
    """The captures that are named. UsageError if they cannot be those of two sides."""
    if len(files) > _MOST:
        raise UsageError(
            f"{len(files)} files: a path has two sides",
            "give the client's capture and the server's, or a trace",
        )
    for file in files:
        check_capture(file)
    captures = [_in_folder(file) if file.is_dir() else file for file in files]
    if len(captures) == _MOST and (own := next(filter(_is_of_a_trial, captures), None)):
        raise UsageError(f"{own} has both sides of its path already", "give it alone")
    if len(captures) == _MOST and filecmp.cmp(captures[0], captures[1], shallow=False):
        raise UsageError(
            f"{files[0]} and {files[1]} are the same capture",
            "give that of the client's side and the server's",
        )
    return captures


def _in_folder(folder: Path) -> Path:
    if trial_files.TracePlace.of(folder) is not None:
        raise no_trace(folder)
    if not trial_files.has_capture(folder):
        if trial_files.is_traced(folder):
            raise UsageError(f"{folder}: only the analysis of this trial was kept, not its capture")
        raise UsageError(
            f"{folder}: there is no {trial_files.TRACE} in it",
            "give the folder of a trial that has one, RUN/trials/ID, or captures",
        )
    return folder / trial_files.TRACE


def _check_scenario(file: Path, force: bool) -> None:
    if file.suffix != ".toml":
        hint = f"bentpipe run --scenario takes a path to a .toml file: write {file.with_suffix('.toml')}"
        raise UsageError(f'--scenario-out: {file}: unknown ending "{file.suffix}"', hint)
    if not file.parent.is_dir():
        raise UsageError(
            f"--scenario-out: {file}: there is no folder {file.parent}", "make it first, or name another"
        )
    if file.is_dir():
        raise UsageError(f"--scenario-out: {file} is a folder", "name a file")
    if file.exists() and not force:
        raise UsageError(
            f"--scenario-out: {file} is there already", "name another, or write over it with --force"
        )


def _scenario(
    captures: Sequence[Path],
    found: Losses,
    directions: Sequence[Direction],
    rates: dict[Direction, str],
) -> str:
    """The scenario file: the trial's own path where there is one."""
    if not _is_of_a_trial(captures[0]):
        return fitted_scenario.of_captures(found, directions, rates)
    if rates:
        raise UsageError(
            f"--forward-rate and --return-rate: {captures[0]} is a trial's, whose run knows its path",
            "leave them out, or change them for a run: --set forward.rate=…",
        )
    folder = captures[0].resolve().parent
    run = TracedRun.read(folder.parent.parent)
    record = run.records.get(folder.name)
    if record is None:
        raise BentpipeError(f"{run.folder / 'records.jsonl'}: no record of the trial {folder.name}")
    known = run.scenarios[record.scenario].scenario
    return fitted_scenario.of_run(known, found, directions, _segments(captures[0]))


def _is_of_a_trial(capture: Path) -> bool:
    """Whether it is of a trial, whose run is there: of its whole path, or of a hop between proxies."""
    is_named = capture.name == trial_files.TRACE or fnmatch(capture.name, trial_files.HOP_TRACES)
    return is_named and is_trial(capture.parent)


def _segments(capture: Path) -> tuple[str, ...]:
    """The part of the path that a trial's capture is of: all segments, or, with proxies, those of its hop;
    `trace.pcapng` is then of the client's.
    """
    hops = [path.stem.split("-")[1:] for path in capture.resolve().parent.glob(trial_files.HOP_TRACES)]
    if capture.name != trial_files.TRACE:
        first, last = capture.stem.split("-")[1:]
        return fitted_scenario.segments_between(first, last)
    behind = min((first for first, _ in hops), key=("terminal", "gateway").index, default="server")
    return fitted_scenario.segments_between("client", behind)


def _checked(text: str) -> str:
    """The file's text, which `bentpipe run` takes. UsageError if a rate that was given is none."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "fitted.toml")
        file.write_text(text)
        try:
            scenarios.resolve(str(file))
        except scenarios.ScenarioError as error:
            why = str(error).replace(str(file), "").lstrip(": ")
            raise UsageError(f"--scenario-out: {why}", "see --forward-rate and --return-rate") from error
    return text


def _draw(found: Losses, directions: Sequence[Direction], out: Path) -> None:
    # Where it cannot keep its settings, it takes a temporary folder, and warns of that.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from bentpipe.analysis.plots import canvas, losses_figure

    with canvas.style():
        title = f"losses: {', '.join(found.files)}"
        canvas.save(losses_figure.draw(found, directions), out, title)


def _print(found: Losses, directions: Sequence[Direction]) -> None:
    for direction in directions:
        for line in lines(direction, found.of(direction)):
            click.echo(line)
        click.echo()
    if found.one_sided:
        click.echo(f"left out: connections that were captured at one place alone: {found.one_sided}")
