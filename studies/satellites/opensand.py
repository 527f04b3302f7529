"""The scenario after OpenSAND: handshakes over its carriers, and attenuation."""

from __future__ import annotations

from collections.abc import Sequence

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.study.markdown import literal, table
from bentpipe.study.quantiles import median_of

from .cells import completion

_PLAIN = "geo-tum"
_THERE_MS = {"quic": 25, "tcp": 10}  # that the source's satellite adds (section II-F)
_REQUESTS = "return.rate.vbdc"
_HANDSHAKES = """A paper ([kosek](../kosek/kosek.md)) measured some 25 ms more for QUIC's handshakes over
its emulated satellite than delays explain, and 10 ms more for TCP's, and found no single cause. `geo-tum`
is that path without carriers, `geo-tum-opensand` with those of its emulator: BBFRAMEs with GSE forward, and
bursts in superframes of 26.5 ms on the way back, of which the terminal always has as much as the row says.
How many milliseconds more than over `geo-tum` the client's handshake takes, and in parentheses the first
byte of the file:"""
_AFTER = """Carriers that send as soon as something waits, as these do, add a millisecond at most. What a
frame of a fixed duration carries arrives when that ends: with the default durations of OpenSAND, 10 and 26.5
ms, a round trip over plain rates takes about as much longer as the paper has for QUIC's handshake, and so
does each further round trip. That TCP had less to wait for, and the first byte no more than the handshake,
they do not explain. A terminal that always has 256 kbit/s would need a superframe more for QUIC's first
packet of 1200 bytes, and not for TCP's; one that has to request all waits for a whole round trip."""
_ATTENUATION = """The paper's emulation has attenuation among its parameters, and leaves it at 0 dB.
With its one MODCOD, QPSK 1/4, whose threshold is -2.35 dB, and Es/N0 of 20 dB, attenuation does nothing up to
22.35 dB; with more nothing arrives, and where that is so throughout, the scenario is refused. Seconds until
10 MiB are there over `geo-tum-opensand`:"""
_FADE = "25 dB from 3 to 6 s"


def handshakes(cells: Sequence[Cell]) -> list[str]:
    """The section on handshakes, if there are trials with carriers and without."""
    plain = {one.key.server: one for one in cells if one.key.scenario == _PLAIN}
    rows: dict[str, dict[str, Cell]] = {}
    for one in cells:
        if one.key.scenario != _PLAIN:
            rows.setdefault(_assigned(one.key.scenario), {})[one.key.server] = one
    if not plain or not rows:
        return []
    table_rows = [
        [words, *(_more(row.get(server), base) for server, base in plain.items())]
        for words, row in rows.items()
    ]
    there = ["published", *(f"{_THERE_MS[_transport(one)]}" for one in plain.values())]
    head = ["always assigned to the terminal", *map(literal, plain)]
    return ["## Handshakes over carriers", _HANDSHAKES, table(head, [*table_rows, there]), _AFTER]


def _assigned(label: str) -> str:
    values = labels.scenario(label).values
    if "forward.frame" in values:
        return "no carriers: frames of 10 ms forward, 26.5 ms back"
    if _REQUESTS in values:
        return "nothing: requests alone"
    return values.get("return.rate.cra", "9.7 Mbit/s, the whole carrier").replace("kbit", " kbit")


def _transport(cell: Cell) -> str:
    return cell.records[0].transport or "quic"


def _more(cell: Cell | None, base: Cell) -> str:
    """Milliseconds of handshake and first byte, beyond those of `base`."""
    times = []
    for column in ("handshake_s", "ttfb_s"):
        here, there = median_of(cell, column), median_of(base, column)
        times.append("-" if here is None or there is None else f"{1000 * (here - there):.1f}")
    return f"{times[0]} ({times[1]})"


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
