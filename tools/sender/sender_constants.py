"""The constants of Bentpipe's sender, as its sources have them, and the values that a sweep gives them."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path("crates/congestion/src")
FOLDERS = ("avoidance/bentpipe", "slow_start/trains")
FACTORS = (0.5, 0.7, 1.4, 2.0)
# By its key: why a constant cannot be swept. The tool fails over any other that it does not understand.
NOT_SWEPT: dict[str, str] = {}
# Points from 100, by the factor that they replace where a percentage is 100.
POINTS = {0.5: -10, 0.7: -5, 1.4: 5, 2.0: 10}

_CONSTANT = re.compile(
    r"((?:^ *///.*\n)*)^ *(?:pub(?:\([^)]*\))? )?const (\w+): ([^=]+?) = ([^;]+?);$", re.MULTILINE
)
_INTEGERS = ("u16", "u32", "u64", "u128", "usize")
_LITERAL = re.compile(r"\b\d[\d_]*\b")
_SPAN = re.compile(r"Span::from_(millis|secs)\((\d[\d_]*)\)$")
_UNITS = {"millis": "ms", "secs": "s"}
_NOUNS = ("Bytes per second", "Bytes", "Packets", "Percent", "Reductions", "Round trips", "Samples", "Trains")


@dataclass(frozen=True)
class Constant:
    """A constant as it is written."""

    file: str  # below crates/congestion/src
    name: str
    type: str
    value: str
    comment: str  # its own doc comment, in one line
    start: int  # of the value, in the file
    end: int

    @property
    def key(self) -> str:
        """Its name, which more than one file may have, and the file."""
        return f"{self.name} in {self.place}"

    @property
    def place(self) -> str:
        """Its file and the folder of that."""
        return "/".join(Path(self.file).parts[-2:])

    @property
    def shown(self) -> str:
        """Its value with its unit."""
        if span := _SPAN.match(self.value):
            return f"{span[2]} {_UNITS[span[1]]}"
        noun = next((noun for noun in _NOUNS if self.comment.startswith(noun)), "")
        return f"{self.value} {noun.lower()}".strip() if self.type in _INTEGERS else self.value


@dataclass(frozen=True)
class Setting:
    """Another value of a constant."""

    shown: str
    text: str  # in Rust


@dataclass(frozen=True)
class Row:
    """A number of a constant, and its other values by the factors."""

    constant: Constant
    part: str  # empty: all of it
    settings: dict[float, Setting]

    @property
    def key(self) -> str:
        return f"{self.constant.key}{f', {self.part}' if self.part else ''}"


def constants(root: Path = ROOT) -> list[Constant]:
    """All constants of the sender, tests left out."""
    files = [file for folder in FOLDERS for file in sorted((root / SOURCES / folder).glob("*.rs"))]
    return [one for file in files for one in _of_file(file, str(file.relative_to(root / SOURCES)))]


def _of_file(file: Path, name: str) -> Iterator[Constant]:
    text = file.read_text().partition("#[cfg(test)]")[0]
    for found in _CONSTANT.finditer(text):
        comment = " ".join(line.strip().removeprefix("///").strip() for line in found[1].splitlines())
        yield Constant(name, found[2], found[3], found[4], comment, found.start(4), found.end(4))


def digest(root: Path = ROOT) -> str:
    """A hash of the crate's sources without comments: what a sweep stands on."""
    files = sorted((root / SOURCES).rglob("*.rs"))
    code = [re.sub(r"^ *//.*\n", "", file.read_text(), flags=re.MULTILINE) for file in files]
    return hashlib.sha256("".join(code).encode()).hexdigest()[:16]


def rows(constant: Constant) -> list[Row]:
    """What is swept of a constant. ValueError: it is of no kind that is known here."""
    if constant.key in NOT_SWEPT:
        return []
    value = constant.value
    if constant.type == "Span":
        return [Row(constant, "", {factor: _span(value, factor) for factor in FACTORS})]
    if constant.type.startswith("["):
        return [
            Row(constant, f"its {found[0]}", _integers(value, found.start(), found[0]))
            for found in _LITERAL.finditer(value)
        ]
    if constant.type not in _INTEGERS:
        raise ValueError(f"{constant.key}: its type is {constant.type}; say in NOT_SWEPT why it is not swept")
    if not _LITERAL.fullmatch(value):
        return [Row(constant, "", {factor: _expression(value, factor) for factor in FACTORS})]
    whole = Row(constant, "", _integers(value, 0, value))
    number = int(value.replace("_", ""))
    if "percent" in f"{constant.name} {constant.comment}".lower() and 50 <= number <= 200:
        return [whole, Row(constant, "its distance from 100", _distances(number))]
    return [whole]


def _integers(value: str, at: int, literal: str) -> dict[float, Setting]:
    """The value with one of its numbers multiplied, but for factors that do not change it."""
    number = int(literal.replace("_", ""))
    changed = {factor: math.floor(number * factor + 0.5) for factor in FACTORS}
    return {
        factor: Setting(f"{other:_}", f"{value[:at]}{other:_}{value[at + len(literal) :]}")
        for factor, other in changed.items()
        if other != number
    }


def _distances(number: int) -> dict[float, Setting]:
    away = {factor: math.floor(abs(number - 100) * factor + 0.5) for factor in FACTORS}
    sign = 1 if number > 100 else -1
    changed = {factor: 100 + (POINTS[factor] if number == 100 else sign * away[factor]) for factor in FACTORS}
    return {factor: Setting(str(it), str(it)) for factor, it in changed.items() if it != number}


def _span(value: str, factor: float) -> Setting:
    text = f"Span::from_nanos(({value}).as_nanos() * {round(factor * 10)} / 10)"
    if found := _SPAN.match(value):
        return Setting(f"{int(found[2].replace('_', '')) * factor:g} {_UNITS[found[1]]}", text)
    return Setting(f"{factor:g} times that", text)


def _expression(value: str, factor: float) -> Setting:
    return Setting(f"{factor:g} times that", f"(({value}) * {round(factor * 10)} / 10)")
