"""The closing sections of a page: which trials failed, how the page was made, and from what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe import paths
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.records import Record
from bentpipe.study.front import folded
from bentpipe.study.markdown import code, literal, several, table
from bentpipe.study.source import Source

_STUDY = re.compile(r"bentpipe study [\w-]+")
_PAIRS = 4  # that are named before they are counted


@dataclass(frozen=True)
class _Failure:
    """Trials of a scenario with the same outcome, whose details differ in numbers at most."""

    scenario: str
    outcome: str
    trials: int
    pairs: tuple[str, ...]
    detail: str  # of the first of them


def _failures(records: Iterable[Record]) -> list[_Failure]:
    """Trials that failed, the most frequent reason first within each scenario."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for one in records:
        if not one.ok:
            reason = re.sub(r"\d+(\.\d+)?", "#", one.detail)
            groups.setdefault((one.scenario, one.outcome, reason), []).append(one)
    order = list(dict.fromkeys(scenario for scenario, _, _ in groups))
    made = [
        _Failure(
            scenario,
            outcome,
            len(group),
            tuple(dict.fromkeys(f"{one.client} → {one.server}" for one in group)),
            group[0].detail,
        )
        for (scenario, outcome, _), group in groups.items()
    ]
    return sorted(made, key=lambda one: (order.index(one.scenario), -one.trials))


def failures(records: Sequence[Record]) -> list[str]:
    """The section on trials that failed."""
    found = _failures(records)
    if not found:
        return ["## Failed trials", f"None of {several(len(records), 'trial')} failed."]
    failed = sum(one.failed for one in records)
    unsupported = sum(one.trials for one in found) - failed
    also = f", and {unsupported} more are unsupported" if unsupported else ""
    rows = [
        [one.scenario, one.outcome, str(one.trials), _named(one.pairs), literal(one.detail) or "-"]
        for one in found
    ]
    head = ["scenario", "outcome", "trials", "pairs, client → server", "detail of the first"]
    text = table(head, rows, left=2).replace("---:|---:|---:|", "---:|---|---|", 1)
    return [
        "## Failed trials",
        f"{failed} of {several(len(records), 'trial')} failed{also}. Details that differ in numbers alone "
        "share a line.",
        *folded("Failed trials by scenario and outcome", text),
    ]


def _named(pairs: Sequence[str]) -> str:
    if len(pairs) > _PAIRS:
        return f"{len(pairs)} pairs, {', '.join(map(literal, pairs[:_PAIRS]))}, …"
    return ", ".join(map(literal, pairs))


def of_all(sources: Sequence[Source], published: Mapping[str, str] | None = None) -> list[str]:
    """The sections on failures and on how the page was made, of a page that is made from several runs."""
    parts = failures([record for one in sources for record in one.records])
    parts += made(sources[0], published or {}, sources[1:])
    return parts


def _command(manifest: Manifest) -> str:
    """The run's command; a campaign that is part of Bentpipe is written as its name."""
    words = manifest.command.split(" ")
    names = {word: Path(word).stem for word in words if word.endswith(".toml")}
    known = paths.campaigns()
    return " ".join(names[word] if names.get(word) in known else word for word in words)


def _commands(sources: Sequence[Source]) -> list[str]:
    """The commands that make the page; only `bentpipe study` where that made all of its runs."""
    runs = list(dict.fromkeys(_command(one.manifest) for one in sources))
    if len(runs) == 1 and runs[0].startswith("bentpipe study "):
        return runs
    return [*runs, sources[0].command]


def stacks(sources: Iterable[Source]) -> list[str]:
    """The table of the versions that the stacks of these runs report, and the sentence above it."""
    stacks = {name: text for one in sources for name, text in one.manifest.versions.get("stacks", {}).items()}
    rows = [[name, literal(text)] for name, text in stacks.items()]
    return ["Stacks, as they say themselves:", table(["stack", "version"], rows, left=2)]


def _trials_behind(source: Source) -> list[str]:
    """How a reader gets from the page to the trials: a site has links, which would lead nowhere here."""
    study = _STUDY.match(source.command)
    if study is None:
        return []
    return [
        f"`{study[0]} --site site` also builds the reports of the runs, and a site in which this page leads "
        "to them, and each of their cells to its trials and its trace; where a campaign keeps none, to the "
        "command that makes it."
    ]


def made(source: Source, sources: Mapping[str, str], further: Sequence[Source] = ()) -> list[str]:
    """The section on how the page was made; `further` are its runs beside the first."""
    manifest = source.manifest
    versions = {key: value for key, value in manifest.versions.items() if key != "stacks"}
    facts = [
        ("run", f"{manifest.started} to {manifest.finished or 'not finished'}"),
        ("seed", str(manifest.plan.seed)),
        ("draws", manifest.plan.draws),
        ("iterations", str(manifest.plan.iterations)),
        *((key, str(value)) for key, value in versions.items()),
        ("host", f"{manifest.host.get('cpu', '')}, {manifest.host.get('cores', '?')} cores, "
                 f"{manifest.host.get('system', '')} {manifest.host.get('kernel', '')}"),
    ]  # fmt: skip
    parts = [
        "## How this page was made",
        code("\n".join(_commands((source, *further)))),
        *_trials_behind(source),
    ]
    details = [
        table(["made with", ""], [[name, literal(text)] for name, text in facts], left=2),
        *stacks((source, *further)),
    ]
    if further:
        listed = "; ".join(
            f"{literal(one.manifest.campaign)}, {several(len(one.records), 'trial')}, "
            f"{one.manifest.started} to {one.manifest.finished or 'not finished'}, seed "
            f"{one.manifest.plan.seed}, {several(one.manifest.plan.iterations, 'iteration')}"
            for one in further
        )
        details.insert(1, f"Further runs: {listed}.")
    parts += folded("Runs and versions", *details)
    if manifest.left_out:
        parts.append("Left out: " + "; ".join(literal(why) for why in manifest.left_out.values()) + ".")
    parts += [
        f"Not applicable in {literal(one.manifest.campaign)}: {literal(each.reason)}: {each.combinations} of "
        f"{each.of} combinations."
        for one in (source, *further)
        for each in one.manifest.not_applicable
    ]
    if sources:
        listed = "\n".join(f"- {name}: {text}" for name, text in sources.items())
        parts += ["## Sources", listed]  # a heading is not folded, nor what is in one part with it
    return parts
