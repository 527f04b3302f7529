"""What the page of `bentpipe explore` has to choose from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import bentpipe
from bentpipe import paths, strict
from bentpipe.plan import scenarios
from bentpipe.plan.treatments import DIRECT
from bentpipe.schema.explore import Choice, ExploredState, Offer, StackChoice, StackOption
from bentpipe.stacks import catalogue, middleboxes
from bentpipe.stacks.model import Stack
from bentpipe.testbed import SIM

# A word in the description of an option, up to the next comma, that may be a value of it.
_VALUE = re.compile(r"(?P<word>[a-z][a-z0-9+-]*)(?: \([^)]*\)| of [a-z]+)?")
_WORKLOADS = (
    ("transfer:1MB", "a file of 1 MB"),
    ("transfer:10MiB", "a file of 10 MiB"),
    ("upload:1MB", "1 MB from the client to the server"),
    ("multiplexing:50x20kB", "50 files of 20 kB at once"),
    ("duration:10s", "as much as passes in 10 s"),
    ("page:kosek", "a web page"),
    ("live:20s", "a live stream"),
)


def offer(state: ExploredState, stack_folders: Sequence[Path]) -> Offer:
    """What can be chosen here and now."""
    known = catalogue.discover(stack_folders).values()
    return Offer(
        version=bentpipe.__version__,
        state=state,
        scenarios=list(_scenarios(state.scenario)),
        stacks=[_stack(one) for one in known if one.missing(SIM.mode) is None],
        treatments=list(_treatments()),
        workloads=[Choice(name=name, title=title) for name, title in _WORKLOADS],
    )


def _scenarios(chosen: str) -> Iterator[Choice]:
    names = scenarios.names()
    if chosen not in names:
        yield Choice(name=chosen, title="")
    for name in names:
        title = strict.load(paths.scenarios() / f"{name}.toml").get("title", "")
        yield Choice(name=name, title=str(title))


def _stack(stack: Stack) -> StackChoice:
    options = [
        StackOption(name=name, meaning=meaning, values=suggested(meaning))
        for name, meaning in stack.options.items()
    ]
    return StackChoice(name=stack.name, roles=list(stack.roles), options=options)


def suggested(meaning: str) -> list[str]:
    """The values that the description of an option names: `congestion control: newreno, cubic (default)`."""
    parts = re.split(r"[:;,](?![^()]*\))", meaning)[1:]
    found = [match["word"] for part in parts if (match := _VALUE.fullmatch(part.strip()))]
    return list(dict.fromkeys(found))


def _treatments() -> Iterator[Choice]:
    yield Choice(name=DIRECT, title="nothing")
    for name, chain in middleboxes.chains().items():
        if SIM.mode in chain.commands and chain.not_installed() is None:
            yield Choice(name=name, title=chain.title)
            yield Choice(name=f"{name}={chain.example}", title=f"{chain.title}, with options")
