"""The pages of studies, from Markdown to HTML, with their pictures.

Links between pages of studies stay links; those to anything else beside them lead nowhere in the site, so
that only their text stays. HTML in a page is shown as text, but for what is folded. The cells of tables that
are marked lead to the trials behind them, where a run of the site has their report.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bentpipe.analysis import trial_marks
from bentpipe.analysis.trial_marks import RunCell

PICTURES = (".svg", ".png", ".jpg", ".webp")
SHEETS = (".csv",)
_TRACE = "#trace"  # the place of a cell's page that has it
_OPEN = re.compile(r"<details>\s*<summary>(.*)</summary>")
_CLOSE = "</details>"
CellLink = Callable[[RunCell], str | None]  # from the folder of the site; None where no report has the cell
_Link = Callable[[str], str | None]  # from a digest in a mark


@dataclass(frozen=True)
class ShownStudy:
    """A study in the site."""

    name: str
    title: str
    question: str
    pages: tuple[Path, ...]  # Markdown, the one that carries the study's name first
    campaigns: frozenset[str] = frozenset()  # of its runs
    marked: Mapping[Path, str] = field(default_factory=dict)  # pages as they are with marks
    trials: Mapping[str, RunCell] = field(default_factory=dict)  # what these name

    def text(self, page: Path) -> str:
        """The Markdown of a page, with its marks where they are known."""
        return self.marked[page] if page in self.marked else page.read_text()


@dataclass(frozen=True)
class ShownRun:
    """A run of the site, as the pages of its study name it."""

    name: str
    campaign: str
    report: str | None  # from the folder of the site


@dataclass(frozen=True)
class RenderedPage:
    """A page of a study as HTML."""

    name: str  # of its file in the site, without suffix
    title: str
    body: str
    pictures: Mapping[str, Path]  # and sheets: name in the site → file


def rendered(
    studies: Sequence[ShownStudy],
    runs: Sequence[ShownRun] = (),
    link: CellLink = lambda _: None,
) -> dict[Path, RenderedPage]:
    """The pages of all studies by their files, with links to `runs` and to the cells of these. OSError where
    one cannot be read.
    """
    names = page_names(studies)
    made = {}
    for study in studies:
        below = _runs_of(study, runs)
        for page in study.pages:
            made[page] = _render(page, study, names, link, below)
    return made


def page_names(studies: Sequence[ShownStudy]) -> dict[Path, str]:
    """The name that each page gets; those of the same name get the study's in front."""
    every = [page.stem for study in studies for page in study.pages]
    return {
        page.resolve(): page.stem if every.count(page.stem) == 1 else f"{study.name}-{page.stem}"
        for study in studies
        for page in study.pages
    }


def _runs_of(study: ShownStudy, runs: Iterable[ShownRun]) -> str:
    """What stands below each page of a study: its runs, with links to their reports."""
    lines = []
    for one in runs:
        if one.campaign in study.campaigns:
            name = html.escape(one.name)
            made = f'<a href="../{html.escape(one.report)}">{name}</a>' if one.report else name
            without = "" if one.report else f", without a report: <code>bentpipe report {name}</code>"
            lines.append(f"<li>{made}{without}</li>")
    return f"<h2>Runs of this study</h2>\n<ul>\n{''.join(lines)}\n</ul>\n" if lines else ""


def _render(
    page: Path, study: ShownStudy, names: Mapping[Path, str], link: CellLink, below: str
) -> RenderedPage:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = _with_folds(markdown.parse(study.text(page)))
    name = names[page.resolve()]
    pictures: dict[str, Path] = {}
    for token in tokens:
        if token.type == "inline" and token.children is not None:
            token.children = _children(token.children, page, names, pictures)
    _link_cells(tokens, lambda name: link(study.trials[name]) if name in study.trials else None)
    _give_anchors(tokens)
    headings = (after.content for token, after in itertools.pairwise(tokens) if token.tag == "h1")
    return RenderedPage(
        name=name,
        title=next(headings, study.title),
        body=_in_boxes(markdown.renderer.render(tokens, markdown.options, {})) + below,
        pictures=pictures,
    )


def _with_folds(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with what is folded as HTML; if each that is opened is closed, and else as text."""
    found: list[Token] = []
    depth, is_whole = 0, True
    for token in tokens:
        folded = _fold(token)
        if folded is None:
            found.append(token)
            continue
        depth += -1 if folded == _CLOSE else 1
        is_whole = is_whole and depth >= 0
        del found[-1]  # the paragraph that it stood in
        found.append(Token("html_block", "", 0, content=f"{folded}\n"))
        found.append(Token("fold_end", "", 0))
    if depth or not is_whole:
        return list(tokens)
    ends = {place for place, token in enumerate(found) if token.type == "fold_end"}
    return [one for place, one in enumerate(found) if not {place, place - 1} & ends]


def _fold(token: Token) -> str | None:
    """The HTML of the begin or the end of what is folded; None of anything else."""
    if token.type != "inline":
        return None
    if token.content.strip() == _CLOSE:
        return _CLOSE
    opened = _OPEN.fullmatch(token.content.strip())
    return f"<details><summary>{html.escape(html.unescape(opened[1]))}</summary>" if opened else None


def _link_cells(tokens: Sequence[Token], link: _Link) -> None:
    """Take the marks out of all texts, and make the cells of tables that have one lead to their trials."""
    for token in tokens:
        name = trial_marks.read(token.content) if token.type == "inline" else None
        if name is None:
            continue
        for one in token.children or ():
            one.content = trial_marks.without(one.content)
        where = link(name)
        if where is not None:
            begin = Token("link_open", "a", 1, attrs={"href": f"../{where}{_TRACE}"})
            token.children = [begin, *(token.children or ()), Token("link_close", "a", -1)]


def _plain(token: Token) -> str:
    return "".join(one.content for one in token.children or () if one.type in ("text", "code_inline"))


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
            where = _place(str(token.attrs["href"]), page, names, pictures)
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


def _place(href: str, page: Path, names: Mapping[Path, str], files: dict[str, Path]) -> str | None:
    """The target of a link of the page in the site; None where that is not in it. A sheet beside the page
    comes into the site.
    """
    parts = urlsplit(href)
    if parts.scheme in ("http", "https"):
        return href
    if parts.scheme or parts.netloc:
        return None
    if not parts.path:
        return href
    target = (page.parent / unquote(parts.path)).resolve()
    is_beside = "/" not in parts.path and target.suffix.lower() in SHEETS
    if is_beside and target.is_file():
        name = f"{names[page.resolve()]}--{target.name}"
        files[name] = target
        return quote(name)
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
            token.attrs["id"] = re.sub(r"[^\w\- ]", "", _plain(after).lower()).replace(" ", "-")
