"""Satellites from two-line elements, by SGP4 (Vallado et al., Revisiting Spacetrack Report 3, 2006).

SGP4 gives positions in the axes of true equator and mean equinox. They are turned by Greenwich mean
sidereal time (IAU 1982); UT1 counts as UTC, and the motion of the poles as none: some hundred metres.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from sgp4.api import SGP4_ERRORS, Satrec, SatrecArray

from bentpipe.errors import BentpipeError, UsageError
from bentpipe.orbit.ground import Positions

_LENGTH = 69  # characters of a line
_JULIAN_2000 = 2451545.0  # 2000-01-01 12:00
_EPOCH_2000 = dt.datetime(2000, 1, 1, 12, tzinfo=dt.UTC)
_HINT = "a file has two lines of 69 characters for each satellite, as from celestrak.org, with a name before"


@dataclass(frozen=True)
class Elements:
    """The satellites of a file from a time on."""

    file: str
    satellites: tuple[tuple[str, Satrec], ...]
    begin: dt.datetime

    @classmethod
    def read(cls, file: Path, begin: dt.datetime | None) -> Elements:
        """Read a file. Without a `begin` it is the latest epoch of its elements."""
        try:
            lines = file.read_text(encoding="ascii").splitlines()
        except OSError as error:
            raise UsageError(f"--tle: cannot read {file}: {error.strerror}", _HINT) from None
        except UnicodeDecodeError:
            raise UsageError(f"--tle: {file}: not a file of ASCII text", _HINT) from None
        satellites = tuple(_satellites(file, lines))
        if not satellites:
            raise UsageError(f"--tle: {file}: no elements", _HINT)
        return cls(file.name, satellites, begin or max(_epoch(one) for _, one in satellites))

    @property
    def names(self) -> Sequence[str]:
        return [name for name, _ in self.satellites]

    @property
    def links(self) -> Sequence[tuple[int, int]]:
        raise BentpipeError(
            "elements do not say which satellites have links between them", "use --isl with --shell"
        )

    @property
    def oldest_days(self) -> float:
        """The largest difference of an epoch from the beginning, in days."""
        return max(abs(self.begin - _epoch(one)) / dt.timedelta(days=1) for _, one in self.satellites)

    @cached_property
    def _array(self) -> SatrecArray:
        return SatrecArray([one for _, one in self.satellites])

    def positions(self, seconds: float) -> Positions:
        """Not a number where SGP4 fails, as for a satellite that has decayed."""
        days = (self.begin - _EPOCH_2000) / dt.timedelta(days=1) + seconds / 86400
        whole = math.floor(days)
        errors, found, _ = self._array.sgp4(np.array([_JULIAN_2000 + whole]), np.array([days - whole]))
        positions = np.where(errors == 0, 1.0, np.nan)[:, 0, None] * found[:, 0, :]
        return np.asarray(positions @ _turned(sidereal_rad(days)).T)

    def failing(self) -> list[str]:
        """Errors of SGP4 for the satellites whose positions it does not give at the beginning."""
        days = (self.begin - _EPOCH_2000) / dt.timedelta(days=1)
        errors, _, _ = self._array.sgp4(np.array([_JULIAN_2000]), np.array([days]))
        each = zip(self.names, errors[:, 0], strict=True)
        return [f"{name}: {SGP4_ERRORS[int(error)]}" for name, error in each if error]

    def __str__(self) -> str:
        return f"{len(self.satellites)} satellites of {self.file} from {self.begin:%Y-%m-%dT%H:%M:%S}Z on"


def sidereal_rad(days: float) -> float:
    """Greenwich mean sidereal time, days of UT1 after 2000-01-01 12:00 (Aoki et al. 1982)."""
    centuries = days / 36525
    seconds = (
        67310.54841
        + (876600 * 3600 + 8640184.812866) * centuries
        + 0.093104 * centuries**2
        - 6.2e-6 * centuries**3
    )
    return math.radians(seconds / 240) % (2 * math.pi)


def _turned(angle: float) -> Positions:
    cosine, sine = math.cos(angle), math.sin(angle)
    return np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]])


def _epoch(satellite: Satrec) -> dt.datetime:
    days = (satellite.jdsatepoch - _JULIAN_2000) + satellite.jdsatepochF
    return _EPOCH_2000 + dt.timedelta(days=days)


def _satellites(file: Path, lines: Sequence[str]) -> list[tuple[str, Satrec]]:
    found, name, first = [], "", None
    for number, line in enumerate(map(str.rstrip, lines), 1):
        if not line:
            continue
        where = f"--tle: {file}: line {number}"
        if line.startswith("1 ") and len(line) >= _LENGTH:
            if first is not None:
                raise UsageError(f"{where}: a line 1 after a line 1; its line 2 is missing", _HINT)
            first = _checked(line, where)
        elif first is not None:
            if not line.startswith("2 "):
                raise UsageError(f"{where}: after a line 1 its line 2 is missing", _HINT)
            second = _checked(line, where)
            if first[2:7] != second[2:7]:
                raise UsageError(
                    f"{where}: of satellite {second[2:7].strip()}, the line before of {first[2:7].strip()}",
                    _HINT,
                )
            found.append((name or first[2:7].strip(), Satrec.twoline2rv(first, second)))
            name, first = "", None
        elif re.match(r"[12] ", line) and re.match(r"[12] +\d", line):
            raise UsageError(f"{where}: {len(line)} characters where a line has {_LENGTH}", _HINT)
        else:
            name = line.removeprefix("0 ").strip()
    if first is not None:
        raise UsageError(f"--tle: {file}: the last line 2 is missing", _HINT)
    return found


def _checked(line: str, where: str) -> str:
    """The line, if its last character is the sum of its digits, a minus counting 1, modulo 10."""
    if len(line) < _LENGTH:
        raise UsageError(f"{where}: {len(line)} characters where a line has {_LENGTH}", _HINT)
    digits = (int(char) if char.isdigit() else char == "-" for char in line[: _LENGTH - 1])
    total = sum(digits) % 10
    if line[_LENGTH - 1] != str(total):
        raise UsageError(
            f"{where}: the checksum is {line[_LENGTH - 1]}, the digits of the line give {total}",
            "the line was changed or cut: get the elements again",
        )
    return line[:_LENGTH]
