"""The beginning of a study's page: what it found, for whoever reads half a minute; and what is folded below.

A page's title is the finding, from the run; below it stand a few sentences that answer the question, one
picture that shows it, and what to do with it. Tables follow, folded. Headings are never folded: sites and
readers find them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_TITLE = 98  # letters, at most: with its mark a line of prose, of 100
_SENTENCES = 3
# Before a capital letter or the end of the text; "0.5 s" has none.
_END = re.compile(r"[.!?][)\"*`]*(?=\s+[A-Z`*\[]|\s*$)")


@dataclass(frozen=True)
class Picture:
    """The picture of a front: its file beside the page, its text for those who do not see it, and the line
    under it.
    """

    file: Path
    text: str
    caption: str


@dataclass(frozen=True)
class Front:
    """What a page begins with."""

    finding: str  # the title, without a full stop
    answer: Sequence[str]  # sentences, three at most
    picture: Picture | None
    advice: str  # what to do with it; "" where nothing follows from it

    def parts(self) -> list[str]:
        """As parts of a page. ValueError if it is longer than what is read in half a minute."""
        if len(self.finding) > _TITLE or self.finding.endswith("."):
            raise ValueError(f"not a title of at most {_TITLE} letters without a full stop: {self.finding!r}")
        found = sentences(" ".join(self.answer))
        if not 1 <= found <= _SENTENCES:
            raise ValueError(f"an answer has one to {_SENTENCES} sentences, not {found}")
        parts = [f"# {self.finding}", " ".join(self.answer)]
        if self.picture is not None:
            parts += [f"![{self.picture.text}]({self.picture.file.name})", self.picture.caption]
        return [*parts, *(["## What to do with it", self.advice] if self.advice else [])]


def sentences(text: str) -> int:
    """How many sentences a text has, by their ends."""
    return len(_END.findall(text))


def fitting(*candidates: str) -> str:
    """The first of these titles that is short enough, or the last one, which always is."""
    return next((one for one in candidates if len(one) <= _TITLE), candidates[-1])


def folded(summary: str, *parts: str) -> list[str]:
    """Parts of a page that open on demand. ValueError if there is a heading among them, which must not be
    folded.
    """
    if any(
        line.startswith("#") for part in parts if not part.startswith("```") for line in part.splitlines()
    ):
        raise ValueError(f"a heading in what is folded: {summary!r}")
    return [f"<details>\n<summary>{summary}</summary>", *parts, "</details>"] if parts else []
