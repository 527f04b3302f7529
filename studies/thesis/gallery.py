"""The page `thesis-gallery`: our traces beside those of the thesis's section 5.6, and what rules say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe.analysis import traces
from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.plots import series
from bentpipe.analysis.traces import Analysis, TracedRun
from bentpipe.runs.trial_files import is_traced
from bentpipe.schema.analysis import Finding
from bentpipe.study import closing, markdown
from bentpipe.study.markdown import literal, table
from bentpipe.study.published import Table, read
from bentpipe.study.source import Source

from . import gallery_drawn
from .gallery_drawn import TracePicture
from .runs import ThesisRuns

_TEXT = """Offset and rate over time, as in the thesis's section 5.6: at the left every STREAM frame where
its server sends it, blue at first, vermilion again, black crosses what did not arrive; pale what other
iterations of the pair had received, half a round trip earlier. At the right the mean over 1 s of IP packets
that left, blue, and of new stream bytes, orange; pale the rates of the other iterations. The trace is that
of the iteration with the median goodput. Of the thesis's stacks mvfst, quant and xquic are not available
here, nor neqo as a server; kwik and lsquic run in emulation only. Where a stack is missing, or does not do it
today, the pair is the nearest that shows the same, or one whose picture alone is similar, as is said."""
_RULES = """*Findings* are of [the rules](../../docs/reference/findings.md) that say yes."""
_ABSENT = """- **Data sent out of order** (figures 5.14 and 5.15, lsquic): the rule `sent_out_of_order` says
  yes for none of three clients with nine servers over three links, once each, by the first command below;
  nor for lsquic's server of today with three clients over the same links, in real time, once each, by the
  third; two of these nine trials, over goodput, came late and are `invalid`, so these are not known.
- **The last packets again and again** (figure 5.16, msquic and xquic over GOODPUT): nor does the rule
  `long_tail` say yes over goodput. msquic of today to itself is the trace of figure 5.7, whose findings are
  listed there; xquic is not available here.
- **The same packet number throughout** (section 5.6.9.2, mvfst): nor does the rule
  `non_monotonic_packet_numbers` say yes.
- **picoquic that sends all of it again and again** (figure 5.17; the trace above is another stack's): the
  picoquic of today sends 1.05 to 1.08 times the file over astra and eutelsat, to a client with a window of
  1 MB, too, by the second command."""
_LOOKED = (
    "bentpipe run --scenario goodput,sat,satloss --client quic-go,aioquic,x-net --server "
    "quic-go,quiche,quinn,s2n-quic,tquic,x-net,ngtcp2,quinn:cc=bbr,ngtcp2:cc=bbr2 --iterations 1 "
    "--trace analysis\n"
    "bentpipe run --scenario astra,eutelsat --client ngtcp2,ngtcp2:window=1000000,x-net "
    "--server picoquic:cc=bbr1,picoquic:cc=bbr --iterations 3\n"
    "bentpipe run --testbed emu --scenario goodput,sat,satloss --client quic-go,lsquic,aioquic "
    "--server lsquic --iterations 1 --trace all"
)


class PlannedTrace(Table, frozen=True):
    """A pair whose trace stands beside a figure of the thesis."""

    figure: str
    phenomenon: str
    published: str
    scenario: str
    client: str
    server: str
    rule: str = ""  # that names the flaw

    @property
    def file(self) -> str:
        words = (self.figure, self.server.partition(":")[0])
        return f"thesis-trace-{'-'.join(words).replace('.', '-')}.svg"


class _File(Table, frozen=True):
    traces: list[PlannedTrace]


@dataclass(frozen=True)
class ShownTrace:
    """The cell of a planned trace, and its median trial."""

    plan: PlannedTrace
    cell: Cell
    analysis: Analysis

    @property
    def findings(self) -> list[Finding]:
        return [one for one in self.analysis.connection().findings if one.verdict == "yes"]


def load() -> list[PlannedTrace]:
    return read(__file__, _File, "gallery.toml").traces


def shown(galleries: Sequence[Source]) -> list[ShownTrace]:
    """The planned traces that the runs have."""
    found = []
    known = {
        (cell.key.scenario, cell.key.client, cell.key.server): (source, cell)
        for source in galleries
        for cell in cells(source.in_order)
    }
    read = {source.folder: TracedRun.read(source.folder) for source in galleries}
    for plan in load():
        source, cell = known.get((plan.scenario, plan.client, plan.server), (None, None))
        if source is None or cell is None or cell.median is None:
            continue
        folder = source.folder / "trials" / cell.median.trial
        if is_traced(folder):
            found.append(ShownTrace(plan, cell, traces.of_trial(folder, read[source.folder])))
    return found


def write(runs: ThesisRuns, folder: Path) -> list[Path]:
    """Write the page and its pictures to `folder`; the files, the page first; none without a trace."""
    known = shown(runs.galleries)
    if not known:
        return []
    parts = ["# The thesis's traces, with the stacks of today", _TEXT, _RULES, _overview(known)]
    files = []
    for one in known:
        connection = one.analysis.connection()
        packets = series.of_connection(one.analysis.packets, connection.connection)
        picture = TracePicture(packets, one.analysis.link, one.analysis.trial or "", one.cell.records)
        gallery_drawn.draw(picture, folder / one.plan.file)
        files.append(folder / one.plan.file)
        parts += _section(one)
    parts += ["## Not found", _ABSENT, markdown.code(_LOOKED)]
    parts += [*closing.of_all(runs.galleries, {"endres": runs.known.sources["endres"]})]
    page = folder / "thesis-gallery.md"
    page.write_text(markdown.page(parts))
    return [page, *files]


def _overview(known: Sequence[ShownTrace]) -> str:
    rows = [
        [one.plan.figure, one.plan.phenomenon, literal(one.plan.published), _pair(one), _rules(one)]
        for one in known
    ]
    return table(["figure", "what it shows", "there", "here", "findings"], rows, left=5)


def _pair(one: ShownTrace) -> str:
    return literal(f"{one.plan.client} → {one.plan.server}, {one.plan.scenario}")


def _rules(one: ShownTrace) -> str:
    return ", ".join(f"`{finding.rule}`" for finding in one.findings) or "none"


def _section(one: ShownTrace) -> list[str]:
    times = sorted(record.completion_s for record in one.cell.ok if record.completion_s is not None)
    ran = f"{len(one.cell.records)} trials"
    if times:
        ran += f", completion after {times[0]:.1f} to {times[-1]:.1f} s"
    median = one.cell.median
    sent = ""
    if median and median.forward_bytes is not None:
        sent = f"; the server sent {median.forward_bytes / median.size_bytes:.2f} times the file"
    return [
        f"## {one.plan.phenomenon} (figure {one.plan.figure})",
        f"![Offset and rate over time, {one.plan.client} → {one.plan.server}]({one.plan.file})",
        f"{_pair(one)}; there {literal(one.plan.published)}. {ran}{sent}.",
        "\n".join(f"- `{finding.rule}`: {literal(finding.text)}" for finding in one.findings)
        or "No rule says yes.",
        *_likeness(one),
    ]


def _likeness(one: ShownTrace) -> list[str]:
    """The verdict of the rule that names the flaw in the thesis's figure."""
    rule = one.plan.rule
    if not rule or any(finding.rule == rule for finding in one.findings):
        return []
    return [f"The rule that names this flaw, `{rule}`, does not say yes: only the picture is similar."]
