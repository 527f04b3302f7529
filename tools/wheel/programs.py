"""Which programs are Bentpipe's own: the binaries of `crates/`, `middleboxes/` and `products/`, as
cargo knows them.

    python tools/wheel/programs.py

prints the words by which cargo builds those of a wheel, the programs of its stacks among them. Nothing else
lists them: a crate with a new program brings it into the wheel.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STACKS = ("noq", "quinn")  # come with a wheel: folders of `endpoints/`


@dataclass(frozen=True)
class Program:
    """A binary of the workspace."""

    name: str
    package: str


def own() -> list[Program]:
    """Bentpipe's own, by name."""
    return _below("crates", "middleboxes", "products")


def of_stacks() -> list[Program]:
    """Those of the stacks that come with a wheel."""
    return [program for name in STACKS for program in _below(f"endpoints/{name}")]


def _below(*folders: str) -> list[Program]:
    places = [ROOT / folder for folder in folders]
    found = [program for place, program in _binaries() if any(map(place.is_relative_to, places))]
    return sorted(found, key=lambda one: one.name)


def _binaries() -> Iterator[tuple[Path, Program]]:
    """Every binary of the workspace, and the folder of its package."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"]
    told = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for package in json.loads(told)["packages"]:
        for target in package["targets"]:
            if "bin" in target["kind"]:
                yield Path(package["manifest_path"]).parent, Program(target["name"], package["name"])


if __name__ == "__main__":
    print(*(f"--bin {program.name}" for program in [*own(), *of_stacks()]))
