"""The tables at the end of a run: per scenario and workload, what every client and server came to.

With up to four servers, or clients, a cell is mean goodput and deviation; more of both share the width of a
terminal, and a cell is the mean alone. Where files are too small for a goodput, or a test case is not about
it, a cell is a time.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from bentpipe import labels, workload
from bentpipe.analysis.cells import Cell, Matrix, MatrixKey, matrices
from bentpipe.cli.layout import folded
from bentpipe.cli.workload_summary import WorkloadTables, is_shown
from bentpipe.plan import treatments
from bentpipe.runs.records import Record
from bentpipe.schema.manifest import Manifest, ScenarioState

_FEW = 4  # names across: with deviations, they fit the width
_WIDTH = 80
_LINES = 30  # of failures
_ROWS = 100  # of all tables, before the others are counted
_HEAD = 2  # rows above each table
_H3 = " h3"  # behind what was measured over HTTP/3
_NAMED = 3  # pairs, before they are counted
_BULK = ("transfer", "upload")  # test cases that are about goodput
# Where many servers share a line, an outcome is a letter.
_LETTERS = {
    "unsupported": "U",
    "handshake_timeout": "H",
    "transfer_timeout": "T",
    "missing_file": "M",
    "corrupt_file": "X",
    "crashed": "C",
    "no_secrets": "S",
    "unproven": "P",
    "invalid": "I",
    "interrupted": "B",
}


def show(records: Sequence[Record], scenarios: Mapping[str, ScenarioState], console: Console) -> None:
    """Print the matrix of every scenario and workload, tables for pages, then the failures in words."""
    for tables in WorkloadTables.of(records):
        space, left = _ROWS, 0
        for scenario, what, table in tables:
            rows = table.row_count + _HEAD
            if space < _ROWS and space < rows:
                left += 1
                continue
            space -= rows
            summary = scenarios[scenario].summary if scenario in scenarios else {}
            title = f"{_named(scenario, summary)}, {what}"
            console.print(title, style="bold", markup=False, soft_wrap=True)
            console.print(table)
        if left:
            console.print(_rest(left))
        if tables.legend:
            console.print(tables.legend, markup=False, soft_wrap=True)
    every = matrices(one for one in records if not is_shown(one))
    shown = _most_telling(every)
    for matrix in shown:
        known = scenarios.get(matrix.key.scenario)
        title = _named(matrix.key.scenario, known.summary if known else {})
        title += _apart(matrix.key, [one.key for one in every])
        console.print(title, style="bold", markup=False, soft_wrap=True)
        for table in _tables(matrix):
            console.print(table)
    if len(shown) < len(every):
        console.print(_rest(len(every) - len(shown)))
    if shown:
        console.print(_legend(shown), markup=False)
    for line in (*path_shares(records), *recoveries(records)):
        console.print(folded(line, "", "  "), markup=False, highlight=False, soft_wrap=True)
    lines = remarks(records)
    for line in lines[:_LINES]:
        text = folded(line.lstrip(), "  ", "    ")
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    if len(lines) > _LINES:
        console.print(f"  … and {len(lines) - _LINES} lines more; the report has all of them", markup=False)


def _rest(tables: int) -> str:
    """A line on those that are not printed."""
    return f"… and {tables} tables more: the report has all of them"


def _most_telling(every: Sequence[Matrix]) -> Sequence[Matrix]:
    """The matrices whose tables are printed: of many those with failures first, as far as there is space."""
    rows = {id(one): sum(table.row_count + _HEAD for table in _tables(one)) for one in every}
    if sum(rows.values()) <= _ROWS:
        return every
    ordered = sorted(every, key=lambda one: not any(cell.failures for cell in one.cells))
    kept = {id(one): sum(rows[id(each)] for each in ordered[:place]) for place, one in enumerate(ordered)}
    return [one for one in every if kept[id(one)] + rows[id(one)] <= _ROWS or one is ordered[0]]


def not_applicable(manifest: Manifest) -> list[str]:
    """The combinations of a run's plan that are not applicable: a line for each reason."""
    return [
        f"not applicable: {one.reason}: {one.combinations} of {one.of} combinations"
        for one in manifest.not_applicable
    ]


