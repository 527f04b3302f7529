"""The command that repeats a cell."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from bentpipe.statistics import Cell


def reproduce(cell: Cell, options: dict[str, Any]) -> str:
    """The shell command that runs this cell again, with every trace.

    A trial's seed comes from the campaign's seed and the trial's own coordinates, so the cell alone gives the
    same trials as the whole campaign did. `options` are the manifest's: `seed`, `iterations` and
    `scenarios` are read. Settings stand in the scenario's label.
    """
    key = cell.key
    scenario, settings = split_label(key.scenario)
    words = [
        "bentpipe",
        "run",
        "--scenario",
        _as_named(scenario, options),
        "--client",
        key.client,
        "--server",
        key.server,
    ]
    words += ["--iterations", str(options.get("iterations") or len(cell.records))]
    words += ["--bytes", str(cell.records[0].size_bytes)]
    if options.get("seed") is not None:
        words += ["--seed", str(options["seed"])]
    for setting in settings:
        words += ["--set", setting]
    words += ["--trace", "all", "--out", f"{scenario}-{key.client}-{key.server}".replace("/", "_")]
    return shlex.join(words)


def _as_named(scenario: str, options: dict[str, Any]) -> str:
    """The scenario as the run was told it: a file of the user's is known by its path, not by its name."""
    given = options.get("scenarios")
    files = [str(one) for one in given if str(one).endswith(".toml")] if isinstance(given, list) else []
    return next((file for file in files if Path(file).stem == scenario), scenario)


def split_label(label: str) -> tuple[str, list[str]]:
    """A scenario's label, `sat,forward.queue=1BDP`, as its name and its settings."""
    name, *rest = label.split(",")
    settings: list[str] = []
    for part in rest:
        if "=" in part or not settings:
            settings.append(part)
        else:  # a comma within a value
            settings[-1] += f",{part}"
    return name, settings
