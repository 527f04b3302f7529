"""The page that compares Bentpipe with pico_sim: the same library over the same paths, in two simulators.

pico_sim runs while the page is written. Three things differ between the two, and the page shows what each
of them does, by leaving it in: where a transfer ends, what of a packet a link counts, and the server's
certificate. Each is taken out where it can be: the end in what pico_sim logs, the link's rate and the
certificate by settings of the run.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from bentpipe.study import closing, markdown
from bentpipe.study.front import folded
from bentpipe.study.intervals import with_ends
from bentpipe.study.markdown import several, table
from bentpipe.study.source import Source

from . import answer, difference, queues
from .comparisons import HEADERS, PAYLOAD, SIMULATIONS, Comparison, DropTailRun
from .difference import Difference, widest
from .simulator import PicoSim

SOURCES = {
    "pico_sim": "C. Huitema and others, picoquic, `p_sim/pico_sim.c` and `picohttp/picoquic_ns.c`, in the "
    "sources that the stack picoquic is built from (endpoints/picoquic/build.sh)",
}
_RUN = """picoquic brings a simulator of its own, `pico_sim`, by other people and with other links, queues and
clock than Bentpipe's. The same library moves {size:g} MiB over the same paths in both: {rate:g} Mbit/s both
ways, a round trip of {rtt:g} ms, and {settings} of queue and congestion control."""
_HOW = f"""pico_sim draws its connection IDs at random and has no seed, so it runs {SIMULATIONS} times over
each path. {difference.HOW} The first table has seconds from the client's start to the last byte: medians,
with the smallest and largest."""
_END = """**Its end.** pico_sim stops when the client has disconnected, a round trip after the data. Bentpipe
ends at the last byte. Taken out by reading pico_sim's own qlog: the last packet with data of the stream that
reached its client."""
_LINK = f"""**Its link.** pico_sim's link counts UDP payload, Bentpipe's whole IP packets: {HEADERS} bytes
more for each of {PAYLOAD}. Taken out by a link that is faster by {PAYLOAD + HEADERS}/{PAYLOAD} in Bentpipe.
*its link, there*: taken out on the other side, by a link of pico_sim's that is slower by as much."""
_CERTIFICATE = """**Its certificate.** The RSA certificate of pico_sim's server takes two datagrams, the
Ed25519 certificate of Bentpipe's one. With it picoquic's first sample of the bandwidth differs, from which it
sets its first window. Taken out by `cert=rsa`, which has Bentpipe's server show the same certificate."""
_COLUMNS = """Differences in percent. *none*: all three are taken out. The next columns have one of them left
in each, and *all* has the two as they are."""
_LIMITS = """- Both simulators run the same library. They show that Bentpipe's links, queue and clock, and the
program around the library, do to picoquic what picoquic's own do; they say nothing about picoquic.
- pico_sim's clock begins at 0, Bentpipe's in the year 2000. picoquic's CUBIC puts the start of its epoch
so far back when it leaves slow start that it may lie before 0, and cuts it off there (`cubic.c`). Bentpipe's
times with CUBIC over deep queues are a little longer for that. It was tried: with a clock that begins at 0
in the program (`zero_time` in `endpoints/c-family/job.c`) the difference over 600 ms was gone.
- A queue of 15 ms holds 25 packets. There a packet more or less decides what BBR and C4 do for seconds, so
that the smallest change of the path is amplified.
- One path of one rate without random loss, jitter or competing flows; no ECN, no proxies. Queue disciplines
have [a page of their own](witness-queues.md)."""


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write to `folder` the page of the run over drop-tail queues, and that of the run behind queue
    disciplines, if they are there. BentpipeError if a run is not of this study's paths, or pico_sim is not
    installed.
    """
    files = []
    for source in runs:
        if queues.is_of(source):
            mine = queues.QueueRun(source, queues.Simulators.installed())
            name, picture, parts = "witness-queues", queues.PICTURE, queues.sections(mine, folder)
        else:
            run = DropTailRun(source, PicoSim.installed().run)
            name, picture, parts = "witness", answer.PICTURE, sections(run, folder)
        page = folder / f"{name}.md"
        page.write_text(markdown.page(parts))
        files += [page, folder / picture]
    return files


def sections(run: DropTailRun, folder: Path) -> list[str]:
    """The page, part by part; it draws the picture into `folder`."""
    opening = _RUN.format(
        size=run.size_bytes / 2**20,
        rate=run.rate_bps / 1e6,
        rtt=run.rtt_ms,
        settings=several(len(run.comparisons), "setting"),
    )
    return [
        *answer.front(run, folder).parts(),
        "## What was run",
        opening,
        _HOW,
        *folded("Times in both simulators", _both(run)),
        "## The three differences",
        _END,
        _LINK,
        _CERTIFICATE,
        _effects(run),
        _COLUMNS,
        *folded("Differences with each of them left in", _left_in(run)),
        "## Limits",
        _LIMITS,
        *closing.failures(run.source.records),
        *closing.made(run.source, SOURCES),
    ]


def _both(run: DropTailRun) -> str:
    rows = [
        [
            f"{one.setting.queue_ms:g}",
            one.setting.congestion,
            _range(one.ours[True, True]),
            _range([time.last_data_s for time in one.theirs]),
            one.difference().written(),
        ]
        for one in run.comparisons
    ]
    return table(["queue, ms", "congestion control", "Bentpipe, s", "pico_sim, s", "difference"], rows, 2)


def _left_in(run: DropTailRun) -> str:
    rows = [
        [
            f"{one.setting.queue_ms:g}",
            one.setting.congestion,
            *(f"{kept.percent.value:+.1f}" for kept in _kept(one)),
        ]
        for one in run.comparisons
    ]
    head = ["queue, ms", "congestion control", "none", "its end", "its link", "its certificate", "all"]
    return table([*head, "none, its link there"], rows, 2)


def _kept(one: Comparison) -> list[Difference]:
    return [
        one.difference(),
        one.difference(end=True),
        one.difference(link=True),
        one.difference(certificate=True),
        one.difference(end=True, link=True, certificate=True),
        one.with_link_there,
    ]


def _effects(run: DropTailRun) -> str:
    none, end, link, certificate, together, there = (
        f"{statistics.median(one.size for one in column):.1f} % (up to {widest(column).size:.1f} %)"
        for column in zip(*map(_kept, run.comparisons), strict=True)
    )
    return (
        f"Without regard to sign the median difference, and the largest, are {none} with none left in, {end} "
        f"with the end, {link} with the link, {certificate} with the certificate and {together} with all "
        f"three. With the link's taken out in pico_sim in place of Bentpipe they are {there}."
    )


def _range(times: Sequence[float]) -> str:
    return with_ends(statistics.median(times), min(times), max(times))
