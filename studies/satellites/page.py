"""The page on satellite links as they are built: every stack with and without proxies, and what ACM, capacity
on demand and handovers each do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bentpipe.plan.treatments import DIRECT
from bentpipe.study import closing, markdown
from bentpipe.study.front import folded
from bentpipe.study.markdown import literal, table
from bentpipe.study.source import Source, title

from . import answer, opensand, switched
from .cells import ATTENUATION, HANDSHAKES, of_stacks
from .runs import SatelliteRuns, middle

_HOW = """A file of 10 MiB, from every stack to its own client; servers have what their library begins with.
*direct* is without proxies; *with proxies* has one at the terminal and one at the gateway, for QUIC or for
TCP, which split the connection. Then a server sends to the gateway alone, and the gateway's own sender over
the satellite: noq's with CUBIC for every QUIC server, Linux's with CUBIC for TCP. So the QUIC rows of a link
with proxies repeat one measurement, with other clients and seeds. The *ideal* is a sender that knows the
path."""
_PROXIES = """Through proxies the seconds are the mean over the trials of all servers. Behind them stands how
many servers without proxies take less time or more: by an interval that is beyond 5 % on one side, and beyond
chance (p < 0.05, Welch's t on logarithms, after Benjamini and Hochberg over all links). In the tables below
seconds are medians over the trials, from the client's first packet on, with the least and the most where they
differ by more than 2 %."""
_LEFT_OUT = """- aioquic, qh3 and msquic were not run with proxies: they take half of the time of all
  trials.
- 10 MiB are over before the first handover of `leo-walker` (45 s) and `oneweb-like` (90 s), whose trials
  begin at time 0: those tables show their delays and rates, and `starlink` alone shows handovers.
- ACM is switched off over `dvb-s2-rain` alone.
- Handovers are switched off over `starlink` alone, at a steady rate, with two senders: noq's and Linux's TCP.
- What is not bold may be chance, which does not say that there is no effect.
- No scenario has two paths, such as GEO and LEO at once: a scenario has one."""


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page to `folder`. BentpipeError if no run has stacks without proxies."""
    found = SatelliteRuns(tuple(runs))
    if not any(one.key.treatment == DIRECT for one in found.stacks):
        raise runs[0].refused("wanted are stacks without proxies, over satellite links", "run satellites")
    front = answer.front(found, folder)
    file = folder / "satellites.md"
    file.write_text(markdown.page([*front.parts(), *_sections(found)]))
    return [file, *([] if front.picture is None else [front.picture.file])]


def _sections(runs: SatelliteRuns) -> list[str]:
    parts = ["## What was run", _HOW, answer.HOW, "## Link by link", _links(runs), _PROXIES]
    for name in runs.scenarios:
        mine = [one for one in runs.stacks if one.key.scenario == name]
        parts += [f"## {name}", literal(title(runs.sources, name)) + "."]
        parts += folded("Seconds of each stack, with and without proxies", of_stacks(mine))
    parts += switched.sections(runs.settings)
    parts += opensand.handshakes(runs.of(HANDSHAKES))
    parts += opensand.attenuation(runs.of(ATTENUATION))
    parts += ["## What is left out", _LEFT_OUT]
    return [*parts, *closing.of_all(runs.sources)]


def _links(runs: SatelliteRuns) -> str:
    """The answers link by link."""
    head = ["link", "fastest server", "of the ideal", "server in the middle", "of the ideal"]
    head += ["QUIC through proxies; servers without", "TCP through proxies; Linux without"]
    rows = []
    for name, shares in runs.shares.items():
        rows.append(
            [
                literal(name),
                *(
                    text
                    for server in (next(iter(shares)), middle(shares))
                    for text in (literal(server), answer.percent(shares[server]))
                ),
                *(_beside(runs, name, transport) for transport in ("quic", "tcp")),
            ]
        )
    return table(head, rows, left=2)


def _beside(runs: SatelliteRuns, name: str, transport: str) -> str:
    proxies = runs.proxies.get((name, transport))
    return "-" if proxies is None else proxies.beside()
