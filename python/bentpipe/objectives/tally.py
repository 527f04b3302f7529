"""The tally of verdicts."""

from __future__ import annotations

from collections import Counter

from bentpipe.schema.verdicts import DECISIONS, Verdicts

PASSED, FAILED, UNDECIDED = 0, 1, 3  # exit codes; 2 is for what is not understood


def exit_code(found: Verdicts) -> int:
    """The exit code: FAILED if an objective is missed or something became worse; UNDECIDED if an objective's
    outcome could be chance, or nothing of a pair could be checked; else PASSED.
    """
    words = Counter(one.outcome for one in found.verdicts)
    if words["fail"] or any(one.outcome == "worse" for one in found.changes):
        return FAILED
    pairs = {(one.client, one.server) for one in found.verdicts}
    checked = {(one.client, one.server) for one in found.verdicts if one.outcome != "skipped"}
    is_open = words["undecided"] or pairs != checked or (found.against and not found.changes)
    return UNDECIDED if is_open else PASSED


def tally(found: Verdicts) -> str:
    """`18 pass, 2 fail, 1 skipped`."""
    words = Counter(one.outcome for one in found.verdicts)
    return ", ".join(f"{words[word]} {word}" for word in DECISIONS if words[word])
