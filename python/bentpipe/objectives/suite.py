"""Suites: objectives in TOML, from `suites/` or a file of the user's.

A suite has `title` and `source`, `error` (how probable a wrong verdict may be), `seed`, `least` (trials of
each setting), and tables `[[objectives]]`:

    name = "large"                      in one suite once
    scenario = "4sat-large"             a name, or a path to a .toml file, which counts from the suite
    workload = "transfer:100MB"
    treatment = "direct"                what stands between the ends
    client, server                      only where they are always the same; else the command line names them
    within = { "2 MB" = "3 s" }         how soon the first bytes are there: an objective for each
    measure, at_most or at_least        or a column, and its bound
    than = { treatment = "direct" }     then the bound is of the ratio to a trial that differs in this
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from bentpipe import paths, strict, workload
from bentpipe.analysis.sequential import MOST
from bentpipe.errors import UsageError, one_of
from bentpipe.objectives.measures import SHARES, ObjectiveMeasure, bound, first_bytes, measure
from bentpipe.plan import scenarios, treatments
from bentpipe.plan.treatments import DIRECT

_ERROR = "1 %"

Name = Annotated[str, msgspec.Meta(pattern=r"\S", description="a text in quotes")]


class Reference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reference of a ratio, as a suite writes it: the properties in which its trials differ."""

    scenario: Name | None = None
    workload: Name | None = None
    treatment: Name | None = None
    client: Name | None = None
    server: Name | None = None


class ObjectiveTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One or several objectives, as a suite writes them."""

    name: Name
    scenario: Name
    workload: Name
    treatment: Name = DIRECT
    client: Name | None = None
    server: Name | None = None
    within: dict[str, str] = {}
    measure: str | None = None
    at_most: str | None = None
    at_least: str | None = None
    than: Reference | None = None


class SuiteFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a suite's file."""

    title: str
    objectives: Annotated[tuple[ObjectiveTable, ...], msgspec.Meta(min_length=1)]
    source: str = ""
    error: str = _ERROR
    seed: Annotated[int, msgspec.Meta(ge=0)] = 1
    least: Annotated[int, msgspec.Meta(ge=1, le=MOST)] = 1


@dataclass(frozen=True)
class Setting:
    """The properties that the trials of an objective have in common. An end that is None is for the command
    line to name.
    """

    scenario: str  # a name or a path
    workload: str  # in canonical form, as the treatment
    treatment: str
    client: str | None = None
    server: str | None = None

    @property
    def label(self) -> str:
        """The scenario's label, as records have it."""
        return scenarios.label(self.scenario, ())


@dataclass(frozen=True)
class Objective:
    """An objective: what the median trial of a setting is to reach."""

    name: str
    setting: Setting
    measure: ObjectiveMeasure
    bound: float  # in the column's unit; of a ratio, where there is a reference
    at_most: bool  # the bound is an upper one
    reference: Setting | None = None

    @property
    def asked(self) -> str:
        """The objective in words: `first 2 MB ≤ 3 s`."""
        sign = "≤" if self.at_most else "≥"
        if self.reference is None:
            return f"{self.measure.title} {sign} {self.measure.text(self.bound)}"
        return f"{self.measure.title} {sign} {100 * self.bound:g} % of {self.differs}"

    @property
    def differs(self) -> str:
        """The difference of its reference, in words."""
        assert self.reference is not None
        pairs = zip(dataclasses.astuple(self.setting), dataclasses.astuple(self.reference), strict=True)
        return ", ".join(str(other) for own, other in pairs if own != other)


@dataclass(frozen=True)
class Suite:
    """A suite: objectives that are checked together."""

    name: str
    title: str
    source: str
    error: float
    seed: int
    least: int  # trials of a setting, whatever fewer would say
    objectives: tuple[Objective, ...]

    def takes(self, role: str) -> bool:
        """Whether an objective leaves the client, or the server, to the command line."""
        return any(getattr(one.setting, role) is None for one in self.objectives)


def names() -> dict[str, Path]:
    """The suites that come with Bentpipe, with their files."""
    return {file.stem: file for file in sorted(paths.suites().glob("*.toml"))}


