"""The first page of the site: `landing.md`, with the answers of `studies/README.md` and a section of
`README.md`, so that neither is written twice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

OWN = "tools/site/landing.md"
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]+)")
IMAGE = re.compile(r"!\[(?P<text>[^\]]*)\]\((?P<place>[^)\s]+\.svg)\)")
_LARGEST_PICTURE = 400_000  # bytes: of many marks there is no small picture
_FRONT = "---\nhide-toc: true\n---\n\n"
_SEARCH = """
<form class="find" action="search.html" method="get" role="search">
<input name="q" type="search" placeholder="Search" aria-label="Search the documentation">
</form>
"""


@dataclass(frozen=True)
class Answer:
    """A row of the table of studies."""

    question: str
    answer: str
    page: str  # the first of its pages, from the root


def page(root: Path, texts: dict[str, str]) -> str:
    """The text of the page, whose links begin at the root."""
    text = moved(Path(__file__).with_name("landing.md").read_text(), OWN)
    cards = [card(root, one, texts[one.page]) for one in answers(texts["studies/README.md"])]
    text = text.replace("<!-- gallery -->", "{.gallery}\n" + "\n".join(cards))
    text = re.sub(r"<!-- README: (.*) -->", lambda one: section(texts["README.md"], one[1]), text)
    first, rest = text.split("{.light}", 1)
    return f"{_FRONT}{first}{_SEARCH}\n{{.light}}{rest}"


def moved(text: str, page: str) -> str:
    """The text of a page as it reads at the root: its links changed."""
    folder = PurePosixPath(page).parent
    return LINK.sub(lambda one: f"]({os.path.normpath(folder / one[1])}", text)


def section(text: str, title: str) -> str:
    """A section of a page, with its heading. A `ValueError` if it is not there."""
    found = re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f'README.md: no section "{title}" (hint: {OWN} names it)')
    return found[0]


def answers(studies: str) -> Iterator[Answer]:
    """The rows of the table of studies, in its order."""
    for line in studies.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        links = re.findall(r"\]\(([^)\s]+\.md)\)", cells[2]) if len(cells) == 3 else []
        if links:
            yield Answer(cells[0], moved(cells[1], "studies/README.md"), f"studies/{links[0]}")


def card(root: Path, answer: Answer, text: str) -> str:
    """An answer with its question, and the first picture of its page that is not large."""
    lines = [f"- [{answer.question}]({answer.page})", "", f"  {answer.answer}."]
    folder = PurePosixPath(answer.page).parent
    for image in IMAGE.finditer(text):
        place = os.path.normpath(folder / image["place"])
        if (root / place).stat().st_size <= _LARGEST_PICTURE:
            lines += ["", f"  ![{image['text']}]({place})"]
            break
    return "\n".join([*lines, ""])
