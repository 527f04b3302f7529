"""Scenario files with fitted losses.

Of a run's trial the path is known: its manifest's scenario, in which the losses of what the capture is of are
replaced: of the whole path, or, with proxies, of one hop. Of captures
from elsewhere rate and delay are measured: half of the least round trip, and what arrived in the fullest
second, which is what the path has at least; the queue is chosen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bentpipe.analysis import scenario_text
from bentpipe.analysis.losses import DIRECTIONS, Direction, DirectionLosses, Losses
from bentpipe.errors import UsageError

_HOSTS = ("client", "terminal", "gateway", "server")
_TIMEOUT = "600 s"
_RATIO_PLACES = 7  # of per cent: scenarios count parts per billion
_NAMES = {
    "uniform": "each packet alike",
    "simplified_gilbert": "the simplified Gilbert model",
    "gilbert_elliott": "Gilbert-Elliott",
}
Loss = str | dict[str, str]


def of_run(
    known: Mapping[str, Any], losses: Losses, directions: Sequence[Direction], segments: Sequence[str]
) -> str:
    """The file of a trial's scenario with the losses of these directions in place of those of its `segments`,
    which the capture is of. They go to the segment where the scenario loses packets, if it is only one, else
    to the satellite; where nothing was lost, the scenario's own losses stay.
    """
    scenario = json.loads(json.dumps(known))
    del scenario["name"]
    scenario["title"] = f"{known['title']}; losses fitted to a trace"
    notes = []
    for direction in directions:
        one = losses.of(direction)
        there = [segment for segment in segments if direction in scenario.get(segment, {})]
        if not one.losses:
            notes.append(f"The {direction} loss is as it was: none of {one.packets} packets was lost.")
            continue
        losing = [segment for segment in there if scenario[segment][direction].get("loss", "none") != "none"]
        place = losing[0] if len(losing) == 1 else "satellite" if "satellite" in there else there[0]
        for segment in there:
            scenario[segment][direction]["loss"] = "none"
        scenario[place][direction]["loss"] = loss_of(one)
        notes += _notes(losses, [direction])
    if known.get("notes"):
        notes.append(f"Of the scenario it was measured on: {known['notes']}")
    scenario["notes"] = "\n".join(notes)
    return scenario_text.text(scenario)


def segments_between(first: str, last: str) -> tuple[str, ...]:
    """The segments between two hosts of a path."""
    return scenario_text.SEGMENTS[_HOSTS.index(first) : _HOSTS.index(last)]


def of_captures(losses: Losses, directions: Sequence[Direction], rates: Mapping[Direction, str]) -> str:
    """The file of a path by captures of it; `rates` are those that are known. UsageError if the captures do
    not show what the file needs.
    """
    satellite: dict[str, dict[str, Loss]] = {
        direction: _measured(direction, losses.of(direction), rates.get(direction))
        | {"loss": loss_of(losses.of(direction)) if direction in directions else "none"}
        for direction in DIRECTIONS
    }
    measured = [direction for direction in DIRECTIONS if direction not in rates]
    notes = ["The delay is half of the least round trip. Queues of 1 BDP are chosen."]
    if measured:
        which = " and ".join(measured)
        notes.append(f"The {which} rate is what arrived in the fullest second: the path has at least that.")
    scenario = {
        "title": f"A path as captured in {', '.join(losses.files)}",
        "source": f"bentpipe losses {' '.join(losses.files)}",
        "notes": "\n".join([*notes, *_notes(losses, directions)]),
        "timeout": _TIMEOUT,
        "satellite": satellite,
    }
    return scenario_text.text(scenario)


def loss_of(one: DirectionLosses) -> Loss:
    """The loss of a link, as scenario files write it, of the model that BIC prefers."""
    if one.rate is None or one.preferred is None or one.preferred == "uniform":
        return _ratio(one.rate.value) if one.rate is not None and one.losses else "none"
    hidden, simple = one.gilbert_elliott, one.simplified_gilbert
    if one.preferred == "gilbert_elliott" and hidden is not None:
        return {
            "model": "gilbert-elliott",
            "p_bad_given_good": _ratio(hidden.p_bad_given_good.value),
            "p_bad_given_bad": _ratio(1 - hidden.p_good_given_bad.value),
            "loss_in_good": _ratio(hidden.loss_in_good.value),
            "loss_in_bad": _ratio(hidden.loss_in_bad.value),
        }
    assert simple is not None
    return {
        "model": "gilbert-elliott",
        "p_bad_given_good": _ratio(simple.p_bad_given_good.value),
        "p_bad_given_bad": _ratio(simple.p_bad_given_bad.value),
    }


def _measured(direction: Direction, one: DirectionLosses, rate: str | None) -> dict[str, Loss]:
    if one.path.delay_s is None or (rate is None and one.path.rate_bps is None):
        raise UsageError(
            f"--scenario-out: no packet arrived {direction}: neither rate nor delay of the path can be told",
            "give captures in which packets arrive both ways, or the trace of a trial",
        )
    measured = f"{max(round((one.path.rate_bps or 0) / 1e3), 1)} kbit/s"
    return {"rate": rate or measured, "delay": f"{one.path.delay_s * 1e3:.3f} ms", "queue": "1 BDP"}


def _notes(losses: Losses, directions: Sequence[Direction]) -> Iterator[str]:
    """The notes on the fit, and on files that could not be read completely."""
    files = ", ".join(losses.files)
    yield from (f"Not all was read: {error}" for error in losses.errors)
    for direction in directions:
        one = losses.of(direction)
        if one.preferred is None:
            yield f"The {direction} loss: {one.losses} of {one.packets} packets in {files}."
            continue
        model = _NAMES[one.preferred]
        yield (
            f"The {direction} loss is fitted to {one.losses} losses of {one.packets} packets in {files}:"
            f" {model}, by BIC."
        )


def _ratio(value: float) -> str:
    text = f"{value * 100:.{_RATIO_PLACES}f}".rstrip("0").rstrip(".")
    return f"{text} %"
