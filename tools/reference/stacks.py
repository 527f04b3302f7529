"""The stacks, by their `stack.toml`: what each can do, and its options."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bentpipe.workload import TESTCASES

WIDTH = 100
TESTBEDS = {"virtual-time": "sim", "sockets": "emu"}


def write(root: Path) -> str:
    """A table of all stacks, and a section for each, in the order of their names."""
    files = sorted((root / "endpoints").glob("*/stack.toml"))
    known = [tomllib.loads(file.read_text()) for file in files]
    head = ["| stack | language | roles | test cases | testbeds | repeats |", "|---|---|---|---|---|---|"]
    return "\n\n".join(
        ["\n".join([*head, *map(_row, known)]), *(part for one in known for part in _parts(one))]
    )


def _row(one: dict[str, Any]) -> str:
    roles = "both" if len(one["roles"]) == 2 else one["roles"][0]
    cases = "all" if {*one["testcases"]} == {*TESTCASES} else ", ".join(one["testcases"])
    testbeds = ", ".join(TESTBEDS[mode] for mode in TESTBEDS if mode in one["commands"])
    cells = [f"[`{one['name']}`](#{one['name']})", one["language"], roles, cases, testbeds, _repeats(one)]
    return f"| {' | '.join(cells)} |"


def _repeats(one: dict[str, Any]) -> str:
    if "virtual-time" not in one["commands"]:
        return "no"
    if one.get("repeats_except"):
        return "mostly"
    return "yes" if one["deterministic"] else "no"


def _parts(one: dict[str, Any]) -> Iterator[str]:
    name = one["name"]
    yield f"## `{name}`"
    says = [f"[{one['title']}]({one['home']}).", f"[Its page](../../endpoints/{name}/README.md)."]
    if notes := one.get("notes"):
        says.append(f"{notes[0].upper()}{notes[1:]}.")
    if when := one.get("repeats_except"):
        says.append(f"It does not repeat {when}.")
    if one.get("alpn", ["hq-interop"]) != ["hq-interop"]:
        says.append(f"Application protocols: {', '.join(one['alpn'])}.")
    yield textwrap.fill(" ".join(says), WIDTH, break_long_words=False, break_on_hyphens=False)
    if options := one.get("options"):
        rows = [f"| `{option}` | {meaning} |" for option, meaning in options.items()]
        yield "\n".join(["| option | meaning |", "|---|---|", *rows])
    else:
        yield "It has no options."