def counts(records: Sequence[Record]) -> str:
    """`12 ok`, and if there are any, `3 unsupported`."""
    found = Counter(record.outcome for record in records)
    unsupported = f", {found['unsupported']} unsupported" if found["unsupported"] else ""
    return f"{found['ok']} ok{unsupported}"


def path_shares(records: Sequence[Record]) -> list[str]:
    """A line per scenario with several paths, workload and treatment: the shares of the bytes that each pair
    sent over each path, in the direction with more of them, means of successful trials.
    """
    several = [record for record in records if record.ok and record.paths]
    groups: dict[tuple[str, str], dict[str, list[list[float]]]] = {}
    for record in several:
        forward = sum(path.forward_bytes for path in record.paths)
        back = sum(path.return_bytes for path in record.paths)
        way, shares = "forward", [path.forward_share for path in record.paths]
        if back > forward:
            way, shares = "return", [path.return_share for path in record.paths]
        setting = record.scenario + _apart(record, several)
        names = " / ".join(path.name for path in record.paths)
        pairs = groups.setdefault((setting, f"shares of the {way} bytes over {names}"), {})
        pair = f"{record.client} → {record.server}"
        pairs.setdefault(pair, []).append([share or 0.0 for share in shares])
    return [
        f"{setting}: {what}: {', '.join(f'{pair} {_per_cent(shares)}' for pair, shares in pairs.items())}"
        for (setting, what), pairs in groups.items()
    ]


def recoveries(records: Sequence[Record]) -> list[str]:
    """A line per scenario, workload and treatment with clients that left the first path for the second: what
    each pair needed from the last data over the one to the first over the other, medians of trials that are
    ok.
    """
    moved = [(record, gap) for record in records if (gap := recovery_s(record)) is not None]
    groups: dict[tuple[str, str], dict[str, list[float]]] = {}
    for record, gap in moved:
        setting = record.scenario + _apart(record, [one for one, _ in moved])
        first, second = (path.name for path in record.paths[:2])
        what = f"from the last data over {first} to the first over {second}"
        pairs = groups.setdefault((setting, what), {})
        pairs.setdefault(f"{record.client} → {record.server}", []).append(gap)
    return [
        f"{setting}: {what}: "
        + ", ".join(f"{pair} {1000 * statistics.median(gaps):.0f} ms" for pair, gaps in pairs.items())
        for (setting, what), pairs in groups.items()
    ]


def recovery_s(record: Record) -> float | None:
    """How long no data came while the client of a successful trial went from the first path to the second;
    0 if data came over the second before the last over the first, None if it did not move, or used both at
    once.
    """
    if not record.ok or len(record.paths) < 2:
        return None
    left, came = record.paths[0].data_last_s, record.paths[1].data_first_s
    if left is None or came is None:
        return None
    moves = any(one.startswith("migrate=") for one in labels.variant(record.client).settings)
    return max(came - left, 0.0) if moves or came >= left else None


def _per_cent(shares: Sequence[Sequence[float]]) -> str:
    """The mean of each path's shares: `48 / 52 %`."""
    means = [statistics.fmean(of_path) for of_path in zip(*shares, strict=True)]
    return " / ".join(f"{100 * mean:.0f}" for mean in means) + " %"


def remarks(records: Sequence[Record]) -> list[str]:
    """One line per scenario, workload, treatment, outcome other than ok and reason, with how often, in which
    pairs, and the first detail; the same of what is ok, but whose packets could not be decoded. Reasons that
    differ in numbers alone are the same. What is unsupported for one reason has one line.
    """
    groups: dict[tuple[str, str, str], list[Record]] = {}
    settings: dict[str, dict[str, None]] = {}
    for record in records:
        if record.outcome == "unsupported":
            setting = record.scenario + _apart(record, records)
            settings.setdefault(record.detail, {})[setting] = None
    for record in records:
        if not record.ok or record.misses_packets:
            setting = record.scenario + _apart(record, records)
            reason = re.sub(r"\d+", "#", record.detail)
            if record.outcome == "unsupported" and len(settings[record.detail]) > 1:
                setting, reason = f"{len(settings[record.detail])} settings", record.detail
            groups.setdefault((setting, record.outcome, reason), []).append(record)
    return [
        f"  {setting}: {_pairs(group)}: {len(group)} {outcome}: {group[0].detail}"
        for (setting, outcome, _), group in groups.items()
    ]


