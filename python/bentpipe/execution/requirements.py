"""What a machine must have to run a campaign's trials for another one: the same Bentpipe, the same stacks.

Both sides state the same facts of themselves, most of them hashes, and compare. Nothing is copied: who lacks
something is told what, and gets no trial.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bentpipe import __version__, paths
from bentpipe.errors import BentpipeError
from bentpipe.plan.campaign import Plan, PlanVariants
from bentpipe.stacks import catalogue, guest, installed, proxies, tunnels
from bentpipe.stacks.model import Stack
from bentpipe.testbed import TESTBEDS

_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Requirements:
    """What is asked of a machine, and what the one that asks has of it."""

    testbed: str
    stacks: tuple[str, ...]  # names
    proxies: tuple[str, ...]  # kinds
    tunnels: tuple[str, ...]  # kinds
    stack_folders: tuple[str, ...]  # beside those that come with Bentpipe
    facts: Mapping[str, str | None]  # by what people call them

    @classmethod
    def of(cls, plan: Plan, variants: PlanVariants, stack_folders: tuple[str, ...]) -> Requirements:
        """Those of a plan's trials; BentpipeError if this machine lacks something itself."""
        treatments = plan.parsed_treatments
        asked = cls(
            testbed=plan.testbed,
            stacks=tuple(sorted(variants.stacks)),
            proxies=tuple(sorted({one.kind for one in treatments if one.proxies})),
            tunnels=tuple(sorted({one.tunnel.kind for one in treatments if one.tunnel})),
            stack_folders=stack_folders,
            facts={},
        )
        return cls(**{**vars(asked), "facts": dict(asked._facts_here(variants.stacks))})

    def known(self) -> dict[str, Stack]:
        """The stacks on this machine."""
        return catalogue.discover(Path(one) for one in self.stack_folders if Path(one).is_dir())

    def unmet(self) -> str | None:
        """What this machine lacks, in words; None if it can run the trials."""
        try:
            here = dict(self._facts_here(self.known()))
        except BentpipeError as error:
            return f"{error}; {error.hint}" if error.hint else str(error)
        for what, wanted in self.facts.items():
            if here.get(what) != wanted:
                return f"{what} is not the same: here {here.get(what)}, wanted {wanted}"
        return None

    @property
    def digest(self) -> str:
        """The same for two machines if they can stand in for each other."""
        return hashlib.sha256(json.dumps(dict(self.facts), sort_keys=True).encode()).hexdigest()[:12]

    def _facts_here(self, known: Mapping[str, Stack]) -> Iterator[tuple[str, str | None]]:
        mode = TESTBEDS[self.testbed].mode
        yield "Bentpipe's version", __version__
        yield "Bentpipe's Python code", _of_files(_PACKAGE, "*.py", leave_out=_PACKAGE / "data")
        yield "the certificates", _of_files(TESTBEDS[self.testbed].certificates(), "*")
        commands = [[str(paths.program(TESTBEDS[self.testbed].program))]]
        for name in self.stacks:
            if name not in known:
                raise BentpipeError(f"there is no stack {name}", "name its folder in BENTPIPE_STACKS")
            stack = known[name]
            if why := stack.missing(mode):
                raise BentpipeError(why, stack.how_to_install)
            commands.append(stack.command(mode))
            yield f"the stack {name}", _of_stack(stack)
            for package, version in installed.packages_of(stack.packages).items():
                yield f"the package {package} of {name}", version
        for kind in self.proxies:
            if kind not in proxies.discover():
                raise BentpipeError(f"there is no proxy {kind}", "name its folder in BENTPIPE_PROXIES")
            commands.append(proxies.discover()[kind].command(mode))
        for kind in self.tunnels:
            tunnels.kinds()[kind].command()
            yield f"the tunnel {kind}", tunnels.kinds()[kind].version
        if any(sys.executable in command for command in commands):
            yield "Python's version", platform.python_version()
        words = {Path(word) for command in commands for word in command}
        for program in sorted(word for word in words if word.parent == paths.bin_folder()):
            yield f"the program {program.name}", installed.sha256(program)
        if any(word.is_relative_to(guest.load().entry.folder) for word in words):
            yield "the kernel of guests", guest.load().entry.inputs_sha256


def _of_stack(stack: Stack) -> str:
    """The hash of what it was built from, or, where nothing was built, of its files and its family's."""
    if stack.build is not None:
        return stack.entry.inputs_sha256
    families = sorted(stack.folder.parent.glob("*-family"))
    return " ".join(_of_files(folder, "*") for folder in (stack.folder, *families))


def _of_files(folder: Path, pattern: str, leave_out: Path | None = None) -> str:
    """A hash of the names and contents of all files below a folder; Python's own caches do not count."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob(pattern)):
        inside = leave_out is not None and path.is_relative_to(leave_out)
        if path.is_file() and not inside and "__pycache__" not in path.parts:
            found.update(f"{path.relative_to(folder)}\0{installed.sha256(path)}\n".encode())
    return found.hexdigest()
