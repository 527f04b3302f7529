"""The pages of this project, and the blocks of code in them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCED = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
# A block of a page, with the comment above it, if that says why it is not run.
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<why>[^>]+) -->\n+)?^```(?P<language>\w*) ?(?P<file>\S*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A block of code of a page."""

    language: str
    file: str  # where the reader is to save it; empty: nowhere
    text: str
    not_run: str | None  # why


def tracked(*patterns: str) -> list[Path]:
    """The files of the checkout that match, also those that are not committed yet."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for name in sorted(set(done.stdout.split("\n")) - {""}) if (path := ROOT / name).is_file()]


PAGES = tracked("*.md")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return FENCED.sub("", page.read_text())


def blocks(page: Path) -> Iterator[Block]:
    for found in BLOCK.finditer(page.read_text()):
        yield Block(found["language"], found["file"], found["text"], found["why"])