def _pairs(group: Sequence[Record]) -> str:
    """The pairs of some records, by name if there are few."""
    pairs = list(dict.fromkeys(f"{record.client} → {record.server}" for record in group))
    more = f" and {len(pairs) - _NAMED} pairs more" if len(pairs) > _NAMED else ""
    return ", ".join(pairs[:_NAMED]) + more


def _named(label: str, summary: Mapping[str, Any]) -> str:
    title = summary.get("title", "")
    if title:
        title = f": changed from {title}" if "," in label else f": {title}"
    return f"{label}{title}"


def _apart(one: Record | MatrixKey, others: Sequence[Record] | Sequence[MatrixKey]) -> str:
    """The properties besides the scenario that set it apart from others of the run: workload, treatment."""
    between = {other.treatment for other in others}
    text = f", {workload.title(one.workload)}" if len({other.workload for other in others}) > 1 else ""
    return text + (f", {treatments.short(one.treatment, between)}" if len(between) > 1 else "")


def _legend(shown: Sequence[Matrix]) -> str:
    """The meanings of the texts in the tables, as far as they occur."""
    marked = [text(matrix, cell) for matrix in shown for cell in matrix.cells]
    texts = [one.removesuffix(_H3) for one in marked]
    rates, times = (any(_has_goodput(one) is wanted for one in shown) for wanted in (True, False))
    words = "goodput in Mbit/s, mean" if rates else "seconds until all has arrived, mean"
    if any("±" in one for one in texts):
        words += " ± deviation"
    words += " of successful trials"
    if any("!)" in one for one in texts):
        words += "; (n!): n trials failed"
    if any(one.endswith("!") for one in texts):
        words += "; !: some trials failed"
    if rates and times:
        words += "\ns: seconds until all has arrived, mean, where goodput says little"
    if any(" J" in one for one in texts):
        words += "\nJ: Jain's index of how even the flows' shares were, mean; 1 is even"
    if any(one.startswith("-") for one in texts):
        words += f"\n-: no goodput, as {_why_silent(shown)}"
    if texts != marked:
        words += "\nh3: over HTTP/3; what has no such mark is over hq-interop"
    letters = [f"{letter}: {word.replace('_', ' ')}" for word, letter in _LETTERS.items() if letter in texts]
    return words + (f"\n{', '.join(letters)}" if letters else "")


def _why_silent(shown: Sequence[Matrix]) -> str:
    """Why successes have no goodput."""
    silent = [one for matrix in shown for cell in matrix.cells for one in cell.ok if one.goodput_bps is None]
    reasons = {
        "the file came in one flight": not all(one.misses_packets for one in silent),
        "packets could not be decoded": any(one.misses_packets for one in silent),
    }
    return " or ".join(reason for reason, applies in reasons.items() if applies)


def text(matrix: Matrix, cell: Cell | None) -> str:
    """The text of a cell of `matrix`."""
    few = min(len(matrix.clients), len(matrix.servers)) <= _FEW
    shown = time_text if not _has_goodput(matrix) else cell_text if few else short_text
    return shown(cell) + (_H3 if cell is not None and cell.ok and cell.h3 else "")


def _has_goodput(matrix: Matrix) -> bool:
    """Whether its cells are goodputs: not where a test case is about something else, nor where most successes
    have none, because the files are too small.
    """
    moved = workload.known(matrix.key.workload)
    if moved is None or moved.testcase not in _BULK:
        return False
    succeeded = [cell for cell in matrix.cells if cell.ok]
    measured = sum(cell.goodput_mean_bps is not None for cell in succeeded)
    return 2 * measured >= len(succeeded)


