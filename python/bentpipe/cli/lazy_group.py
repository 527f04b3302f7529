"""A group of commands, each of which is imported when it is called, or when help lists it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """`places` says where each command is, as in `bentpipe.cli.run:run`.

    All of them together take half a second to import, of which a command needs a part.
    """

    def __init__(self, *args: Any, places: dict[str, str], **others: Any) -> None:
        super().__init__(*args, **others)
        self.commands = _Commands(places)  # type: ignore[assignment]  # nobody adds to it


class _Commands(Mapping[str, click.Command]):
    """Commands by their names, in the order of their places; each is imported when it is looked at."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> click.Command:
        module, attribute = self._places[name].split(":")
        found = getattr(importlib.import_module(module), attribute)
        assert isinstance(found, click.Command)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
