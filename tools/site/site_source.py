"""Puts the sources of the site together, as Sphinx reads them: all pages of the project at their places, so
that links between them hold as they are, and what else they link to.

- A file that is no page, such as `examples/pep.toml`, becomes a page that shows it, and so does a notebook.
- A folder becomes its README, or a page that lists its files.
- The sections of `docs/README.md` become pages of their own, which the navigation is made of.

No line moves, so that what Sphinx says of a line is true of the original.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import landing

LINK = re.compile(r"(?<=\]\()(?P<place>[^)\s#]+)(?P<anchor>#[^)\s]*)?(?=\))")
FENCE = re.compile(r" *(```+|~~~+)")
DRAWN = (".png", ".svg")
LANGUAGES = {
    ".csv": "text", ".yml": "yaml", ".service": "ini", ".h": "c", ".rs": "rust", ".py": "python", ".sh": "sh",
}  # fmt: skip
INDEX = "docs/README.md"
# The parts of the navigation beside the sections of INDEX: a page each, and what stands below it.
STUDIES, CONTRACT, PROJECT = "studies/README.md", "endpoints/CONTRACT.md", "README.md"


def tracked(root: Path) -> list[str]:
    """The files of the checkout, also those that are not committed yet."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return sorted(name for name in set(done.stdout.splitlines()) if (root / name).is_file())


@dataclass
class Source:
    """The folder of a site's sources that is put together."""

    root: Path
    folder: Path
    files: list[str] = field(init=False)
    pages: list[str] = field(init=False)
    _shown: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.files = tracked(self.root)
        self.pages = [
            name for name in self.files if name.endswith(".md") and not name.startswith("tools/site/")
        ]

    def write(self) -> None:
        """Write all pages."""
        shutil.rmtree(self.folder, ignore_errors=True)
        texts = {page: (self.root / page).read_text() for page in self.pages}
        sections = _sections(texts[INDEX])
        below = navigation(texts, sections)
        for name, (title, text) in sections.items():
            texts[name] = f"# {title}\n\n{text}"
        texts["index.md"] = landing.page(self.root, texts)
        for page, text in texts.items():
            self._put(page, self._linked(page, text) + _toctree(page, below.get(page, ())))

    def _put(self, name: str, text: str) -> None:
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def _linked(self, page: str, text: str) -> str:
        """The text, with links to what is no page made links to the page that shows it."""
        lines, fenced = [], ""
        for line in text.split("\n"):
            mark = FENCE.match(line)
            if mark and not fenced:
                fenced = mark[1]
            elif mark and mark[1] == fenced:
                fenced = ""
            lines.append(line if fenced else LINK.sub(lambda one: self._target(page, one), line))
        return "\n".join(lines)

    def _target(self, page: str, link: re.Match[str]) -> str:
        place = link["place"]
        if "://" in place or place.startswith("mailto:"):
            return link[0]
        named = os.path.normpath(PurePosixPath(page).parent / place)
        if not (self.root / named).exists() or named.endswith(".md"):
            return link[0]  # Sphinx knows of it, or says that it does not
        if named.endswith(DRAWN):
            self._copy(named)
            return link[0]
        shown = self._show(named)
        return os.path.relpath(shown, PurePosixPath(page).parent) + (link["anchor"] or "")

    def _copy(self, name: str) -> None:
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.root / name, place)

    def _show(self, name: str) -> str:
        """The page that shows a file or a folder, which is made if it is not there yet."""
        if (self.root / name).is_dir():
            readme = f"{name}/README.md"
            page = readme if readme in self.pages else f"{name}/files.md"
            make = self._folder_page
        elif name.endswith(".ipynb"):
            page, make = f"{name}.md", self._notebook_page
        else:
            page, make = f"{name}.md", self._file_page
        if page not in self._shown and page not in self.pages:
            self._shown.add(page)
            self._put(page, f"---\norphan: true\n---\n\n{make(name)}")
        return page

    def _file_page(self, name: str) -> str:
        self._copy(name)
        text = (self.root / name).read_text()
        language = LANGUAGES.get(PurePosixPath(name).suffix, PurePosixPath(name).suffix[1:] or "text")
        return f"# {_code(name)}\n\n[Download]({PurePosixPath(name).name})\n\n{_fenced(text, language)}"

    def _folder_page(self, name: str) -> str:
        lines = []
        pages = set(self.pages)
        inside = [one for one in self.files if one.startswith(f"{name}/")]
        for file in (one for one in inside if one in pages or not one.endswith(".md")):
            page = file if file.endswith((".md", *DRAWN)) else self._show(file)
            if file.endswith(DRAWN):
                self._copy(file)
            lines.append(f"- [{_code(file.removeprefix(name + '/'))}]({os.path.relpath(page, name)})")
        return f"# {_code(name)}\n\n" + "\n".join(lines) + "\n"

    def _notebook_page(self, name: str) -> str:
        """Its texts and its code; outputs come when somebody runs it."""
        self._copy(name)
        cells = json.loads((self.root / name).read_text())["cells"]
        parts = []
        for cell in cells:
            text = "".join(cell["source"])
            parts.append(text if cell["cell_type"] == "markdown" else _fenced(text, "python"))
        download = f"[The notebook]({PurePosixPath(name).name}) of this page, to run it."
        return "\n\n".join(
            [self._linked(name, parts[0]), download, *(self._linked(name, one) for one in parts[1:])]
        )


def _code(name: str) -> str:
    return f"`{name}`"


def _fenced(text: str, language: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def _sections(index: str) -> dict[str, tuple[str, str]]:
    """The sections of the index, by the names of their pages: title and text. They lie beside it, so that
    links hold.
    """
    found = {}
    for part in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        title, _, text = part.partition("\n")
        found[f"docs/{title.lower().replace(' ', '-')}.md"] = (title, text.strip() + "\n")
    return found


def links_to(page: str, text: str) -> Iterator[str]:
    """The files that a page links to, in its order."""
    for link in LINK.finditer(text):
        if "://" not in link["place"]:
            yield os.path.normpath(PurePosixPath(page).parent / link["place"])


def navigation(texts: dict[str, str], sections: dict[str, tuple[str, str]]) -> dict[str, list[str]]:
    """What stands below each page, in the order in which it links to it; each page once."""
    left = dict.fromkeys(page for page in texts if page != "index.md")
    below: dict[str, list[str]] = {}

    def take(parent: str, pages: Iterable[str]) -> None:
        for page in pages:
            if page in left:
                del left[page]
                below.setdefault(parent, []).append(page)

    parts = [STUDIES, CONTRACT, PROJECT]
    take("index.md", parts)
    for name, (_, text) in sections.items():
        take(name, (page for page in links_to(INDEX, text) if page.startswith("docs/")))
    take(
        STUDIES, (*links_to(STUDIES, texts[STUDIES]), *(page for page in left if page.startswith("studies/")))
    )
    take(CONTRACT, [page for page in left if page.startswith(("endpoints/", "middleboxes/"))])
    take(PROJECT, ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LIMITATIONS.md", INDEX))
    take(PROJECT, list(left))
    below["index.md"] = [*sections, *parts]
    return below


def _toctree(page: str, below: Iterable[str]) -> str:
    places = [os.path.relpath(one, PurePosixPath(page).parent).removesuffix(".md") for one in below]
    return "\n".join(["", "```{toctree}", ":hidden:", "", *places, "```", ""]) if places else ""
