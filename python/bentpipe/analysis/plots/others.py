"""The other iterations of a trial's cell, as curves behind a figure of stream offsets.

Of an iteration with a trace, the curve is the highest offset sent (seen at the sender's side) or the bytes
received. Of one without, it is its record's `received_bytes`, which count UDP payload, so all headers and
retransmissions: a few percent more. Those are times at the client; at the server's side they are drawn half a
round trip earlier.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bentpipe.analysis import traces
from bentpipe.analysis.cells import cells
from bentpipe.analysis.plots import series
from bentpipe.analysis.plots.series import ByteCurve
from bentpipe.analysis.plots.table import SENDER, Direction, Side
from bentpipe.analysis.traces import Analysis
from bentpipe.runs import trial_files
from bentpipe.runs.records import Record


def curves(analysis: Analysis, direction: Direction, side: Side) -> Iterator[ByteCurve]:
    """A curve for each other iteration with a trace or a record; none if `analysis` is not of a trial."""
    run, trial = analysis.run, analysis.trial
    if run is None or trial is None or trial not in run.records:
        return
    mine = run.records[trial]
    cell = next(one for one in cells(run.records.values()) if mine in one.records)
    for record in cell.records:
        if record.trial == trial:
            continue
        folder = run.folder / "trials" / record.trial
        if trial_files.is_traced(folder):
            yield _traced(traces.of_trial(folder, run), direction, side)
        elif direction == "forward" and any(record.received_bytes):
            rtt_ms = analysis.link.rtt_ms or 0.0
            yield _recorded(record, rtt_ms / 2e3 if side == "server" else 0.0)


def _traced(other: Analysis, direction: Direction, side: Side) -> ByteCurve:
    packets = series.of_connection(other.packets, other.connection().connection)
    if SENDER[direction] != side:
        return series.received(packets, direction)
    sent = series.offset(packets, direction, side)
    return ByteCurve(sent.time_s, np.maximum.accumulate(sent.end))


def _recorded(record: Record, earlier_s: float) -> ByteCurve:
    counts = np.asarray(record.received_bytes, np.int64)
    counts = counts[: int(np.searchsorted(counts, counts[-1])) + 1]  # until the last byte
    steps = np.arange(1, len(counts) + 1, dtype=np.float64)
    return ByteCurve(steps * record.received_step_s - earlier_s, counts)
