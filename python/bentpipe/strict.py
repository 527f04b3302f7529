"""Reading TOML files strictly: an unknown key, a missing one or a wrong type is an error that says where it
is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe.errors import UsageError, one_of


@dataclass(frozen=True)
class Table:
    """One table of a TOML file, with what is needed to say where in the file something is wrong."""

    file: str
    prefix: str  # of keys in messages: "" or "build."
    values: Mapping[str, Any]

    def allow(self, *keys: str) -> None:
        """Raise UsageError for any key that is not among `keys`."""
        for key in self.values:
            if key not in keys:
                raise UsageError(f'{self.file}: unknown key "{self.prefix}{key}"', one_of(key, keys, "keys"))

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, value, "a text in quotes")
        return value

    def flag(self, key: str, default: bool | None = None) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, value, "true or false")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A number above 0."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            raise self.wrong(key, value, "a number above 0")
        return float(value)

    def texts(self, key: str, default: list[str] | None = None) -> list[str]:
        value = self._get(key, default)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, value, 'a list of texts: ["…", "…"]')
        return value

    def table(self, key: str) -> Table:
        """A table inside; an empty one if it is absent."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, value, f"a table: [{self.prefix}{key}]")
        return Table(self.file, f"{self.prefix}{key}.", value)

    def wrong(self, key: str, value: object, wanted: str) -> UsageError:
        return UsageError(f"{self.file}: {self.prefix}{key}: {value!r} is not valid", f"write {wanted}")

    def _get(self, key: str, default: object) -> object:
        if key in self.values:
            return self.values[key]
        if default is None:
            raise UsageError(f'{self.file}: the key "{self.prefix}{key}" is missing', "add it")
        return default


def read(path: Path) -> Table:
    """The top table of a TOML file."""
    try:
        return Table(str(path), "", tomllib.loads(path.read_text()))
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from error
