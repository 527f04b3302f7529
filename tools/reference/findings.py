"""The rules of findings, by the doc comments that stand above them in Rust.

A rule is a constant in a file of `findings/rules`; `ALL` in its `mod.rs` has their order, and comments there
are headings. A link to a constant of the same file, as in [`STORM_PERCENT`], becomes its value: so the page
says the number that the rule has.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

WIDTH = 100
# One entry of `ALL`: a heading, or a rule.
ENTRY = re.compile(r"^    (?:// (?P<heading>.+)|(?P<module>\w+)::(?P<constant>\w+),)$", re.MULTILINE)
LINK = re.compile(r"\[`([A-Z_]+)`\]")


def write(root: Path) -> str:
    """The sections of all rules."""
    (folder,) = root.glob("crates/*/src/findings/rules")
    order = (folder / "mod.rs").read_text().partition("ALL: [Rule;")[2].partition("];")[0]
    return "\n\n".join(_parts(folder, order))


def _parts(folder: Path, order: str) -> Iterator[str]:
    for entry in ENTRY.finditer(order):
        if entry["heading"]:
            yield f"## {entry['heading']}"
        else:
            yield _rule((folder / f"{entry['module']}.rs").read_text(), entry["constant"])


def _rule(source: str, constant: str) -> str:
    """The section of one rule."""
    found = re.search(
        rf'((?:^/// ?.*\n)+)pub\(super\) const {constant}: Rule = Rule \{{\n    id: "(\w+)"',
        source,
        re.MULTILINE,
    )
    if found is None:
        raise SystemExit(f"error: the rule {constant} has no doc comment:\n{source[:200]}")
    comment = "\n".join(line.removeprefix("///").removeprefix(" ") for line in found[1].splitlines())
    text = LINK.sub(lambda link: _value(source, link[1]), comment)
    return f"### `{found[2]}`\n\n{_folded(text)}"


def _value(source: str, constant: str) -> str:
    """The value of a constant of the file, as it is written but for `.0` and `_`."""
    found = re.search(rf"^const {constant}: \w+ = ([\d._]+);", source, re.MULTILINE)
    if found is None:
        raise SystemExit(f"error: {constant} is no number of this file:\n{source[:200]}")
    return found[1].replace("_", "").removesuffix(".0")


def _folded(text: str) -> str:
    """The text with its lines broken anew, since values are shorter than the names of constants."""
    joined = re.sub(r"\n(?!\n|- )(?<!\n\n) *", " ", text)
    lines = [
        textwrap.fill(line, WIDTH, subsequent_indent="  " if line.startswith("- ") else "",
                      break_long_words=False, break_on_hyphens=False)
        for line in joined.splitlines()
    ]  # fmt: skip
    return "\n".join(lines)
