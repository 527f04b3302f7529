"""`bentpipe compare`."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import click

from bentpipe import workload
from bentpipe.analysis import comparison
from bentpipe.analysis.comparison import (
    FALSE_DISCOVERIES,
    MEASURES,
    CellMeasures,
    ComparedCell,
    ComparedRun,
    Comparison,
)
from bentpipe.analysis.inference import CONFIDENCE
from bentpipe.cli.layout import ROWS, aligned, folded, more
from bentpipe.errors import BentpipeError
from bentpipe.plan import treatments

_METHOD = (
    "A, B: geometric means of the trials that succeeded; tables of a run have arithmetic ones. B/A: their "
    f"ratio with its {CONFIDENCE:.0%} interval, by t on logarithms, of pairs with the same seed if all "
    "are such, and five or more. *: significant by Benjamini and Hochberg; at most "
    f"{FALSE_DISCOVERIES:.0%} of these are none, on average."
)


class Share(click.ParamType[float]):
    """A share, written `5%`: 0.05."""

    name = "share"

    def convert(
        self, value: str | float, param: click.Parameter | None, context: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?%", value.strip())
        if found is None:
            self.fail(f'"{value}" is no share; write it as in 5%', param, context)
        return float(found[1]) / 100


@click.command(short_help="Compare two runs, cell by cell.")
@click.argument("run_a", type=click.Path(path_type=Path), metavar="RUN_A")
@click.argument("run_b", type=click.Path(path_type=Path), metavar="RUN_B")
@click.option(
    "--measure",
    type=click.Choice(tuple(MEASURES)),
    metavar="COLUMN",
    default="goodput_bps",
    show_default=True,
    help=f"A column of the records: {', '.join(MEASURES)}. Failed trials do not count.",
)
@click.option(
    "--treatments",
    "between",
    nargs=2,
    metavar="A B",
    help="Compare cells of treatment A in RUN_A with those of B in RUN_B, as in direct quic-pep; where a run "
    "has several chains of proxies, name one in full.",
)
@click.option(
    "--all/--significant",
    "show_all",
    default=None,
    help=f"Which cells are listed: all, or those that differ significantly (default: the first {ROWS}; all "
    "of them as JSON and CSV).",
)
@click.option(
    "--fail-over",
    type=Share(),
    metavar="SHARE",
    help="Exit with 1 if a cell differs by more than SHARE, as in 5%, either way and significantly (of "
    "single trials: at all), has COLUMN, above 0, in all trials of one run and in none of the other, or "
    "succeeds in RUN_A and never in RUN_B.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the cells as CSV.")
def compare(
    run_a: Path,
    run_b: Path,
    measure: str,
    between: tuple[str, str] | None,
    show_all: bool | None,
    fail_over: float | None,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Compare the cells of RUN_A and RUN_B: the same scenario, workload, treatment, client and server.
    Testbeds, and versions of stacks and of IP, may differ. With --treatments, what stands between the ends
    differs: then RUN_A and RUN_B may be the same run. The largest difference is first.

    \b
    Examples:
      bentpipe compare runs/sim runs/emu
      bentpipe compare runs/before runs/after --measure completion_s --significant
      bentpipe compare runs/before runs/after --fail-over 5%
      bentpipe compare runs/pep runs/pep --treatments direct quic-pep
    """
    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other")
    a, b = ComparedRun.read(run_a), ComparedRun.read(run_b)
    if between is not None:
        a, b = a.of(between[0]), b.of(between[1])
    both = comparison.compare(a, b, MEASURES[measure])
    listed = [cell for cell in both.cells if show_all is not False or cell.significant]
    if as_json:
        click.echo(json.dumps(_mapping(both, listed, fail_over), indent=1))
    elif as_csv:
        rows = [_flat(cell) for cell in listed]
        writer = csv.DictWriter(sys.stdout, list(_flat(both.cells[0])), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        _print(both, listed, ROWS if show_all is None else len(listed))
    if fail_over is not None:
        _judge(both, fail_over)


def _judge(both: Comparison, share: float) -> None:
    found = both.beyond(share)
    if found:
        far = f"{len(found)} of {len(both.cells)} cells differ by more than {100 * share:g}%"
        raise BentpipeError(f"{far}, first of all {found[0].key.title}")


def _print(both: Comparison, listed: Sequence[ComparedCell], rows: int) -> None:
    for name, run in (("A", both.a), ("B", both.b)):
        between = f"{run.treatment}, " if run.treatment else ""
        cells = f"{between}{len(run.cells)} cells"
        about = f"{run.testbed}, IPv{run.manifest.plan.ip}, {cells}"
        click.echo(folded(f"{name}  {run.folder}: {about}, {run.manifest.started}", further="   "))
    significant = sum(cell.significant for cell in both.cells)
    click.echo(f"{both.measure.title}: {len(both.cells)} cells in both, {significant} differ significantly\n")
    if listed:
        table = [_head(both), *(_row(both, cell) for cell in listed[:rows])]
        columns = len(table[0])
        # The cell, what distinguishes it from others, and the counts.
        for line in aligned(table, {*range(columns - 7), columns - 2, columns - 1}):
            click.echo(line)
        if len(listed) > rows:
            click.echo(more(len(listed) - rows, "cells"))
        other = " !: other application protocols." if any(cell.mixed for cell in listed) else ""
        click.echo("\n" + folded(f"{_METHOD}{other}"))
    for remark in comparison.remarks(both):
        click.echo(folded(f"note: {remark}", further="  "))


def _head(both: Comparison) -> list[str]:
    return [
        "cell",
        *([] if _one(both, "workload") else ["workload"]),
        *([] if _one(both, "treatment") else ["treatment"]),
        "A",
        "B",
        "B/A",
        "interval",
        "",
        "ok A",
        "ok B",
    ]


def _row(both: Comparison, cell: ComparedCell) -> list[str]:
    ratio, measure = cell.ratio, both.measure
    interval = "-"
    if ratio is not None and ratio.low is not None and ratio.high is not None:
        interval = f"{_number(ratio.low)}-{_number(ratio.high)}"
    return [
        f"{cell.key.scenario} {cell.key.client} → {cell.key.server}",
        *([] if _one(both, "workload") else [workload.title(cell.key.workload)]),
        *([] if _one(both, "treatment") else [_between(both, cell)]),
        measure.text(cell.a.mean),
        measure.text(cell.b.mean),
        "-" if ratio is None else _number(ratio.value),
        interval,
        ("*" if cell.significant else "") + ("!" if cell.mixed else ""),
        _outcomes(cell.a),
        _outcomes(cell.b),
    ]


def _one(both: Comparison, what: Literal["workload", "treatment"]) -> bool:
    return len({getattr(cell.key, what) for cell in both.cells}) == 1


def _between(both: Comparison, cell: ComparedCell) -> str:
    return treatments.short(cell.key.treatment, {one.key.treatment for one in both.cells})


def _number(ratio: float) -> str:
    """Three digits behind the point near 1, and less where a ratio is large."""
    return f"{ratio:.3f}" if ratio < 10 else f"{ratio:.3g}"


def _outcomes(side: CellMeasures) -> str:
    """`5/5`, or with what failed `3/5, 2 crashed`."""
    failed = "".join(f", {count} {outcome}" for outcome, count in side.failures.most_common())
    return f"{side.ok}/{side.trials}{failed}"


def _mapping(both: Comparison, listed: Sequence[ComparedCell], fail_over: float | None) -> dict[str, Any]:
    return {
        "measure": both.measure.column,
        "a": _run(both.a),
        "b": _run(both.b),
        "confidence": CONFIDENCE,
        "false_discovery_rate": FALSE_DISCOVERIES,
        "method": _METHOD,
        "notes": comparison.remarks(both),
        "cells": [_nested(cell) for cell in listed],
        "only_in_a": [key._asdict() for key in both.only_a],
        "only_in_b": [key._asdict() for key in both.only_b],
        "beyond": None if fail_over is None else [cell.key._asdict() for cell in both.beyond(fail_over)],
    }


def _run(run: ComparedRun) -> dict[str, Any]:
    one = run.manifest
    return {
        "folder": str(run.folder),
        "treatment": run.treatment,
        "testbed": run.testbed,
        "campaign": one.campaign,
        "started": one.started,
        "finished": one.finished,
        "versions": one.versions,
    }


def _nested(cell: ComparedCell) -> dict[str, Any]:
    sides = {
        name: {
            "trials": side.trials,
            "ok": side.ok,
            "failures": dict(side.failures),
            "alpn": list(side.alpn),
            "mean": side.mean,
            "values": list(side.values),
        }
        for name, side in (("a", cell.a), ("b", cell.b))
    }
    return cell.key._asdict() | sides | _inferred(cell)


def _flat(cell: ComparedCell) -> dict[str, Any]:
    sides = {
        f"{name}_{what}": value
        for name, side in (("a", cell.a), ("b", cell.b))
        for what, value in (("trials", side.trials), ("ok", side.ok), ("mean", side.mean))
    }
    return cell.key._asdict() | sides | _inferred(cell)


def _inferred(cell: ComparedCell) -> dict[str, Any]:
    """Null where nothing is known; JSON has no infinity."""
    one = cell.ratio
    known = {
        "ratio": one and one.value,
        "low": one and one.low,
        "high": one and one.high,
        "p": one and one.p,
        "adjusted_p": cell.adjusted_p,
    }
    finite = {name: None if value == math.inf else value for name, value in known.items()}
    return finite | {"significant": cell.significant, "alpn_differs": cell.mixed}
