"""The page `stacks`: what each stack does with a connection over a satellite, besides how fast it is: its
handshake over a long round trip, its congestion control beside those of others, its packets.

Source: S. Endres, Evaluation and Optimization of the IETF QUIC Protocol for Satellite Networks, 2022,
sections 5.1, 5.5.2, 5.6.9 and 5.7.1; `published.toml` has the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bentpipe.study import closing, markdown
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.source import Source

from . import causes, control, drawn, handshakes, late_pairs, packets, published, return_link, variance_shares
from .control import Controlled
from .handshakes import Handshakes
from .packets import Transfers
from .runs import StackRuns

_TEXT = """Three questions of a thesis, asked of the stacks of today and of picoquic: does every client get
through to every server over a round trip that is longer than the first probe timeout; how much of a link's
use is the stack's, and how much its congestion control's; and what do stacks put on the wire besides the
data. All in virtual time. [How fast every pair is](../thesis/thesis.md) is a page of its own."""


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its pictures to `folder`; the files, the page first. BentpipeError if the runs have
    none of its campaigns.
    """
    mine = StackRuns(tuple(runs), published.load())
    parts: list[str] = []
    short: list[str] = []
    made: list[Path] = []
    if shown := Handshakes.of(mine):
        made.append(folder / handshakes.FIGURE)
        handshakes.draw(shown, made[-1])
        short.append(handshakes.in_short(shown))
        parts += [*handshakes.section(shown, mine.known.longrtt), *late_pairs.section(shown)]
    if (servers := Controlled(mine)).cells:
        made.append(folder / control.FIGURE)
        drawn.control(servers, made[-1])
        short += variance_shares.in_short(servers)
        parts += control.section(servers, causes.section(mine), variance_shares.section(servers, mine.known))
    if (transfers := Transfers(mine)).all:
        made += [folder / return_link.FIGURE, folder / packets.SIZES_FIGURE]
        drawn.return_rates(transfers.middle("client"), made[-2])
        drawn.packet_sizes(transfers.middle("server"), made[-1])
        short.append(return_link.in_short(transfers, mine.known))
        parts += packets.section(transfers, mine.known, return_link.section(transfers, mine.known))
    if not parts:
        raise runs[0].refused(
            "nothing here is on this page: wanted is a run of the campaign interop", "run interop"
        )
    path = folder / "stacks.md"
    end = closing.failures([one for source in mine.sources for one in source.records])
    end += closing.made(mine.sources[0], mine.known.sources, mine.sources[1:])
    front = _front(shown, servers, short, made)
    opening = [*front.parts(), "## What was run", _TEXT, "\n".join(f"- {one}" for one in short)]
    path.write_text(markdown.page([*opening, *parts, *end]))
    return [path, *made]


def _front(
    shown: Handshakes | None, servers: Controlled, short: Sequence[str], made: Sequence[Path]
) -> Front:
    """The front of the page; its picture is that of what its title says."""
    names = {one.name: one for one in made}
    if servers.cells and (title := variance_shares.finding(servers)):
        picture, caption = names[control.FIGURE], "Goodput of each server, by its congestion control."
        text = "Goodput of every stack with each of its congestion controls"
    elif shown:
        title, _, _ = short[0].partition(";")
        title = fitting(title.removesuffix("."), "How many round trips the handshake of every pair takes")
        picture, caption = (
            names[handshakes.FIGURE],
            "Round trips of every pair until a file of 1 kB is complete.",
        )
        text = "Round trips of every pair"
    else:
        title, text = "What each stack puts on the wire besides the data", "Rates of both links"
        picture, caption = made[0], "Rates of both links, of one trial of each client."
    answer = [one for one in short if not one.startswith(variance_shares.LOSSY)][:3]
    return Front(title, answer or short[:1], Picture(picture, text, caption), _advice(shown, servers))


def _advice(shown: Handshakes | None, servers: Controlled) -> str:
    """The lines that these runs show."""
    lines = list(variance_shares.advice(servers)) if servers.cells else []
    return "\n".join([*lines, *(handshakes.advice(shown) if shown else [])])
