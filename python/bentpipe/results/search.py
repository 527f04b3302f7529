"""The page on SEARCH in QUIC: what the source measured over its satellite link, here and there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe.errors import BentpipeError
from bentpipe.results import courses, footing, published
from bentpipe.results.courses import Course, Series
from bentpipe.results.figures import Line
from bentpipe.results.markdown import literal, percent, several, table
from bentpipe.results.published import Search, SearchRuns
from bentpipe.results.quantiles import median, quantile, share_of
from bentpipe.results.search_runs import BASELINE, MB, Group, groups
from bentpipe.results.source import Source
from bentpipe.results.variants import short_names

_STEP_MB = 25
_SHOWN_MB = (50, 100, 125, 150, 175, 200)
_ALIKE_S = 0.25  # times that differ by less are alike
_FIGURES = {
    "lead": "search-exit.svg",
    "times": "search-times.svg",
    "saved": "search-saved.svg",
    "distributions": "search-distributions.svg",
    "window": "search-window.svg",
}
_DIFFERS = """What differs from the source, and so limits what its numbers and these say of each other:

- **The link.** The source's is a real one, Viasat-2, on some days with rain. Ours is a model of it with its nominal figures: rate, delay,
  queue and random drops as the source states them, a rate that is drawn every second, and rare bursts of loss, which it does not
  state. Its terminal asks for capacity, and its RTT varies from the start on; here it does not before a queue builds up.
