"""What the slides say of set-up, as far as the page compares with it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bentpipe import strict

FILE = Path(__file__).with_name("published.toml")


class Slides(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Round trips of set-up, over which link, and the version of each implementation of QUIC, by name."""

    source: str
    link: str
    tcp_round_trips: int
    quic_round_trips: int
    stacks: dict[str, str]


def load() -> Slides:
    return strict.read(FILE, Slides)
