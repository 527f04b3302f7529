"""What is wrong with the links of a finished site: each leads to a file and an id that are there, and nothing
is loaded from elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Elements whose address a browser fetches without being asked.
_FETCHED = {
    *((tag, "src") for tag in ("img", "script", "source", "iframe", "video", "audio", "embed")),
    *{("link", "href"), ("object", "data"), ("use", "href")},
}
_FOLLOWED = {("a", "href"), ("form", "action"), ("area", "href")}
_IN_STYLES = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


@dataclass
class _Page(HTMLParser):
    """The links and ids of a page."""

    file: Path
    links: list[tuple[int, str, bool]] = field(default_factory=list)  # line, address, whether it is fetched
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif (tag, name) in _FETCHED | _FOLLOWED and value is not None:
                self.links.append((self.getpos()[0], value, (tag, name) in _FETCHED))


@dataclass
class _Site:
    """A finished site."""

    folder: Path

    @cached_property
    def pages(self) -> dict[Path, _Page]:
        return {file: _Page(file) for file in sorted(self.folder.rglob("*.html"))}

    def of_link(self, page: _Page, address: str, fetched: bool) -> str | None:
        """What is wrong with a link, in words."""
        parts = urlsplit(address)
        if parts.scheme == "data":
            return None
        if parts.scheme or parts.netloc:
            if fetched:
                return f"{address} is loaded from elsewhere"
            return (
                None if parts.scheme in ("http", "https", "mailto") else f"{address}: a link of this machine"
            )
        target = (page.file.parent / unquote(parts.path)).resolve() if parts.path else page.file
        if not target.is_file() or not target.is_relative_to(self.folder):
            return f"{address} leads nowhere"
        if (
            parts.fragment
            and target.suffix == ".html"
            and unquote(parts.fragment) not in self.pages[target].ids
        ):
            return f"{address}: the page has no such place"
        return None


def wrong(folder: Path, root: Path) -> list[str]:
    """What is wrong with the links of the site in `folder`, with files and lines; and where it names `root`,
    the checkout that it was made in.
    """
    site = _Site(folder.resolve())
    found = []
    for page in site.pages.values():
        for line, address, fetched in page.links:
            if what := site.of_link(page, address, fetched):
                found.append(f"{page.file.relative_to(site.folder)}:{line}: {what}")
    for file in sorted(site.folder.rglob("*")):
        if file.suffix in (".html", ".js", ".css"):
            text = file.read_text()
            said = [f"{one} is loaded from elsewhere" for one in _in_styles(text) if file.suffix == ".css"]
            said += [f"it names {root}"] if str(root) in text else []
            found += [f"{file.relative_to(site.folder)}: {one}" for one in said]
    return found


def _in_styles(text: str) -> list[str]:
    """What a style loads from elsewhere."""
    addresses = [one[1] or one[2] for one in _IN_STYLES.finditer(text)]
    return [one for one in addresses if urlsplit(one).netloc]
