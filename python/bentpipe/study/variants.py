"""What a variant's label says: its slow start, its congestion avoidance, and a short name for figures."""

from __future__ import annotations

from collections.abc import Sequence

from bentpipe import labels
from bentpipe.labels import VariantLabel


def slow_start(label: str) -> str:
    """The slow start that a variant chooses; "" if it is the stack's own."""
    return labels.variant(label).options.get("ss", "")


def short_names(variants: Sequence[str]) -> dict[str, str]:
    """Label → its slow start, its congestion avoidance and what else it chooses, without what all of its
    stack have in common; the label itself where this would name two of them alike.
    """
    names = {}
    for label in variants:
        same = [one for one in map(labels.variant, variants) if one.stack == labels.variant(label).stack]
        common = set.intersection(*(set(one.options.items()) for one in same))
        names[label] = _short(labels.variant(label), dict(common))
    taken = list(names.values())
    return {label: name if taken.count(name) == 1 else label for label, name in names.items()}


def _short(label: VariantLabel, common: dict[str, str]) -> str:
    stack, chosen = label.stack, dict(label.options)
    avoidance, start = chosen.pop("cc", "default"), chosen.pop("ss", None)
    if start is None:
        first = f"{stack}'s own {avoidance}"
    else:
        first = start if "cc" in common else f"{start} + {avoidance}"
    return ", ".join([first, *(f"{key}={value}" for key, value in chosen.items() if key not in common)])