- **The stack.** The source's is quicly of October 2023, here it is noq with Bentpipe's controllers. Neither paces in these runs. The text does
  not say which congestion avoidance was used (quicly's default is Reno); what it takes off is compared with CUBIC's, which is used here.
- **The first round trip.** A tenth to a quarter of the source's runs lost packets there, for a reason that it did not find. It leaves them out;
  here there are none.
- **What is counted.** The source counts MB that reached its client program. Here a curve of 200 points counts bytes of UDP payload that reached
  the client, in whatever order, less the mean overhead of packets; the last MB are counted by the file's completion.
- **Quartiles.** The source's are of the runs that reach so many MB within 60 s. Here they are of all clean runs, and those that do not
  reach it count as later than all others."""


@dataclass(frozen=True)
class Page:
    """What the page is written from."""

    source: Source
    known: Search

    @cached_property
    def groups(self) -> list[Group]:
        return groups(self.source.records)

    @cached_property
    def baseline(self) -> Group | None:
        found = [one for one in self.groups if one.slow_start in BASELINE]
        return min(found, key=lambda one: BASELINE.index(one.slow_start), default=None)

    @cached_property
    def others(self) -> list[Group]:
        return [one for one in self.groups if one is not self.baseline]

    @cached_property
    def ordered(self) -> list[Group]:
        return [*([self.baseline] if self.baseline else []), *self.others]

    @cached_property
    def names(self) -> dict[str, str]:
        return short_names([one.server for one in self.groups])

    def name(self, group: Group) -> str:
        return self.names[group.server]

    @cached_property
    def sizes_mb(self) -> list[int]:
        """In steps of 1 MB, as far as the files reach."""
        largest = max(one.size_bytes for one in self.source.records) // MB
        return list(range(1, largest + 1))

    def shown_mb(self) -> list[int]:
        return [size for size in _SHOWN_MB if size <= self.sizes_mb[-1]]

    def then(self, group: Group) -> SearchRuns | None:
        return self.known.runs.get("baseline" if group is self.baseline else group.slow_start)


def write(source: Source, folder: Path) -> list[Path]:
    """Write the page and its figures to `folder`; the files, the page first. BentpipeError if the run has no slow start that
    ends with the first loss beside another one, over one path.
    """
    page = Page(source, published.load().search)
    paths = {(one.scenario, one.workload, one.client) for one in source.records}
    if page.baseline is None or not page.others or len(paths) != 1:
        raise BentpipeError(
            f"{source.folder}: wanted is one path, one file and one client, a server with ss={' or ss='.join(BASELINE)}, and "
            f"others beside it; the run has {several(len(paths), 'such setting')} and {several(len(page.groups), 'server')}",
            "make such a run with: bentpipe run search",
        )
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [folder / _FIGURES[what] for what, draw in _DRAWN.items() if draw(page, folder / _FIGURES[what])]
    path = folder / "search.md"
    path.write_text("\n\n".join(_sections(page, page.baseline, {one.name for one in drawn})) + "\n")
    return [path, *drawn]


# ---- figures: each draws itself if there is anything to be seen, and says whether there was ----


def _leads(page: Page) -> list[Series]:
    found = [(page.name(one), [run.lead_round_trips for run in one.clean]) for one in page.groups]
    logging = [one for one in page.groups if one.slow_start == "search-log"]
    names = {page.name(one) for one in logging}
    return [Series(name, [v for v in values if v is not None]) for name, values in found if name in names]


def _draw_lead(page: Page, path: Path) -> bool:
    series = [one for one in _leads(page) if any(math.isfinite(value) for value in one.values)]
    if not series:
        return False
    lines = [Line(1, "one round trip before the loss", "--", courses.GREEN), Line(0, "the first loss", ":")]
    courses.distributions([("", series)], "from SEARCH's exit to the first loss (round trips)", path, lines, 1)
    return True


def _draw_times(page: Page, path: Path) -> bool:
    made = [
        Course(page.name(one), page.sizes_mb, [one.times(size * MB) for size in page.sizes_mb])
        for one in page.ordered
    ]
    courses.quartiles(made, ("delivered (MB)", "time (s)"), path)
    return True


def _saved(before: Group, after: Group, size: int) -> list[float | None]:
    """By the lower quartile, the median and the upper quartile."""
    then, now = before.times(size), after.times(size)
    return [_minus(quantile(then, share), quantile(now, share)) for share in (0.25, 0.5, 0.75)]


def _minus(one: float | None, other: float | None) -> float | None:
    if one is None or other is None or not (math.isfinite(one) and math.isfinite(other)):
        return None
    return one - other


def _draw_saved(page: Page, path: Path) -> bool:
    assert page.baseline is not None
    made = [
        Course(page.name(one), page.sizes_mb, [_saved(page.baseline, one, size * MB) for size in page.sizes_mb])
        for one in page.others
    ]
    courses.differences(made, ("delivered (MB)", "sooner than the baseline (s)"), path)
    return True


def _draw_distributions(page: Page, path: Path) -> bool:
    panels = [
        (f"{size} MB", [Series(page.name(one), one.times(size * MB)) for one in page.ordered])
        for size in page.shown_mb()
    ]
    if not any(math.isfinite(value) for _, series in panels for one in series for value in one.values):
        return False
    courses.distributions(panels, "time (s)", path)
    return True


def _cuts(page: Page) -> list[Series]:
    found = [(page.name(one), [run.taken_off for run in one.clean]) for one in page.groups]
    series = [Series(name, [value for value in values if value is not None]) for name, values in found]
    return [one for one in series if one.values and any(value > 0 for value in one.values)]


def _draw_window(page: Page, path: Path) -> bool:
    series = _cuts(page)
    if not series:
        return False
    beta = Line(page.known.beta_cut, "taken off by CUBIC after a loss", "--")
    courses.distributions([("", series)], "share of the window that is taken off", path, [beta], 1, (0, 1))
    return True


_DRAWN: dict[str, Callable[[Page, Path], bool]] = {
    "lead": _draw_lead,
    "times": _draw_times,
    "saved": _draw_saved,
    "distributions": _draw_distributions,
    "window": _draw_window,
}


# ---- texts ----


def _sections(page: Page, baseline: Group, drawn: set[str]) -> list[str]:
    def shown(what: str, title: str) -> list[str]:
        return [f"![{title}]({_FIGURES[what]})"] if _FIGURES[what] in drawn else []

    return [
        "# SEARCH in QUIC, the paper again",
        _opening(page, baseline),
        "## At a glance",
        _glance(page, baseline),
        _DIFFERS,
        "## The runs",
        _runs(page),
        "## SEARCH's exit and the first loss",
        _lead(page),
        *shown("lead", "From SEARCH's exit to the first loss, distribution"),
        "## Time to so many MB",
        _reaching(page),
        _medians(page),
        *shown("times", "Median time to so many MB, with quartiles"),
        *shown("saved", "Time saved, by medians and quartiles"),
        *_alike(page, baseline),
        *shown("distributions", "Time to so many MB, distributions"),
        "## What is taken off the window",
        _window(page),
        *shown("window", "Share of the window that is taken off, distribution"),
        *footing.failures(page.source.records),
        *footing.made(page.source, {"published": page.known.source}),
    ]


def _opening(page: Page, baseline: Group) -> str:
    first = page.source.records[0]
    title = str(page.source.manifest.scenarios[first.scenario]["summary"]["title"])
    return (
        f"{several(len(page.source.records), 'run')} over the scenario {first.scenario} ({literal(title)}), each of a file of "
        f"{first.size_bytes / MB:g} MB, beside what was published: {page.known.source}. The baseline is "
        f"`ss={baseline.slow_start}`: standard slow start until the first loss"
        + (", while SEARCH looks on." if baseline.slow_start == "search-log" else ".")
    )


def _glance(page: Page, baseline: Group) -> str:
    known = page.known
    rows = []
    for one in _leads(page):
        after = [value for value in one.values if value > 0]
        rows.append(["runs in which SEARCH's exit comes before the first loss", percent(share_of(one.values, 0)),
                     f"{known.exit_first:g} %"])  # fmt: skip
        rows.append(["of these, by more than a round trip", percent(share_of(after, 1)),
                     f"{known.exit_a_round_trip_before:g} %"])  # fmt: skip
    for one in page.others:
        best = _most_saved(page, baseline, one)
        then = f"up to {known.saved_s:g} s, beyond {known.saved_beyond_mb} MB" if one.slow_start == "search-keep" else "-"
        rows.append([f"sooner by medians, at most: {page.name(one)}", best, then])
    for one in _cuts(page):
        few = percent(share_of(one.values, known.beta_cut))
        rows.append([f"runs in which more is taken off than by CUBIC: {one.name}", few, '"a small fraction"'])
    return table(["", "here", "published"], rows)


def _most_saved(page: Page, baseline: Group, group: Group) -> str:
    saved = [(_saved(baseline, group, size * MB)[1], size) for size in page.sizes_mb]
    known = [(value, size) for value, size in saved if value is not None]
    if not known:
        return "-"
    value, size = max(known)
    return f"{value:.1f} s, at {size} MB" if value >= 0.05 else "never sooner"


def _runs(page: Page) -> str:
    rows = []
    for one in page.ordered:
        then = page.then(one)
        rows.append(
            [
                literal(one.server),
                str(len(one.runs)),
                str(len(one.runs) - len(one.clean)),
                str(len(one.clean)),
                *([str(then.all), str(then.first_round_trip), str(then.medium), str(then.clean)] if then else ["-"] * 4),
            ]
        )
    head = ["server", "runs", "lost on the medium", "clean", "published: runs", "lost in the first round trip"]
    head += ["lost on the medium", "clean"]
    earliest_s = page.groups[0].earliest_s
    return table(head, rows) + (
        "\n\nAs in the source, runs whose slow start ended with a loss before the link was full are left out of what follows. "
        f"The source draws that line at {page.known.threshold_s:g} s. Here it is {earliest_s:.1f} s: when the first of the runs "
        "without any loss on the medium noticed a loss."
    )


def _lead(page: Page) -> str:
    found = _leads(page)
    if not found:
        return "No variant of this run has `ss=search-log`, which says when SEARCH would have left slow start."
    lines = []
    for one in found:
        never = sum(value == -math.inf for value in one.values)
        before = [value for value in one.values if value > 0]
        middle = median(before)
        text = (
            f"Of {several(len(one.values), 'clean run')} of `{one.name}` the exit comes first in {len(before)}, "
            f"{percent(share_of(one.values, 0))}; published: {page.known.exit_first:g} %. In {never} of the others SEARCH does not "
            "speak at all."
        )
        if middle is not None:
            text += f" Where it comes first, the median lead is {middle:.2f} round trips of the time of the exit."
        lines.append(text)
    return "\n\n".join(lines)


def _reaching(page: Page) -> str:
    sizes = [size for size in (50, 100, 150, 200) if size <= page.sizes_mb[-1]]
    rows = []
    for one in page.ordered:
        then = page.then(one)
        published_row = [
            percent(then.reaching[size] / then.clean) if then and size in then.reaching else "-" for size in sizes
        ]
        now = [f"{one.reaching(size * MB)} of {len(one.clean)}" for size in sizes]
        rows.append([page.name(one), *(text for pair in zip(now, published_row, strict=True) for text in pair)])
    head = ["", *(text for size in sizes for text in (f"{size} MB", "published"))]
    return "Clean runs that reach so many MB within the time limit:\n\n" + table(head, rows)


def _medians(page: Page) -> str:
    sizes = range(_STEP_MB, page.sizes_mb[-1] + 1, _STEP_MB)
    rows = [
        [page.name(one), *(_quartiles(one.times(size * MB)) for size in sizes)]
        for one in page.ordered
    ]  # fmt: skip
    return "Seconds until so many MB had arrived, median and in brackets quartiles:\n\n" + table(
        ["", *(f"{size} MB" for size in sizes)], rows
    )


def _quartiles(values: Sequence[float]) -> str:
    low, middle, high = (quantile(values, share) for share in (0.25, 0.5, 0.75))
    return f"{_seconds(middle)} ({_seconds(low)} to {_seconds(high)})"


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if math.isfinite(value) else "never"


def _alike(page: Page, baseline: Group) -> list[str]:
    """By the distributions: at which shares of the runs a variant is sooner, or later."""
    size = 150
    if size not in page.sizes_mb:
        return []
    rows = []
    for one in page.others:
        shares = [(number + 0.5) / 100 for number in range(100)]
        times = [(quantile(g.times(size * MB), share) for share in shares) for g in (baseline, one)]
        gaps = [_gap(then, now) for then, now in zip(*times, strict=True)]
        alike = sum(abs(gap) <= _ALIKE_S for gap in gaps)
        sooner = sum(gap > _ALIKE_S for gap in gaps)
        known = page.known
        then = [known.alike, known.sooner, known.later] if one.slow_start == "search-keep" else []
        cells = [f"{count} %" for count in (alike, sooner, 100 - alike - sooner)]
        rows.append([page.name(one), *cells, " / ".join(f"{share:g} %" for share in then) or "-"])
    text = (
        f"The distributions of the time to {size} MB held against the baseline's, percentile by percentile; alike are those "
        f"that differ by less than {_ALIKE_S:g} s (the source has no number for this):"
    )
    return [text, table(["", "alike", "sooner", "later", "published"], rows)]


def _gap(then: float | None, now: float | None) -> float:
    """How much sooner; nothing where both never come."""
    if then is None or now is None or then == now:
        return 0.0
    return then - now


def _window(page: Page) -> str:
    found = _cuts(page)
    if not found:
        return "In no run of this campaign did SEARCH lower the window."
    lines = []
    for one in found:
        low, middle, high = (quantile(one.values, share) or 0.0 for share in (0.25, 0.5, 0.75))
        lines.append(
            f"`{one.name}`, {several(len(one.values), 'run')}: it takes off {percent(middle)} in the median, quartiles "
            f"{percent(low)} and {percent(high)}; more than CUBIC's {percent(page.known.beta_cut)} in "
            f"{percent(share_of(one.values, page.known.beta_cut))} of the runs."
        )
    return "\n\n".join(lines)
