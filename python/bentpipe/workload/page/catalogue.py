"""The pages that there are, and how they are read."""

from __future__ import annotations

from pathlib import Path

from bentpipe import paths, strict
from bentpipe.errors import UsageError, one_of
from bentpipe.workload.page.model import MOST_RESOURCES, Page


def names() -> list[str]:
    """The pages that come with Bentpipe."""
    return sorted(file.stem for file in paths.pages().glob("*.toml"))


def file_of(name: str) -> Path:
    """The file of a page given by name or as a path to a .toml file; UsageError if there is none."""
    if name.endswith(".toml"):
        if not paths.is_file(name):
            raise UsageError(f"{name}: there is no such page", one_of(name, names(), "pages"))
        return Path(name)
    if name not in names():
        hint = one_of(name, names(), "a path to a .toml file, or one of these pages")
        raise UsageError(f'unknown page "{name}"', hint)
    return paths.pages() / f"{name}.toml"


def load(name: str) -> Page:
    """The page of this name or file. UsageError, naming file, key and value, if it is not valid."""
    file = file_of(name)
    page = strict.read(file, Page)
    if not page.resource:
        raise UsageError(f"{file}: resource: a page has none", "begin with its document: [[resource]]")
    if len(page.resource) > MOST_RESOURCES:
        what = f"{file}: resource: {len(page.resource)} of them"
        raise UsageError(what, f"a page has {MOST_RESOURCES} at most")
    before: set[str] = set()
    for number, one in enumerate(page.resource, start=1):
        where = f"{file}: resource {number}"
        if one.path in before:
            raise UsageError(f'{where}: path: "{one.path}" is there twice', "give each a path of its own")
        if number == 1 and (one.initiator or one.type != "document"):
            raise UsageError(
                f"{where}: the first is not the page's document",
                'it has the type "document" and no initiator',
            )
        if number == 1 and one.cached:
            raise UsageError(f"{where}: cached: the document is always asked for", "leave cached out")
        if number > 1 and one.initiator not in before:
            what = f'"{one.initiator}" does not stand before it' if one.initiator else "it has none"
            raise UsageError(f"{where}: initiator: {what}", "name the path of the resource that leads to it")
        before.add(one.path)
    return page
