"""What a variant's label says: its slow start, its congestion avoidance, and a short name for figures."""

from __future__ import annotations

from collections.abc import Sequence


def options(label: str) -> dict[str, str]:
    """The options of `stack:name=value:name=value`."""
    return dict(setting.split("=", 1) for setting in label.split(":")[1:])


def slow_start(label: str) -> str:
    """The slow start that a variant chooses; "" if it is the stack's own."""
    return options(label).get("ss", "")


def short_names(labels: Sequence[str]) -> dict[str, str]:
    """Label → its slow start and congestion avoidance, without what all of them have in common; the
    label itself where this would name two of them alike.
    """
    avoidances = {options(label).get("cc", "") for label in labels if slow_start(label)}
    names = {label: _short(label, len(avoidances) > 1) for label in labels}
    taken = list(names.values())
    return {label: name if taken.count(name) == 1 else label for label, name in names.items()}


def _short(label: str, with_avoidance: bool) -> str:
    stack, chosen = label.partition(":")[0], options(label)
    avoidance = chosen.get("cc", "default")
    if "ss" not in chosen:
        return f"{stack}'s own {avoidance}"
    return f"{chosen['ss']}, {avoidance}" if with_avoidance else chosen["ss"]
