"""The page on object size against set-up and download time: TCP with TLS, behind proxies and without, and
QUIC, over the nominal links of operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.manifest import stack_versions
from bentpipe.study import claims as study_claims
from bentpipe.study import closing, markdown
from bentpipe.study.front import folded
from bentpipe.study.markdown import bytes_as, literal, number, several, table
from bentpipe.study.quantiles import median_of
from bentpipe.study.source import Source, pooled, single_transfers, title

from . import answer, drawn, published
from .published import Slides

_TEXT = """How long it takes until a connection is set up, and until an object is there, from 1 kB to 100 MB.
The slides that this is from show it over one operator's real link, of TCP with TLS 1.3, with and without
OpenVPN, and of two implementations of QUIC. Their figure has no numbers in it and their text states none, so
what can be set beside ours is what they say of set-up."""
_DIFFERS = """- **The links** are nominal: rates that the slides state, 600 ms of round trip, a queue of 1
  BDP, no losses. The real ones share their capacity, and are assigned it on demand.
- **The proxies.** TCP over the real links goes through the operator's proxies, of which the slides say
  nothing, unless a VPN hides it. Here both are shown separately: TCP as its ends have it, which is what
  proxies leave that see nothing of it, and TCP behind proxies at both ends of the satellite.
- **The stacks.** The slides have picoquic and quicly of January 2021, with their defaults; here quicly is not
  available, and picoquic is of today. The defaults that picoquic had there were those of its own program,
  picoquicdemo, whose server has BBR; the library by itself has NewReno. Both are here: `cc=bbr1` is the BBR
  that there was in 2021."""
_HOW = """Seconds since the client's first packet: the median over the trials, where one failed how many did.
*Set-up* ends when the client sends its Finished. In **bold** the least of a column, and what is within 2 % of
it; nothing where trials of one sender differ by more than that, or each is the only one."""

_REAL = """With real programs, sockets and clock, and so with VPNs: OpenVPN over UDP and over TCP, and
WireGuard, from the client to the server, set up before a trial begins; beside them TCP behind proxies, which
a VPN hides it from. The kernel's TCP is this machine's, not a guest's."""
_NEAR = 1.02


@dataclass(frozen=True)
class Page:
    """The runs of the page in one testbed."""

    sources: tuple[Source, ...]
    testbed: str

    @cached_property
    def cells(self) -> list[Cell]:
        return [one for one in single_transfers(pooled(self.sources)) if one.key.testbed == self.testbed]

    @cached_property
    def links(self) -> list[str]:
        return list(dict.fromkeys(one.key.scenario for one in self.cells))

    @cached_property
    def senders(self) -> list[str]:
        """Rows: TCP first, as the slides have it."""
        found = dict.fromkeys((not _is_tcp(one), sender(one)) for one in self.cells)
        return [name for _, name in sorted(found, key=lambda one: one[0])]

    @cached_property
    def sizes(self) -> list[int]:
        return sorted({one.records[0].size_bytes for one in self.cells})

    @cached_property
    def by_key(self) -> dict[tuple[str, str, int], Cell]:
        """By link, sender and size."""
        return {(one.key.scenario, sender(one), one.records[0].size_bytes): one for one in self.cells}

    def time_s(self, link: str, name: str, size: int, column: str = "completion_s") -> float | None:
        """The median over the trials that succeeded."""
        return median_of(self.by_key.get((link, name, size)), column)

    def whole(self, link: str) -> answer.Whole:
        """The cells over a link of which no trial failed, by sender and size."""

        def found(sender: str, size: int) -> Cell | None:
            cell = self.by_key.get((link, sender, size))
            return None if cell is None or cell.failures else cell

        return found

    def rtt_s(self, link: str) -> float:
        known = [
            one.manifest.scenarios[link].summary for one in self.sources if link in one.manifest.scenarios
        ]
        return float(known[0].get("rtt_ms") or 0) / 1e3


def sender(cell: Cell) -> str:
    """`TCP`, `TCP, tcp-pep terminal:config=D`, `QUIC, noq`."""
    transport = "TCP" if _is_tcp(cell) else "QUIC"
    stack = "" if cell.key.server == "linux" else f", {cell.key.server}"
    between = "" if cell.key.treatment == DIRECT else f", {_between(cell)}"
    return f"{transport}{stack}{between}"


def _between(cell: Cell) -> str:
    label = cell.key.treatment_label
    return "proxies D" if label.chain == "terminal:config=D,gateway:config=D" else cell.key.treatment


