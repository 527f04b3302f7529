"""`bentpipe plot`."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bentpipe.cli.captured import CaptureArguments, captured, find
from bentpipe.errors import BentpipeError, UsageError, one_of
from bentpipe.plan.treatments import DIRECT

if TYPE_CHECKING:  # drawing takes long to import
    from bentpipe.analysis.plots.canvas import FigureStyle
    from bentpipe.analysis.plots.figures import FigureSubject
    from bentpipe.analysis.traces import Analysis

KINDS = ("offset", "number", "size", "rate", "in_flight", "rtt", "acks", "delay", "queue")
FORMATS = ("pdf", "png", "svg")


def _finite(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """Refuse nan and inf, which are floats, and in every range."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number.")
    return value


# Below, axes and legend take all the space; above, 600 dpi take all the memory.
_WIDTH_MM, _HEIGHT_MM = click.FloatRange(60, 420), click.FloatRange(50, 420)
_PLACE = (
    click.option(
        "--kind", "kinds", type=click.Choice((*KINDS, "all")), multiple=True, help="Default: offset."
    ),
    click.option(
        "-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="As in figure.pdf, .png or .svg."
    ),
    click.option(
        "--format", "format_", type=click.Choice(FORMATS), help="Of KIND.FORMAT, without -o. Default: pdf."
    ),
)
_WHAT = (
    click.option(
        "--from", "from_s", type=float, callback=_finite, metavar="S", help="Show from this second on."
    ),
    click.option("--to", "to_s", type=float, callback=_finite, metavar="S", help="Show up to this second."),
    click.option(
        "--side",
        type=click.Choice(("client", "server")),
        help="The side whose times are shown. Default: the data's sender; for acks, its receiver.",
    ),
    click.option(
        "--connection", type=int, metavar="N", help="Default: the connection with the most packets."
    ),
)
_LOOK = (
    click.option(
        "--width",
        "width_mm",
        type=_WIDTH_MM,
        callback=_finite,
        default=85,
        metavar="MM",
        help="Default: 85, a column.",
    ),
    click.option(
        "--height",
        "height_mm",
        type=_HEIGHT_MM,
        callback=_finite,
        default=60,
        metavar="MM",
        help="Default: 60.",
    ),
    click.option(
        "--others/--no-others", default=True, help="offset: the cell's other iterations, pale. Default: on."
    ),
    click.option("--title/--no-title", default=False, help="Show a title above it. Default: off."),
)


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed((*_PLACE, *_WHAT, *_LOOK)):
        function = option(function)
    return function


@click.command(short_help="Draw figures of a trial's packets.")
@captured
@_options
def plot(
    named: CaptureArguments,
    kinds: tuple[str, ...],
    out: Path | None,
    format_: str | None,
    side: str | None,
    connection: int | None,
    **shown: Any,
) -> None:
    """Draw figures of a trial (its folder), of captures, or of what `bentpipe trace -o` left in a folder.

    \b
    Kinds:
      offset      offset of each STREAM frame: retransmissions, losses, flow control
      number      packet numbers and losses; Initial and Handshake packets are numbered separately
      size        sizes of IP packets
      rate        bytes per bin of a quarter of the RTT, at least 50 ms, both ways
      in_flight   bytes in flight, and the congestion window where a qlog has it
      rtt         RTT samples; without secrets those of the spin bit
      acks        ACK ranges and their gaps, against the packets that arrived
      delay       one-way delays, where both sides were captured: what is above the least is queueing
      queue       bytes that wait, times in queues, marks (CE) and drops, where both sides were
                  captured: all that is above the least delay of the path, so jitter, too

    Without secrets, size, rate, rtt, delay and queue can be drawn.

    Exit code: 0; 1 if there was nothing to draw; 2 if nothing was tried.

    \b
    Examples:
      bentpipe plot runs/demo/trials/sat_quinn_noq_1-0a1b2c3d
      bentpipe plot runs/demo/trials/sat_quinn_noq_1-0a1b2c3d --kind in_flight --from 1 --to 3
      bentpipe plot client.pcap server.pcap --keylog keys.log --kind all --format svg
      bentpipe plot analysis -o figure.pdf --width 178
    """
    wanted = KINDS if "all" in kinds else tuple(dict.fromkeys(kinds)) or ("offset",)
    places = _places(wanted, out, format_)
    _check_window(shown["from_s"], shown["to_s"])
    analysis = find(named)
    if shown["from_s"] is not None and shown["from_s"] == shown["to_s"]:
        instant = shown["from_s"]
        around = analysis.window(analysis.connection(connection), instant, instant)
        shown["from_s"], shown["to_s"] = around
    # Where it cannot keep its settings, it takes a temporary folder, and warns of that.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from bentpipe.analysis.plots.canvas import FigureStyle

    drawing = _Drawing(analysis, connection, side, FigureStyle(**shown))
    drawn = 0
    for kind, path in places.items():
        try:
            drawing.draw(kind, path)
        except UsageError:
            raise
        except BentpipeError as error:
            if "all" not in kinds:
                raise
            click.echo(f"note: {error}", err=True)
            continue
        drawn += 1
        click.echo(path)
    if not drawn:
        raise BentpipeError("there is nothing to draw", "bentpipe trace says what could not be decoded")


