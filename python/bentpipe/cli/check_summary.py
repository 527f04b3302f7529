"""The summary that `bentpipe check` prints at its end."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bentpipe.cli.layout import ROWS, folded, more
from bentpipe.objectives.suite import Objective
from bentpipe.objectives.tally import tally
from bentpipe.schema.verdicts import MeasuredChange, ObjectiveVerdict, Verdicts

_PAIRS = 4  # of a client and a server that have a table; of more, those that passed have a line
_LARGEST = 3  # changes that are shown with their traces
_STYLES = {"pass": "green", "fail": "bold red", "worse": "bold red", "better": "green", "undecided": "yellow"}


def show(found: Verdicts, objectives: Sequence[Objective], run: Path, console: Console) -> None:
    """Print the verdicts pair by pair, the changes, and where to look. `objectives` are those
    of the verdicts.
    """
    titled = dict(zip(map(id, found.verdicts), objectives, strict=True))
    groups = groupby(found.verdicts, lambda one: (one.client, one.server))
    pairs = {pair: list(verdicts) for pair, verdicts in groups}
    listed = pairs if len(pairs) <= _PAIRS else dict(sorted(pairs.items(), key=_passes)[:_PAIRS])
    for (client, server), several in listed.items():
        console.print(f"{client} → {server}", style="bold", soft_wrap=True)
        table = Table(box=None, pad_edge=False)
        for heading in ("objective", "asked", "came to", "trials", "verdict"):
            table.add_column(heading, justify="right" if heading in ("came to", "trials") else "left")
        for one in several:
            came_to = _came_to(one, titled[id(one)])
            table.add_row(one.objective, one.asked, came_to, str(one.trials), _word(one.outcome))
        console.print(table)
        _reasons(several, run, console)
    _others([one for pair, one in pairs.items() if pair not in listed], console)
    if found.against:
        _against(found, run, console)
    console.print(f"{tally(found)}; a verdict is wrong in at most {100 * found.error:g} % of cases")


def _passes(pair: tuple[tuple[str, str], list[ObjectiveVerdict]]) -> bool:
    """Whether nothing of a pair needs to be looked at; such pairs come last."""
    return all(one.outcome in ("pass", "skipped") for one in pair[1])


def _others(pairs: Sequence[list[ObjectiveVerdict]], console: Console) -> None:
    """Pairs that have no table of their own: a line each, as far as there is room."""
    for verdicts in pairs[:ROWS]:
        counts = Counter(one.outcome for one in verdicts)
        text = ", ".join(f"{count} {word}" for word, count in counts.most_common())
        console.print(folded(f"{verdicts[0].client} → {verdicts[0].server}: {text}", further="  "))
    if len(pairs) > ROWS:
        console.print(more(len(pairs) - ROWS, "pairs", "--json"))


def _came_to(one: ObjectiveVerdict, objective: Objective) -> str:
    if not one.values:
        return "-"
    if objective.reference is not None:
        return "-" if one.median is None else f"{100 * one.median:.1f} %"
    return objective.measure.text(one.median)


def _word(outcome: str) -> Text:
    return Text(outcome, _STYLES.get(outcome, ""))


def _reasons(verdicts: Sequence[ObjectiveVerdict], run: Path, console: Console) -> None:
    """Why objectives are open, or missed other than by their bound; and what held up trials that missed
    it.
    """
    unmet = [one for one in verdicts if one.outcome != "pass" and not _is_plain(one)]
    for why in dict.fromkeys(one.why for one in unmet):
        same = [one for one in unmet if one.why == why]
        names = ", ".join(one.objective for one in same)
        console.print(f"  {names}: {same[0].outcome}: {why}", soft_wrap=True)
    missed = [one for one in verdicts if one.outcome == "fail" and one.trial]
    for trial in dict.fromkeys(one.trial for one in missed):
        same = [one for one in missed if one.trial == trial]
        names = ", ".join(one.objective for one in same)
        findings = ", ".join(same[0].findings) or "no rule says why"
        console.print(f"  {names}: {findings}", soft_wrap=True)
        console.print(f"    {_trace(run, trial)}", soft_wrap=True)


def _is_plain(one: ObjectiveVerdict) -> bool:
    """Whether the table says all of it: most trials missed the bound, and might have met it."""
    return one.outcome == "fail" and " trials meet it" in one.why and "the limit" not in one.why


def _trace(run: Path, trial: str) -> str:
    return f"bentpipe trace {shlex.quote(str(run / 'trials' / trial))}"


def _against(found: Verdicts, run: Path, console: Console) -> None:
    console.print(f"against {found.against}", style="bold", soft_wrap=True)
    for line in found.left_out[:ROWS]:
        console.print(f"  not compared: {line}", soft_wrap=True)
    if len(found.left_out) > ROWS:
        console.print(more(len(found.left_out) - ROWS, "that are not compared", "--json"))
    if not found.changes:
        return
    several = len({(one.client, one.server) for one in found.changes}) > 1
    table = Table(box=None, pad_edge=False)
    for heading in ("objective", *(["client → server"] if several else []), "change", "pairs", ""):
        table.add_column(heading, justify="right" if heading == "pairs" else "left")
    for one in found.changes[:ROWS]:
        pair = [f"{one.client} → {one.server}"] if several else []
        table.add_row(one.objective, *pair, one.why, str(one.pairs), _word(one.outcome))
    console.print(table)
    if len(found.changes) > ROWS:
        console.print(more(len(found.changes) - ROWS, "changes", "--json"))
    moved = [one for one in found.changes if one.outcome in ("better", "worse")]
    for one in moved[:_LARGEST]:
        _lead(one, Path(found.against), run, console)
    console.print(
        f"medians over pairs; intervals hold together in {100 * (1 - found.error):g} % of cases; "
        f"less than {100 * found.margin:g} % counts as none",
        markup=False,
    )


def _lead(one: MeasuredChange, base: Path, run: Path, console: Console) -> None:
    findings = ", ".join(one.findings) or "findings as before"
    console.print(f"  {one.objective}: {findings}", soft_wrap=True)
    for folder, trial in ((base, one.base_trial), (run, one.trial)):
        console.print(f"    {_trace(folder, trial)}", soft_wrap=True)
