"""Messages of explore: generated from schemas/explore.toml by `make schemas`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

FORMAT = 1

# What a reply is.
ReplyKind = Literal[
    "offer",
    "path",
    "trial",
    "band",
    "problem",
    "done",
]
REPLYKINDS: tuple[ReplyKind, ...] = (
    "offer",
    "path",
    "trial",
    "band",
    "problem",
    "done",
)


class ExploredState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A state of the page, in the words of the options of `bentpipe run`."""

    # The scenario, as `--scenario` has it.
    scenario: str
    # Changes of the scenario, each as `--set` has it.
    settings: list[str]
    # One or two, side by side.
    senders: list[ExploredSender]
    # Trials of each sender, as `--iterations` has it: the first is drawn, all of them are the band.
    seeds: int
    # The seed of all randomness, as `--seed` has it.
    seed: int


class ExploredSender(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sender: what is transferred, by whom, and what is between."""

    # As `--client` has it.
    client: str
    # As `--server` has it.
    server: str
    # As `--treatment` has it.
    treatment: str
    # As `--workload` has it.
    workload: str
    # As `--protocol` has it, of pages and live streams; empty: not given.
    protocol: str


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the server says. Keys that do not belong to its kind are null."""

    # The number of this format, as at the top of this page.
    format: int
    # The request that it answers; 0 before any.
    number: int
    # Its kind.
    kind: ReplyKind
    # The sender that it is about, from 0; null it is about both.
    sender: int | None
    # What there is to choose from; null of other kinds than `offer`.
    offer: Offer | None
    # The path that the state has; null of other kinds than `path`.
    path: PathOfState | None
    # A trial that has ended; null of other kinds than `trial`.
    trial: ExploredTrial | None
    # What the seeds so far have in common; null of other kinds than `band`.
    band: Band | None
    # What went wrong; null of other kinds than `problem`.
    problem: Problem | None


class Offer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What there is to choose from, and the state to begin with."""

    # The version of Bentpipe.
    version: str
    # The state that the command line asked for.
    state: ExploredState
    # The scenarios.
    scenarios: list[Choice]
    # The stacks that can be started in virtual time.
    stacks: list[StackChoice]
    # What can stand between the ends.
    treatments: list[Choice]
    # Some of what can be transferred.
    workloads: list[Choice]


class Choice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something to choose."""

    # Its name, as options have it.
    name: str
    # What it is.
    title: str


class StackChoice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stack."""

    # Its name.
    name: str
    # `client`, `server`, or both.
    roles: list[str]
    # Its options.
    options: list[StackOption]


class StackOption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An option of a stack."""

    # Its name, as in `cc`.
    name: str
    # What it is, in the words of the stack's `stack.toml`.
    meaning: str
    # Single words among those that may be values: suggestions, no more.
    values: list[str]


class PathOfState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The path of a state, and the commands that do the same."""

    # Its name in records.
    label: str
    # The scenario in full, as trials take it.
    scenario: dict[str, Any]
    # Its summary, as manifests have it.
    summary: dict[str, Any]
    # `bentpipe run …`, one or two of them: together they run these trials.
    commands: list[str]
    # The command that opens this state.
    again: str
    # The path as a scenario file.
    file: str


class ExploredTrial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of a trial."""

    # Its name, as in records.
    trial: str
    # As in its record.
    outcome: str
    # As in its record.
    detail: str
    # As in its record; null not all has arrived.
    completion_s: float | None
    # As in its record; null it has none.
    goodput_bps: float | None
    # As in its record; null not known.
    share_of_limit: float | None
    # As in its record: of the same packets the same.
    packet_log_hash: str
    # Plots, events and findings, as the script of a trial in a report has them; empty if there was no
    # connection.
    trace: dict[str, Any]


class Band(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The range of a sender's trials, over their seeds, and their results."""

    # How many have ended.
    trials: int
    # Of those that succeeded, in order of size.
    completion_s: list[float]
    # How many did not succeed.
    failed: int
    # One for each plot that has a band.
    ranges: list[BandRange]


class BandRange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The least and the greatest value of all trials over time: between two times, all trials are between
    these.
    """

    # The kind of the plot.
    kind: str
    # The times, s.
    times: list[float]
    # The least value from the time before to the one after, in the unit of the plot.
    low: list[float]
    # The greatest.
    high: list[float]


class Problem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What went wrong, in plain words."""

    # What it was.
    error: str
    # What to do about it; may be empty.
    hint: str


class ExploreRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the page says: the state that its reader has chosen."""

    # The number of this format, as at the top of this page.
    format: int
    # Its number; those of a page grow.
    number: int
    # The state that is to be played.
    state: ExploredState
