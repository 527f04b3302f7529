"""Queues in the labels of scenarios, where a campaign sweeps over them."""

from __future__ import annotations

_KEY = "forward.queue="


def queue(scenario: str) -> str:
    """The queue in a label, as in `1 BDP`; "" if it has none."""
    found = [part for part in scenario.split(",") if part.startswith(_KEY)]
    return found[0].removeprefix(_KEY).replace("BDP", " BDP").replace("packets", " packets") if found else ""


def without_queue(scenario: str) -> str:
    return ",".join(part for part in scenario.split(",") if not part.startswith(_KEY))
