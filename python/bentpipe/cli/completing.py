"""The names that a shell completes: of scenarios, stacks, treatments, suites and campaigns.

Where options take several of them, with commas in between, the last one is completed. Nothing is said of what
goes wrong: a broken file elsewhere must not disturb who types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from bentpipe.errors import BentpipeError

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(names: Callable[[], Iterable[str]], files: bool = False) -> Completer:
    """A completer of names; of files, too, with `files`, where no name fits."""

    def complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        before, comma, last = typed.rpartition(",")
        try:
            fitting = [name for name in names() if name.startswith(last)]
        except (BentpipeError, OSError):
            fitting = []
        if not fitting and files:
            return [CompletionItem(typed, type="file")]
        return [CompletionItem(f"{before}{comma}{name}") for name in fitting]

    return complete


# Imported when a shell asks: none of this is needed to run a command.


def _scenarios() -> Iterable[str]:
    from bentpipe.plan import scenarios

    return scenarios.names()


def _stacks() -> Iterable[str]:
    from bentpipe.stacks import catalogue

    return catalogue.discover()


def _treatments() -> Iterable[str]:
    from bentpipe.labels import VPN
    from bentpipe.plan.treatments import DIRECT
    from bentpipe.stacks import middleboxes

    return [DIRECT, *middleboxes.chains(), VPN]


def _suites() -> Iterable[str]:
    from bentpipe.objectives import suite

    return suite.names()


def _campaigns() -> Iterable[str]:
    from bentpipe import paths

    return sorted(paths.campaigns())


scenario = _completer(_scenarios, files=True)
stack = _completer(_stacks)
treatment = _completer(_treatments)
suite = _completer(_suites, files=True)
campaign = _completer(_campaigns, files=True)
