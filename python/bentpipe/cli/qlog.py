"""`bentpipe qlog`: the program `bentpipe-trace qlog`, which is not on the PATH."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from bentpipe import paths
from bentpipe.analysis import traces
from bentpipe.errors import BentpipeError
from bentpipe.runs.trial_files import TracePlace

_FILE = click.Path(path_type=Path)


@click.command(short_help="Summarise qlogs, and convert them for qvis.")
@click.argument("files", type=_FILE, nargs=-1, required=True, metavar="FILE…")
@click.option("-o", "--out", type=_FILE, metavar="OUT", help="Convert all to qlog 0.3, into this one file.")
@click.option(
    "--epoch",
    metavar="DATE",
    help="With -o: what times count from in logs that do not say it (noq, quinn). In a trial of bentpipe run "
    "it is 2000-01-01T00:00:00Z.",
)
@click.option(
    "--explain", is_flag=True, help="Also list the phases of congestion control, and why each began."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per file.")
def qlog(files: tuple[Path, ...], out: Path | None, epoch: str | None, explain: bool, as_json: bool) -> int:
    """Summarise endpoints' qlogs; with -o, convert them to one that qvis opens.

    They are JSON, JSON-SEQ or lines of JSON, also printed over many lines, of any version from draft-00 to
    the current schema. One that says no version is read as what it looks like. Of one that is cut off, what
    stands before counts.

    Exit code: 0; 1 if a file could not be read to its end; 2 if nothing was read.

    \b
    Examples:
      bentpipe qlog runs/demo/trials/sat_quinn_noq_1-0a1b2c3d/qlog/*/*
      bentpipe qlog runs/demo/trials/sat_quinn_noq_1-0a1b2c3d/qlog/server/* --explain
      bentpipe qlog client.sqlog server.sqlog -o both.qlog --epoch 2000-01-01T00:00:00Z
    """
    for file in (one for one in files if not one.exists()):
        if trial := next((one for one in file.parents if TracePlace.of(one) is not None), None):
            raise traces.no_trace(trial)
    command = [str(paths.program(traces.PROGRAM)), "qlog", *map(traces.argument, files)]
    command += ["--out", str(out)] if out else []
    command += ["--epoch", epoch] if epoch else []
    command += ["--explain"] if explain else []
    command += ["--json"] if as_json else []
    sys.stdout.flush()  # the program writes behind
    code = subprocess.run(command, check=False).returncode
    if code not in (0, 1, 2):
        raise BentpipeError(f"{traces.PROGRAM} ended with {code}")
    return code