def _places(kinds: Sequence[str], out: Path | None, format_: str | None) -> dict[str, Path]:
    """The files of the kinds. UsageError if -o is not valid."""
    if out is None:
        return {kind: Path(f"{kind}.{format_ or FORMATS[0]}") for kind in kinds}
    if len(kinds) > 1:
        raise UsageError(
            f"-o: {out} is one file, and there are {len(kinds)} kinds of figures",
            "leave -o out, and each goes to KIND.pdf in the current folder (or --format svg, png)",
        )
    ending = check_figure(out, kinds[0])
    if format_ not in (None, ending):
        raise UsageError(f"--format: {format_}, but -o is {out}", "leave one of them out")
    return {kinds[0]: out}


def check_figure(out: Path, example: str = "losses") -> str:
    """The extension of a figure's file. UsageError if it is none of a figure."""
    if out.is_dir():
        raise UsageError(f"-o: {out} is a folder", f"name a file in it, as in {out / example}.pdf")
    if not out.parent.is_dir():
        raise UsageError(f"-o: {out}: there is no folder {out.parent}", "make it first, or name another")
    ending = out.suffix[1:].lower()
    if ending not in FORMATS:
        what = f'unknown ending "{out.suffix}"' if ending else "no ending"
        hint = f"{one_of(ending, FORMATS, 'endings')}; write {out.with_suffix('.pdf').name}"
        raise UsageError(f"-o: {out}: {what}", hint)
    return ending


def _check_window(from_s: float | None, to_s: float | None) -> None:
    if to_s is not None and (to_s < from_s if from_s is not None else to_s <= 0):
        raise UsageError(f"--to: {to_s:g} s is not behind --from {from_s or 0:g} s", "give a later time")


@dataclass
class _Drawing:
    """Draws kinds of figures of one analysis."""

    analysis: Analysis
    connection: int | None
    side: str | None
    look: FigureStyle

    def draw(self, kind: str, path: Path) -> None:
        """Draw one kind. BentpipeError if there is nothing to draw."""
        from bentpipe.analysis.plots import canvas, figures

        subject = self._subject(kind)
        with canvas.style():
            canvas.save(figures.draw(kind, subject, self.look), path, f"{kind}: {subject.title}")

    def _subject(self, kind: str) -> FigureSubject:
        from bentpipe.analysis.plots import figures, others, series
        from bentpipe.analysis.plots.table import OTHER

        connection = self.analysis.connection(self.connection)
        packets = series.of_connection(self.analysis.packets, connection.connection)
        direction = figures.data_direction(packets, bool(connection.sealed))
        # ACKs are compared with packets where they meet: at the receiver of the data.
        side = self._side() or series.best_side(packets, OTHER[direction] if kind == "acks" else direction)
        wanted = kind == "offset" and self.look.others
        return figures.FigureSubject(
            packets,
            connection,
            self.analysis.link,
            direction,
            side,
            self._title(connection.connection),
            tuple(others.curves(self.analysis, direction, side)) if wanted else (),
        )

    def _side(self) -> Any:
        """The side that was asked for. UsageError if nothing was captured there."""
        sides = self.analysis.summary.sides
        if self.side is not None and sides not in ("both", self.side):
            where = "at one place, unknown which" if sides == "unknown" else f"at the {sides}'s side alone"
            raise UsageError(f"--side {self.side}: packets were captured {where}", "leave --side out")
        return self.side

    def _title(self, number: int) -> str:
        run, trial = self.analysis.run, self.analysis.trial
        if run is not None and trial is not None and trial in run.records:
            one = run.records[trial]
            between = "" if one.treatment == DIRECT else f", {one.treatment}"
            ends = f"client {one.client}, server {one.server}{between}"
            return f"{one.scenario}: {ends}, iteration {one.iteration}"
        return f"{', '.join(Path(file).name for file in self.analysis.summary.files)}, connection {number}"
