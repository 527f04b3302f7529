"""Stacks that are noq behind `mislead.py`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bentpipe.stacks import catalogue

_SCRIPT = Path(__file__).with_name("mislead.py")


def write(stacks: Path, name: str, changes: Mapping[str, object], testcases: Sequence[str]) -> None:
    """A stack of that name in a folder of stacks; `changes` are those of `mislead.py`."""
    folder = stacks / name
    folder.mkdir(parents=True)
    noq = catalogue.discover()["noq"].command("virtual-time")
    command = ["{python}", str(_SCRIPT), json.dumps(changes), *noq]
    (folder / "stack.toml").write_text(
        f'name = "{name}"\ntitle = "noq, misled"\nlanguage = "Python"\nhome = "https://example.org"\n'
        f'roles = ["client", "server"]\ntestcases = {json.dumps(testcases)}\ndeterministic = true\n'
        f'alpn = ["hq-interop", "h3"]\n[commands]\nvirtual-time = {json.dumps(command)}\n'
    )
