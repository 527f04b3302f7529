"""Manifest: generated from schemas/manifest.toml by `make schemas`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

FORMAT = 2

# Which clients meet which servers.
Pairs = Literal[
    "all",
    "self",
]
PAIRS: tuple[Pairs, ...] = (
    "all",
    "self",
)

# Which trials leave a trace.
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

    # The campaign's.
    name: str
    # Names, or paths to files.
    scenarios: tuple[str, ...]
    # The variants of stacks that are clients.
    clients: tuple[str, ...]
    # The variants of stacks that are servers.
    servers: tuple[str, ...]
    # Who meets whom.
    pairs: Pairs = "all"
    # What it is about.
    title: str = ""
    # All randomness comes from it.
    seed: int = 1
    # Trials of each cell.
    iterations: int = 10
    # In canonical form.
    workloads: tuple[str, ...] = ("transfer:10485760",)
    # Sets of further flows, in canonical form; each workload is run with each.
    flows: tuple[str, ...] = ()
    # What stands between the ends.
    treatments: tuple[str, ...] = ("direct",)
    # Chains of proxies, in canonical form: each is a treatment of its own.
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
    # What pages and tables say of it.
    summary: dict[str, Any]


class NotApplicable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Combinations of scenario, workload, treatment, client and server that cannot be, by what `stack.toml`
    and `middlebox.toml` say, as a proxy of TCP with QUIC.
    """

    # Why, in words.
    reason: str
    # How many they are.
    combinations: int
    # How many the plan has in all.
    of: int
    # Which they are, in every scenario.
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

    # What people call it.
    title: str = ""
    # Whether the same seed gives the same packets.
    deterministic: bool = False
    # What its stack.toml says besides.
    notes: str = ""
    # What it was made of: the hash of its sources, checksums, tools, packages; null where it needs no
    # installation.
    installation: dict[str, Any] | None = None
    # The same, each time that a resumed run found another one.
    resumed_with: list[dict[str, Any]] = []


class Manifest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is known of a run beside its records."""

    # Of what format this file is: the number at the top of this page. Absent in the first format.
    format: int = FORMAT
    # Its name; `run` where it is no campaign.
    campaign: str
    # What it is about.
    title: str
    # The plan, as the user wrote it: it decides what a resumed run does.
    options: Options
    # The first command; resumed runs add to `resumed`.
    command: str
    # When the run began, UTC.
    started: str
    # Of Bentpipe, its commit, its tools, and under `stacks` what the stacks gave.
    versions: dict[str, Any]
    # The machine: system, kernel, processor, cores.
    host: dict[str, Any]
    # Every scenario, by its label.
    scenarios: dict[str, ScenarioState]
    # The stacks that take part, by their names.
    stacks: dict[str, StackState]
    # The stacks that could not take part, and why.
    left_out: dict[str, str]
    # What of the plan cannot be, and has no trials: an entry for each reason.
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
    # `stack as role`, and what it did with an unknown test case in place of ending with 127.
    contract_breaches: dict[str, str] = {}
    # Trials that were executed more than once and gave different packets, though they must repeat.
    disagreements: dict[str, str] = {}
    # Of runs on a cluster: its hosts, and how many trials each of them answered.
    executed_on: dict[str, int] = {}
