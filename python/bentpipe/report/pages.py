"""The files of the site as text: thin pages, and scripts that hold data.

Names of campaigns and stacks come from outside, so everything is escaped for the place that it goes to.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.records import CellKey

# A path up to the satellite and down again. Inside a data URL, so that a page needs no further file.
_ICON = quote(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="M4 27 16 7l12 20" fill="none" '
    'stroke="#2f7f93" stroke-width="4" stroke-linejoin="round" stroke-linecap="round"/>'
    '<circle cx="16" cy="7" r="4.5" fill="#d98a2b"/></svg>'
)

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:image/svg+xml,{icon}">
<link rel="stylesheet" href="{root}assets/{bundle}.css">
</head>
<body data-page="{page}" data-slug="{slug}">
<div id="report"><p>This page is drawn by <code>assets/{bundle}.js</code>. If you still read this, scripts are
disabled, or the page was moved without the folders beside it.</p></div>
{body}{scripts}
</body>
</html>
"""


@dataclass(frozen=True)
class ThinPage:
    """A page that holds no more than what its bundle draws it from."""

    title: str
    page: str  # which of the bundle's
    data: Sequence[str]  # scripts, as the page finds them
    root: str = ""  # from the page to the folder that holds the assets
    slug: str = ""
    bundle: str = "report"
    body: str = ""  # HTML that stands there as it is

    @property
    def html(self) -> str:
        """The file."""
        sources = [*self.data, f"{self.root}assets/{self.bundle}.js"]
        return _PAGE.format(
            title=html.escape(self.title),
            icon=_ICON,
            root=self.root,
            bundle=self.bundle,
            page=self.page,
            slug=html.escape(self.slug),
            body=f"{self.body}\n" if self.body else "",
            scripts="\n".join(f'<script src="{html.escape(source)}"></script>' for source in sources),
        )


@dataclass(frozen=True)
class UsedBy:
    """A study that is made from the run: what the pages of the run's report say of it at their end."""

    title: str
    command: str  # that makes its page
    page: str | None  # the address of that page, from the report's folder; None where there is none

    def html(self, root: str) -> str:
        """The line; `root` leads from the page to the report's folder."""
        title = html.escape(self.title)
        if self.page is not None:
            title = f'<a href="{html.escape(root + self.page)}">{title}</a>'
        return (
            f"<footer>This run is part of the study {title}. "
            f"<code>{html.escape(self.command)}</code> carries it out.</footer>"
        )


def index(campaign: str, used_by: Sequence[UsedBy] = ()) -> str:
    """The page with the matrices."""
    body = "\n".join(one.html("") for one in used_by)
    return ThinPage(title=f"{campaign} · Bentpipe", page="index", data=["data/run.js"], body=body).html


def cell(campaign: str, slug: str, key: CellKey, used_by: Sequence[UsedBy] = ()) -> str:
    """The page of one cell; `slug` names its data."""
    between = "" if key.treatment == DIRECT else f", {key.treatment}"
    title = f"{key.client} to {key.server}, {key.scenario}{between} · {campaign} · Bentpipe"
    data = ["../data/run.js", f"../data/cells/{quote(slug)}.js"]
    body = "\n".join(one.html("../") for one in used_by)
    return ThinPage(title=title, page="cell", slug=slug, root="../", data=data, body=body).html


def data_script(name: str, value: Any) -> str:
    """A script that assigns `value` to the global `name`; safe inside a `<script>` element too."""
    return script_of(name, json_text(value))


def script_of(name: str, text: str) -> str:
    """As `data_script`, of a value that is JSON already."""
    return f"window.{name}={text.replace('<', chr(92) + 'u003c')};\n"


def json_text(value: Any) -> str:
    """A value as JSON. ValueError for numbers that JSON cannot hold: see `finite`."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def with_list(value: dict[str, Any], key: str, items: Iterable[str]) -> str:
    """An object that is not empty as JSON, with one more key: a list of what is JSON already."""
    return f"{json_text(value)[:-1]},{json_text(key)}:[{','.join(items)}]}}"


def finite(value: Any) -> Any:
    """`value` with null for numbers that JSON cannot hold."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def write(path: Path, content: bytes) -> None:
    """Write a file of the site. OSError names it."""
    try:
        path.write_bytes(content)
    except OSError as error:  # a full disk is noticed while writing, where the error does not know the file
        error.filename = str(path)
        raise
