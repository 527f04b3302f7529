"""The model of a stack: its `stack.toml` (`endpoints/contract/stack-toml.md`), and variants of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from bentpipe import paths
from bentpipe.schema.job import Program
from bentpipe.stacks import guest, installed
from bentpipe.stacks.installable import PLACE, Installable
from bentpipe.workload import TESTCASES

Role = Literal["client", "server"]
Mode = Literal["virtual-time", "sockets"]
Protocol = Literal["hq-interop", "h3", "http/0.9", "http/1.1", "h2", "h2-h3"]
Transport = Literal["quic", "tcp"]
Carries = Literal["udp", "ip"]
Log = Literal["keylog", "qlog"]
# Application protocols by their ALPN, and the transport that they begin over; the first one is preferred.
TRANSPORTS: dict[str, Transport] = {
    "hq-interop": "quic", "h3": "quic", "http/0.9": "tcp", "http/1.1": "tcp", "h2": "tcp",
    "h2-h3": "tcp",
}  # fmt: skip
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
MODES: tuple[Mode, ...] = get_args(Mode)
ROLES: tuple[Role, ...] = get_args(Role)
LOGS: tuple[Log, ...] = ("keylog", "qlog")
MIGRATE = "migrate"  # the option that says when a client migrates (`endpoints/contract/paths.md`)
MULTIPATH = "multipath"  # that of stacks that have several paths at once
OF_THE_RUNNER = "{programs}/bentpipe-interop"  # keeps the contract for programs of the QUIC interop runner


@dataclass(frozen=True, kw_only=True)
class Stack(Installable):
    """A stack, as its `stack.toml` describes it."""

    FILE = "stack.toml"

    title: str
    language: str
    home: str
    roles: tuple[str, ...]
    testcases: tuple[str, ...]
    deterministic: bool
    notes: str
    options: Mapping[str, str]  # name → what it means
    commands: Mapping[str, tuple[str, ...]]  # mode → arguments, with placeholders
    repeats_except: str = ""  # when a deterministic one does not repeat all the same
    packages: tuple[str, ...] = ()  # Python packages of Bentpipe's own environment that it runs with
    browser: tuple[str, ...] = ()  # names of the browser that it starts, of which one is on the PATH
    alpn: tuple[str, ...] = PROTOCOLS[:1]  # application protocols
    logs: tuple[str, ...] = LOGS  # those that it writes when it is asked to
    carries: Carries = "udp"  # what its datagrams are in virtual time
    paths: bool = False  # its server follows clients that migrate in virtual time, though its own cannot
    # Settings of both ends, as `tls=off`, with which a client waits for fewer round trips: how many.
    saves: Mapping[str, int] = field(default_factory=dict)
    weight: float = 1.0  # how much of a processor it takes in real time, where most take 1
    processors: int = (
        0  # in real time: the number for it alone, since its own work is measured; 0: it shares all
    )

    def command(self, mode: str) -> list[str]:
        """The argument list that starts the stack in `mode`, placeholders filled in."""
        return self.fill(self.commands[mode])

    def _places(self) -> dict[str, Callable[[], str | Path]]:
        return super()._places() | {"{guest}": lambda: guest.load().entry.folder}

    def not_installed(self) -> str | None:
        """The reason why the stack is not installed, in words; None if it is, or needs no installation."""
        if self.build is not None:
            return super().not_installed()
        absent = [name for name, version in installed.packages_of(self.packages).items() if version is None]
        if absent:
            return f"the Python package {absent[0]} is missing"
        if self.browser and self.browser_path() is None:
            return f"there is no program {' or '.join(self.browser)} on the PATH"
        return None

    def browser_path(self) -> str | None:
        """The browser that it starts; None if it starts none, or there is none here."""
        return next((found for name in self.browser if (found := shutil.which(name))), None)

    def missing(self, mode: str) -> str | None:
        """The reason why the stack cannot be started in `mode`, in words; None if it can."""
        if mode not in self.commands:
            return f"{self.name} offers no mode {mode}"
        why = self.not_installed()
        if why:
            return f"{self.name} is not installed: {why}"
        if self.lives_in_guest(mode) and (why := guest.load().not_installed()):
            return f"{self.name} lives in a guest in virtual time, and the guest is not installed: {why}"
        for position, (raw, argument) in enumerate(zip(self.commands[mode], self.command(mode), strict=True)):
            if position == 0 and shutil.which(argument) is None:
                return f"{self.name} cannot be started: there is no program {argument}"
            if PLACE.match(raw) and not Path(argument).exists():
                return f"{self.name} is not complete: there is no {argument}"
        return None

    @property
    def how_to_install(self) -> str:
        """The hint for a stack that cannot be started."""
        first = [words[0] for words in self.commands.values() if words[0].startswith("{programs}/")]
        if not all(Path(word).is_file() for word in self.fill(first)):
            return paths.repair()
        if self.build is not None:
            return super().how_to_install
        if self.browser and self.browser_path() is None:
            return self.how_to_get_browser
        return paths.repair() if self.not_installed() else f"correct [commands] in {self.file}"

    @property
    def not_portable(self) -> str | None:
        """The reason why its programs cannot be brought to another host, in words; None if they can: they are
        all in its own folder.
        """
        if (what := self._elsewhere("sockets", ("{bin}/",))) is not None:
            return f"{self.name} cannot be brought to another host: it runs {what}"
        return None

    def is_whole(self, mode: str) -> bool:
        """Whether everything that it runs in `mode` is files that can be copied: those of its own folder in
        the cache, Bentpipe's own programs, the kernel of guests; not an interpreter, nor its packages.
        """
        return self._elsewhere(mode, ("{bin}/", "{programs}/", "{guest}/")) is None

    def _elsewhere(self, mode: str, places: tuple[str, ...]) -> str | None:
        """The file that it runs in `mode` and that is in none of `places`; None if there is none."""
        words = self.commands.get(mode, ())
        elsewhere = [word for word in words if word.startswith("{") and not word.startswith(places)]
        if not words or elsewhere or not words[0].startswith(places):
            return (elsewhere or list(words) or ["nothing"])[0]
        return None

    @property
    def how_to_get_browser(self) -> str:
        return f"install {self.title}: apt install {self.browser[0]}"

    @property
    def version_mode(self) -> Mode:
        """The mode in which it is asked for its version. In a guest a stack's version is that of the guest's
        kernel, which need not be installed to know it.
        """
        lives = "virtual-time" not in self.commands or self.lives_in_guest("virtual-time")
        return "sockets" if lives and "sockets" in self.commands else "virtual-time"

    @property
    def transports(self) -> tuple[Transport, ...]:
        """The transports of its application protocols."""
        return tuple(dict.fromkeys(TRANSPORTS[one] for one in PROTOCOLS if one in self.alpn))

    @property
    def file_protocol(self) -> str:
        """The application protocol for a single file, unless another one is asked for."""
        files: tuple[str, ...] = TESTCASES["transfer"].protocols
        return next((one for one in files if one in self.alpn), self.alpn[0])

    @property
    def follows_paths(self) -> bool:
        """Whether in virtual time its server answers to whichever of several paths the client is on."""
        return self.paths or self.carries == "ip" or bool({MIGRATE, MULTIPATH} & set(self.options))

    @property
    def is_of_the_runner(self) -> bool:
        """Whether its program was written for the QUIC interop runner, and gets the environment that the
        runner provides.
        """
        return any(OF_THE_RUNNER in command for command in self.commands.values())

    def programs(self) -> list[str]:
        return self.built_programs(self.commands.values())

    def lives_in_guest(self, mode: str) -> bool:
        """Whether it is started in a guest in `mode`."""
        return any("{guest}" in word for word in self.commands.get(mode, ()))


@dataclass(frozen=True)
class Variant:
    """A stack and the options that it is started with, written `quinn:cc=cubic:iw=100`."""

    label: str
    stack: Stack
    options: Mapping[str, str]

    def saved_round_trips(self, server: Variant) -> int:
        """Round trips before the first byte that a client of this variant does not wait for, if the server
        has the same settings.
        """
        both = self.options.items() & server.options.items()
        return sum(self.stack.saves.get(f"{name}={value}", 0) for name, value in both)

    def program(self, mode: str, version: str | None = None) -> Program:
        """The entry in a job for an end that is started in `mode`, and whose version is known."""
        return Program(
            name=self.label,
            command=self.stack.command(mode),
            options=dict(self.options),
            version=version,
            carries=self.stack.carries,
        )
