"""A group of commands, each of which is imported when it is called, or when help lists it."""

from __future__ import annotations

import importlib
from collections.abc import MutableMapping
from typing import Any

import click


class LazyGroup(click.Group):
    """`places` says where each command is, as in `bentpipe.cli.run:run`.

    All of them together take half a second to import, of which a command needs a part.
    """

    def __init__(self, *args: Any, places: dict[str, str], **others: Any) -> None:
        self._places = places
        super().__init__(*args, **others)

    @property
    def commands(self) -> MutableMapping[str, click.Command]:
        """All commands, imported, in the order of their places."""
        return {name: self._load(name) for name in self._places}

    @commands.setter
    def commands(self, given: MutableMapping[str, click.Command]) -> None:
        assert not given, "they are known by their places"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._load(cmd_name) if cmd_name in self._places else None

    def _load(self, name: str) -> click.Command:
        module, attribute = self._places[name].split(":")
        found = getattr(importlib.import_module(module), attribute)
        assert isinstance(found, click.Command)
        return found
