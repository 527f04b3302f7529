"""Trials that lasted longer than the steps of their scenario: these began again, or the last held.

Steps of a few values are written by hand, and their last one is meant to hold: nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bentpipe import progress
from bentpipe.analysis.measurements import numbers
from bentpipe.runs.records import Record
from bentpipe.schema.manifest import ScenarioState

_BY_HAND = 6  # steps


def lines(records: Sequence[Record], scenarios: Mapping[str, ScenarioState]) -> Iterator[str]:
    """A sentence for each scenario and end of steps that trials went past."""
    for label, state in scenarios.items():
        lasted = [_lasted_s(one) for one in records if one.scenario == label]
        for (end_s, repeats), what in _ends(state.scenario).items():
            longer = sum(one > end_s for one in lasted)
            if longer:
                then = "began again" if repeats else "kept the last value"
                names = " and ".join(dict.fromkeys(what))
                yield (
                    f"{label}: {progress.count(longer)} lasted longer than the steps of its {names}, "
                    f"{end_s:.6g} s, which then {then}"
                )


def _lasted_s(record: Record) -> float:
    return record.virtual_s if record.completion_s is None else record.completion_s


def _links(path: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The links of a path, both ways."""
    for segment in ("access", "satellite", "ground"):
        yield from (path.get(segment) or {}).values()


def _ends(scenario: Mapping[str, Any]) -> dict[tuple[float, bool], list[str]]:
    """The ends of steps, whether they then begin again, and the quantities that they are of."""
    found: dict[tuple[float, bool], list[str]] = {}
    for path in (scenario, *(scenario.get("paths") or {}).values()):
        for link in _links(path):
            for quantity in ("rate", "delay", "loss"):
                value: Any = link.get(quantity)
                steps = value.get("steps", []) if isinstance(value, dict) else []
                if len(steps) <= 1:
                    continue
                repeats = value.get("period") is not None
                if repeats or len(steps) > _BY_HAND:
                    end = value["period"] if repeats else steps[-1][0]
                    found.setdefault((numbers.span(end, "period") / 1e9, repeats), []).append(quantity)
    return found
