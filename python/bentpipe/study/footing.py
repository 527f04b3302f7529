"""What a results page ends with: what failed, what it cost, what it cannot show, how it was made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from bentpipe import paths
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.records import Record
from bentpipe.study import compare
from bentpipe.study.markdown import code, literal, number, percent, several, table
from bentpipe.study.source import Source

_PAIRS = 4  # that are named before they are counted

_LIMITS = [
    """**Slow machines.** Programs take no virtual time to compute. The source suspects its old processor
  behind some timeouts; here a stack that needs long costs wall time alone, and no goodput.""",
    """**Kernels and sockets.** Socket buffers, segmentation offload, timer granularity and scheduling are not
  there. Arrivals are handled one by one, where a socket hands over bursts; what each program does instead is
  in the records' `client_driver` and `server_driver`.""",
    """**What surrounds a stack.** The source ran the containers that stacks publish, with their settings.
  Here each is a small program around the library, with the library's defaults.""",
    """**Competing traffic**, and queues other than the scenario's. The source states none of its queues.""",
]
_REAL = """**Real links** ({}): the source puts their RTT at 600 to 1000 ms; what their queues and medium
  access did is not known. The stand-ins have a fixed RTT, a fixed queue and independent losses."""


def failures(records: Sequence[Record]) -> list[str]:
    """The section on trials that failed."""
    found = compare.failures(records)
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
        text,
    ]


def _named(pairs: Sequence[str]) -> str:
    if len(pairs) > _PAIRS:
        return f"{len(pairs)} pairs, {', '.join(map(literal, pairs[:_PAIRS]))}, …"
    return ", ".join(map(literal, pairs))


def cost(records: Sequence[Record], manifest: Manifest) -> list[str]:
    """The section on time."""
    found = compare.costs(records)
    if not found:
        return ["## What slows which stack down", "No trial was started."]
    own, sim = sum(one.total_cpu_s for one in found), sum(r.cpu_sim_s for r in records)
    rows = [
        [
            literal(one.stack),
            number(one.client_cpu_s),
            number(one.server_cpu_s),
            percent(one.wall_share),
            percent(one.total_cpu_s / (own + sim)) if own + sim else "-",
        ]
        for one in found
    ]
    head = ["stack", "as client, CPU s", "as server, CPU s", "of the wall time", "of the run's CPU time"]
    slow = [one for one in found if one.wall_share is not None and one.wall_share > 0.5]
    text = (
        f"All trials together used {own + sim:.0f} s of CPU time: {own:.0f} s the programs of the stacks, "
        f"{sim:.0f} s the coordinator, which moves, decodes and checks. In the table, means per trial; *of "
        "the wall time* is the CPU time of the stack's program / the wall time, over its trials with others."
    )
    wall = _wall_s(manifest)
    if wall is not None:
        cores = manifest.host.get("cores")
        text += f" From start to finish the run took {wall / 60:.1f} minutes on {cores} cores."
    if slow:
        names = ", ".join(literal(one.stack) for one in slow)
        text += f" More than half of the time of their trials passes in the programs of: {names}."
    return ["## What slows which stack down", text, table(head, rows)]


def _wall_s(manifest: Manifest) -> float | None:
    """From start to finish; None if the run was continued, as nobody counted the pause."""
    if manifest.finished is None or manifest.resumed:
        return None
    begin, end = (datetime.fromisoformat(text) for text in (manifest.started, manifest.finished))
    return (end - begin).total_seconds()


def limits(real_links: Sequence[str]) -> list[str]:
    """The section on what virtual time cannot show."""
    real = [_REAL.format(", ".join(real_links))] if real_links else []
    lines = [f"- {text}" for text in (*_LIMITS, *real)]
    return ["## What virtual time cannot show", "\n".join(lines)]


def of_all(sources: Sequence[Source], published: Mapping[str, str] | None = None) -> list[str]:
    """The sections on failures and on how the page was made, of a page that is made from several runs."""
    parts = failures([record for one in sources for record in one.records])
    parts += made(sources[0], published or {}, sources[1:])
    return parts


def _command(manifest: Manifest) -> str:
    """The run's command. A campaign that comes along is known by its name, wherever its file was."""
    words = manifest.command.split(" ")
    names = {word: Path(word).stem for word in words if word.endswith(".toml")}
    known = paths.campaigns()
    return " ".join(names[word] if names.get(word) in known else word for word in words)


def _commands(sources: Sequence[Source]) -> list[str]:
    """Those that make the page: of a study one alone, where it has made all of its runs."""
    runs = list(dict.fromkeys(_command(one.manifest) for one in sources))
    if len(runs) == 1 and runs[0].startswith("bentpipe study "):
        return runs
    return [*runs, sources[0].command]


def stacks(sources: Iterable[Source]) -> list[str]:
    """The versions of all stacks of these runs, with a sentence that says whose word that is."""
    stacks = {name: text for one in sources for name, text in one.manifest.versions.get("stacks", {}).items()}
    rows = [[name, literal(text)] for name, text in stacks.items()]
    return ["Stacks, as they say themselves:", table(["stack", "version"], rows, left=2)]


def made(source: Source, sources: Mapping[str, str], further: Sequence[Source] = ()) -> list[str]:
    """The section on how the page was made; `further` are its runs beside the first."""
    manifest = source.manifest
    versions = {key: value for key, value in manifest.versions.items() if key != "stacks"}
    facts = [
        ("run", f"{manifest.started} to {manifest.finished or 'not finished'}"),
        ("seed", str(manifest.plan.seed)),
        ("iterations", str(manifest.plan.iterations)),
        *((key, str(value)) for key, value in versions.items()),
        ("host", f"{manifest.host.get('cpu', '')}, {manifest.host.get('cores', '?')} cores, "
                 f"{manifest.host.get('system', '')} {manifest.host.get('kernel', '')}"),
    ]  # fmt: skip
    parts = [
        "## How this page was made",
        code("\n".join(_commands((source, *further)))),
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
        parts.insert(3, f"Further runs: {listed}.")
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
