"""The beginning of the page on pages through a VPN."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bentpipe.study import dots
from bentpipe.study.claims import NO_EFFECT
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.intervals import span
from bentpipe.study.markdown import listed, several

from .vpn_ratios import H1, H2, H3, LEO, VERSIONS, WAYS, Order, Tunnelling, by_verdict, capital

_PICTURE = "pages-vpn.svg"
_CAPTION = """Page load time through WireGuard / without, with intervals of 95 %: right of 1 the page takes
longer through WireGuard. Without it TCP, which HTTP/1.1 and HTTP/2 use, is behind proxies."""

_BASES = {"behind proxies": (H1, H2), "direct": (H3,)}  # without WireGuard
_RANGES = "ranges over the links of ratios whose intervals do not hold 1"


def front(effects: Sequence[Tunnelling], orders: Sequence[Order], folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    sentences = [_over_geo(effects), _over_leo(effects), _order(orders)]
    picture, advice = _picture(effects, folder), [*_negligible(effects), *_advice(orders)]
    return Front(_finding(effects), [*filter(None, sentences)], picture, "\n".join(advice))


def _by_version(effects: Sequence[Tunnelling]) -> dict[str, list[Tunnelling]]:
    """What WireGuard changes over the GEO links, by version of HTTP."""
    geo = [one for one in effects if one.link != LEO]
    found = {version: [one for one in geo if one.version == version] for version in VERSIONS}
    return {version: mine for version, mine in found.items() if mine}


def _is_shown(effects: Sequence[Tunnelling]) -> bool:
    """Whether a page takes longer over each of these links, or less long over each."""
    return abs(sum(one.side for one in effects)) == len(effects)


def _range(effects: Sequence[Tunnelling]) -> str:
    return span(one.measured.value for one in effects if one.measured is not None)


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


def _finding(effects: Sequence[Tunnelling]) -> str:
    """Of HTTP/2 and HTTP/3, which the slides do not call poor throughout, as far as they are shown."""
    shown = {name: _range(mine) for name, mine in _by_version(effects).items() if _is_shown(mine)}
    parts = [f"{value} times as long with {name}" for name, value in shown.items() if name != H1]
    if not parts:
        return "Over GEO links WireGuard is not shown to change the time of pages with HTTP/2 and HTTP/3"
    begin = "Through WireGuard pages over GEO take "
    whole = ", ".join([parts[0], *(one.replace(" times as long", "") for one in parts[1:])])
    return fitting(begin + whole, begin + parts[0])


def _over_geo(effects: Sequence[Tunnelling]) -> str:
    """The range of each version over the links, where it is shown over each of them."""
    geo = _by_version(effects)
    shown = {name: f"{_range(mine)} ({name})" for name, mine in geo.items() if _is_shown(mine)}
    hidden = [f"{name} ({_range(mine)})" for name, mine in geo.items() if name not in shown]
    times = [
        f"{listed(values)} times as long as {base}"
        for base, names in _BASES.items()
        if (values := [shown[name] for name in names if name in shown])
    ]
    takes = f"a page through WireGuard takes {' and '.join(times)}, {_RANGES}" if times else ""
    equal = f"no difference is shown over every link for {listed(hidden)}" if hidden else ""
    links = several(len({one.link for mine in geo.values() for one in mine}), "GEO link")
    return f"Over {links} {'; '.join(filter(None, (takes, equal)))}." if geo else ""


def _over_leo(effects: Sequence[Tunnelling]) -> str:
    mine = [one for one in effects if one.link == LEO]
    shown = [f"{one.written} times as long with {one.version}" for one in mine if one.side]
    hidden = [f"{one.version}, {one.written}" for one in mine if not one.side]
    takes = f"it takes {listed(shown)}" if shown else ""
    equal = f"no difference is shown, by ratios whose intervals hold 1: {'; '.join(hidden)}" if hidden else ""
    return f"Over {LEO}, a LEO link that varies, {'; '.join(filter(None, (takes, equal)))}." if mine else ""


def _order(orders: Sequence[Order]) -> str:
    parts = []
    for way, words in WAYS.items():
        if found := by_verdict(orders, way):
            links = several(sum(map(len, found.values())), "link")
            kinds = listed(f"{word} over {len(mine)}" for word, mine in found.items())
            parts.append(f"{kinds} of {links} {words}")
    begin = "Our order of HTTP's versions, compared with that of the slides' words,"
    return f"{begin} {', and '.join(parts)}." if parts else ""


def _negligible(effects: Sequence[Tunnelling]) -> Iterator[str]:
    """The versions of which WireGuard changes over GEO less than what verdicts call an effect."""
    names = [name for name, mine in _by_version(effects).items() if all(map(_is_negligible, mine))]
    if names:
        what = f"the page load time of {listed(names)} by less than 2 %, which counts as no effect"
        yield f"- Over GEO WireGuard changes {what}."


def _is_negligible(one: Tunnelling) -> bool:
    measured = one.measured
    if measured is None or measured.low is None or measured.high is None:
        return False
    return measured.low >= 1 / NO_EFFECT and measured.high <= NO_EFFECT


def _advice(orders: Sequence[Order]) -> Iterator[str]:
    """Of each two versions the one that takes less time, over the links that show it."""
    for way, words in WAYS.items():
        links: dict[tuple[str, str], list[str]] = {}
        for one in orders:
            for above in (False, True):
                if one.is_tunnelled == way and one.shows(above=above):
                    pair = (one.second, one.first) if above else (one.first, one.second)
                    links.setdefault(pair, []).append(one.link)
        pairs: dict[str, list[str]] = {}
        for (better, worse), over in links.items():
            pairs.setdefault(listed(over), []).append(f"{better} to {worse}")
        if pairs:
            each = "; ".join(f"{listed(mine)} over {over}" for over, mine in pairs.items())
            yield f"- {capital(words)} prefer {each}."
