"""The pages of studies, from Markdown to HTML, with their pictures.

Links between pages of studies stay links; those to anything else beside them lead nowhere in the site, so
that only their text stays. HTML in a page is shown as text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

PICTURES = (".svg", ".png", ".jpg", ".webp")


@dataclass(frozen=True)
class ShownStudy:
    """A study in the site."""

    name: str
    title: str
    question: str
    pages: tuple[Path, ...]  # Markdown, the one that carries the study's name first


@dataclass(frozen=True)
class RenderedPage:
    """A page of a study as HTML."""

    name: str  # of its file in the site, without suffix
    title: str
    body: str
    pictures: Mapping[str, Path]  # name in the site → file


def rendered(studies: Sequence[ShownStudy]) -> dict[Path, RenderedPage]:
    """The pages of all studies by their files. OSError where one cannot be read."""
    names = _names(studies)
    return {page: _render(page, study, names) for study in studies for page in study.pages}


def _names(studies: Sequence[ShownStudy]) -> dict[Path, str]:
    """The name that each page gets; those that are called alike get the study's in front."""
    every = [page.stem for study in studies for page in study.pages]
    return {
        page.resolve(): page.stem if every.count(page.stem) == 1 else f"{study.name}-{page.stem}"
        for study in studies
        for page in study.pages
    }


def _render(page: Path, study: ShownStudy, names: Mapping[Path, str]) -> RenderedPage:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(page.read_text())
    name = names[page.resolve()]
    pictures: dict[str, Path] = {}
    for token in tokens:
        if token.type == "inline" and token.children is not None:
            token.children = _children(token.children, page, names, pictures)
    _give_anchors(tokens)
    headings = (after.content for token, after in itertools.pairwise(tokens) if token.tag == "h1")
    return RenderedPage(
        name=name,
        title=next(headings, study.title),
        body=_in_boxes(markdown.renderer.render(tokens, markdown.options, {})),
        pictures=pictures,
    )


def _in_boxes(body: str) -> str:
    """Tables may be wider than a window: each gets a box that it is scrolled in."""
    box = '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>'
    return body.replace("<table>", box).replace("</table>", "</table></div>")


def _children(
    tokens: list[Token], page: Path, names: Mapping[Path, str], pictures: dict[str, Path]
) -> list[Token]:
    """The parts of a line, links and pictures made to lead to what is in the site."""
    kept, dropped = [], 0
    for token in tokens:
        if token.type == "link_open":
            where = _place(str(token.attrs["href"]), page, names)
            if where is None:
                dropped += 1
                continue
            token.attrs["href"] = where
        elif token.type == "link_close" and dropped:
            dropped -= 1
            continue
        elif token.type == "image":
            _take_picture(token, page, names[page.resolve()], pictures)
        kept.append(token)
    return kept


def _place(href: str, page: Path, names: Mapping[Path, str]) -> str | None:
    """The target of a link of the page in the site; None where that is not in it."""
    parts = urlsplit(href)
    if parts.scheme in ("http", "https"):
        return href
    if parts.scheme or parts.netloc:
        return None
    if not parts.path:
        return href
    target = (page.parent / unquote(parts.path)).resolve()
    if target not in names:
        return None
    return f"{quote(names[target])}.html" + (f"#{parts.fragment}" if parts.fragment else "")


def _take_picture(token: Token, page: Path, name: str, pictures: dict[str, Path]) -> None:
    """Have the picture come into the site; one that is not there, or leads elsewhere, stays a text."""
    source = unquote(str(token.attrs["src"]))
    file = page.parent / source
    if "/" in source or file.suffix.lower() not in PICTURES or not file.is_file():
        token.type, token.content = "text", f"({token.content})"
        return
    pictures[f"{name}--{source}"] = file
    token.attrs |= {"src": quote(f"{name}--{source}"), "loading": "lazy"}


def _give_anchors(tokens: Sequence[Token]) -> None:
    """Headings get the anchors that links within pages name, by GitHub's rule."""
    for token, after in itertools.pairwise(tokens):
        if token.type == "heading_open":
            plain = "".join(
                one.content for one in after.children or () if one.type in ("text", "code_inline")
            )
            token.attrs["id"] = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
