"""The traces of a run, read a few at once, with a script for each.

Where a trace cannot be read, or not to its end, the report says why in its place and is otherwise whole;
standard error names each of them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from bentpipe import progress
from bentpipe.analysis import traces
from bentpipe.errors import BentpipeError
from bentpipe.report import pages
from bentpipe.report.traces import script

# The program that decodes runs beside Python, which meanwhile makes the script of another trial.
_AT_ONCE = 2


@dataclass(frozen=True)
class ReadTrace:
    """The result of reading the trace of a trial: a script or a failure."""

    script: str | None = None  # its address from the site's root
    failure: str | None = None
    errors: tuple[str, ...] = ()  # why there is less in the script than in the trace


def read_traces(run: traces.TracedRun, site: Path) -> dict[str, ReadTrace]:
    """Write `data/trials/<trial>.js` to `site` for each trial of `run`. OSError if it cannot."""
    traced = sorted(run.records)
    if not traced:
        return {}
    read: dict[str, ReadTrace] = {}
    pool, shown = ThreadPoolExecutor(_AT_ONCE), progress.choose()
    shown.start(len(traced), "with a trace to read")
    try:
        futures = {pool.submit(_read, run, trial, site): trial for trial in traced}
        for future in as_completed(futures):
            trial, one = futures[future], future.result()
            read[trial] = one
            for text in _said(trial, one):
                shown.note(text)
            shown.advance(failed=one.failure is not None)
        if partly := sum(bool(one.errors) for one in read.values()):
            shown.note(f"{progress.count(partly)} with a trace that could be read only in part")
    finally:
        pool.shutdown(cancel_futures=True)
        shown.stop()
    return read


def _said(trial: str, one: ReadTrace) -> list[str]:
    """The note on a trace; none if it was read completely."""
    if one.failure is not None:
        return [f"{trial}: the trace could not be read: {one.failure}"]
    return [f"{trial}: the trace was read in part: {error}" for error in one.errors]


def _read(run: traces.TracedRun, trial: str, site: Path) -> ReadTrace:
    try:
        analysis = traces.of_trial(run.folder / "trials" / trial, run)
        text = pages.data_script("bentpipeTrial", script(trial, analysis))
    except BentpipeError as error:
        return ReadTrace(failure=f"{error}; {error.hint}" if error.hint else str(error))
    except (OSError, ValueError, KeyError, TypeError) as error:  # not what bentpipe-trace writes
        return ReadTrace(failure=f"{type(error).__name__}: {error}")
    pages.write(site / "data" / "trials" / f"{trial}.js", text.encode())
    return ReadTrace(script=f"data/trials/{quote(trial)}.js", errors=tuple(analysis.summary.errors))
