"""The page on SEARCH in QUIC: what the source measured over its satellite link, here and there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from bentpipe.analysis.trial_marks import marked_trials
from bentpipe.errors import BentpipeError
from bentpipe.study import claims as study_claims
from bentpipe.study import closing, markdown
from bentpipe.study.front import folded
from bentpipe.study.markdown import literal, percent, several, table
from bentpipe.study.quantiles import median, quantile, share_of
from bentpipe.study.slow_starts import BASELINE, MB
from bentpipe.study.source import Source

from . import answer, arms, beside, hybla, on_demand, published, varied, windows
from . import drawn as search_figures
from .published import PublishedCounts
from .study import QUARTILES, ArrivalComparison, PublishedComparison

_BASELINES = (
    ("baselines of data set 2 (table 2)", "baseline-2"),
    ("baselines of both data sets (table 3)", "baselines"),
)
_COUNTED_MB = (50, 100, 150, 200)
_STEP_MB = 25
_COMPARED_MB = 150
_LINK = """- **The link.** The source's is a real one, Viasat-2, on some days with rain. Ours is a model
  with its nominal figures: rate, delay, queue and random drops as the source states them, and a variation
  that it does not state. Its terminal asks for capacity, so that its RTT varies from the start on; here
  it does so when a queue builds up."""
_STACK = """- **The stack.** The source's is quicly of October 2023, without pacing; here it is noq with
  Bentpipe's controllers, {}. The source does not say which congestion avoidance it used (quicly's
  default is Reno); it compares with CUBIC, which is used here."""
_COUNTS = """- **The first round trip.** A tenth to a quarter of the source's runs lost packets there, by
  gaps in acknowledgments alone (its section 6.3), and are left out. Here that does not happen, unless the
  path is made to lose some: below.
- **What is counted.** Here a byte counts when the client can read it, no byte before it missing. The
  source's client is built on qperf, which in its public version adds up the payload of stream frames as
  they come, whatever is missing before them. So both are below.
- **Quartiles.** The source's are of the runs that reach the given MB before they are cut. Here they are of
  all clean runs, and those that do not reach it count as later than all others."""
_GLANCE = """*At best* and *at worst* are of all sizes, by the MB: chance favours them."""
_REPETITION = """- **Repetition.** The source has {there} runs of a kind, here there are {here}."""
_ENDS = """What the source's figures 1 and 3 sketch, measured: slow start may end before the path is full,
when it is, or when the queue has overflowed; and SEARCH sees from arrivals that fall behind what is
expected that it is full. The second picture is of one run, that of the median lead, by what reached the
client; SEARCH itself counts acknowledgments, half a round trip later."""
_VERSIONS = """`search` and the slow starts whose names begin with `search-` are SEARCH 2.0, as the source has
it; `search4` is SEARCH 4.0, of draft-chung-ccwg-search-09. Version 10 of that draft is out. It is not
implemented, and what it changes is not known here: its text was not available."""
_OLD = "records of this run do not say what the client could read: it was made by an earlier version"


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its figures to `folder`; the files, the page first. BentpipeError if the first run
    has no slow start that ends with the first loss beside another one, over one path.
    """
    source = runs[0]
    study = PublishedComparison(source.in_order, source, published.load())
    if not study.is_one:
        raise source.refused(
            "wanted is one path, one file and one client, a server with "
            f"ss={' or ss='.join(BASELINE)}, and others beside it",
            "run search",
        )
    for one in runs:
        if any(record.ok and not record.in_order_bytes for record in one.records):
            raise BentpipeError(f"{one.folder}: {_OLD}", "make it again, with this version")
    files = search_figures.draw(study, folder)
    flow_control = folder / windows.FIGURE
    if windows.draw(runs, flow_control):
        files["windows"] = flow_control
    path = folder / "search.md"
    known = answer.claims(study)
    later = arms.proposed(runs)
    front = answer.front(
        study, known, answer.Tried(varied.settings(runs)[1:], later, study.known.saved_beyond_mb), folder
    )
    claimed = ["## The report's claims", study_claims.rows(known, "the report says"), study_claims.RULE]
    head = [*front.parts(), "## What was run", _opening(study), *claimed, answer.HOW]
    path.write_text(markdown.page([*head, *_sections(study, runs, later, files)]))
    return [path, *([] if front.picture is None else [front.picture.file]), *files.values()]


