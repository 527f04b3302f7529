"""The page `docs/design/sender-constants.md`, from what a sweep has measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sender_constants import FACTORS, NOT_SWEPT, Constant, Row, digest, rows

Json = dict[str, Any]
PLATEAU = 0.05  # a larger change of a time, with 0.7 or 1.4 times the value, is none
NEAR = ("0.7", "1.4")
BETTER, NO_WORSE = 0.95, 1.01
SHOWN = 4  # paths of a value that are named
SWEEP = "python tools/sender/sweep.py"


@dataclass(frozen=True)
class Found:
    """A row as it was swept."""

    row: Row
    measured: Json

    @property
    def factors(self) -> dict[str, Json]:
        values: dict[str, Json] = self.measured["factors"]
        return values

    @cached_property
    def values(self) -> dict[str, Json]:
        """By the value, in the order of the factors: several factors may round to one."""
        return {its["value"]: its for its in self.factors.values()}

    @property
    def near(self) -> dict[str, Json]:
        return {self.factors[at]["value"]: self.factors[at] for at in NEAR if at in self.factors}

    @cached_property
    def change(self) -> float:
        """The largest change of a time near today's value."""
        return max((abs(it - 1) for its in self.near.values() for it in its["ratios"].values()), default=0.0)

    @cached_property
    def far_change(self) -> float:
        return max((abs(it - 1) for its in self.values.values() for it in its["ratios"].values()), default=0)

    @property
    def fails_near(self) -> bool:
        return any(its["failed"] for its in self.near.values())

    @property
    def decides(self) -> bool:
        """Of a percentage near 100 the row of its distance from 100 does."""
        return len(rows(self.row.constant)) == 1 or self.row.part != ""

    @property
    def steep(self) -> bool:
        """It is on no plateau."""
        return self.decides and (self.fails_near or self.change > PLATEAU)

    @property
    def untouched(self) -> bool:
        """No value changes anything on any path."""
        return all(
            its["untouched"] and not its["failed"] and not its["drops"] for its in self.values.values()
        )

    def order(self) -> tuple[bool, float, float]:
        """The more sensitive ones come first."""
        return (not self.steep, -self.change, -self.far_change)


def found_rows(there: list[Constant], measured: Json) -> list[Found]:
    """All rows that were swept, the sensitive ones first."""
    every = [row for constant in there for row in rows(constant)]
    found = [Found(row, measured["rows"][row.key]) for row in every if row.key in measured["rows"]]
    return sorted(found, key=Found.order)


def stale(there: list[Constant], measured: Json) -> list[str]:
    """What was swept with another value, never, or is gone; in words."""
    wanted = {row.key: row for constant in there for row in rows(constant)}
    kept: Json = measured["rows"]
    never = [f"{key} was never swept" for key in wanted if key not in kept]
    gone = [f"{key} was swept and is no constant now" for key in kept if key not in wanted]
    changed = [
        f"{key} is {row.constant.value} now, and was swept as {kept[key]['value']}"
        for key, row in wanted.items()
        if key in kept and kept[key]["value"] != row.constant.value
    ]
    return [*never, *gone, *changed]


