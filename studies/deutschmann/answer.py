"""The beginning of the page on object sizes: one QUIC beside one TCP, and what proxies add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.inference import Ratio
from bentpipe.study.claims import SAME_DIRECTION, Claim, MeasuredValue, Published, tally, verdict
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import bytes_as, listed, several
from bentpipe.study.means import GeometricMean

from .published import Slides

_ROUNDED = 0.25  # of a round trip: how exactly the slides' words say it
_CAPTION = """Lines are download times, with set-up in them; marks at the left are set-up alone. A panel that
says so is in real time, with VPNs."""
HOW = """Set-up in round trips of the link: the geometric mean over trials, with Student's interval of 95 % on
logarithms; where nothing varies both ends are the value."""
VPNS = {"openvpn-udp": "OpenVPN over UDP", "openvpn-tcp": "OpenVPN over TCP", "wireguard": "WireGuard"}
Whole = Callable[[str, int], Cell | None]  # of a sender, for a size; None where a trial failed


def claims(cells: Sequence[tuple[str, Cell]], rtt_s: float, known: Slides) -> list[Claim]:
    """What the slides say of set-up, with the set-up of each sender over one link."""
    found = []
    for name, cell in cells:
        trips = known.tcp_round_trips if name.startswith("TCP") else known.quic_round_trips
        mean = GeometricMean.of([one / rtt_s for one in cell.values("handshake_s")])
        if mean is not None:
            measured = MeasuredValue.of(mean)
            published = Published.number(trips, _ROUNDED / trips)
            said = several(trips, "round trip")
            text = f"Set-up takes {said}: {name}"
            found.append(Claim(text, said, published, measured, f"{measured.written()} round trips"))
    return found


def front(
    link: str,
    whole: Whole,
    senders: Sequence[str],
    known: Sequence[Claim],
    picture: Path,
    sizes: Sequence[int],
    tunnels: str,
) -> Front:
    """The front of the page, from the times over its first link, and the sentence on VPNs."""
    text = "Download time and set-up of objects of every size, over each link"
    quic, rows = one_quic(senders), _rows(senders)
    middle = middle_size(sizes)
    shown = Picture(picture, text, _CAPTION)
    return Front(
        _finding(link, whole, rows, middle),
        _answer(link, whole, quic, sizes, known, tunnels),
        shown,
        _advice(link, whole, senders, sizes),
    )


def _advice(link: str, whole: Whole, senders: Sequence[str], sizes: Sequence[int]) -> str:
    """Which to choose for which size over the first link, where the interval of the ratio says so."""
    quic = one_quic(senders)
    if quic is None:
        return ""
    name, lines = quic.removeprefix("QUIC, "), []
    for other in (one for one in ("TCP", "TCP, proxies D") if one in senders):
        for above, words in ((False, "less"), (True, "more")):
            some = [
                bytes_as(size)
                for size in sizes
                if verdict(
                    MeasuredValue.of(_ratio(whole, size, other, quic)),
                    Published.side(above=above),
                )
                == SAME_DIRECTION
            ]
            if len(some) > 1 and len(some) == len(sizes):
                some = [f"every size from {some[0]} to {some[-1]}"]
            if some:
                behind = "TCP behind proxies" if "proxies" in other else "TCP"
                lines.append(f"- Over {link} {name} takes {words} time than {behind} for {listed(some)}.")
    return "\n".join(lines)


def one_quic(senders: Sequence[str]) -> str | None:
    """The stack of QUIC that stands beside TCP: the slides' own with its controller of then, or the first."""
    quic = [one for one in senders if one.startswith("QUIC")]
    return next((one for one in quic if "picoquic:cc=bbr1" in one), quic[0] if quic else None)


def middle_size(sizes: Sequence[int]) -> int:
    """The size of the title: 10 MB, or the largest."""
    return 10_000_000 if 10_000_000 in sizes else sizes[-1]


def through_vpns(link: str, whole: Whole, senders: Sequence[str], size: int) -> str:
    """The sentence on what VPNs make of TCP's time in real time; "" where none was run."""
    found = [
        f"{VPNS[kind]} {ratio.written()}"
        for name in senders
        if (kind := name.rpartition("kind=")[2]) in VPNS
        and (ratio := MeasuredValue.of(_ratio(whole, size, "TCP", name))) is not None
    ]
    if not found:
        return ""
    begin = f"In real time TCP takes these multiples of its time for {bytes_as(size)} over {link}"
    return f"{begin}: through {listed(found)}."


def _rows(senders: Sequence[str]) -> list[tuple[str, str]]:
    """The senders of the title: TCP, TCP behind proxies, one QUIC."""
    quic = one_quic(senders)
    names = [("TCP", "TCP"), ("TCP behind proxies", "TCP, proxies D"), ("QUIC", quic or "")]
    return [(word, name) for word, name in names if name in senders]


def _finding(link: str, whole: Whole, rows: Sequence[tuple[str, str]], size: int) -> str:
    found = [(word, mean) for word, name in rows if (mean := _mean(whole, size, name)) is not None]
    if not found:
        return "Object size against set-up and download"
    begin = f"{bytes_as(size)} over {link}"
    full = [f"{word} {MeasuredValue.of(one).written(1, ' s')}" for word, one in found]
    plain = [f"{word} {one.value:.1f} s" for word, one in found]
    return fitting(f"{begin}: {listed(full)}", f"{begin}: {listed(plain)}", begin)


def _ratio(whole: Whole, size: int, first: str, second: str) -> Ratio | None:
    """The second sender's time / the first one's."""
    both = whole(first, size), whole(second, size)
    return None if both[0] is None or both[1] is None else cell_ratio(both[0], both[1], "completion_s")


def _mean(whole: Whole, size: int, name: str) -> GeometricMean | None:
    cell = whole(name, size)
    return None if cell is None else GeometricMean.of(cell.values("completion_s"))


def _answer(
    link: str, whole: Whole, quic: str | None, sizes: Sequence[int], known: Sequence[Claim], tunnels: str
) -> list[str]:
    sentences = []
    if quic is not None:
        ratios = [
            f"{ratio.written()} for {bytes_as(size)}"
            for size in sizes
            if (ratio := MeasuredValue.of(_ratio(whole, size, "TCP", quic))) is not None
        ]
        if ratios:
            name = quic.removeprefix("QUIC, ")
            sentences.append(f"Over {link} {name} takes these multiples of TCP's time: {listed(ratios)}.")
    sentences += [tunnels] if tunnels else []
    verdicts = tally(one.verdict for one in known)
    sentences.append(
        f"The slides state round trips of set-up alone: of {several(len(known), 'comparison')} {verdicts}."
    )
    return sentences
