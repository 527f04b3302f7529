"""What a page asks for, played: its newest state alone.

A new state ends the trials of the one before at once. The first trials of both senders run side by side, and
each is shown when it ends; then those of further seeds, which make the bands.
"""

from __future__ import annotations

import math
import os
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio import to_thread

from bentpipe.analysis import scenario_text
from bentpipe.errors import BentpipeError
from bentpipe.execution.preparation import CheckedRun
from bentpipe.execution.process_watchdog import GroupWatchdog
from bentpipe.explore.curves import TrialCurves, band
from bentpipe.explore.exploration import Exploration
from bentpipe.explore.generation import Generation, PlayedTrial, SenderTrials
from bentpipe.explore.replies import reply
from bentpipe.plan.trial import Trial
from bentpipe.runs.records import Record
from bentpipe.schema.explore import ExploreRequest, PathOfState, Problem, Reply, ReplyKind

T = TypeVar("T")


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Workshop:
    """What all pages of a server share."""

    scratch: Path
    watchdog: GroupWatchdog
    silence_s: int
    stack_folders: tuple[Path, ...]
    at_a_time: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(cores()))  # trials
    threads: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(math.inf))


@dataclass
class Session:
    """The states of one page. `say` sends a reply to it."""

    workshop: Workshop
    say: Callable[[Reply], Awaitable[None]]

    def __post_init__(self) -> None:
        self._newest: ExploreRequest | None = None
        self._asked = anyio.Event()

    def ask(self, request: ExploreRequest) -> None:
        """Play this request; the one before is of no interest any more."""
        self._newest = request
        self._asked.set()

    async def follow(self) -> None:
        """Play what is asked for, one request at a time, until this is cancelled."""
        while True:
            await self._asked.wait()
            self._asked = anyio.Event()
            assert self._newest is not None
            request = self._newest
            try:
                await self._play(request)
            except Exception as error:  # whatever it is, the page is told and can ask for something else
                await self._tell(request.number, error)

    async def _tell(self, number: int, error: Exception) -> None:
        """Say why a request was not played to its end; what nobody foresaw stands on the terminal, too."""
        cause: BaseException = error
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, BentpipeError):
            problem = Problem(error=str(cause), hint=cause.hint)
        elif isinstance(cause, OSError):
            problem = Problem(error=str(cause), hint="is there room, and may files be written and opened?")
        else:
            traceback.print_exception(error)
            problem = Problem(error=f"{type(cause).__name__}: {cause}", hint="the terminal says where")
        await self.say(reply(number, "problem", problem=problem))
        await self.say(reply(number, "done"))

    async def _play(self, request: ExploreRequest) -> None:
        play = _Play(self.workshop, self.say, request)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._end, play, tasks.cancel_scope)
                await play.run()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(play.generation.close)

    async def _end(self, play: _Play, scope: anyio.CancelScope) -> None:
        """End what is played when something else is asked for, or nobody asks any more."""
        try:
            await self._asked.wait()
            scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(play.generation.kill)


@dataclass
class _Play:
    """The trials of one request."""

    workshop: Workshop
    say: Callable[[Reply], Awaitable[None]]
    request: ExploreRequest
    found: list[_Found] = field(default_factory=list)  # for each sender

    def __post_init__(self) -> None:
        shop = self.workshop
        self.generation = Generation(shop.scratch, shop.watchdog, shop.silence_s)
        self._exploration = Exploration(self.request.state, shop.stack_folders)

    async def run(self) -> None:
        senders = self.request.state.senders
        checked: list[CheckedRun | None] = [None] * len(senders)

        async def prepare(place: int) -> None:
            checked[place] = await self._prepared(place)

        await _together(prepare, len(senders))
        await self._say_path(checked)
        ready = [
            None if one is None else await self._thread(SenderTrials, self.generation, one) for one in checked
        ]
        self.found = [_Found() for _ in senders]

        async def first(place: int) -> None:
            if (sender := ready[place]) is not None:
                await self._first(place, sender)

        await _together(first, len(senders))
        for number in range(1, self.request.state.seeds):

            async def further(place: int, number: int = number) -> None:
                if (sender := ready[place]) is not None and not self.found[place].broken:
                    await self._further(place, sender, number)

            await _together(further, len(senders))
        await self._say("done")

    async def _prepared(self, place: int) -> CheckedRun | None:
        """The plan of a sender; None, and the page is told why, if it is refused."""
        sender = self.request.state.senders[place]
        try:
            checked = await self._thread(self._exploration.prepare, sender)
            if not checked.manifest.trials():
                raise BentpipeError("this combination is not applicable", "choose another workload or stack")
        except BentpipeError as error:
            await self.report(error, place)
            return None
        return checked

    async def _say_path(self, checked: list[CheckedRun | None]) -> None:
        """Say the path, and the commands for the senders that are not refused; nothing if all are."""
        accepted = [place for place, one in enumerate(checked) if one is not None]
        run = next((one for one in checked if one is not None), None)
        if run is None:
            return
        ((label, state),) = run.manifest.scenarios.items()
        explored = self._exploration
        path = PathOfState(
            label=label,
            scenario=state.scenario,
            summary=state.summary,
            commands=explored.commands([self.request.state.senders[place] for place in accepted]),
            again=explored.again(),
            file=scenario_text.text({key: one for key, one in state.scenario.items() if key != "name"}),
        )
        await self._say("path", path=path)

    async def _first(self, place: int, sender: SenderTrials) -> None:
        played = await self._played(place, sender, sender.trials[0], with_plots=True)
        if played is not None:
            await self._say("trial", sender=place, trial=played.shown)
            await self._say_band(place, played)

    async def _further(self, place: int, sender: SenderTrials, number: int) -> None:
        played = await self._played(place, sender, sender.trials[number], with_plots=False)
        if played is not None:
            await self._say_band(place, played)

    async def _say_band(self, place: int, played: PlayedTrial) -> None:
        found = self.found[place]
        found.records.append(played.record)
        if (curves := await self._thread(played.curves)) is not None:
            found.curves.append(curves)
        made = await self._thread(band, list(found.records), list(found.curves))
        await self._say("band", sender=place, band=made)

    async def _played(
        self, place: int, sender: SenderTrials, trial: Trial, with_plots: bool
    ) -> PlayedTrial | None:
        try:
            async with self.workshop.at_a_time:
                return await self._thread(sender.play, trial, with_plots)
        except BentpipeError as error:
            self.found[place].broken = True
            await self.report(error, place)
            return None

    async def report(self, error: BentpipeError, place: int | None = None) -> None:
        """Tell the page what went wrong."""
        await self._say("problem", sender=place, problem=Problem(error=str(error), hint=error.hint))

    async def _say(self, kind: ReplyKind, **parts: object) -> None:
        await self.say(reply(self.request.number, kind, **parts))

    async def _thread(self, function: Callable[..., T], *arguments: object) -> T:
        """What a function gives in a thread, which ends soon once the generation is killed."""
        return await to_thread.run_sync(function, *arguments, limiter=self.workshop.threads)


@dataclass
class _Found:
    """What the trials of a sender came to so far."""

    records: list[Record] = field(default_factory=list)
    curves: list[TrialCurves] = field(default_factory=list)
    broken: bool = False  # its testbed failed


async def _together(work: Callable[[int], Coroutine[Any, Any, None]], count: int) -> None:
    async with anyio.create_task_group() as tasks:
        for place in range(count):
            tasks.start_soon(work, place)
