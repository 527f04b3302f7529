"""SEARCH where the terminal requests the return capacity, that of acknowledgments, beside where it has it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bentpipe import labels
from bentpipe.runs.records import Record
from bentpipe.study.intervals import span
from bentpipe.study.markdown import listed, literal, number, table, trials
from bentpipe.study.quantiles import median
from bentpipe.study.slow_starts import MB, SlowStartTrial
from bentpipe.study.source import Source
from bentpipe.study.variants import slow_start

CAMPAIGN = "search-dama"
_SIZES_MB = (25, 50, 100)
_ASSIGNED = "return.rate.cra"
_WITHOUT = " without requests"
_TEXT = """Section 2.1.3: an endpoint of the satellite requests bandwidth and waits for it. Over `viasat-dama`
the terminal does so for the way back, whose packets are acknowledgments, on a carrier of 11.8 Mbit/s;
*without requests* it always has 11.7 Mbit/s of the same carrier. Over `viasat` it has 150 Mbit/s there, and
no carrier. The server's own link has 200 Mbit/s, as in the base. A file of 100 MB, {trials} of each. Times
are medians in seconds, from the client's first packet on, with the range where trials differ. *Says so*:
SEARCH finds the link full; *round trips*: by how many that is before the first loss is noticed, in round
trips of that time, a dash where it does not speak before."""
_EVENTS = ("SEARCH finds the link full", "the first loss is noticed", "the whole file is there")


def sections(runs: Sequence[Source]) -> list[str]:
    """The section; none without such a run."""
    records = [record for one in runs if one.manifest.campaign == CAMPAIGN for record in one.in_order]
    if not records:
        return []
    cells: dict[tuple[str, str], list[Record]] = {}
    for one in records:
        cells.setdefault((one.scenario, one.server), []).append(one)
    rows = [_row(scenario, server, mine) for (scenario, server), mine in cells.items()]
    head = ["path", "slow start", "SEARCH says so", "round trips", "first loss", "slow start ends", "by"]
    head += [f"{size} MB" for size in _SIZES_MB]
    text = _TEXT.format(trials=trials([len(one) for one in cells.values()]))
    return ["## Capacity on demand", text, table(head, rows, left=2), _said(cells)]


def _row(scenario: str, server: str, records: Sequence[Record]) -> list[str]:
    mine = [SlowStartTrial(one) for one in records]
    leads = [lead for one in mine if (lead := one.lead_round_trips) is not None and lead > 0]
    return [
        _path(scenario),
        slow_start(server),
        _times(one.declared_s for one in mine),
        number(median(leads)),
        _times(one.first_loss_s for one in mine),
        _times(one.left_s for one in mine),
        ", ".join(dict.fromkeys(literal(one.left_by or "not left") for one in mine)),
        *(_times(one.reached_s(size * MB) for one in mine) for size in _SIZES_MB),
    ]


def _times(values: Iterable[float | None]) -> str:
    known = [one for one in values if one is not None]
    middle, ends = number(median(known)), span(known)
    return middle if middle == ends else f"{middle} ({ends})" if known else "-"


def _path(scenario: str) -> str:
    label = labels.scenario(scenario)
    return literal(label.name) + (_WITHOUT if _ASSIGNED in label.values else "")


def _said(cells: dict[tuple[str, str], list[Record]]) -> str:
    """When what happens over each path, and how much of that requests are."""
    trials: dict[str, list[SlowStartTrial]] = {}
    for (scenario, _), records in cells.items():
        trials.setdefault(_path(scenario), []).extend(map(SlowStartTrial, records))
    times = {path: _events(mine) for path, mine in trials.items()}
    said = [
        f"Over {path} {listed(f'{what} {_at(when)}' for what, when in zip(_EVENTS, mine, strict=True))}."
        for path, mine in times.items()
    ]
    for path, mine in times.items():
        base = times.get(path + _WITHOUT)
        if base is not None:
            said.append(f"The requests of {path} make that {listed(map(_later, base, mine))} s later.")
    return " ".join([*said, "These are medians over both slow starts."])


def _events(trials: Sequence[SlowStartTrial]) -> list[float | None]:
    """The medians of _EVENTS."""
    return [
        median(one.declared_s for one in trials),
        median(one.first_loss_s for one in trials),
        median(one.record.completion_s for one in trials),
    ]


def _at(seconds: float | None) -> str:
    return "in no trial" if seconds is None else f"after {seconds:.2f} s"


def _later(base: float | None, here: float | None) -> str:
    return "-" if base is None or here is None else f"{here - base:.2f}"
