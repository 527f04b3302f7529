"""`bentpipe scenarios import`."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from bentpipe import packed
from bentpipe.analysis.measurements import composing, numbers, reading
from bentpipe.analysis.measurements.composing import Wanted
from bentpipe.cli import made_file
from bentpipe.cli.layout import folded
from bentpipe.errors import UsageError
from bentpipe.plan import scenarios as catalogue

_OPTIONS = (
    click.argument(
        "files", metavar="FILE…", type=click.Path(path_type=Path, dir_okay=False), nargs=-1, required=True
    ),
    click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.toml",
                 help="Where the scenario goes (default: FILE.toml in the current folder)."),
    click.option("--return", "returns", type=click.Path(path_type=Path, dir_okay=False), multiple=True,
                 metavar="FILE", help="A file of the return path, from client to server, alone."),
    click.option("--rate", metavar="FORWARD/RETURN",
                 help="Rates, in place of what files have: 100/20Mbit/s; 50Mbit/s of both ways; /2Mbit/s of "
                 "the return path."),
    click.option("--delay", metavar="FORWARD/RETURN",
                 help="Delays of one way, in place of what files have: 25ms, 30/20ms, /20ms."),
    click.option("--queue", metavar="SIZE",
                 help="The queue of both ways: '25 packets', '200 ms' (default: 1 BDP, or the file's)."),
    click.option("--every", metavar="SPAN", help="How long each value of a list holds: 100ms. Of a log of "
                 "ping without times: from probe to probe. Of captures: the window (default: 100ms)."),
    click.option("--unit", metavar="UNIT", help="The unit of a list, or of columns that name none: Mbit/s, "
                 "ms, %."),
    click.option("--rtt", is_flag=True, help="The delays of lists are round trips."),
    click.option("--forward-share", type=click.IntRange(1, 99), default=50, metavar="PERCENT",
                 help="How much of a round trip is the forward delay (default: 50)."),
    click.option("--outage", type=click.IntRange(min=1), default=reading.OUTAGE, metavar="N",
                 help="N lost probes in a row are an outage, fewer are random losses (default: 3)."),
    click.option("--at-end", type=click.Choice(("repeat", "hold", "outage")), default="repeat",
                 help="What comes after the end of a file: it begins again, its last values hold, or all is "
                 "lost (default: repeat)."),
    click.option("--force", is_flag=True, help="Overwrite an existing file."),
)  # fmt: skip


def _options(function: click.decorators.FC) -> click.decorators.FC:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command("import", short_help="Make a scenario from measurements.")
@_options
def import_(
    files: tuple[Path, ...],
    out: Path | None,
    returns: tuple[Path, ...],
    rate: str | None,
    delay: str | None,
    queue: str | None,
    every: str | None,
    unit: str | None,
    rtt: bool,
    forward_share: int,
    outage: int,
    at_end: composing.AtEnd,
    force: bool,
) -> None:
    """Make a scenario from what was measured of a path: rates, delays and losses over time.

    A FILE is a trace of mahimahi, a log of ping -D, irtt's JSON, iperf3's JSON or log, a list with a value in
    each line, a table with a header (CSV), or the captures of both ends; plain, or packed by gzip or zstd.
    Its content decides which. Several files give several quantities. A file that does not say of which
    direction it is counts for the forward path, from server to client.

    It prints what the files have, and what is assumed of the rest. The scenario's notes say it, too.

    \b
    Examples:
      bentpipe scenarios import ping.txt --rate 100/20Mbit/s -o mine.toml
      bentpipe scenarios import bandwidth.txt --every 100ms --unit Mbit/s --delay 25ms
      bentpipe scenarios import down.trace --return up.trace --delay 20ms -o lte.toml
      bentpipe scenarios import link-over-time.csv --at-end hold
      bentpipe scenarios import client.pcap server.pcap --rate /5Mbit/s -o captured.toml
    """
    out = out or Path(f"{Path(packed.plain_name(files[0])).stem}.toml")
    _check_out(out, force)
    asked = reading.ReadingOptions(numbers.span(every, "--every") if every else None, unit, rtt, outage)
    wanted = Wanted(
        numbers.both_ways(rate, "--rate", "rate"),
        numbers.both_ways(delay, "--delay", "delay"),
        queue,
        forward_share / 100,
        at_end,
    )
    found = reading.read_all(files, asked)
    of_return = reading.read_all(returns, asked)
    reading.check_used([*found, *of_return], asked)
    composed = composing.compose(found, of_return, wanted, out)
    _check(composed.text, [*files, *returns], out)
    made_file.write(out, composed.text)
    for line in composed.figures:
        click.echo(line)
    click.echo("assumed, and how to change it:")
    for note in composed.assumed:
        click.echo(folded(note, "  ", "    "))
    click.echo(out)


def _check_out(out: Path, force: bool) -> None:
    if out.suffix != ".toml":
        raise UsageError(f"-o: {out} does not end with .toml", "a scenario is known by that: -o mine.toml")
    made_file.check(out, force)


def _check(text: str, files: Sequence[Path], out: Path) -> None:
    """UsageError if the scenario is none that trials can run over."""
    with tempfile.NamedTemporaryFile("w", dir=out.parent, prefix=".bentpipe-", suffix=".toml") as file:
        file.write(text)
        file.flush()
        try:
            catalogue.resolve(file.name)
        except catalogue.ScenarioError as error:
            name = ", ".join(map(str, files))
            why = str(error).partition(".toml: ")[2] or str(error)
            raise UsageError(f"{name}: makes no scenario: {why}", "change it by an option") from error
