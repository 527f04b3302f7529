"""Manifest: generated from schemas/manifest.toml by `make schemas`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

FORMAT = 3

# The choice of trials that have the same random draws.
Draws = Literal[
    "independent",
    "common",
]
DRAWS: tuple[Draws, ...] = (
    "independent",
    "common",
)

# The choice of pairs: which clients meet which servers.
Pairs = Literal[
    "all",
    "self",
]
PAIRS: tuple[Pairs, ...] = (
    "all",
    "self",
)

# The choice of trials that leave a trace.
Traces = Literal[
    "none",
    "analysis",
    "median",
    "all",
]
TRACES: tuple[Traces, ...] = (
    "none",
    "analysis",
    "median",
    "all",
)


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The plan of a campaign, as a manifest keeps it ([campaigns](campaigns.md) explains the keys)."""

    # The campaign's name.
    name: str
    # Names, or paths to files.
    scenarios: tuple[str, ...]
    # The variants of stacks that are clients.
    clients: tuple[str, ...]
    # The variants of stacks that are servers.
    servers: tuple[str, ...]
    # The pairs of clients and servers.
    pairs: Pairs = "all"
    # The subject of the campaign.
    title: str = ""
    # All randomness comes from it.
    seed: int = 1
    # Which trials have the same random draws. Absent in runs from before there was a choice.
    draws: Draws = "independent"
    # Trials of each cell.
    iterations: int = 10
    # In canonical form.
    workloads: tuple[str, ...] = ("transfer:10485760",)
    # Sets of further flows, in canonical form; each workload is run with each.
    flows: tuple[str, ...] = ()
    # The treatments between the ends.
    treatments: tuple[str, ...] = ("direct",)
    # Chains of proxies, in canonical form: each is a separate treatment.
    pep: tuple[str, ...] = ()
    # Which trials leave a trace.
    trace: Traces = "none"
    # `sim`, `emu` or `remote`; `runner` of what was imported, which cannot be continued.
    testbed: str = "sim"
    # The file of the real links that `scenarios` names ([links](links.md)); with `remote` alone.
    link: str = ""
    # The version of IP that the programs speak: 4 or 6.
    ip: int = 4
    # Traces come with the endpoints' qlogs.
    qlog: bool = False
    # `KEY=VALUE`, for every scenario.
    set: tuple[str, ...] = ()
    # Keys of scenarios, and the values that they take in turn.
    sweep: dict[str, tuple[str, ...]] = {}
    # The cells that are run, where they are not every combination of the keys above, which then have all that
    # occurs in them: those of a check (`bentpipe check`).
    cells: tuple[PlannedCell, ...] = ()


class PlannedCell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cell of a plan that names its cells."""

    # Its label.
    scenario: str
    # In canonical form.
    workload: str
    # As records have it.
    treatment: str
    # The client: a variant of a stack.
    client: str
    # The server: a variant of a stack.
    server: str
    # Trials of it.
    iterations: int


class ScenarioState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scenario, as it was when the run began."""

    # As a scenario file has it, resolved; what trials are given.
    scenario: dict[str, Any]
    # The summary of it on pages and in tables.
    summary: dict[str, Any]


class NotApplicable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Combinations of scenario, workload, treatment, client and server that cannot be, by what `stack.toml`
    and `middlebox.toml` say, as a proxy of TCP with QUIC.
    """

    # Why, in words.
    reason: str
    # The number of them.
    combinations: int
    # The number of the plan's combinations in all.
    of: int
    # The combinations, in every scenario.
    cells: list[NotApplicableCell]


class NotApplicableCell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A combination that cannot be, in whatever scenario."""

    # In canonical form.
    workload: str
    # As records have it.
    treatment: str
    # The client: a variant of a stack.
    client: str
    # The server: a variant of a stack.
    server: str


class StackState(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A stack that takes part."""

    # Its title.
    title: str = ""
    # Whether the same seed gives the same packets.
    deterministic: bool = False
    # The notes in its stack.toml.
    notes: str = ""
    # The inputs of its installation: the hash of its sources, checksums, tools, packages; null where it needs
    # no installation.
    installation: dict[str, Any] | None = None
    # The inputs again, each time that a resumed run found another installation.
    resumed_with: list[dict[str, Any]] = []


class Manifest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The state of a run beside its records."""

    # The number of this file's format, as at the top of this page. Absent in the first format.
    format: int = FORMAT
    # The campaign's name; `run` where it is no campaign.
    campaign: str
    # The subject of the campaign.
    title: str
    # The plan, as the user wrote it: it decides what a resumed run does.
    options: Options
    # The first command; resumed runs add to `resumed`.
    command: str
    # When the run began, UTC.
    started: str
    # Versions of Bentpipe, its commit, its tools, and under `stacks` those that the stacks reported.
    versions: dict[str, Any]
    # The machine: system, kernel, processor, cores.
    host: dict[str, Any]
    # Every scenario, by its label.
    scenarios: dict[str, ScenarioState]
    # The stacks that take part, by their names.
    stacks: dict[str, StackState]
    # The stacks that could not take part, and why.
    left_out: dict[str, str]
    # Combinations of the plan that are not applicable, and have no trials: an entry for each reason.
    not_applicable: list[NotApplicable] = []
    # The folders of `--stacks` and BENTPIPE_STACKS.
    stack_folders: list[str] = []
    # Where the command ran: relative paths in `options` and `command` count from there.
    cwd: str = ""
    # When the run ended; null it has not, UTC.
    finished: str | None = None
    # When it was resumed, UTC.
    resumed: list[str] = []
    # In real time: whether idle processors were kept from sleeping.
    awake: bool = False
    # `stack as role`, and its reaction to an unknown test case in place of ending with 127.
    contract_breaches: dict[str, str] = {}
    # Trials that were executed more than once and gave different packets, though they must repeat.
    disagreements: dict[str, str] = {}
    # The hosts of a cluster on which the run was executed, and how many trials each of them answered.
    executed_on: dict[str, int] = {}
