"""The page on proxies around a satellite hop: what a paper measured over QUIC and TCP, here and there, and
what it left open.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bentpipe import labels
from bentpipe.schema.manifest import ScenarioState
from bentpipe.study import catalogue, closing, markdown, sheets
from bentpipe.study import claims as study_claims
from bentpipe.study.claims import Claim
from bentpipe.study.front import folded
from bentpipe.study.markdown import code, literal, table, trials
from bentpipe.study.source import Source

from . import answer, attenuation, browsers, causes, claims, drawn, glance, published, tables, windows
from . import open_questions as opened
from .drawn import Drawing
from .published import Kosek
from .runs import AHEAD_S, FULL, NEAR, QUIC, TCP, WINDOW_S, KosekRuns, shown

_DIFFERS = """- **The stacks.** The source's QUIC is quicly of 2022, ends and proxies; here it is noq, with
  its own CUBIC and NewReno, which is paced, where quicly was not. Flow control windows never limit here; its
  scripts set theirs, and the paper does not say how. Its TCP is Linux 5.4's by iperf3, and PEPsal; here it is
  Linux 6.12's, a file in the clear, and Bentpipe's proxies.
- **The clock** of all figures and tables begins with the first byte of the file. The source's begins about
  there: it counts bytes in its first second, where over GEO the first one comes more than a second after the
  client's first packet. What handshakes cost has a section of its own.
