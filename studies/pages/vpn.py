"""The page on pages through a VPN: how long the slides' page takes through WireGuard and without it, over the
nominal links of five operators in real time, beside what the slides say of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bentpipe.analysis.cell_ratio import LEAST
from bentpipe.analysis.cells import Cell
from bentpipe.study import claims as study_claims
from bentpipe.study import closing, markdown
from bentpipe.study.front import folded
from bentpipe.study.intervals import span
from bentpipe.study.markdown import listed, several, table, trials
from bentpipe.study.quantiles import median_of
from bentpipe.study.source import Source

from . import published
from .runs import has_proxies, http, is_tunnelled, orbit
from .senders import by_link
from .vpn_answer import front
from .vpn_ratios import (
    LEO,
    SAID,
    VERSIONS,
    WAYS,
    Order,
    Tunnelling,
    VpnRuns,
    by_verdict,
    capital,
)

_TEXT = """The slides (J. Deutschmann et al., 2021, part 2) load a page of 70 objects of 30 kB over the links
of five operators, through a VPN, WireGuard, and without. Here the same page comes over [nominal
links](../../docs/reference/scenarios.md) of these operators, in real time: real programs, sockets and clock,
{trials} of each setting. `{leo}` is a LEO link that varies, the others are GEO links."""
_ARMS = """- **TCP through proxies:** HTTP/1.1 and HTTP/2 with TLS, from Linux. Proxies are configuration D of
  Kuhn 2020 at both ends of the satellite: what a path without a VPN has there.
- **TCP through WireGuard:** the same in [a tunnel](../../docs/design/vpn.md) from the client to the server,
  past the proxies.
- **HTTP/3, direct:** noq with CUBIC and an initial window of 10 packets. No such proxy splits QUIC.
- **HTTP/3 through WireGuard:** the same in the tunnel."""
_BOUNDS = """- **TCP's ratio has two causes in it:** packets pass through a tunnel, and no proxy splits the
  connection. These runs do not separate them. [Another page](pages.md) has TCP past the proxies without a
  tunnel, in virtual time. HTTP/3's ratio has the tunnel alone in it.
- **Over `{leo}` a trial's time depends on its seed.** Trials with the same seed are compared in pairs, if
  a setting has {least} or more. A trial through the tunnel begins when that is up, seconds after its link,
  and so at another point of the link's course: pairs do not remove that difference."""
_HOW = """Ratios of geometric means of page load times, through WireGuard / without, with [their
intervals](../../docs/reference/study-verdicts.md#intervals-of-ratios) of 95 %. A page takes longer where the
whole interval is above 1 by more than 2 %, less long where it is as far below, and as long where all of it is
within 2 % of 1; else it cannot be told. Above, the ratio over the GEO links is the geometric mean of theirs,
and in brackets are the lowest and the highest end of their intervals."""
_RULE = """Words can be compared with times by their order. Over a link our order *agrees* if, of each two
versions with different words, the one with the better word takes less time. It is *contradicted* if, of any
such two, that one takes more time, or both take equally long. Else it *cannot be told*. Which of two versions
takes less time is what the interval of their ratio shows by [the rule of all
studies](../../docs/reference/study-verdicts.md), for which less than 2 % is no effect. Two versions with the
same word are not judged."""
_WORDS = "Medians of page load times in seconds, as ranges over the links, beside the slides' words."


def write(sources: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its picture to `folder`; `sources` are the runs with a VPN."""
    runs = VpnRuns.of(sources)
    effects, orders = list(runs.tunnelling()), list(runs.orders())
    begin = front(effects, orders, folder)
    counts = trials({len(one.records) for one in runs.cells})
    parts = [*begin.parts(), "## What was run", _TEXT.format(trials=counts, leo=LEO), _ARMS]
    parts += ["What limits what the numbers say:", _BOUNDS.format(leo=LEO, least=LEAST)]
    parts += ["## Through WireGuard and without", _HOW]
    parts += folded(several(len(effects), "ratio"), _ratios(effects))
    parts += [*_beside_slides(runs, orders), "## Page load times"]
    parts += ["Medians in seconds, with quartiles where they differ by more than 2 %."]
    parts += folded("Page load times by link", by_link([(_way(one), one) for one in runs.cells]))
    parts += closing.of_all(sources, {"Deutschmann": published.load().slides})
    file = folder / "pages-vpn.md"
    file.write_text(markdown.page(parts))
    return [file, *([] if begin.picture is None else [begin.picture.file])]


def _ratios(effects: Sequence[Tunnelling]) -> str:
    of = {(one.link, one.version): one.written for one in effects}
    links = dict.fromkeys(one.link for one in effects)
    rows = [[link, *(of.get((link, name), "-") for name in VERSIONS)] for link in links]
    return table(["through WireGuard / without", *VERSIONS], rows)


def _beside_slides(runs: VpnRuns, orders: Sequence[Order]) -> Iterator[str]:
    yield "## The slides' words"
    yield _WORDS
    head = ["", *(f"{name}{suffix}" for name in WAYS.values() for suffix in ("", ", the slides"))]
    yield table(head, _beside_words(runs))
    yield _RULE
    for way, words in WAYS.items():
        if found := by_verdict(orders, way):
            kinds = "; ".join(f"{word} over {listed(links)}" for word, links in found.items())
            yield f"{capital(words)} the order {kinds}."
    known = [one.claim for one in orders]
    mine = study_claims.judged(known)
    tally = study_claims.tally(one.verdict for one in mine)
    yield f"Of {several(len(mine), 'ratio')} of versions with different words, {tally}."
    head = ["ratio of page load times", "the slides' words", "here", "verdict"]
    yield from folded(several(len(known), "ratio"), table(head, [one.row() for one in known], left=4))


def _beside_words(runs: VpnRuns) -> Iterator[list[str]]:
    for place, links in runs.orbits.items():
        for version in VERSIONS:
            both = [(_times(runs.of_way(version, way), links), SAID[version, way]) for way in WAYS]
            yield [f"{version}, {place}", *(text for one in both for text in one)]


def _times(cells: Sequence[Cell], links: Sequence[str]) -> str:
    """The range of the medians over these links, and how many trials failed."""
    mine = [one for one in cells if orbit(one) in links]
    failed = sum(one.failures.total() for one in mine)
    text = span(time for one in mine if (time := median_of(one, "plt_s")) is not None)
    return f"{text}, {failed} failed" if failed else text


def _way(cell: Cell) -> str:
    if is_tunnelled(cell):
        return f"{http(cell)}, WireGuard"
    return f"{http(cell)}, {'proxies' if has_proxies(cell) else 'direct'}"