def load(argument: str) -> Suite:
    """A suite given by name or as a path to a .toml file. UsageError that says what is wrong with it."""
    file = Path(argument)
    if not argument.endswith(".toml"):
        if argument not in names():
            hint = one_of(argument, names(), "a path to a .toml file, or suites")
            raise UsageError(f'unknown suite "{argument}"', hint)
        file = names()[argument]
    said = strict.read(file, SuiteFile)
    error = bound(said.error, SHARES, f"{file}: error")
    if not 0.0001 <= error <= 0.1:
        raise strict.wrong(file, "error", said.error, "0.01 % to 10 %")
    found = [
        one
        for number, table in enumerate(said.objectives, start=1)
        for one in _objectives(table, file, f"{file}: objectives {number}")
    ]
    called = [one.name for one in found]
    if again := next((name for name in called if called.count(name) > 1), None):
        raise UsageError(f'{file}: two objectives are called "{again}"', "give each a name of its own")
    return Suite(file.stem, said.title, said.source, error, said.seed, said.least, tuple(found))


def _objectives(table: ObjectiveTable, file: Path, where: str) -> Iterator[Objective]:
    own = _setting(table, file, where)
    reference = None
    if table.than is not None:
        reference = _reference(table.than, table, file, f"{where}: than")
    if table.within:
        if table.measure or table.at_most or table.at_least or table.than:
            raise UsageError(f"{where}: within stands alone", "leave out measure, at_most, at_least and than")
        yield from _within(table, own, where)
        return
    if table.measure is None:
        raise UsageError(f'{where}: the key "measure" is missing', 'add it, or within = { "2 MB" = "3 s" }')
    measured = measure(table.measure, f"{where}: measure")
    if (table.at_most is None) == (table.at_least is None):
        both = "both at_most and at_least" if table.at_most else "neither at_most nor at_least"
        raise UsageError(f"{where}: it has {both}", "give one of them")
    key = "at_most" if table.at_most is not None else "at_least"
    text = table.at_most or table.at_least or ""
    units = measured.units if reference is None else SHARES
    yield Objective(
        table.name, own, measured, bound(text, units, f"{where}: {key}"), key == "at_most", reference
    )


def _within(table: ObjectiveTable, own: Setting, where: str) -> Iterator[Objective]:
    moved = workload.parse(own.workload, where)
    for size, time in table.within.items():
        at = f'{where}: within."{size}"'
        count = workload.size(size, at)
        measured = first_bytes(count, at)
        if moved.testcase not in ("transfer", "upload") or "x" in own.workload:
            raise UsageError(f"{where}: within is of one file", 'write workload = "transfer:100MB"')
        if moved.testcase == "upload" and own.treatment != DIRECT:
            raise UsageError(
                f"{where}: past a proxy nobody sees when the first bytes of an upload were there",
                "measure completion_s",
            )
        if count > moved.size_bytes:
            raise UsageError(f"{at}: the file has {workload.shown_size(moved.size_bytes)}", "ask for less")
        name = f"{table.name} {workload.shown_size(count)}"
        yield Objective(name, own, measured, bound(time, measured.units, at), at_most=True)


def _setting(table: ObjectiveTable, file: Path, where: str) -> Setting:
    return Setting(
        scenario=_scenario(table.scenario, file, where),
        workload=_workload(table.workload, file, where),
        treatment=_treatment(table.treatment, where),
        client=table.client,
        server=table.server,
    )


def _reference(than: Reference, table: ObjectiveTable, file: Path, where: str) -> Setting:
    """The setting that an objective compares with."""
    changes = {key: value for key in than.__struct_fields__ if (value := getattr(than, key)) is not None}
    if not changes:
        raise UsageError(f"{where}: it is empty", 'say in what the other differs: { treatment = "direct" }')
    found = _setting(msgspec.structs.replace(table, **changes), file, where)
    if found == _setting(table, file, where):
        raise UsageError(f"{where}: it is what the objective itself is of", "say in what the other differs")
    return found


def _scenario(name: str, file: Path, where: str) -> str:
    named = str(file.parent / name) if name.endswith(".toml") else name
    try:
        scenarios.file_of(named)
    except UsageError as error:
        raise UsageError(f"{where}: scenario: {error}", error.hint) from error
    return named


def _workload(text: str, file: Path, where: str) -> str:
    (found,) = workload.canonical([workload.from_folder(file.parent, text)], f"{where}: workload")
    return found


def _treatment(text: str, where: str) -> str:
    key = f"{where}: treatment"
    # As plans name them a chain stands behind a =, and records have a space.
    option = text if re.fullmatch(r"\S+", text) else text.replace(" ", "=", 1)
    (found,) = treatments.labels(treatments.named([option], key), ())
    return str(treatments.parse(found, key))
