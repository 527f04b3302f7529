"""Writes the parts of the reference that come from the sources, into pages that people wrote:

    python tools/reference/pages.py            write them
    python tools/reference/pages.py --check    say which are not as they would be written, and fail

Such a part stands between two comments, `<!-- NAME: begin, … -->` and `<!-- NAME: end -->`. What is around
them is left alone.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

import answers
import commands
import findings
import limitations
import scenarios
import stacks

ROOT = Path(__file__).resolve().parents[2]
# A part, what it is made by from the root of the checkout, and the page that it stands in.
PARTS: dict[str, tuple[Callable[[Path], str], str]] = {
    "commands": (commands.write, "docs/reference/commands.md"),
    "findings": (findings.write, "docs/reference/findings.md"),
    "scenarios": (scenarios.write, "docs/reference/scenarios.md"),
    "stacks": (stacks.write, "docs/reference/stacks.md"),
    "limitations": (limitations.write, "LIMITATIONS.md"),
    "answers": (answers.write, answers.TABLE),
}


def filled(page: str, name: str, text: str) -> str:
    """The page with the text between the comments of that name."""
    between = re.compile(rf"(<!-- {name}: begin, from [^>]*-->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    if len(between.findall(page)) != 1:
        raise SystemExit(
            f"error: the page of {name} needs `<!-- {name}: begin, from … -->` and `<!-- {name}: end -->`"
        )
    return between.sub(lambda found: f"{found[1]}\n{text.strip()}\n\n{found[2]}", page)


def main() -> int:
    """Write or check; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    stale = 0
    for name, (write, where) in PARTS.items():
        page = ROOT / where
        text = filled(page.read_text(), name, write(ROOT))
        if text == page.read_text():
            continue
        stale += 1
        print(f"{'stale' if check else 'wrote'}: {page.relative_to(ROOT)}")
        if not check:
            page.write_text(text)
    if check and stale:
        print("hint: make schemas", file=sys.stderr)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