def _is_tcp(cell: Cell) -> bool:
    return labels.variant(cell.key.server).stack == "linux"


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its figure to `folder`; the files, the page first. BentpipeError if the runs have
    no transfers of one file in several sizes.
    """
    page, real = Page(tuple(runs), "sim"), Page(tuple(runs), "emu")
    if len(page.sizes) < 2:
        raise runs[0].refused(
            "wanted are transfers of one file in virtual time, in several sizes", "run deutschmann"
        )
    figure = folder / "deutschmann.svg"
    panels = [(labels.scenario(link).name, _curves(page, link)) for link in page.links]
    panels += [(f"{labels.scenario(link).name}, real time", _curves(real, link)) for link in real.links]
    drawn.draw(panels, figure)
    file = folder / "deutschmann.md"
    file.write_text(markdown.page([*_head(page, real, figure), *_sections(page, real)]))
    return [file, figure]


def _head(page: Page, real: Page, figure: Path) -> list[str]:
    """The front of the page, and what the slides say."""
    known, link = published.load(), page.links[0]
    cells = [(name, one) for name in page.senders if (one := page.by_key.get((link, name, page.sizes[0])))]
    claims = answer.claims(cells, page.rtt_s(link), known)
    name = labels.scenario(link).name

    tunnels = _tunnels(real) if real.cells else ""
    front = answer.front(name, page.whole(link), page.senders, claims, figure, page.sizes, tunnels)
    return [
        *front.parts(),
        "## What was run",
        _TEXT,
        "## The slides' claims",
        study_claims.rows([*claims], "the slides say"),
        study_claims.RULE,
        answer.HOW,
    ]


def _tunnels(real: Page) -> str:
    link = real.links[0]
    size = answer.middle_size(real.sizes)
    return answer.through_vpns(labels.scenario(link).name, real.whole(link), real.senders, size)


def _curves(page: Page, link: str) -> dict[str, drawn.Curve]:
    found = {}
    for name in page.senders:
        points = [(size, page.time_s(link, name, size), page.time_s(link, name, size, "handshake_s"))
                  for size in page.sizes]  # fmt: skip
        known = [(size, done, up) for size, done, up in points if done is not None and up is not None]
        if known:
            found[name] = drawn.Curve(*(list(column) for column in zip(*known, strict=True)))
    return found


def _sections(page: Page, real: Page) -> list[str]:
    known = published.load()
    parts = [
        "## Sizes at which TCP is as fast",
        _as_fast(page),
        "The implementations of QUIC of the slides:",
        _implementations(page, known),
        "## Differences from the source",
        _DIFFERS,
        "## Set-up and download",
        _HOW,
    ]
    parts += _links(page)
    if real.cells:
        parts += ["## In real time", _REAL, *_links(real)]
    return [*parts, *closing.of_all(page.sources, {"slides": known.source})]


def _links(page: Page) -> list[str]:
    """A table of each link."""
    parts = []
    for link in page.links:
        parts += [
            f"### {labels.scenario(link).name}",
            f"{literal(title(page.sources, link))}.",
            *folded("Times of each sender", _times(page, link)),
        ]
    return parts


def _as_fast(page: Page) -> str:
    """Of each link, the sizes at which TCP takes no longer than one stack of QUIC."""
    quic = answer.one_quic(page.senders)
    tcp = [name for name in page.senders if name.startswith("TCP")]
    if quic is None:
        return "No stack of QUIC is in these runs."
    rows = [
        [labels.scenario(link).name, *(_as_soon(page, link, name, quic) for name in tcp)]
        for link in page.links
    ]
    text = f"One stack with one: TCP beside {literal(quic.removeprefix('QUIC, '))}, within 2 %."
    return f"{text}\n\n{table(['', *map(literal, tcp)], rows, left=1 + len(tcp))}"


def _implementations(page: Page, known: Slides) -> str:
    """The stacks of the slides, and their variants here."""
    versions = stack_versions(pooled(page.sources))
    link, rows = page.links[0], []
    trips = several(known.quic_round_trips, "round trip")
    for stack, version in known.stacks.items():
        mine = [one for one in page.senders if one == f"QUIC, {stack}" or one.startswith(f"QUIC, {stack}:")]
        for name in mine:
            up = page.time_s(link, name, page.sizes[0], "handshake_s")
            here = "-" if up is None else f"{up / page.rtt_s(link):.2f} round trips"
            now = literal(versions.get(stack, "-"))
            rows.append([literal(name.removeprefix("QUIC, ")), version, now, here, trips])
        if not mine:
            rows.append([stack, version, "none", "-", trips])
    return table(["", "version there", "version here", "set-up here", "published"], rows, left=5)


def _as_soon(page: Page, link: str, name: str, quic: str) -> str:
    """The sizes at which it takes no longer than that stack of QUIC, but for 2 %."""
    found = []
    for size in page.sizes:
        mine, other = page.time_s(link, name, size), page.time_s(link, quic, size)
        if mine is not None and other is not None and mine <= _NEAR * other:
            found.append(bytes_as(size))
    return ", ".join(found) or "none"


def _varies(page: Page, link: str) -> bool:
    """Whether trials of one sender and size differ by more than what counts as equal, or nobody has tried."""
    if not any(len(cell.ok) > 1 for (where, _, _), cell in page.by_key.items() if where == link):
        return True
    for (where, _, _), cell in page.by_key.items():
        times = [one.completion_s for one in cell.ok if one.completion_s is not None]
        if where == link and times and max(times) > _NEAR * min(times):
            return True
    return False


def _times(page: Page, link: str) -> str:
    best: dict[int, float] = {}
    for size in page.sizes if not _varies(page, link) else []:
        known = [one for name in page.senders if (one := page.time_s(link, name, size)) is not None]
        best[size] = min(known, default=0.0)
    rows = []
    for name in page.senders:
        if not any((link, name, size) in page.by_key for size in page.sizes):
            continue
        up = page.time_s(link, name, page.sizes[0], "handshake_s")
        times = [_cell(page, link, name, size, best.get(size, 0.0)) for size in page.sizes]
        set_up = marked(number(up), page.by_key.get((link, name, page.sizes[0])))
        rows.append([literal(name), set_up, *times])
    return table(["", "set-up", *(bytes_as(size) for size in page.sizes)], rows)


def _cell(page: Page, link: str, name: str, size: int, least_s: float) -> str:
    cell = page.by_key.get((link, name, size))
    if cell is None:
        return "-"
    time_s = page.time_s(link, name, size)
    failed = f" ({len(cell.records) - len(cell.ok)} failed)" if cell.failures else ""
    if time_s is None:
        outcome = cell.failures.most_common(1)[0][0].replace("_", " ") if cell.failures else "not measured"
        return marked(outcome, cell)
    text = f"{time_s:.2f}"
    return marked((f"**{text}**" if time_s <= _NEAR * least_s else text) + failed, cell)
