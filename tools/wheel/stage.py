"""Puts together the folder `data` of a package: what it has beside the modules of Python.

    python tools/wheel/stage.py DATA PROGRAMS...

It mirrors the checkout (`bentpipe.paths`): scenarios, campaigns, docs, the folders of all stacks, and the
workspace that those in Rust belong to, so that a stack has the same hash in both and can be built from
either. Beside that it has `bin` and `installed`, whose programs are looked for in the folders PROGRAMS,
`wheel.json`, and `licenses.txt`, the notices of the crates in them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
os.environ["BENTPIPE_ROOT"] = str(ROOT)  # whatever the user's is

import programs  # noqa: E402
from licenses import licenses  # noqa: E402

from bentpipe import origin, paths  # noqa: E402
from bentpipe.stacks import building, catalogue  # noqa: E402
from bentpipe.stacks.model import Stack  # noqa: E402

FILES = ("Cargo.lock", "Cargo.toml")
FOLDERS = (
    "benches/congestion",
    "benches/noq-bulk",
    "benches/reference",
    "campaigns",
    "crates",
    "docs",
    "endpoints",
    "examples",
    "guest",
    "scenarios",
    "middleboxes",
    "pages",
    "products",
    "suites",
    "studies",
    "tools/queues",
)
# As `bentpipe.stacks.inputs` leaves them out of a stack's hash.
LEFTOVERS = shutil.ignore_patterns(".*", "target", "__pycache__", "node_modules")


def stage(data: Path, folders: Sequence[Path]) -> None:
    """Make the folder `data`, with programs out of `folders`."""
    data.mkdir(parents=True)
    for name in FILES:
        shutil.copy2(ROOT / name, data / name)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, data / name, ignore=LEFTOVERS)
    own = programs.own()
    for program in own:
        copy_program(program.name, folders, data / "bin" / program.name)
    built = [program.package for program in [*own, *programs.of_stacks()]]
    host = next(line for line in run("rustc", "-vV").splitlines() if line.startswith("host: "))
    (data / "licenses.txt").write_text(licenses(ROOT, built, host.removeprefix("host: ")))
    for name in programs.STACKS:
        stage_stack(catalogue.load(ROOT / "endpoints" / name), folders, data / "installed")
    (data / paths.OF_A_PACKAGE).write_text(json.dumps(origin.of_a_package(ROOT), indent=1) + "\n")


def stage_stack(stack: Stack, folders: Sequence[Path], installed: Path) -> None:
    """Put the programs of a stack below `installed`, described as the cache has it."""
    place = installed / stack.entry.name
    for program in stack.programs():
        copy_program(Path(program).name, folders, place / program)
    version, note = building.greet(stack, place)
    if note is not None:
        raise SystemExit(f"error: {stack.name}: {note}")
    building.describe(stack, place, version, 0.0).write(place)


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def copy_program(name: str, folders: Sequence[Path], to: Path) -> None:
    """Copy the first program called so out of `folders`."""
    found = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if found is None:
        raise SystemExit(f"error: there is no {name} in {', '.join(map(str, folders))}")
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(found, to)
    to.chmod(0o755)


if __name__ == "__main__":
    stage(Path(sys.argv[1]), [Path(folder) for folder in sys.argv[2:]])