def _tables(matrix: Matrix) -> list[Table]:
    """As many tables as the names across need in the width of a terminal. Servers are across, unless they are
    many and the clients few.
    """
    by_pair = {(cell.key.client, cell.key.server): cell for cell in matrix.cells}
    turned = len(matrix.servers) > _FEW >= len(matrix.clients)
    down, across = (matrix.servers, matrix.clients) if turned else (matrix.clients, matrix.servers)
    columns = {
        name: [text(matrix, by_pair.get((name, row) if turned else (row, name))) for row in down]
        for name in across
    }
    corner = "server \\ client" if turned else "client \\ server"
    first = max(len(corner), *map(len, down))
    needed = first + sum(2 + max(map(len, [name, *texts])) for name, texts in columns.items())
    few = len(across) <= _FEW and needed <= _WIDTH
    if few:
        blocks = [list(across)]
    else:
        corner = corner.partition(" ")[0]
        first = max(len(corner), *map(len, down))
        blocks = _blocks({name: _width(name, texts) for name, texts in columns.items()}, _WIDTH - first)
    return [_table(down, corner, {name: columns[name] for name in block}, few) for block in blocks]


def _blocks(widths: Mapping[str, int], space: int) -> list[list[str]]:
    """Servers in groups that fit the space."""
    blocks: list[list[str]] = [[]]
    left = space
    for name, width in widths.items():
        if blocks[-1] and width + 1 > left:
            blocks.append([])
            left = space
        blocks[-1].append(name)
        left -= width + 1
    return blocks


def _width(name: str, texts: Sequence[str]) -> int:
    return max(map(len, [*_heading(name).split("\n"), *texts]))


def _heading(name: str) -> str:
    """A stack's name over a narrow column: broken behind hyphens, options below."""
    return name.replace("-", "-\n").replace(":", "\n:")


def _table(down: Sequence[str], corner: str, columns: Mapping[str, Sequence[str]], few: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1) if few else (0, 1, 0, 0))
    table.add_column(corner, overflow="fold", vertical="bottom")
    for server in columns:
        heading = server if few else _heading(server)
        table.add_column(heading, justify="right", overflow="fold", vertical="bottom")
    for row, name in enumerate(down):
        table.add_row(name, *(texts[row] for texts in columns.values()))
    return table


def cell_text(cell: Cell | None) -> str:
    """`10.36 ±0.02`, of one trial `10.36`, with failures `10.36 ±0.02 (1!)`; without a success the most
    frequent outcome; `-` if no goodput could be measured.
    """
    if cell is None or not cell.records:
        return ""
    mean, deviation = cell.goodput_mean_bps, cell.goodput_deviation_bps
    failed = sum(cell.failures.values())
    if not cell.ok:
        return cell.failures.most_common(1)[0][0].replace("_", " ")
    text = "-" if mean is None else f"{mean / 1e6:.2f}"
    if deviation is not None and sum(record.goodput_bps is not None for record in cell.ok) > 1:
        text += f" ±{deviation / 1e6:.2f}"
    even = [record.jain_index for record in cell.ok if record.jain_index is not None]
    if even:
        text += f" J{statistics.fmean(even):.2f}"
    return f"{text} ({failed}!)" if failed else text


def short_text(cell: Cell | None) -> str:
    """`10.36`, with failures `10.36!`; without a success the letter of the most frequent outcome."""
    if cell is None or not cell.records:
        return ""
    if not cell.ok:
        return _LETTERS[cell.failures.most_common(1)[0][0]]
    mean = cell.goodput_mean_bps
    return ("-" if mean is None else f"{mean / 1e6:.2f}") + ("!" if cell.failures else "")


def time_text(cell: Cell | None) -> str:
    """`3.01s`, the mean time until all has arrived; else as `short_text`."""
    if cell is None or not cell.ok:
        return short_text(cell)
    known = [record.completion_s for record in cell.ok if record.completion_s is not None]
    mean = f"{statistics.fmean(known):.2f}s" if known else "-"
    return mean + ("!" if cell.failures else "")
