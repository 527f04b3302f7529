"""The page on Bentpipe's sender beside the best of other stacks and of Linux: a ratio of times per path,
size and sender.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.study import closing, markdown
from bentpipe.study.front import folded
from bentpipe.study.markdown import listed, literal, number, several, table, trials
from bentpipe.study.own_sender import OURS
from bentpipe.study.quantiles import median_of
from bentpipe.study.source import Source

from . import answer
from .comparisons import CANNOT_TELL, EQUAL, FAILS, FASTER, SLOWER, SenderRuns, SenderSetting

_WHAT = """Files over each path, from `{ours}` and from {others} other senders: congestion controls of other
stacks and of Linux that do best in other studies; {trials} of each. The client of all QUIC senders is noq
without options, so that Bentpipe's sender is at one end alone; that of Linux's TCP is Linux, with TLS, whose
handshakes take a round trip more."""
_HOW = """A ratio is the time of another sender divided by that of Bentpipe's, from the client's first packet
to the last byte: 2.00 says that the other one takes twice as long. It is the ratio of geometric means; in
parentheses is [its interval](../../docs/reference/study-verdicts.md#intervals-of-ratios) of 95 %, unless both
ends round to the value, or there is one trial alone."""
_MATRIX = "Ratios to each other sender over each path; **bold**: Bentpipe's is faster or slower"
_LEFT_OUT = """- Uploads, and Bentpipe's sender at the client: [the study of
  objectives](../objectives/objectives.md) has them.
- 100 MB: the study of objectives has them over five paths.
- The other scenarios: most differ from one of these in rate and round-trip time alone.
- Queue disciplines other than the scenario's own, and several flows on a path: [how the sender
  behaves](../../docs/design/sender.md) has them."""


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page to `folder`. BentpipeError if the runs do not have Bentpipe's sender and another one."""
    found = SenderRuns(tuple(runs))
    if not found.compared:
        raise runs[0].refused(f"wanted are {OURS} and other servers over the same paths", "study sender")
    front = answer.front(found, folder)
    file = folder / "sender.md"
    file.write_text(markdown.page([*front.parts(), *_sections(found)]))
    return [file, folder / answer.PICTURE]


def _sections(runs: SenderRuns) -> list[str]:
    count = trials({len(one.records) for one in runs.cells})
    what = _WHAT.format(ours=OURS, others=len(runs.others), trials=count)
    parts = ["## What was run", what, _HOW, answer.HOW]
    parts += ["## Where it is faster", _places(runs), "## Beside each other sender", _tally(runs)]
    parts += [*_slower(runs), *_failing(runs)]
    for workload in dict.fromkeys(one.ours.key.workload for one in runs.settings):
        mine = [one for one in runs.settings if one.ours.key.workload == workload]
        parts += [f"## {mine[0].size}", *folded(_MATRIX.replace("**", ""), _matrix(mine, runs.others))]
    return [*parts, "## What is left out", _LEFT_OUT, *closing.of_all(runs.sources)]


def _places(runs: SenderRuns) -> str:
    """How many settings of each size have each result, by RTT."""
    results = (FASTER, EQUAL, CANNOT_TELL, SLOWER, FAILS)
    groups: dict[tuple[str, str], list[str]] = {}
    for words, mine in answer.by_rtt(runs):
        for one in mine:
            groups.setdefault((words, one.size), []).append(one.result)
    rows = [[*key, *(str(found.count(one)) for one in results)] for key, found in groups.items()]
    head = ["", "size", "faster than every other", "equal to the fastest other", "cannot be told"]
    return table([*head, "slower than another", "fails"], rows, left=2)


def _tally(runs: SenderRuns) -> str:
    """In how many settings Bentpipe's sender is faster than each other one, and so on."""
    verdicts = (FASTER, EQUAL, CANNOT_TELL, SLOWER)
    rows = []
    for server in runs.others:
        mine = [one.verdict for one in runs.compared if one.server == server]
        rows.append([literal(server), *(str(mine.count(one)) for one in verdicts)])
    head = ["beside", "it is faster", f"equal within {answer.MARGIN}", "cannot be told", "slower"]
    return table(head, rows)


def _slower(runs: SenderRuns) -> list[str]:
    """The section on comparisons in which Bentpipe's sender is slower."""
    slower = [
        (setting, one) for setting in runs.settings for one in setting.compared if one.verdict == SLOWER
    ]
    head = "## Where it is slower"
    if not slower:
        return [head, f"In no comparison by more than {answer.MARGIN}, beyond chance."]
    rows = [
        [
            setting.path,
            setting.size,
            literal(one.server),
            one.measured.written(),
            _seconds(one.ours),
            _seconds(one.other),
        ]
        for setting, one in sorted(slower, key=lambda pair: pair[1].ratio.value)
    ]
    said = several(len(slower), "comparison")
    columns = ["path", "size", "the other", "its time / ours", "ours, s", "the other's, s"]
    text = f"In {said} of {len(runs.compared)}, by more than {answer.MARGIN}. Seconds are medians."
    return [head, text, *folded(said, table(columns, rows, left=3))]


def _failing(runs: SenderRuns) -> list[str]:
    """The section on settings in which trials of Bentpipe's sender failed, if there are any."""
    lines = [
        f"- {one.name}: {_failed(one.ours)}; {_completing(one)}."
        for one in runs.settings
        if one.ours.failures
    ]
    return ["## Where it fails", "\n".join(lines)] if lines else []


def _completing(setting: SenderSetting) -> str:
    whole = [literal(one.key.server) for one in setting.others if not one.failures]
    if not whole:
        return "no sender completes all"
    return f"{listed(whole)} {'completes' if len(whole) == 1 else 'complete'} all"


def _matrix(settings: Sequence[SenderSetting], others: Sequence[str]) -> str:
    """The ratio to each other sender, a row for each path."""
    rows = [[one.path, _seconds(one.ours), *(_ratio(one, server) for server in others)] for one in settings]
    return table(["path", "Bentpipe's, s", *map(literal, others)], rows)


def _ratio(setting: SenderSetting, server: str) -> str:
    compared = next((one for one in setting.compared if one.server == server), None)
    if compared is not None:
        return compared.text()
    other = next((one for one in setting.others if one.key.server == server), None)
    if other is None:
        return "-"
    return _seconds(other) if not other.failures else _failed(other)


def _seconds(cell: Cell) -> str:
    """The median time; how many trials failed if any did."""
    if cell.failures:
        return _failed(cell)
    return marked(number(median_of(cell, "completion_s")), cell)


def _failed(cell: Cell) -> str:
    return f"{cell.failures.total()} of {len(cell.records)} failed"