def text(there: list[Constant], measured: Json) -> str:
    """The page, in Markdown."""
    found = found_rows(there, measured)
    parts = [
        head(there, found, measured),
        steep_part(found),
        better_part(found, measured),
        all_part(found),
        paths_part(measured),
        limits_part(),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def changed_since(old: set[str], new: set[str]) -> str:
    """Which rows are of the crate before its last change: the shorter list."""
    few = min(old, new, key=len)
    which = ", ".join(f"`{key}`" for key in sorted(few))
    if few is old:
        return f"The crate has changed since {count(len(old), 'constant')} were swept: {which}."
    but = f" but {which}" if few else ""
    return f"The crate has changed since all of them{but} were swept."


def head(there: list[Constant], found: list[Found], measured: Json) -> str:
    names = {one.row.constant.key for one in found}
    steep = {one.row.constant.key for one in found if one.steep}
    reached = {one.row.constant.key for one in found if not one.untouched}
    values = sum(len(one.values) for one in found)
    old = {one.row.constant.key for one in found if one.measured["sources"] != digest()}
    lines = [
        "# The sender's constants, swept",
        "",
        "<!-- made by tools/sender/sweep.py -->",
        "",
        *filled(
            f"A tool gave each of the {len(names)} constants of [`cc=bentpipe`](sender.md) a half, 0.7, "
            f"1.4 and 2 times its value, one constant at a time, {values} values in all. For each value "
            f"the sender made {len(measured['paths'])} transfers over the paths [below](#the-paths) of the "
            "model of `crates/congestion/tests`. With 0.7 and 1.4 times the value no time changed by more "
            f"than {100 * PLATEAU:g} % for {len(names - steep)} constants, of which "
            f"{len(names - reached)} changed nothing at all; {len(steep)} are on no plateau."
        ),
    ]
    if old:
        lines += ["", *filled(changed_since(old, names - old))]
    for constant in there:
        if constant.key in NOT_SWEPT:
            lines += ["", *filled(f"Not swept: `{constant.key}`. {NOT_SWEPT[constant.key]}")]
    lines += [
        "",
        "<!-- not run: it takes more than ten minutes of two processors -->",
        "```sh",
        SWEEP,
        f"{SWEEP} --only YIELDS # this constant's rows anew, the others as they were",
        "```",
    ]
    return "\n".join(lines)


def filled(sentence: str, width: int = 100) -> list[str]:
    """Lines of no more than `width` characters."""
    lines = [""]
    for word in sentence.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def steep_part(found: list[Found]) -> str:
    cells = [
        [f"`{one.row.key}`", one.row.constant.shown, value, *changes(its)]
        for one in found
        if one.steep
        for value, its in one.near.items()
        if its["failed"] or beyond(its)
    ]
    note = filled(
        f"Paths whose time changes by more than {100 * PLATEAU:g} %, and by more than with other random "
        f"numbers, as times today's; at most {SHOWN} for a value, the largest changes first."
    )
    rows_ = table(["constant", "today", "with", "paths", "time on these paths"], cells)
    return "\n".join(["## On no plateau", "", *note, "", *rows_]) if cells else ""


def beyond(its: Json) -> list[tuple[str, float]]:
    """The paths that change by more than a plateau allows, the largest changes first."""
    many = [(path, it) for path, it in its["ratios"].items() if abs(it - 1) > PLATEAU]
    return sorted(many, key=lambda one: -abs(one[1] - 1))


def changes(its: Json) -> list[str]:
    """How many paths change, and which."""
    if its["failed"]:
        return ["", failure(its)]
    many = beyond(its)
    return [str(len(many)), "; ".join(f"{it:.2f} over {path}" for path, it in many[:SHOWN])]


def failure(its: Json) -> str:
    return "fails: " + "; ".join(its["failed"][:1]).replace("|", "\\|")


def better_part(found: list[Found], measured: Json) -> str:
    """Values that are better on some path and worse on none."""
    cells = [
        [f"`{one.row.key}`", one.row.constant.shown, value, best]
        for one in found
        for value, its in one.values.items()
        if (best := better(its, measured))
    ]
    note = filled(
        f"A time below {BETTER} of today's on some path, on none above {NO_WORSE}, and on none many more "
        "packets dropped. None was adopted: the path model alone does not decide."
    )
    head_ = ["## Better over these paths", "", *note, ""]
    rows_ = table(["constant", "today", "with", "time on the paths that it makes faster"], cells)
    return "\n".join([*head_, *rows_]) if cells else ""


def better(its: Json, measured: Json) -> str:
    ratios = its["ratios"].items()
    if its["failed"] or any(it > NO_WORSE for _, it in ratios):
        return ""
    if any(after > before for before, after in its["drops"].values()):
        return ""
    faster = sorted((it, path) for path, it in ratios if it < BETTER)
    return "; ".join(f"{it:.2f} over {path}" for it, path in faster[:SHOWN])


def all_part(found: list[Found]) -> str:
    head_ = [
        "constant", "file", "value", *(f"{factor:g} times" for factor in FACTORS), "dropped", "plateau",
        "what it is, and what it was chosen by",
    ]  # fmt: skip
    note = filled(
        "Under each factor: the value, the worst time of a path and the median of all, as times today's. "
        "Values are rounded to integers, so that two factors may have the same value. A path on which "
        "other random numbers change the time as much counts as unchanged for the worst. Of a percentage "
        "near 100 a second row multiplies the distance from 100, and decides whether it is on a plateau. "
        "Drops are given for the path and value that change them most, if by 50 packets and a quarter."
    )
    return "\n".join(["## All", "", *note, "", *table(head_, [cells_of(one) for one in found])])


def cells_of(one: Found) -> list[str]:
    constant = one.row.constant
    part = f", {one.row.part}" if one.row.part else ""
    factors = [cell(one.factors.get(f"{factor:g}")) for factor in FACTORS]
    plateau = "no" if one.steep else "not reached" if one.untouched else "yes" if one.decides else ""
    comment = constant.comment.replace("|", "\\|")
    first = [f"`{constant.name}`{part}", f"`{constant.place}`", constant.shown]
    return [*first, *factors, dropped(one), plateau, comment]


def cell(its: Json | None) -> str:
    if its is None:
        return "the same"
    if its["failed"]:
        return f"{its['value']}: {failure(its)}"
    worst = max([1.0, *its["ratios"].values()])
    return f"{its['value']}: {worst:.2f}, {its['median']:.2f}"


def dropped(one: Found) -> str:
    """The largest change of drops, and where."""
    most = [
        (abs(after - before), f"{before} to {after} with {value}, {path}")
        for value, its in one.values.items()
        for path, (before, after) in its["drops"].items()
    ]
    return max(most)[1] if most else ""


def paths_part(measured: Json) -> str:
    cells = [
        [
            path,
            f"{its['taken'] / 1e9:.2f} s",
            str(its["drops"]),
            f"{100 * its['noise']:.1f} %" if its["noise"] else "",
        ]
        for path, its in measured["paths"].items()
    ]
    note = filled(
        "Round trips take 600 ms unless given; paths that change do so at 10 s, when the second of "
        "two senders starts, too. Where jitter or losses are random, times and drops are medians over "
        "five seeds, or three where two senders share a queue; the last column is the largest change "
        "with four other sets of seeds."
    )
    rows_ = table(["path", "time today", "dropped", "other seeds"], cells, "lrrr")
    return "\n".join(["## The paths", "", *note, "", *rows_])


def limits_part() -> str:
    lines = filled(
        "- **The sweep of constants stands on the path model**: ACKs are never lost and take no "
        "capacity, queues are drop-tail without marks, and applications always have data. One "
        "constant is changed at a time, and only up to twice its value.",
        width=98,
    )
    return "\n".join(["## Limits", "", lines[0], *(f"  {line}" for line in lines[1:])])


def table(head_: list[str], cells: list[list[str]], align: str = "") -> Iterator[str]:
    """Its lines."""
    yield f"| {' | '.join(head_)} |"
    marks = {"r": "---:", "l": "---"}
    yield f"|{'|'.join(marks[it] for it in (align or 'l' * len(head_)))}|"
    for row in cells:
        yield f"| {' | '.join(row)} |"
