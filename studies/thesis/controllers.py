"""Which congestion control a server uses, by its label."""

from __future__ import annotations

from bentpipe import labels

BBR = "BBR"
# What stacks use without `cc`: the words of their stack.toml, and of what they were listed with.
_DEFAULTS = {
    "aioquic": "NewReno",
    "ngtcp2": "CUBIC",
    "noq": "CUBIC",
    "picoquic": "NewReno",
    "qh3": "NewReno",
    "quic-go": "NewReno",
    "quiche": "CUBIC",
    "quinn": "CUBIC",
    "s2n-quic": "CUBIC",
    "tquic": BBR,
    "x-net": "NewReno",
}
_WORDS = {"newreno": "NewReno", "cubic": "CUBIC", "copa": "Copa"}


def controller(label: str) -> str | None:
    """`NewReno`, `CUBIC`, `BBR` of any version; None of a stack that nothing is known of."""
    variant = labels.variant(label)
    chosen = variant.options.get("cc")
    if chosen is None:
        return _DEFAULTS.get(variant.stack)
    return BBR if chosen.startswith("bbr") else _WORDS.get(chosen, chosen)
