"""Congestion controls by the labels of servers: their names, and their families."""

from __future__ import annotations

from bentpipe import labels

NEWRENO, CUBIC, BBR = "NewReno", "CUBIC", "BBR"
FAMILIES = (NEWRENO, CUBIC, BBR)
_NAMES = {
    "newreno": NEWRENO,
    "cubic": CUBIC,
    "bbr": "BBR 1",
    "bbr1": "BBR 1",
    "bbr2": "BBR 2",
    "bbr3": "BBR 3",
    "copa": "Copa",
    "c4": "C4",
    "prague": "Prague",
    "dcubic": "CUBIC by delay",
    "fast": "FAST",
}
_PICOQUIC = {"bbr": "BBR 3"}  # its own words for the versions


def named(label: str) -> str:
    """`NewReno`, `CUBIC`, `BBR 2`: the algorithm, so that those of one name should do the same."""
    variant = labels.variant(label)
    chosen = variant.options.get("cc", "")
    own = _PICOQUIC if variant.stack == "picoquic" else {}
    return own.get(chosen) or _NAMES.get(chosen, chosen)


def family(label: str) -> str:
    """The algorithm without its version."""
    name = named(label)
    return BBR if name.startswith(BBR) else name


def is_plain(label: str) -> bool:
    """Whether nothing is chosen but the congestion control: its slow start is the library's."""
    return set(labels.variant(label).options) == {"cc"}