def _sections(
    study: PublishedComparison,
    runs: Sequence[Source],
    later: Sequence[arms.ProposedChange],
    drawn: dict[str, Path],
) -> list[str]:
    def shown(*names: str) -> list[str]:
        return [f"![{search_figures.NAMES[one]}]({drawn[one].name})" for one in names if one in drawn]

    return [
        *folded("Times saved, by the medians of all sizes", _glance(study)),
        "## Differences from the source",
        _differs(study),
        "## The runs",
        *_runs(study),
        "## How slow start ends",
        _ENDS,
        *shown("ends", "course"),
        "## SEARCH's exit and the first loss",
        _lead(study),
        *shown("exit"),
        "## Time to N MB",
        _reaching(study),
        _quartiles(study),
        *shown("times", "saved"),
        *_compared(study),
        *shown("scatter", "distributions"),
        "## What is taken off the window",
        _window(study),
        *shown("window"),
        *varied.sections(runs, study.known),
        *arms.sections(later),
        *beside.sections(runs),
        *on_demand.sections(runs),
        *hybla.sections(runs),
        *windows.sections(runs, drawn),
        "## Versions of SEARCH",
        _VERSIONS,
        *closing.of_all(runs, {"published": study.known.source}),
    ]


def _opening(study: PublishedComparison) -> str:
    first = study.source.records[0]
    title = str(study.source.manifest.scenarios[first.scenario].summary["title"])
    looks_on = ", while SEARCH looks on" if study.baseline.slow_start == "search-log" else ""
    return (
        f"{several(len(study.source.records), 'run')} over the scenario {first.scenario} "
        f"({literal(title)}), each of "
        f"a file of {first.size_bytes / MB:g} MB, beside what was published: {study.known.source}. The "
        f"baseline is `ss={study.baseline.slow_start}`: standard slow start until the first loss{looks_on}."
    )


def _differs(study: PublishedComparison) -> str:
    paces = "which pace in some of these runs" if study.paces else "without pacing too"
    there = " or ".join(str(one) for one in sorted({known.all for known in _of_kinds(study)}))
    here = " or ".join(str(one) for one in sorted({len(group.runs) for group in study.groups}))
    repetition = _REPETITION.format(there=there, here=here)
    return "\n".join([_LINK, _STACK.format(paces), _COUNTS, repetition])


def _of_kinds(study: PublishedComparison) -> list[PublishedCounts]:
    """The published counts of the kinds of runs that are here."""
    return [known for group in study.groups if (known := study.then(group)) is not None]


def _glance(study: PublishedComparison) -> str:
    known, rows = study.known, []
    for one in study.others:
        end_mb = study.sizes_mb[-1]
        far_mb = known.saved_beyond_mb
        then = f"up to {known.saved_s:g} s sooner" if one.slow_start == "search-keep" else "-"
        rows += [
            [
                f"by medians, at best beyond {far_mb} MB: {study.name(one)}",
                _at_size(study.most_saved(one, far_mb)),
                then,
            ],
            [f"by medians, at best of all sizes: {study.name(one)}", _at_size(study.most_saved(one)), "-"],
            [f"by medians, at worst: {study.name(one)}", _at_size(study.least_saved(one)), "-"],
            [f"by medians, at {end_mb} MB: {study.name(one)}", _sooner(study.saved(one, end_mb)[1]), "-"],
        ]
    arrivals = ArrivalComparison(study.records)
    rows += [
        [f"at best, by bytes as they arrive: {study.name(one)}", _at_size(arrivals.most_saved(one)), "-"]
        for one in study.others
    ]
    return f"{_GLANCE}\n\n{table(['', 'here', 'published'], rows)}"


def _at_size(found: tuple[float, int] | None) -> str:
    return "-" if found is None else f"{_sooner(found[0])}, at {found[1]} MB"


