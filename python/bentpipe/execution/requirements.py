"""Requirements of a machine that runs a campaign's trials for another: the same Bentpipe, the same stacks.

Both sides state the same facts of themselves, most of them hashes: a machine that differs gets
the list of differences, and no trial. Programs are not among them: who has others, or none, is brought them
(`bentpipe.execution.kit`). Of stacks that run with an interpreter, and of tunnels, that needs to be there
already.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bentpipe import __version__, paths
from bentpipe.errors import BentpipeError
from bentpipe.execution.kit import Kit
from bentpipe.plan.campaign import Plan, PlanVariants
from bentpipe.stacks import catalogue, guest, installed, middleboxes
from bentpipe.stacks.model import Stack
from bentpipe.testbed import TESTBEDS

_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Requirements:
    """The requirements of a run on a machine, and what the client has of them."""

    testbed: str
    stacks: tuple[str, ...]  # names
    proxies: tuple[str, ...]  # kinds
    tunnels: tuple[str, ...]  # kinds
    stack_folders: tuple[str, ...]  # besides those of Bentpipe
    facts: Mapping[str, str | None]  # by what people call them
    kit: Kit  # its programs

    @classmethod
    def of(cls, plan: Plan, variants: PlanVariants, stack_folders: tuple[str, ...]) -> Requirements:
        """The requirements of a plan's trials; BentpipeError if this machine does not meet them itself."""
        treatments = plan.parsed_treatments
        asked = cls(
            testbed=plan.testbed,
            stacks=tuple(sorted(variants.stacks)),
            proxies=tuple(sorted({one.kind for one in treatments if one.proxies})),
            tunnels=tuple(sorted({one.tunnel.kind for one in treatments if one.tunnel})),
            stack_folders=stack_folders,
            facts={},
            kit=Kit({}),
        )
        return replace(
            asked, facts=dict(asked._facts_here(variants.stacks)), kit=asked._kit_here(variants.stacks)
        )

    def known(self) -> dict[str, Stack]:
        """The stacks on this machine."""
        return catalogue.discover(Path(one) for one in self.stack_folders if Path(one).is_dir())

    def unmet(self) -> str | None:
        """The requirements besides programs that this machine does not meet, in words; None if it does."""
        try:
            here = dict(self._facts_here(self.known()))
        except BentpipeError as error:
            return f"{error}; {error.hint}" if error.hint else str(error)
        for what, wanted in self.facts.items():
            if here.get(what) != wanted:
                return f"{what} is not the same: here {here.get(what)}, wanted {wanted}"
        return None

    def _facts_here(self, known: Mapping[str, Stack]) -> Iterator[tuple[str, str | None]]:
        yield "Bentpipe's version", __version__
        yield "Bentpipe's Python code", _of_files(_PACKAGE, "*.py", leave_out=_PACKAGE / "data")
        yield "the certificates", _of_files(TESTBEDS[self.testbed].certificates(), "*")
        commands = []
        for name in self.stacks:
            if name not in known:
                raise BentpipeError(f"there is no stack {name}", "name its folder in BENTPIPE_STACKS")
            stack = known[name]
            if not stack.is_whole(self._mode) and (why := stack.missing(self._mode)):
                raise BentpipeError(why, stack.how_to_install)
            yield f"the stack {name}", _of_stack(stack)
            commands.append(stack.commands.get(self._mode, ()))
            yield f"the command of {name}", " ".join(commands[-1])
            for package, version in installed.packages_of(stack.packages).items():
                yield f"the package {package} of {name}", version
        for kind in self.proxies:
            if kind not in middleboxes.chains():
                hint = "name its folder in BENTPIPE_MIDDLEBOXES"
                raise BentpipeError(f"there is no middlebox {kind}", hint)
            middlebox = middleboxes.chains()[kind]
            yield f"the middlebox {kind}", _of_files(middlebox.folder, "*")
            commands.append(middlebox.commands.get(self._mode, ()))
            yield f"the command of {kind}", " ".join(commands[-1])
        for kind in self.tunnels:
            yield f"the tunnel {kind}", middleboxes.tunnels()[kind].version
        words = {word for command in commands for word in command}
        if "{python}" in words:
            yield "Python's version", platform.python_version()
        if any("{guest}" in word for word in words):
            yield "the kernel of guests", guest.load().entry.inputs_sha256

    def _kit_here(self, known: Mapping[str, Stack]) -> Kit:
        """The programs of this machine; BentpipeError if one is missing."""
        words = {str(paths.program(TESTBEDS[self.testbed].program))}
        folders = []
        for stack in (known[name] for name in self.stacks):
            if why := stack.missing(self._mode):
                raise BentpipeError(why, stack.how_to_install)
            words.update(stack.command(self._mode))
            if stack.build is not None and stack.is_whole(self._mode):
                folders.append(stack.entry.folder)
        for kind in self.proxies:
            middlebox = middleboxes.chains()[kind]
            words.update(middlebox.command(self._mode))
            if middlebox.build is not None:
                folders.append(middlebox.entry.folder)
        if any(Path(word).is_relative_to(guest.load().entry.folder) for word in words):
            folders.append(guest.load().entry.folder)
        own = {Path(word) for word in words if Path(word).parent == paths.bin_folder()}
        return Kit.here(sorted(own), folders)

    @property
    def _mode(self) -> str:
        return TESTBEDS[self.testbed].mode


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
