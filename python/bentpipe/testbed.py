"""The testbeds that campaigns can be run on, with what differs between them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bentpipe import paths


@dataclass(frozen=True)
class Testbed:
    """A testbed: how it runs trials, and what it requires of the machine that executes them."""

    name: str
    title: str
    program: str  # that runs a trial
    mode: str  # of `stack.toml` and `middlebox.toml`: how it starts programs
    certificates: Callable[[], Path]  # the folder of those that endpoints are given
    repeats: bool  # the same seed gives the same packets: what a trial left can be made again
    needs_processors_in_time: bool  # so a guard says how many trials run at once, and nothing else may
    programs_say_versions: bool  # in each trial anew; else the version is that of the installation
    flows_share_hosts: bool  # what a program sets for its host counts for those of all flows
    is_elsewhere: bool  # programs are brought to other hosts, which a file of links names
    _jobs: Callable[[int], int]  # cores → trials at a time, at most

    def jobs(self, asked: int | None) -> int:
        """The maximum number of trials at a time."""
        return asked or self._jobs(os.cpu_count() or 1)


SIM = Testbed(
    name="sim",
    title="virtual time",
    program="bentpipe-sim",
    mode="virtual-time",
    certificates=paths.certs,
    repeats=True,
    needs_processors_in_time=False,
    programs_say_versions=True,
    flows_share_hosts=False,
    is_elsewhere=False,
    _jobs=lambda cores: cores + 1,  # a trial's programs wait for each other at times
)
EMU = Testbed(
    name="emu",
    title="real time",
    program="bentpipe-emu",
    mode="sockets",
    certificates=paths.socket_certs,
    repeats=False,
    needs_processors_in_time=True,
    programs_say_versions=False,
    flows_share_hosts=True,
    is_elsewhere=False,
    _jobs=lambda cores: 8 * cores,  # they wait for the link, and a guard sets the limit
)
REMOTE = Testbed(
    name="remote",
    title="a real link",
    program="bentpipe-remote",
    mode="sockets",
    certificates=paths.socket_certs,
    repeats=False,
    needs_processors_in_time=False,  # its hosts are elsewhere
    programs_say_versions=False,
    flows_share_hosts=True,
    is_elsewhere=True,
    _jobs=lambda _cores: 1,  # one after the other: they share the link
)
TESTBEDS = {testbed.name: testbed for testbed in (SIM, EMU, REMOTE)}
HERE = tuple(name for name, testbed in TESTBEDS.items() if not testbed.is_elsewhere)
# What runs are of that the QUIC interop runner made: they are read, and not continued.
RUNNER = "runner"
