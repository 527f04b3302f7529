"""Verdicts as Markdown, for a pull request."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from bentpipe.objectives.tally import tally
from bentpipe.schema.verdicts import MeasuredChange, ObjectiveVerdict, Verdicts

_LARGEST = 3  # changes that are named with their findings


def text(found: Verdicts, run: str) -> str:
    """A heading with the count, a table of what is not met, one of changes, and all verdicts in a collapsed
    section.
    """
    lines = [f"### `bentpipe check {found.suite}`: {tally(found)}", ""]
    missed = [one for one in found.verdicts if one.outcome in ("fail", "undecided")]
    if missed:
        lines += [*_verdicts(missed), ""]
    moved = [one for one in found.changes if one.outcome != "same"]
    sure = [one for one in moved if one.outcome in ("better", "worse")]
    if found.changes:
        lines += [f"Against `{found.against}`: {_counted(found.changes)}.", ""]
    if moved:
        lines += [*_changes(moved), "", *_largest(sure, found.against, run)]
    lines += [*(f"Not compared: {_plain(line)}" for line in found.left_out), ""] if found.left_out else []
    lines += ["<details><summary>All objectives</summary>", "", *_verdicts(found.verdicts), "", "</details>"]
    return "\n".join([*lines, ""])


def _verdicts(verdicts: Sequence[ObjectiveVerdict]) -> list[str]:
    return [
        "| objective | client → server | asked | verdict | why |",
        "|---|---|---|---|---|",
        *(
            _row(one.objective, f"{one.client} → {one.server}", one.asked, one.outcome, one.why)
            for one in verdicts
        ),
    ]


def _changes(changes: Sequence[MeasuredChange]) -> list[str]:
    return [
        "| what | client → server | change | why |",
        "|---|---|---|---|",
        *(_row(_named(one), f"{one.client} → {one.server}", one.outcome, one.why) for one in changes),
    ]


def _largest(moved: Sequence[MeasuredChange], base: str, run: str) -> list[str]:
    lines = []
    for one in moved[:_LARGEST]:
        lines += [
            f"{_named(one)}, {one.client} → {one.server}: findings {' '.join(one.findings) or 'as before'}",
            "",
            "```sh",
            f"bentpipe trace {shlex.quote(f'{base}/trials/{one.base_trial}')}",
            f"bentpipe trace {shlex.quote(f'{run}/trials/{one.trial}')}",
            "```",
            "",
        ]
    return lines


def _named(one: MeasuredChange) -> str:
    between = "" if one.treatment == "direct" else f", {one.treatment}"
    return f"{one.measure}, {one.scenario}{between}"


def _counted(changes: Sequence[MeasuredChange]) -> str:
    words = [one.outcome for one in changes]
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))


def _row(*texts: str) -> str:
    return f"| {' | '.join(map(_plain, texts))} |"


_ESCAPED = str.maketrans(
    {sign: f"\\{sign}" for sign in "\\`*_|[]"} | {"<": "&lt;", ">": "&gt;", "@": "&#64;"}
)


def _plain(text: str) -> str:
    """In a line, as text: what programs say is no markup, and calls nobody."""
    return " ".join(text.translate(_ESCAPED).split())
