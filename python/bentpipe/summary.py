"""The tables at the end of a run: per scenario, mean goodput and deviation for every client and server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from bentpipe.records import Record
from bentpipe.statistics import Cell, Matrix, matrices

_SERVERS_ACROSS = 4  # fits 80 columns


def show(records: Sequence[Record], scenarios: Mapping[str, Mapping[str, Any]], console: Console) -> None:
    """Print the matrix of every scenario, then the failures in words."""
    for matrix in matrices(records):
        summary = scenarios.get(matrix.key.scenario, {}).get("summary", {})
        console.print(_title(matrix, summary), style="bold", markup=False, soft_wrap=True)
        for first in range(0, len(matrix.servers), _SERVERS_ACROSS):
            servers = matrix.servers[first : first + _SERVERS_ACROSS]
            console.print(_table(matrix, servers))
    if records:
        console.print(_legend([cell for matrix in matrices(records) for cell in matrix.cells]))
    for line in failures(records):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def failures(records: Sequence[Record]) -> list[str]:
    """One line per scenario, pair and outcome other than ok, with how often and the first detail."""
    groups: dict[tuple[str, str, str, str], list[Record]] = {}
    for record in records:
        if not record.ok:
            key = (record.scenario, record.client, record.server, record.outcome)
            groups.setdefault(key, []).append(record)
    return [
        f"  {scenario}: {client} → {server}: {len(group)} {outcome}: {group[0].detail}"
        for (scenario, client, server, outcome), group in groups.items()
    ]


def _title(matrix: Matrix, summary: Mapping[str, Any]) -> str:
    label, title = matrix.key.scenario, summary.get("title", "")
    if not title:
        return label
    return f"{label}: changed from {title}" if "," in label else f"{label}: {title}"


def _legend(shown: Sequence[Cell]) -> str:
    """What the texts in the tables mean, as far as they occur."""
    texts = [cell_text(cell) for cell in shown]
    legend = "goodput in Mbit/s, mean"
    if any("±" in text for text in texts):
        legend += " ± deviation"
    legend += " of successful trials"
    if any("!" in text for text in texts):
        legend += "; (n!): n trials failed"
    if any(text.startswith("-") for text in texts):
        legend += "\n-: no goodput, as the file came in one flight"
    return legend


def _table(matrix: Matrix, servers: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("client \\ server", overflow="fold")
    for server in servers:
        table.add_column(server, justify="right", overflow="fold")
    by_pair = {(cell.key.client, cell.key.server): cell for cell in matrix.cells}
    for client in matrix.clients:
        table.add_row(client, *(cell_text(by_pair.get((client, server))) for server in servers))
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
    return f"{text} ({failed}!)" if failed else text
