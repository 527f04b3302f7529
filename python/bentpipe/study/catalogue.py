"""The catalogue of studies: the folders with a `study.toml`.

They are looked for in Bentpipe's own `studies/` and in `BENTPIPE_STUDIES`. A later folder replaces an earlier
one of the same name. A study may have further names, `also`: no two studies share one. The module `page` of a
study has `write(runs, folder)`, which writes its page from `Source`s, one for each of its runs, and returns
the files that it wrote, the page first.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated

import msgspec

from bentpipe import paths, strict
from bentpipe.errors import UsageError, one_of
from bentpipe.study.source import Source

ALL = "all"  # what stands for every study, and so is the name of none
_PAGE = "page.py"
Write = Callable[[Sequence[Source], Path], list[Path]]


@dataclass(frozen=True)
class PlannedRun:
    """A run of a study."""

    campaign: Path
    options: tuple[str, ...]  # of `bentpipe run`, besides
    about: str
    optional: bool  # carried out when all are asked for
    needed: bool  # the page cannot be written without it


@dataclass(frozen=True)
class Study:
    """A study, as its `study.toml` defines it."""

    folder: Path
    name: str
    also: tuple[str, ...]  # further names that it is found by
    title: str
    question: str
    runs: tuple[PlannedRun, ...]

    def page(self) -> Write:
        """The function that writes its page. Importing it takes a while, because of the plotting library."""
        place = hashlib.sha256(str(self.folder).encode()).hexdigest()[:12]  # two may have the same name
        package = f"bentpipe_study_{place}"
        if package not in sys.modules:  # so that the modules of a study find each other: from .runs import …
            module = ModuleType(package)
            module.__path__ = [str(self.folder)]
            sys.modules[package] = module
        write: Write | None = getattr(importlib.import_module(f"{package}.page"), "write", None)
        if write is None:
            raise UsageError(f"{self.folder / _PAGE}: no function `write`", "define write(runs, folder)")
        return write


class RunTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a `[[runs]]` table of study.toml."""

    campaign: str
    options: tuple[str, ...] = ()
    about: str
    optional: bool = False
    needed: bool = True


StudyName = Annotated[
    str, msgspec.Meta(pattern=r"^[a-z][a-z0-9-]*\Z", description="small letters, digits and -")
]


class StudyFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of study.toml."""

    name: StudyName
    also: Annotated[
        tuple[StudyName, ...], msgspec.Meta(description="a list of names: small letters, digits and -")
    ] = ()
    title: str
    question: str
    runs: Annotated[tuple[RunTable, ...], msgspec.Meta(min_length=1)]


def load(folder: Path) -> Study:
    """The study in `folder`; UsageError if its study.toml is incomplete or wrong."""
    file = folder / "study.toml"
    said = strict.read(file, StudyFile)
    if not (folder / _PAGE).is_file():
        raise UsageError(f"{folder}: no {_PAGE} in it", "its write(runs, folder) writes the page")
    return Study(
        folder=folder.resolve(),
        name=said.name,
        also=said.also,
        title=said.title,
        question=" ".join(said.question.split()),
        runs=tuple(_run(one, number, file) for number, one in enumerate(said.runs, start=1)),
    )


def _run(said: RunTable, number: int, file: Path) -> PlannedRun:
    campaign = file.parent / said.campaign
    if not campaign.is_file():
        wanted = f"the name of a file in {file.parent}"
        raise strict.wrong(file, f"runs {number}: campaign", said.campaign, wanted)
    return PlannedRun(
        campaign.resolve(), said.options, said.about, said.optional, said.needed and not said.optional
    )


def discover() -> Mapping[str, Study]:
    """All studies by name, in order of name."""
    found: dict[str, Study] = {}
    for place in paths.study_folders():
        folders = [place] if (place / "study.toml").is_file() else sorted(_with_study(place))
        if not folders:
            raise UsageError(f"{place}: no study.toml in it or one level below", "see BENTPIPE_STUDIES")
        found |= {one.name: one for one in map(load, folders)}
    found = dict(sorted(found.items()))
    _by_name(found)
    return found


def find(name: str) -> Study:
    """The study with that name or alias."""
    known = _by_name(discover())
    if name not in known:
        raise UsageError(f'unknown study "{name}"', one_of(name, known, "studies"))
    return known[name]


def _by_name(studies: Mapping[str, Study]) -> Mapping[str, Study]:
    """Studies by name and by alias; UsageError if two share one."""
    found = dict(studies)
    for one in studies.values():
        if ALL in (one.name, *one.also):
            wanted = f"another name: `bentpipe study {ALL}` carries out all of them"
            raise strict.wrong(one.folder / "study.toml", "name" if one.name == ALL else "also", ALL, wanted)
        for name in one.also:
            if name in found:
                wanted = f"a name of no study; {found[name].name} has it, in {found[name].folder}"
                raise strict.wrong(one.folder / "study.toml", "also", name, wanted)
            found[name] = one
    return found


def _with_study(place: Path) -> list[Path]:
    return [file.parent for file in place.glob("*/study.toml")]
