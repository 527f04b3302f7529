"""The scenario after OpenSAND: handshakes over its carriers, and attenuation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.study.intervals import span
from bentpipe.study.markdown import listed, literal, number, table
from bentpipe.study.quantiles import median_of

from .cells import completion

_PLAIN = "geo-tum"
_THERE_MS = {"quic": 25, "tcp": 10}  # that the source's satellite adds (section II-F)
_ASSIGNED, _REQUESTS = "return.rate.cra", "return.rate.vbdc"
_WHOLE = "9.7 Mbit/s, the whole carrier"
_FRAMES = "no carriers: frames of 10 ms forward, 26.5 ms back"
_ALONE = "nothing: requests alone"
_SUPERFRAME_MS = 26.5
_HANDSHAKES = """A paper ([kosek](../kosek/kosek.md)) measured some 25 ms more for QUIC's handshakes over
its emulated satellite than delays explain, and 10 ms more for TCP's, and found no single cause.
`geo-tum-opensand` has the carriers of its emulator: BBFRAMEs with GSE forward, 19.1 Mbit/s, and bursts in
superframes of 26.5 ms on the way back, 9.7 Mbit/s, of which the terminal always has as much as the row says.
They are compared with `geo-tum` at the same two rates, without carriers; by itself that has 19.6 and 5.2
Mbit/s. How many milliseconds more than over `geo-tum` at the carriers' rates the client's handshake takes,
and in parentheses the first byte of the file:"""
_ATTENUATION = """The paper's emulation has attenuation among its parameters, and leaves it at 0 dB.
With its one MODCOD, QPSK 1/4, whose threshold is -2.35 dB, and Es/N0 of 20 dB, attenuation does nothing up to
22.35 dB; with more nothing arrives, and where that is so throughout, the scenario is refused. Seconds until
10 MiB are there over `geo-tum-opensand`:"""
_FADE = "25 dB from 3 to 6 s"


def handshakes(cells: Sequence[Cell]) -> list[str]:
    """The section on handshakes, if there are trials with carriers, and without at the same rates."""
    base: dict[str, Cell] = {}
    rows: dict[str, dict[str, Cell]] = {}
    for one in cells:
        words = _row(one.key.scenario)
        (rows.setdefault(words, {}) if words else base)[one.key.server] = one
    if not base or not rows:
        return []
    table_rows = [
        [words, *(_more(row.get(server), plain) for server, plain in base.items())]
        for words, row in rows.items()
    ]
    there = ["published", *(f"{_THERE_MS[_transport(one)]}" for one in base.values())]
    head = ["always assigned to the terminal", *map(literal, base)]
    after = " ".join([*_added(rows, base), *_framed(rows, base), *_waits(rows, base)])
    parts = ["## Handshakes over carriers", _HANDSHAKES, table(head, [*table_rows, there])]
    return [*parts, *([after] if after else [])]


def _row(label: str) -> str:
    """What a row is called; "" of the path with which all others are compared."""
    scenario = labels.scenario(label)
    values = scenario.values
    if scenario.name == _PLAIN and "forward.frame" in values:
        return _FRAMES
    if scenario.name == _PLAIN:
        return "" if "return.rate" in values else "no carriers: 19.6 Mbit/s forward, 5.2 back"
    if _REQUESTS in values:
        return _ALONE
    return values.get(_ASSIGNED, _WHOLE).replace("kbit", " kbit")


def _transport(cell: Cell) -> str:
    return cell.records[0].transport or "quic"


def _more(cell: Cell | None, base: Cell) -> str:
    """Milliseconds of handshake and first byte, beyond those of `base`."""
    handshake, first_byte = (_more_ms(cell, base, column) for column in ("handshake_s", "ttfb_s"))
    return f"{number(handshake, 1)} ({number(first_byte, 1)})"


def _more_ms(cell: Cell | None, base: Cell, column: str = "handshake_s") -> float | None:
    here, there = median_of(cell, column), median_of(base, column)
    return None if here is None or there is None else 1000 * (here - there)


def _beyond(row: Mapping[str, Cell], base: Mapping[str, Cell], column: str = "handshake_s") -> list[float]:
    """Milliseconds of each server's handshake, or of another column, beyond those of `base`."""
    found = [_more_ms(row.get(server), plain, column) for server, plain in base.items()]
    return [one for one in found if one is not None]


def _added(rows: Mapping[str, Mapping[str, Cell]], base: Mapping[str, Cell]) -> list[str]:
    """What carriers add where the terminal has all."""
    added = _beyond(rows.get(_WHOLE, {}), base)
    if not added:
        return []
    return [
        f"Carriers that send as soon as something waits, as these do, add {span(added, 1)} ms to a handshake."
    ]


def _framed(rows: Mapping[str, Mapping[str, Cell]], base: Mapping[str, Cell]) -> list[str]:
    """What frames of a fixed duration add, beside what the paper has."""
    row = rows.get(_FRAMES, {})
    parts = []
    for transport, published_ms in _THERE_MS.items():
        mine = {server: cell for server, cell in base.items() if _transport(cell) == transport}
        if added := _beyond(row, mine):
            parts.append(f"{span(added, 1)} ms over {transport.upper()}, where the paper has {published_ms}")
    first_bytes = _beyond(row, base, "ttfb_s")
    if not parts or not first_bytes:
        return []
    return [
        "What a frame of a fixed duration carries arrives when the frame ends: with the default durations of "
        "OpenSAND, 10 and 26.5 ms, a handshake over plain rates takes longer by "
        f"{listed(parts)}. Each further round trip waits again: the first byte comes "
        f"{span(first_bytes, 1)} ms later, where the paper has no more than for the handshake."
    ]


def _waits(rows: Mapping[str, Mapping[str, Cell]], base: Mapping[str, Cell]) -> list[str]:
    """For how many superframes the stacks wait where the terminal has less, and how long where it has
    nothing.
    """
    parts = [
        f"with {words} for {span(frames, 0)}"
        for words, row in rows.items()
        if words.endswith("kbit/s") and (frames := [one / _SUPERFRAME_MS for one in _beyond(row, base)])
    ]
    found = []
    if parts:
        found.append(
            "How many superframes a handshake waits for where the terminal has less depends on the stack: "
            f"{listed(parts)}."
        )
    if alone := _beyond(rows.get(_ALONE, {}), base):
        found.append(f"Where it has to request all, a handshake takes {span(alone, 0)} ms longer.")
    return found


def attenuation(cells: Sequence[Cell]) -> list[str]:
    """The section on attenuation, if there are trials with some."""
    found: dict[str, dict[str, Cell]] = {}
    for one in cells:
        level = labels.scenario(one.key.scenario).values["forward.rate.attenuation"]
        found.setdefault(one.key.server, {})[level] = one
    if not found:
        return []
    columns = list(dict.fromkeys(level for row in found.values() for level in row))
    rows = [
        [literal(server), *(completion(row.get(level)) for level in columns)] for server, row in found.items()
    ]
    head = ["server", *(_FADE if "steps" in one else one.replace("dB", " dB") for one in columns)]
    return ["## Attenuation", _ATTENUATION, table(head, rows)]
