"""A state of the page as plans, one for each sender, and as the commands that do the same.

Each sender is a plan of its own, so that trials are those of `bentpipe run`: the same identities and so the
same seeds and packets, however the senders of the page are put together.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bentpipe import workload
from bentpipe.errors import UsageError
from bentpipe.execution import preparation
from bentpipe.execution.preparation import CheckedRun, RunRequest
from bentpipe.plan import campaign, treatments
from bentpipe.plan.request import DEFAULT_CAMPAIGN, PlanRequest
from bentpipe.plan.treatments import DIRECT
from bentpipe.schema import reading
from bentpipe.schema.explore import FORMAT, ExploredSender, ExploredState, ExploreRequest

MOST_SEEDS = 100
MOST_SENDERS = 2
_MOST_SETTINGS = 64
_LONGEST = 16_000  # characters of a text
_LARGEST_SEED = 2**53 - 1  # the largest integer that a page can hold


class RefusedRequest(ValueError):
    """Why a message of a page is no request that is played, in words."""

    def __init__(self, reason: str, number: int = 0) -> None:
        super().__init__(reason)
        self.number = number  # of the request; 0 if it cannot be read


def read_request(text: str) -> ExploreRequest:
    """A message of a page. RefusedRequest for what cannot be read, or is out of bounds."""
    try:
        request = _converted(text)
    except ValueError as error:
        raise RefusedRequest(f"The page sent what cannot be read: {error}") from error
    if reason := _out_of_bounds(request.state):
        raise RefusedRequest(reason, request.number)
    return request


def _converted(text: str) -> ExploreRequest:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is no JSON") from error
    request: ExploreRequest = reading.convert(values, ExploreRequest, FORMAT, numbered=True)
    return request


def _out_of_bounds(state: ExploredState) -> str:
    """What of a state is more than a page may ask for, in words; empty if nothing is."""
    texts = [state.scenario, *state.settings]
    texts += [part for sender in state.senders for part in msgspec.structs.astuple(sender)]
    if not 1 <= len(state.senders) <= MOST_SENDERS:
        return f"senders: one or two, not {len(state.senders)}"
    if not 1 <= state.seeds <= MOST_SEEDS:
        return f"seeds: 1 to {MOST_SEEDS}, not {state.seeds}"
    if not 0 <= state.seed <= _LARGEST_SEED:
        return f"seed: 0 to {_LARGEST_SEED}, not {state.seed}"
    if len(state.settings) > _MOST_SETTINGS:
        return f"settings: {_MOST_SETTINGS} at most, not {len(state.settings)}"
    if (longest := max(map(len, texts))) > _LONGEST:
        return f"a text has {longest} characters: {_LONGEST} at most"
    return "a text holds a NUL" if any("\0" in one for one in texts) else ""


def default_seed() -> int:
    """The seed of `bentpipe run` without a campaign."""
    return campaign.load(DEFAULT_CAMPAIGN).seed


@dataclass(frozen=True)
class Exploration:
    """A state, as what `bentpipe run` would be asked for."""

    state: ExploredState
    stack_folders: tuple[Path, ...] = ()
    default_seed: int = field(default_factory=default_seed)

    def prepare(self, sender: ExploredSender) -> CheckedRun:
        """The plan of a sender, checked as that of a run. BentpipeError if it is refused."""
        notes: list[str] = []
        return preparation.prepare(RunRequest(self._request(sender), self.stack_folders), notes.append)

    def _request(self, sender: ExploredSender) -> PlanRequest:
        state = self.state
        changes: dict[str, Any] = {
            "scenarios": _one(state.scenario, "scenario"),
            "clients": _one(sender.client, "client"),
            "servers": _one(sender.server, "server"),
            "treatments": treatments.named(_one(sender.treatment, "treatment"), "treatment"),
            "workloads": workload.canonical(_one(sender.workload, "workload"), "workload"),
            "iterations": state.seeds,
            "seed": state.seed,
            "trace": "all",
        }
        if state.settings:
            changes["set"] = tuple(state.settings)
        return PlanRequest(None, changes, (sender.protocol,) if sender.protocol else ())

    def commands(self, senders: Sequence[ExploredSender]) -> list[str]:
        """`bentpipe run …`, so many as it takes for the trials of these senders, of which no plan is refused:
        one where they differ in their servers alone.
        """
        first, *others = senders
        if all(msgspec.structs.replace(one, server=first.server) == first for one in others):
            servers = dict.fromkeys(one.server for one in senders)
            return [self._run(first, list(servers))]
        return [self._run(one, [one.server]) for one in senders]

    def _run(self, sender: ExploredSender, servers: Sequence[str]) -> str:
        words = [*self._common(), "--iterations", str(self.state.seeds), *_of(sender)]
        for server in servers:
            words += ["--server", server]
        return shlex.join(["bentpipe", "run", *words])

    def again(self) -> str:
        """`bentpipe explore …`, which opens this state."""
        words = [*self._common(), "--seeds", str(self.state.seeds)]
        return shlex.join(["bentpipe", "explore", *words, *self._senders()])

    def _senders(self) -> Iterator[str]:
        """The options of both senders: what they share is given once."""
        for option in ("client", "server", "treatment", "workload", "protocol"):
            values = [getattr(one, option) for one in self.state.senders]
            if option == "treatment" and set(values) == {DIRECT}:
                continue
            shared = len(set(values)) == 1 and option != "server"
            for value in values[:1] if shared else values:
                if value or not shared:  # one that has none says so: else it would have that of the other
                    yield from (f"--{option}", value)

    def _common(self) -> Iterator[str]:
        yield from ("--scenario", self.state.scenario)
        for setting in self.state.settings:
            yield from ("--set", setting)
        if self.state.seed != self.default_seed:
            yield from ("--seed", str(self.state.seed))
        for folder in self.stack_folders:
            yield from ("--stacks", str(folder))


def _of(sender: ExploredSender) -> Iterator[str]:
    """The options of a sender but its server."""
    yield from ("--client", sender.client, "--workload", sender.workload)
    if sender.treatment != DIRECT:
        yield from ("--treatment", sender.treatment)
    if sender.protocol:
        yield from ("--protocol", sender.protocol)


def _one(name: str, what: str) -> tuple[str]:
    """A name as the only one of a list."""
    if not name.strip():
        raise UsageError(f"no {what} is chosen", f"choose a {what}")
    return (name.strip(),)