- **The link.** The source's satellite is OpenSAND, with 20 Mbit/s at the link layer and frames of its own;
  here it is a model with 19.6 Mbit/s of IP packets and a fixed delay. The source states no queue: here it
  holds one bandwidth-delay product of the whole path. Its satellite adds some {quic_ms:g} ms to QUIC's
  handshake and first byte, and {tcp_ms:g} ms to TCP's, for a reason that it did not find. Carriers do not add
  them, frames with the timing of OpenSAND's nearly do for QUIC:
  [measured](../satellites/satellites.md#handshakes-over-carriers).
- **Loss** is independent from packet to packet, on the satellite segment, in both directions. The source's
  is netem's on one interface of its satellite, through which frames of both directions pass.
- **Where the proxies are.** A cable of 0.1 ms joins client and terminal, and the gateway's other side has
  the 40 ms of Internet, as there.
- **Repetition.** The source has {iterations} runs of each setting and shows their averages. So do the
  figures here; without loss runs hardly differ, as nothing else varies. Ratios are of pairs of trials
  with the same [random draws](../../docs/reference/campaigns.md#random-draws), where there are five
  or more."""
_METRICS = """What the source measures, and where it is found here. Both count what the client's program
can read, in order: what waits for a lost packet does not count before that is there."""
_COUNTED = [
    ("goodput of each second, kbit/s, of the client's program",
     "`in_order_bytes`, a curve in steps of `received_step_s`",
     "its differences between whole seconds since `ttfb_s`, times 8; means over the trials"),
    ("ratio of bytes received, PEP to Non-PEP", "the same curves", "the mean curve with proxies / without"),
    ("slow start threshold reached, read off the figure", "`received_bytes`",
     "the first second with 90 % of the highest rate of the next two, of both by the same rule"),
    ("connection establishment time", "`handshake_s`", "the same"),
    ("time to first byte", "`ttfb_s`", "the same; both since the client's first packet"),
    ("Response Start in Chromium", "`ttfb_s` of a file",
     "HTTP/3's, with what a browser adds; of pages `rs_s`"),
    ("First Contentful Paint, Page Load Time", "`fcp_s`, `plt_s`",
     "the same, [in a browser](kosek-browsers.md); in virtual time on [another page](../pages/pages.md)"),
    ("congestion window of the server", "`qlog.server.cwnd` of a trace's analysis",
     "the same, over QUIC; of TCP there is `in_flight_max_bytes` alone"),
]  # fmt: skip
_RENO = """Losses set what follows slow start. NewReno, which the proxies have, comes to about 1.22 · MSS /
(RTT · √p) (Mathis et al., 1997): over a satellite hop of 500 ms to 0.9 Mbit/s at p = 0.1 % and to 0.3 at 1 %,
whatever the link could carry. CUBIC, which the ends have, grows with time and not with round trips, and
stands more loss over a long one. Over a low orbit the hop's round trip is a third of the path's, and the
formula is in the proxies' favour. What of that is a cause is tried below, in runs of `--all`."""
_HOW = f"""**Slow start ends**, as a receiver sees it, when the rate over {WINDOW_S:g} s first reaches
{NEAR:.0%} of the highest of the next {AHEAD_S:g} s: until then it doubles each round trip. Times are medians
over the trials. **The link is full** when that rate first reaches {FULL:.0%} of the link's. The source reads
both off its figure."""
_ABOVE_RATE = """A second may have more than the link's 19.6 Mbit/s. Goodput is of bytes that the program can
read: after the overshoot of slow start thousands of packets wait behind those that were lost, and count all
at once when these arrive. Over the whole time no mean is above the rate."""
_READ_FROM = "The figures that these are read from, and first bytes"
_LOSSIER = "kosek-losses"
_APART = (_LOSSIER, windows.CAMPAIGN, attenuation.CAMPAIGN)
_FIGURE = """The mean rate of each second, as the source's inner plots have it."""


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write to `folder` the page and its figures, and a page of the runs in browsers, as far as they are
    there; the files. BentpipeError if the others have not trials with a duration, over one path at least,
    with proxies and without.
    """
    loaded = _of(runs, *browsers.CAMPAIGNS)
    others = [one for one in runs if one not in loaded]
    files = _write(others, folder) if others else []
    return [*files, *(browsers.write(loaded, published.load(), folder) if loaded else [])]


def _write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """The page on all but browsers; its files, itself first."""
    study = KosekRuns(tuple(one for one in runs if not one.is_real_time and not _is_apart(one)))
    chains = {one: chain for one in (QUIC, TCP) if (chain := study.chain(one)) is not None}
    if QUIC not in chains or study.until_s <= 0:
        raise runs[0].refused(
            "wanted are trials of a duration, over the same path with proxies and without", "run kosek"
        )
    known = published.load()
    figures = Drawing(study, chains, known).draw(folder)
    path = folder / "kosek.md"
    found = claims.of(study, chains, known, causes.tried(_of_causes(runs), study.until_s))
    front = answer.front(study, chains, found, folder)
    rows = glance.rows(study, chains, known)
    read, sheet = sheets.folded_table(_READ_FROM, glance.HEAD, rows, folder / "kosek-figures.csv", 3)
    parts = [*front.parts(), *_claimed(study, chains, known, found), *read]
    logged, drawn_windows = windows.sections(_of(runs, windows.CAMPAIGN), folder)
    parts += _over_time(study, chains, known, figures)
    parts += logged
    path.write_text(markdown.page([*parts, *_sections(study, chains, runs, known)]))
    picture = [] if front.picture is None else [front.picture.file]
    return [path, *picture, *figures.values(), *drawn_windows, *sheet]


def _claimed(study: KosekRuns, chains: dict[str, str], known: Kosek, found: Sequence[Claim]) -> list[str]:
    """What was run, and each claim of the paper."""
    return [
        "## What was run",
        _opening(study, chains, known),
        "## The paper's claims",
        *([study_claims.rows(found, "the paper says"), study_claims.RULE, claims.HOW] if found else []),
    ]


def _over_time(study: KosekRuns, chains: dict[str, str], known: Kosek, files: dict[str, Path]) -> list[str]:
    """How it was measured, and the paper's figure."""
    figures = {name: f"![{drawn.NAMES[name]}]({path.name})" for name, path in files.items()}
    return [
        "## Differences from the source",
        _DIFFERS.format(
            quic_ms=known.quic_satellite_ms, tcp_ms=known.tcp_satellite_ms, iterations=known.iterations
        ),
        "## Metrics",
        _METRICS,
        *folded(
            "Metrics", table(["of the source", "here", "how one comes from the other"], _COUNTED, left=3)
        ),
        "## Bytes over time",
        tables.times_as_many(study, chains, _RENO),
        figures["ratio"],
        *folded("Multiples by second", tables.multiples(study, chains, known), tables.MULTIPLES),
        tables.growth(study, chains, known),
        "## Goodput, and the end of slow start",
        _FIGURE,
        figures["goodput"],
        _ABOVE_RATE,
        *folded("Goodputs", tables.goodputs(study, chains, known)),
        _HOW,
        *folded("Ends of slow start", tables.ends(study, chains)),
    ]


def _sections(study: KosekRuns, chains: dict[str, str], runs: Sequence[Source], known: Kosek) -> list[str]:
    lossier = KosekRuns(_of(runs, _LOSSIER))
    records = [record for one in runs for record in one.records]
    real = [one for one in runs if one.is_real_time and not _is_apart(one)]
    return [
        *causes.sections(_of_causes(runs), study, chains[QUIC], known),
        *(tables.more_loss(lossier, chains[QUIC], known) if lossier.sources else []),
        *attenuation.sections(_of(runs, attenuation.CAMPAIGN), study.until_s),
        *opened.sections(study, chains[QUIC]),
        *opened.aside(study, chains[QUIC]),
        *tables.real_time(study, chains, [KosekRuns((one,)) for one in real]),
        *closing.failures(records),
        *_made(runs),
        "## Sources",
        f"- {known.source}\n- {known.dataset}",
    ]


def _of(runs: Sequence[Source], *campaigns: str) -> tuple[Source, ...]:
    """The runs of these campaigns."""
    return tuple(one for one in runs if one.manifest.campaign in campaigns)


def _is_apart(source: Source) -> bool:
    """Whether a run has a section of its own: its trials do not count with the paper's settings."""
    return source.manifest.campaign in _APART or _is_of_causes(source)


def _is_of_causes(source: Source) -> bool:
    """Whether in a run something is changed to see what it does."""
    return source.manifest.campaign.startswith(causes.CAMPAIGNS)


def _of_causes(runs: Sequence[Source]) -> tuple[Source, ...]:
    return tuple(one for one in runs if _is_of_causes(one))


def _opening(study: KosekRuns, chains: dict[str, str], known: Kosek) -> str:
    titles = {label: state for one in study.sources for label, state in one.manifest.scenarios.items()}
    listed = [f"{literal(name)} ({literal(_title(titles, name))})" for name in study.scenarios]
    counts = {len(one.records) for (_, _, treatment), one in study.arrivals.items()
              if treatment in ("direct", *chains.values())}  # fmt: skip
    fewer = f", where the source has {known.iterations}" if max(counts) < known.iterations else ""
    over = " and ".join("QUIC" if one == QUIC else "TCP" for one in chains)
    return (
        f"A connection of {over} over {' and '.join(listed)}, with and without proxies at terminal and "
        f"gateway. Client and server have CUBIC and an initial window of 10 packets, the proxies NewReno and "
        f"100 packets ({literal(shown(chains[QUIC]))}), as in a paper of 2022. The page covers "
        f"{study.until_s:g} s from the first byte on, {trials(counts)} of each setting{fewer}, beside what "
        f"was published."
    )


def _title(scenarios: dict[str, ScenarioState], name: str) -> str:
    return next(str(one.summary.get("title", label)) for label, one in scenarios.items()
                if labels.scenario(label).name == name)  # fmt: skip


def _command(runs: Sequence[Source]) -> str:
    """The command that makes the page again: `bentpipe study`, or else the command of the first run."""
    planned = catalogue.load(Path(__file__).parent).runs
    here = sorted(one.manifest.campaign for one in runs)
    for words, those in (("", [one for one in planned if not one.optional]), (" --all", planned)):
        if here == sorted(one.campaign.stem for one in those):
            return f"bentpipe study kosek{words}"
    return runs[0].command


def _made(runs: Sequence[Source]) -> list[str]:
    rows = [
        [
            literal(one.folder.name),
            str(len(one.records)),
            str(one.manifest.plan.seed),
            one.manifest.finished or "not finished",
        ]
        for one in runs
    ]
    return [
        "## How this page was made",
        code(_command(runs)),
        "Its runs; `bentpipe study kosek --help` says which each is:",
        table(["run", "trials", "seed", "finished"], rows),
        *closing.stacks(runs),
    ]
