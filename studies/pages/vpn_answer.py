"""The beginning of the page on pages through a VPN."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bentpipe.study import dots
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, several

from .vpn_ratios import (
    EQUAL,
    H1,
    H2,
    H3,
    LEO,
    LONGER,
    SAID,
    SHORTER,
    UNTOLD,
    VERSIONS,
    WAYS,
    Order,
    Tunnelling,
    capital,
)

_PICTURE = "pages-vpn.svg"
_CAPTION = """Page load time through WireGuard / without, with intervals of 95 %: right of 1 the page takes
longer through WireGuard. Without it TCP, which HTTP/1.1 and HTTP/2 use, is behind proxies, and HTTP/3 is
direct."""

_BASES = {"behind proxies": (H1, H2), "direct": (H3,)}  # without WireGuard
_CAUSES = """TCP loses its proxies there, too, and what is due to that and what to the tunnel is not separated
here"""
_SAID = f"""The slides call {H2} {SAID[H2, False]} without a VPN and {SAID[H2, True]} through it, and {H3}
{SAID[H3, False]} both times"""
_AGAINST = {
    SHORTER: f"less time than {H3}",
    LONGER: f"more time than {H3}",
    EQUAL: f"as much time as {H3}, within 2 %,",
}


def front(effects: Sequence[Tunnelling], orders: Sequence[Order], folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    geo, leo = _over_geo(effects), [one for one in effects if one.link == LEO]
    links = [one for one in dict.fromkeys(one.link for one in effects) if one != LEO]
    sentences = [
        _sentence(f"Through WireGuard, over {several(len(links), 'GEO link')},", geo, _CAUSES),
        _sentence(f"Through WireGuard, over {LEO}, a LEO link that varies,", leo),
        _slides(orders),
    ]
    picture, advice = _picture(effects, folder), [*_equal(geo), *_advice(orders, links)]
    return Front(_finding(geo), [*filter(None, sentences)], picture, "\n".join(advice))


def _over_geo(effects: Sequence[Tunnelling]) -> list[Tunnelling]:
    """What WireGuard changes over all GEO links, by version of HTTP."""
    geo = [one for one in effects if one.link != LEO]
    found = {version: [one for one in geo if one.version == version] for version in VERSIONS}
    return [Tunnelling.over_all("GEO", version, mine) for version, mine in found.items() if mine]


def _picture(effects: Sequence[Tunnelling], folder: Path) -> Picture | None:
    panels, unit = [], "page load time, through WireGuard / without"
    for version in VERSIONS:
        mine = [one for one in effects if one.version == version]
        rows = [DotRow(one.link, {unit: one.measured}) for one in mine if one.measured is not None]
        panels += [DotPanel(version, rows)] if rows else []
    if not panels:
        return None
    dots.draw(panels, folder / _PICTURE, unit, "what WireGuard changes", border=1.0)
    return Picture(folder / _PICTURE, "Page load times through WireGuard / without, by link", _CAPTION)


def _finding(geo: Sequence[Tunnelling]) -> str:
    """Of HTTP/2 and HTTP/3, which the slides do not call poor throughout, as far as they are shown."""
    of = {one.version: one for one in geo if one.shown != UNTOLD}
    titles = []
    if (tcp := of.get(H2)) is not None:
        takes = "as long" if tcp.shown == EQUAL else f"{tcp.written} times as long"
        bases = ("through WireGuard as behind", "by VPN as behind", "by VPN as by")
        short = [f"Over GEO {H2} takes {takes} {base} proxies" for base in bases]
        titles = [*(f"{one}{_with_quic(of.get(H3))}" for one in short), *short]
    elif (quic := of.get(H3)) is not None:
        takes = "as long" if quic.shown == EQUAL else f"{quic.written} times as long"
        titles = [f"Over GEO {H3} takes {takes} through WireGuard as direct"]
    unknown = f"Over GEO it cannot be told whether WireGuard changes the time of pages with {H2} and {H3}"
    return fitting(*titles) if titles else unknown


def _with_quic(quic: Tunnelling | None) -> str:
    """What is shown of HTTP/3, which is direct without a VPN, at the end of a title."""
    if quic is None:
        return ""
    return f"; {H3} is equal" if quic.shown == EQUAL else f", {H3} {quic.written} times direct"


def _sentence(place: str, effects: Sequence[Tunnelling], more: str = "") -> str:
    """What WireGuard changes there, version by version."""
    known = [one for one in effects if one.measured is not None]
    parts = []
    for base, names in _BASES.items():
        mine = [one for one in known if one.version in names]
        changed = [one for one in mine if one.shown in {LONGER, SHORTER}]
        equal = [one.version for one in mine if one.shown == EQUAL]
        if changed:
            takes = listed(
                f"{one.version} {'' if i else 'takes '}{one.written}" for i, one in enumerate(changed)
            )
            parts.append(f"{takes} times as long as {base}")
        if equal:
            verb = "takes" if len(equal) == 1 else "take"
            parts.append(f"{listed(equal)} {verb} as long as {base}, within 2 %")
    if hidden := [f"{one.written} for {one.version}" for one in known if one.shown == UNTOLD]:
        parts.append(f"it cannot be told whether a page takes longer, by ratios of {listed(hidden)}")
    if failed := [one.version for one in effects if one.measured is None]:
        parts.append(f"there is no ratio of {listed(failed)}, of which trials failed or are too few")
    return f"{place} {'; '.join([*parts, *filter(None, [more])])}." if parts else ""


def _slides(orders: Sequence[Order]) -> str:
    """HTTP/2, of which the slides' word changes with the VPN, beside HTTP/3, of which it does not."""
    parts = []
    for way, words in WAYS.items():
        mine = [one.shown for one in orders if (one.is_tunnelled, one.first, one.second) == (way, H2, H3)]
        links, untold = several(len(mine), "link"), mine.count(UNTOLD)
        takes = [f"{text} over {mine.count(word)}" for word, text in _AGAINST.items() if word in mine]
        if takes:
            rest = f" (over {untold} it cannot be told)" if untold else ""
            parts.append(f"takes {listed(takes)} of {links} {words}{rest}")
        elif mine:
            parts.append(f"cannot be told from {H3} over {links} {words}")
    return f"{_SAID}: here {H2} {', and '.join(parts)}." if parts else ""


def _equal(geo: Sequence[Tunnelling]) -> Iterator[str]:
    """The versions that take as long through WireGuard."""
    for base, names in _BASES.items():
        if mine := [one.version for one in geo if one.version in names and one.shown == EQUAL]:
            same = "the page takes equally long, within 2 %"
            yield f"- Over GEO use {listed(mine)} through WireGuard or {base}, as you like: {same}."


def _advice(orders: Sequence[Order], geo: Sequence[str]) -> Iterator[str]:
    """Of each two versions the one that takes less time, over the links that show it."""
    for way, words in WAYS.items():
        links: dict[tuple[str, str], list[str]] = {}
        for one in orders:
            if one.is_tunnelled == way and one.shown in {LONGER, SHORTER}:
                pair = (one.second, one.first) if one.shown == LONGER else (one.first, one.second)
                links.setdefault(pair, []).append(one.link)
        pairs: dict[str, list[str]] = {}
        for (better, worse), over in links.items():
            place = f"all {len(geo)} GEO links" if over == [*geo] else listed(over)
            pairs.setdefault(place, []).append(f"{better} to {worse}")
        if pairs:
            each = "; ".join(f"over {over} {listed(mine)}" for over, mine in pairs.items())
            yield f"- {capital(words)} prefer {each}."
