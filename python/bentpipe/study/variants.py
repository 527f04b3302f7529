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
    """Label → its slow start, its congestion avoidance and what else it chooses, without what all have
    in common; the label itself where this would name two of them alike.
    """
    common = set.intersection(*(set(options(label).items()) for label in labels)) if labels else set()
    names = {label: _short(label, dict(common)) for label in labels}
    taken = list(names.values())
    return {label: name if taken.count(name) == 1 else label for label, name in names.items()}


def _short(label: str, common: dict[str, str]) -> str:
    stack, chosen = label.partition(":")[0], options(label)
    avoidance, start = chosen.pop("cc", "default"), chosen.pop("ss", None)
    if start is None:
        first = f"{stack}'s own {avoidance}"
    else:
        first = start if "cc" in common else f"{start} + {avoidance}"
    return ", ".join([first, *(f"{key}={value}" for key, value in chosen.items() if key not in common)])