def _sooner(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if abs(seconds) < 0.05:
        return "equal"
    return f"{abs(seconds):.1f} s {'sooner' if seconds > 0 else 'later'}"


def _runs(study: PublishedComparison) -> list[str]:
    rows = []
    for one in study.groups:
        then = study.then(one)
        numbers = [then.all, then.first_round_trip, then.medium, then.clean] if then else ["-"] * 4
        early = len(one.runs) - len(one.clean)
        records = [run.record for run in one.runs]
        here = [marked_trials(str(count), records) for count in (len(one.runs), early, len(one.clean))]
        rows.append([literal(one.server), *here, *map(str, numbers)])
        if one is study.baseline:
            for text, name in _BASELINES:
                then = study.known.runs[name]
                counts = [then.all, then.first_round_trip, then.medium, then.clean]
                rows.append([text, "", "", "", *map(str, counts)])
    head = [
        "server",
        "runs",
        "lost on the medium",
        "clean",
        "published: runs",
        "lost in the first round trip",
    ]
    head += ["lost on the medium", "clean"]
    line = (
        "As in the source, runs whose slow start ended with a loss before the link was full are left out of "
        f"what follows. The source draws that line at {study.known.threshold_s:g} s. Here it is "
        f"{study.baseline.earliest_s:.1f} s: when the first of the baseline's runs without any loss on the "
        "medium noticed a loss. Of any other slow start it is the first of its own such runs."
    )
    return [table(head, rows), line]


def _lead(study: PublishedComparison) -> str:
    leads = study.leads
    if leads is None:
        return "No variant of this run has `ss=search-log`, which says when SEARCH would have left slow "
        "start."
    never = sum(lead == -math.inf for lead in leads)
    before = [lead for lead in leads if lead > 0]
    text = (
        f"Of {several(len(leads), 'clean run')} of `search-log` the exit comes first in {len(before)}, "
        f"{percent(share_of(leads, 0))}; published: {study.known.exit_first:g} %. In {never} SEARCH "
        f"does not speak "
        "before slow start ends."
    )
    middle = median(before)
    if middle is not None:
        text += f" Where the exit comes first, the median lead is {middle:.2f} round trips of that time."
    return text


def _published_share(then: PublishedCounts | None, size: int) -> str:
    if then is None or str(size) not in then.reaching:
        return "-"
    return percent(then.reaching[str(size)] / then.clean)


def _reaching(study: PublishedComparison) -> str:
    sizes = [size for size in _COUNTED_MB if size in study.sizes_mb]
    rows = []
    for one in study.groups:
        then = study.then(one)
        texts = []
        for size in sizes:
            texts.append(f"{one.reaching(size * MB)} of {len(one.clean)}")
            texts.append(_published_share(then, size))
        rows.append([study.name(one), *texts])
    head = ["", *(text for size in sizes for text in (f"{size} MB", "published"))]
    return "Clean runs that reach the given MB before they are cut:\n\n" + table(head, rows)


def _quartiles(study: PublishedComparison) -> str:
    sizes = [size for size in study.sizes_mb if size % _STEP_MB == 0]
    rows = [[study.name(one), *(_three(one.times(size * MB)) for size in sizes)] for one in study.groups]
    head = ["", *(f"{size} MB" for size in sizes)]
    return "Seconds until the client could read the given MB, median and in brackets quartiles:\n\n" + table(
        head, rows
    )


def _three(values: Sequence[float]) -> str:
    low, middle, high = (_seconds(quantile(values, share)) for share in QUARTILES)
    return f"{middle} ({low} to {high})"


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if math.isfinite(value) else "never"


def _compared(study: PublishedComparison) -> list[str]:
    """By the distributions: at which shares of the runs a variant is sooner, or later."""
    if _COMPARED_MB not in study.sizes_mb:
        return []
    rows = []
    for one in study.others:
        gaps = study.gaps(one, _COMPARED_MB)
        equal, sooner = (
            sum(abs(gap) <= varied.EQUAL_S for gap in gaps),
            sum(gap > varied.EQUAL_S for gap in gaps),
        )
        known = study.known
        then = [known.equal, known.sooner, known.later] if one.slow_start == "search-keep" else []
        shares = [f"{count} %" for count in (equal, sooner, len(gaps) - equal - sooner)]
        rows.append([study.name(one), *shares, " / ".join(f"{share:g} %" for share in then) or "-"])
    text = (
        f"The distributions of the time to {_COMPARED_MB} MB compared with the baseline's, percentile by "
        f"percentile; "
        f"equal are those that differ by less than {varied.EQUAL_S:g} s (the source has no number for this):"
    )
    return [text, table(["", "equal", "sooner", "later", "published"], rows)]


def _window(study: PublishedComparison) -> str:
    if not study.cuts:
        return "In no run of this campaign did SEARCH lower the window."
    lines, beta = [], study.known.beta_cut
    for one, cuts in study.cuts:
        low, middle, high = (percent(quantile(cuts, share)) for share in QUARTILES)
        lines.append(
            f"`{study.name(one)}`, {several(len(cuts), 'run')}: it takes off {middle} in the median, "
            f"quartiles {low} "
            f"and {high}; more than CUBIC's {percent(beta)} in {percent(share_of(cuts, beta))} of the runs."
        )
    if any(one.slow_start == "search-log" for one, _ in study.cuts):
        lines.append("Of `search-log` this is what SEARCH would have taken off.")
    return "\n\n".join(lines)
