"""Connection set-up as the slides state it."""

from __future__ import annotations

from bentpipe.study.published import Table, read


class Slides(Table, frozen=True):
    """Round trips of set-up, over which link, and the version of each implementation of QUIC, by name."""

    source: str
    link: str
    tcp_round_trips: int
    quic_round_trips: int
    stacks: dict[str, str]


def load() -> Slides:
    return read(__file__, Slides)
