"""A terminal's passage from satellite to satellite: its delays over time, and its handovers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bentpipe.errors import BentpipeError
from bentpipe.orbit.sky import Route, Sky

_NS = 1_000_000  # in a millisecond


@dataclass(frozen=True)
class Clock:
    """The instants at which a satellite is chosen: at 0, at `first_ms`, and every `every_ms` from then on, up
    to `length_ms`; between them the path is looked at every `sample_ms`.
    """

    first_ms: int
    every_ms: int
    sample_ms: int
    length_ms: int

    def slots(self) -> Iterator[tuple[int, int]]:
        """From one instant to the next, in milliseconds."""
        begin = 0
        for instant in (*range(self.first_ms, self.length_ms, self.every_ms), self.length_ms):
            if instant > begin:
                yield begin, instant
                begin = instant


@dataclass(frozen=True)
class Sample:
    """The path at an instant."""

    at_ns: int
    delay_ns: int
    satellite: int  # the one that serves the terminal
    elevation: float  # of it, in degrees
    in_view: int  # satellites that the terminal could use


@dataclass(frozen=True)
class Change:
    """A handover. Until `until_ms` there is no path; it is `at_ms` if the next one is there at once."""

    at_ms: int
    until_ms: int


@dataclass(frozen=True)
class Passage:
    """The path of a terminal over time: at instants, between which delays change evenly, and handovers."""

    samples: tuple[Sample, ...]
    changes: tuple[Change, ...]

    @property
    def unserved(self) -> list[Change]:
        """The times without a path."""
        return [change for change in self.changes if change.until_ms > change.at_ms]


# Of the times at which the path is looked at up to the next instant, in seconds, and the present connection.
Choice = Callable[[Sky, Sequence[float], Route | None], Route | None]


def highest(sky: Sky, times: Sequence[float], _present: Route | None) -> Route | None:
    """By the satellite that stands highest, whatever the present connection is."""
    return sky.highest(times[0])


def longest(step_s: float) -> Choice:
    """The present connection if it serves up to the next instant; else the one that serves for longest,
    looked at in such steps.
    """

    def choose(sky: Sky, times: Sequence[float], present: Route | None) -> Route | None:
        if present is not None and all(sky.serves(at, present) for at in times):
            return present
        return sky.longest(times[0], step_s)

    return choose


@dataclass
class _Piece:
    """A time over which the same connection serves, or none."""

    begin_ms: int
    end_ms: int
    way: Route | None


def passage(sky: Sky, choose: Choice, clock: Clock) -> Passage:
    """Choose a connection at each instant of the clock; BentpipeError if there never is one."""
    pieces: list[_Piece] = []
    for begin, end in clock.slots():
        times = range(begin, end, clock.sample_ms)
        way = choose(sky, [at / 1000 for at in times], pieces[-1].way if pieces else None)
        lost = None if way is None else _lost(sky, way, times)
        _extend(pieces, _Piece(begin, end if lost is None else lost, way))
        if lost is not None:
            _extend(pieces, _Piece(lost, end, None))
    if all(piece.way is None for piece in pieces):
        raise BentpipeError(
            f"the terminal is never served in {clock.length_ms / 1000:g} s",
            "no satellite is above both masks at any instant: see the places, the inclination, the masks",
        )
    return Passage(tuple(_samples(sky, pieces, clock)), tuple(_changes(pieces)))


def _lost(sky: Sky, way: Route, times: Sequence[int]) -> int | None:
    """The first of these times at which the connection is lost."""
    return next((at for at in times if not sky.serves(at / 1000, way)), None)


def _extend(pieces: list[_Piece], following: _Piece) -> None:
    if following.end_ms == following.begin_ms:
        return
    if pieces and pieces[-1].way == following.way:
        pieces[-1].end_ms = following.end_ms
    else:
        pieces.append(following)


def _changes(pieces: Sequence[_Piece]) -> Iterator[Change]:
    for before, piece in zip([None, *pieces], pieces, strict=False):
        if piece.way is None:
            yield Change(piece.begin_ms, piece.end_ms)
        elif before is not None and before.way is not None:
            yield Change(piece.begin_ms, piece.begin_ms)


def _samples(sky: Sky, pieces: Sequence[_Piece], clock: Clock) -> Iterator[Sample]:
    """Of each piece with a path: its beginning, each sampling time, and its last nanosecond, so that the
    delay holds over a time without one.
    """
    for piece in pieces:
        if piece.way is None:
            continue
        step = clock.sample_ms
        times = range((piece.begin_ms // step + 1) * step, piece.end_ms, step)
        for at_ms in (piece.begin_ms, *times):
            yield _sample(sky, piece.way, at_ms, at_ms * _NS)
        yield _sample(sky, piece.way, piece.end_ms, piece.end_ms * _NS - 1)


def _sample(sky: Sky, way: Route, at_ms: int, at_ns: int) -> Sample:
    in_view, elevation = sky.seen(at_ms / 1000, way.satellites[0])
    delay_ns = round(sky.delay_s(at_ms / 1000, way) * 1e9)
    return Sample(at_ns, delay_ns, way.satellites[0], elevation, in_view)
