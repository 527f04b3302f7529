"""Scenarios: named paths in `scenarios/*.toml`.

Their meaning (units, defaults, strictness) is the link model's alone: `bentpipe-sim scenario` reads a file
and answers with the scenario in full. Nothing here parses a rate or a time.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe import paths
from bentpipe.errors import BentpipeError, UsageError, one_of
from bentpipe.labels import ScenarioLabel


@dataclass(frozen=True)
class Scenario:
    """A scenario with its settings applied."""

    label: str  # `sat`, or with settings `sat,forward.queue=1BDP`
    scenario: dict[str, Any]  # in full, as `bentpipe-sim trial` takes it
    summary: dict[str, Any]  # name, title, source, rates, queues …, for people and reports
    courses: dict[str, Any]  # key of what changes with time → how it goes
    interruptions: dict[str, Any]  # key of handovers and outages → each of them
    # direction → what packets meet, in that order; of several paths each with its name, `geo forward`
    path: dict[str, Any]


class ScenarioError(UsageError):
    """An error of `bentpipe-sim scenario` about a file or setting that is not valid, in its own words."""


def names() -> list[str]:
    """The scenarios that come with Bentpipe."""
    return sorted(file.stem for file in paths.scenarios().glob("*.toml"))


def file_of(name: str) -> Path:
    """The file of a scenario given by name or as a path to a .toml file."""
    if name.endswith(".toml"):
        if not paths.is_file(name):
            raise UsageError(f"{name}: there is no such scenario file", one_of(name, names(), "scenarios"))
        return Path(name)
    file = paths.scenarios() / f"{name}.toml"
    if name not in names():
        raise UsageError(
            f'unknown scenario "{name}"',
            one_of(name, names(), "a path to a .toml file, or one of these scenarios"),
        )
    return file


def label(name: str, settings: Sequence[str]) -> str:
    """The name in records of the scenario `name` with `settings` (`KEY=VALUE`), without white space."""
    stem = Path(name).stem if name.endswith(".toml") else name
    return str(ScenarioLabel(stem, tuple("".join(setting.split()) for setting in settings)))


def resolve(name: str, settings: Sequence[str] = ()) -> Scenario:
    """Read a scenario and apply settings. ScenarioError if the file or a setting is not valid."""
    file = file_of(name)
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise UsageError(
                f'--set: "{setting}" is no setting', "write --set KEY=VALUE, as in forward.queue=1BDP"
            )
    command = [str(paths.program("bentpipe-sim")), "scenario", _shown(file)]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, cwd=None, check=False)
    if done.returncode == 2:
        raise ScenarioError(done.stderr.strip().removeprefix("error: "))
    if done.returncode != 0:
        raise BentpipeError(f"bentpipe-sim scenario {file} failed: {done.stderr.strip()}")
    answer = json.loads(done.stdout)
    return Scenario(label(name, settings), **answer)


@dataclass(frozen=True)
class TrialCourses:
    """The timelines of links in a trial: as in `Scenario`, by its seed, up to a time."""

    courses: dict[str, Any]
    interruptions: dict[str, Any]


def courses_of_trial(scenario: dict[str, Any], seed: str, until_s: float) -> TrialCourses:
    """Of a trial over a scenario, in full, from its beginning. BentpipeError if the scenario cannot be read,
    as that of another version may be.
    """
    asked = {"scenario": scenario, "seed": seed, "until_ns": max(1, round(until_s * 1e9))}
    command = [str(paths.program("bentpipe-sim")), "courses"]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BentpipeError(f"bentpipe-sim courses failed: {done.stderr.strip().removeprefix('error: ')}")
    return TrialCourses(**json.loads(done.stdout))


def resolve_all(wanted: Sequence[tuple[str, tuple[str, ...]]]) -> list[Scenario]:
    """The scenarios of several (name, settings) at once, in order."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda one: resolve(*one), wanted))


def _shown(file: Path) -> str:
    """The file's path as it should appear in messages: relative if it is below the current folder."""
    absolute = file.resolve()
    here = Path.cwd()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(absolute)
