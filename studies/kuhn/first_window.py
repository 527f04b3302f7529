"""The receivers' first window: what proxies with an initial window of 100 packets do once they may use it."""

from __future__ import annotations

from collections.abc import Sequence

from bentpipe.study.markdown import listed, number, table

from .published import Kuhn, Objectives
from .runs import CLEAN, SIZES, KuhnRuns, Sender, Transfers

_DEFAULT = 131072  # bytes: the middle value of Linux's tcp_rmem
_TEXT = """Seconds from the request on, over 50/10 Mbit/s without losses. *rmem*: the buffer with which the
proxies' receivers begin, the middle value of `tcp_rmem`; the first window that they offer is half of it. The
source does not state it. **Bold**: every trial is within the objective."""


def sections(runs: KuhnRuns, known: Kuhn) -> list[str]:
    """The section; none without a run that varies the buffer."""
    found = [one for one in runs.senders(CLEAN) if one.first_buffer is not None]
    mine, varied = runs.configured(CLEAN), [one for one in found if one.letter == "D"]
    if not varied or "D" not in mine:
        return []
    wanted = known.objectives["clean"]
    base = [mine[letter] for letter in "CD" if letter in mine]
    ordered = sorted([*base, *found], key=lambda one: (one.letter, _buffer(one)))
    rows = [["objective", "", "", *(f"{wanted.of(size):g}" for size in SIZES)]]
    rows += [_row(runs, one, wanted) for one in ordered]
    head = ["proxies", "rmem, bytes", "first window", *(f"{size} MB" for size in SIZES)]
    said = [_met(runs, mine["D"], varied, wanted), *_saved(runs, mine, found, known)]
    return ["## The receivers' first window", _TEXT, table(head, rows, left=1), " ".join(said)]


def _row(runs: KuhnRuns, one: Sender, wanted: Objectives) -> list[str]:
    buffer = _buffer(one)
    cells = [_cell(runs.transfer(CLEAN, one, size), wanted.of(size)) for size in SIZES]
    return [one.letter, str(buffer), _window(buffer), *cells]


def _window(buffer: int) -> str:
    return f"{buffer // 2048} KiB"


def _cell(found: Transfers | None, wanted: float | None) -> str:
    if found is None or found.middle_from_request_s is None:
        return "-"
    text = number(found.middle_from_request_s)
    return f"**{text}**" if found.is_within(wanted) else text


def _met(runs: KuhnRuns, base: Sender, varied: Sequence[Sender], wanted: Objectives) -> str:
    """Which objectives D meets, with the kernel's buffer and with each other one."""
    told: dict[str, list[str]] = {}
    for one in sorted(varied, key=_buffer):
        told.setdefault(_objectives(runs, one, wanted), []).append(_window(_buffer(one)))
    parts = [f"{what} with {listed(windows)}" for what, windows in told.items()]
    default = _objectives(runs, base, wanted)
    begin = f"With the kernel's first window of {_window(_DEFAULT)} D meets {default}"
    return f"{begin}; it meets {'; '.join(parts)}."


def _objectives(runs: KuhnRuns, one: Sender, wanted: Objectives) -> str:
    """In words, those of which every trial is within."""
    found = {size: runs.transfer(CLEAN, one, size) for size in SIZES}
    met = [f"{size} MB" for size, made in found.items() if made and made.is_within(wanted.of(size))]
    if not met:
        return "none of the objectives"
    return f"the objective{'s' if len(met) > 1 else ''} of {listed(met)}"


def _saved(
    runs: KuhnRuns, mine: dict[str, Sender], found: Sequence[Sender], known: Kuhn, size: int = 10
) -> list[str]:
    """What an initial window of 100 saves of 10 MB: C and D with the kernel's first window, and both with the
    largest other one that both were run with; nothing without one.
    """
    slow = {_buffer(one): one for one in found if one.letter == "C"}
    fast = {_buffer(one): one for one in found if one.letter == "D"}
    shared = max(slow.keys() & fast.keys(), default=None)
    if shared is None:
        return []
    large, base = (
        _gain(runs, *pair, size) for pair in ((slow[shared], fast[shared]), (mine.get("C"), mine["D"]))
    )
    if large is None or base is None:
        return []
    return [
        f"An initial window of 100 saves {large:.2f} s of {size} MB (C to D, both with {_window(shared)}) "
        f"and {base:.2f} s with the kernel's, where the source has approximately "
        f"{known.initial_window_gain_s:g} s."
    ]


def _gain(runs: KuhnRuns, slow: Sender | None, fast: Sender | None, size: int) -> float | None:
    """By how many seconds a size in MB is there earlier with the second one."""
    then, now = _time(runs, slow, size), _time(runs, fast, size)
    return None if then is None or now is None else then - now


def _buffer(one: Sender) -> int:
    return one.first_buffer or _DEFAULT


def _time(runs: KuhnRuns, one: Sender | None, size: int) -> float | None:
    found = runs.transfer(CLEAN, one, size)
    return None if found is None else found.middle_from_request_s
