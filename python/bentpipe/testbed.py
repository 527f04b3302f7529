"""Which testbeds there are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Testbed:
    """A testbed that campaigns can be run on."""

    name: str
    title: str
    mode: str  # of `stack.toml`: how it starts endpoints
    program: str  # that runs a trial

    @property
    def is_real_time(self) -> bool:
        return self.mode == "sockets"


SIM = Testbed("sim", "virtual time", "virtual-time", "bentpipe-sim")
EMU = Testbed("emu", "real time", "sockets", "bentpipe-emu")
TESTBEDS = {testbed.name: testbed for testbed in (SIM, EMU)}
