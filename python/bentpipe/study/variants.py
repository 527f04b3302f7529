"""Variants by their labels: slow start, congestion avoidance, and a short name for figures."""

from __future__ import annotations

from collections.abc import Sequence

from bentpipe import labels
from bentpipe.labels import VariantLabel

_SEARCH = "SEARCH in QUIC, project report, Worcester Polytechnic Institute, 2024"
_WHOLE = "bentpipe"  # of `cc`: a sender that is not the stack's, and has its own start
_HYBLA = "C. Caini, R. Firrincieli, TCP Hybla: a TCP enhancement for heterogeneous networks, 2004"
# Value of `cc` or `ss` → where it is defined.
DEFINITIONS = {
    "newreno": "J. Iyengar, I. Swett, RFC 9002, 2021, sections 7.3.2 and 7.3.3",
    "standard": "J. Iyengar, I. Swett, RFC 9002, 2021, section 7.3.1",
    "cubic": "L. Xu, S. Ha, I. Rhee, V. Goel, L. Eggert, RFC 9438, 2023",
    "hystart": "S. Ha, I. Rhee, Taming the elephants: new TCP slow start, Computer Networks 55, 2011",
    "hystart++": "P. Balasubramanian, Y. Huang, M. Olson, RFC 9406, 2023",
    "hybla": _HYBLA,
    "search": f"{_SEARCH}, section 4.4",
    "search-keep": f"{_SEARCH}, section 4.4, without its cut of the window",
    "search4": "draft-chung-ccwg-search-09, 2026",
    "search-hybla": f"{_SEARCH}, section 4.4; {_HYBLA}",
    "search-below": f"{_SEARCH}, section 7.1.1",
    "search-rtt": f"{_SEARCH}, section 7.1.2",
    "search-jump": f"{_SEARCH}, section 7.2.2",
    "rapid-start": "draft-kazuho-ccwg-rapid-start-02, 2026",
    "jump-start": "D. Liu, M. Allman, S. Jin, L. Wang, Congestion Control Without a Startup Phase, 2007",
    "trains": "Bentpipe's own, docs/design/packet-trains.md",
    "tolerant": "Bentpipe's own, docs/design/packet-trains.md",
    "flight": "Bentpipe's own, docs/design/sender.md",
    "bentpipe": "Bentpipe's own, docs/design/sender.md",
    "bbr3": "draft-ietf-ccwg-bbr",
    "bbr": "N. Cardwell, Y. Cheng, C. S. Gunn, S. H. Yeganeh, V. Jacobson, BBR, ACM Queue 14(5), 2016",
}


def slow_start(label: str) -> str:
    """The slow start that a variant chooses; "" if it is the stack's own."""
    return labels.variant(label).options.get("ss", "")


def definitions(variants: Sequence[str]) -> dict[str, str]:
    """The sources that define the values of `cc` and `ss` that the variants choose."""
    options = [labels.variant(label).options for label in variants]
    chosen = {one[key] for one in options for key in ("cc", "ss") if key in one}
    return {name: text for name, text in DEFINITIONS.items() if name in chosen}


def short_names(variants: Sequence[str]) -> dict[str, str]:
    """Label → its slow start, its congestion avoidance and what else it chooses, without what all of its
    stack have in common; the label itself where this would give two of them the same name.
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
    if start is None and avoidance == _WHOLE:
        first = f"cc={avoidance}"
    elif start is None:
        first = f"{stack}'s own {avoidance}"
    else:
        first = start if "cc" in common else f"{start} + {avoidance}"
    return ", ".join([first, *(f"{key}={value}" for key, value in chosen.items() if key not in common)])
