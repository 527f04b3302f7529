"""`bentpipe runner`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from bentpipe import workload
from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.runner import exporting
from bentpipe.analysis.runner.exporting import Chosen, Export, ExportedSetting
from bentpipe.analysis.runner.importing import ImportedRun
from bentpipe.analysis.runner.test_cases import MEASUREMENTS
from bentpipe.cli.layout import ROWS, WIDTH, folded, more
from bentpipe.cli.summary import cell_text
from bentpipe.errors import UsageError
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs import run_folder
from bentpipe.runs.records import CellKey
from bentpipe.stacks import catalogue

_RESULTS = ("succeeded", "failed", "unsupported")  # the runner's words
_MOST_SAID = 12  # pairs that were not run, and entries that cannot be read, in words


@click.group(short_help="Read and write the result.json of the QUIC interop runner.")
def runner() -> None:
    """Write a run as the result.json of the QUIC interop runner, whose pages then show it, or read such
    files, of the runner itself or of its fork for satellites, as runs.

    \b
    Examples:
      bentpipe runner export runs/mine -o result.json
      bentpipe runner import result.json
      bentpipe runner import logs_*/result.json -o runs/history
    """


@runner.command("export", short_help="Write a run as a result.json.")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="Where to.  [default: print it]"
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option(
    "--scenario", multiple=True, metavar="LABEL", help="Export this scenario only; can be repeated."
)
@click.option(
    "--workload",
    "moved",
    multiple=True,
    metavar="WORKLOAD",
    help="Export this workload only; can be repeated.",
)
@click.option(
    "--treatment", multiple=True, metavar="TREATMENT", help="Export this treatment only; can be repeated."
)
def export(
    run: Path,
    out: Path | None,
    force: bool,
    scenario: tuple[str, ...],
    moved: tuple[str, ...],
    treatment: tuple[str, ...],
) -> None:
    """Write the run in the folder RUN as a result.json. Each scenario, workload and treatment becomes a
    measurement, or a test case where the runner has it; the names, and what the file has no place for, are
    printed.

    \b
    Examples:
      bentpipe runner export runs/mine -o result.json
      bentpipe runner export runs/mine --scenario sat --treatment direct -o result.json
    """
    if out is not None:
        _check_out(out, force)
    manifest, records = run_folder.read(run)
    wanted = Chosen(scenario, workload.canonical(moved, "--workload"), treatment)
    homes = {
        name: stack.home for name, stack in catalogue.discover(map(Path, manifest.stack_folders)).items()
    }
    made = exporting.export(manifest, records, run.resolve().name, homes, wanted)
    if out is None:
        click.echo(made.file.text(), nl=False)
    else:
        out.write_text(made.file.text())
    for line in _said(made):
        click.echo(line, err=out is None)
    if out is not None:
        click.echo(out)


def _check_out(out: Path, force: bool) -> None:
    if out.is_dir():
        raise UsageError(f"--out: {out} is a folder", "name a file, as in result.json")
    if not out.parent.is_dir():
        raise UsageError(f"--out: {out}: there is no folder {out.parent}", "make it first, or name another")
    if out.exists() and not force:
        raise UsageError(f"--out: {out} is there already", "name another, or write over it with --force")


def _said(made: Export) -> list[str]:
    """The names, and what was left out, in lines."""
    short = max(len(one.abbr) for one in made.settings)
    long = max(len(one.name) for one in made.settings)
    lines = [
        f"{_kind(one):<11}  {one.abbr:<{short}}  {one.name:<{long}}  {one.title}" for one in made.settings
    ]
    lines += [f"called {name}: {label}" for label, name in made.renamed.items()]
    lines += [f"left out: {title}: {why}" for title, why in made.left_out.items()]
    return [*lines, *(f"note: {note}" for note in made.notes)]


def _kind(one: ExportedSetting) -> str:
    return "measurement" if one.measured else "test case"


@runner.command("import", short_help="Read result.json files as runs.")
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE…")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write a run to this folder; of several files, one run each, in subfolders named by their start.",
)
@click.option(
    "--all", "every", is_flag=True, help=f"Print every row, not the first {ROWS}, failures before others."
)
@click.option("--json", "as_json", is_flag=True, help="Print what is read as JSON.")
def import_(files: tuple[Path, ...], out: Path | None, every: bool, as_json: bool) -> None:
    """Read the result.json files of the QUIC interop runner, or of its fork for satellites, plain or packed
    by gzip or zstd, and print what is in them. With --out they become runs, for report, compare and
    everything else that reads runs. An entry that cannot be read is named and skipped.

    \b
    Examples:
      bentpipe runner import result.json
      bentpipe runner import result.json -o runs/theirs && bentpipe report runs/theirs
      bentpipe runner import logs_*/result.json -o runs/history
    """
    found = [ImportedRun.read(file) for file in files]
    folders = _folders(found, out) if out is not None else []
    for one, folder in zip(found, folders, strict=False):
        one.write(folder)
    if as_json:
        click.echo(json.dumps([_mapping(one) for one in found], indent=1))
    elif len(found) > 1:
        _show_history(found, every)
    else:
        _show(found[0], every)
    for one in found:
        for line in _missing(one):
            click.echo(line, err=True)
    for folder in folders:
        click.echo(f"run: {folder}", err=as_json)


def _missing(one: ImportedRun) -> list[str]:
    """The pairs that were not run, and the entries that cannot be read, in lines."""
    pairs = [f"{client} with {server}" for client, server in one.not_run]
    lines = [f"not run: {', '.join(pairs[:_MOST_SAID])}{_more(pairs)}"] if pairs else []
    lines += [f"cannot be read: {said}" for said in one.unread[:_MOST_SAID]]
    if more := _more(one.unread):
        lines.append(f"cannot be read:{more}")
    return [f"{one.path}: {line}" for line in lines]


def _more(all_: Sequence[str]) -> str:
    return f" and {len(all_) - _MOST_SAID} more" if len(all_) > _MOST_SAID else ""


def _folders(found: Sequence[ImportedRun], out: Path) -> list[Path]:
    """The folders of the runs. UsageError if one of them is in use, before any is written."""
    if len(found) == 1:
        names = [out]
    else:
        seen: Counter[str] = Counter()
        names = []
        for one in found:
            name = one.started.replace("-", "").replace(":", "")
            seen[name] += 1
            names.append(out / (name if seen[name] == 1 else f"{name}-{seen[name]}"))
    for folder in names:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"--out: {folder} exists already and is not empty", "choose another --out")
    return names


def _mapping(one: ImportedRun) -> dict[str, Any]:
    return {
        "file": str(one.path),
        "started": one.started,
        "not_run": [{"client": client, "server": server} for client, server in one.not_run],
        "not_read": one.unread,
        "trials": [
            {
                "scenario": record.scenario,
                "workload": record.workload,
                "treatment": record.treatment,
                "client": record.client,
                "server": record.server,
                "iteration": record.iteration,
                "outcome": record.outcome,
                "detail": record.detail,
                "goodput_bps": record.goodput_bps,
            }
            for record in one.records
        ],
    }


def _show(one: ImportedRun, every: bool) -> None:
    """Each client and server in a row; of many, those with failures first, and the others counted."""
    measured, tests = _columns(one)
    by_pair: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in cells(one.records):
        by_pair.setdefault((cell.key.client, cell.key.server), {})[_heading(cell.key)] = cell
    if not every and len(by_pair) > ROWS:
        failing = {ends for ends, found in by_pair.items() if any(cell.failures for cell in found.values())}
        ordered = sorted(by_pair, key=lambda ends: ends not in failing)
        shown = {ends: by_pair[ends] for ends in ordered[:ROWS]}
    else:
        shown = by_pair
    rows = [["client", "server", *(_RESULTS if tests else ()), *measured]]
    for ends, found in shown.items():
        results = {name: _test_result(found[name]) for name in tests if name in found}
        listed = [
            " ".join(name for name, result in results.items() if result == word) or "-" for word in _RESULTS
        ]
        texts = [cell_text(found.get(name)) or "-" for name in measured]
        rows.append([*ends, *(listed if tests else ()), *texts])
    lines = list(_aligned(rows))
    if len(lines[0]) > WIDTH:
        lines = []
        for ends, found in shown.items():
            lines.append(folded(" → ".join(ends), further="  "))
            results = {
                name: cell_text(cell) if name in measured else _test_result(cell)
                for name, cell in found.items()
            }
            lines.append(
                folded(", ".join(f"{name} {text}" for name, text in results.items()), "    ", "    ")
            )
    _head(one)
    for line in lines:
        click.echo(line.rstrip())
    if len(shown) < len(by_pair):
        click.echo(more(len(by_pair) - len(shown), "pairs"))
    if measured:
        click.echo("goodput in Mbit/s, of successful trials; (n!): n trials failed")


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)) for row in rows]


def _columns(one: ImportedRun) -> tuple[list[str], list[str]]:
    """The measurements, and the test cases, as `_heading` calls them."""
    found = cells(one.records)
    measured = {
        _heading(cell.key) for cell in found if cell.goodput_mean_bps is not None or _is_transfer(cell)
    }
    names = list(dict.fromkeys(_heading(cell.key) for cell in found))
    return [name for name in names if name in measured], [name for name in names if name not in measured]


def _is_transfer(cell: Cell) -> bool:
    return cell.key.workload.startswith("transfer:")


def _heading(key: CellKey) -> str:
    """Scenario, workload and treatment, as far as they say more than the scenario does."""
    own = MEASUREMENTS.get(key.scenario, MEASUREMENTS["goodput"])
    more = [] if key.workload in (key.scenario, own.workload) else [key.workload]
    between = [] if key.treatment == DIRECT else [key.treatment]
    return " ".join([key.scenario, *more, *between])


def _test_result(cell: Cell) -> str:
    if not cell.failures:
        return "succeeded"
    return "unsupported" if set(cell.failures) == {"unsupported"} else "failed"


def _head(one: ImportedRun) -> None:
    counts = Counter(record.outcome for record in one.records)
    failed = sum(record.failed for record in one.records)
    text = (
        f"{one.path}: {one.started}, {len(one.file.clients)} clients, {len(one.file.servers)} servers, "
        f"{len(one.records)} trials: {counts['ok']} ok, {failed} failed, {counts['unsupported']} unsupported"
    )
    click.echo(folded(text, further="  "))


def _show_history(found: Sequence[ImportedRun], every: bool) -> None:
    """Each file, in order of time; of many, the latest."""
    ordered = sorted(found, key=lambda each: each.file.start_time)
    if not every and len(ordered) > ROWS:
        click.echo(more(len(ordered) - ROWS, "files before these"))
        ordered = ordered[-ROWS:]
    for one in ordered:
        _head(one)
