"""The kinds of options. Each stack lists its own in `dialect.OPTIONS`, by the contract's names.

Source: `endpoints/contract/stack-toml.md`. What is not in the list is `Unsupported`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from failures import Unsupported

# A flow control limit travels as a QUIC variable-length integer (RFC 9000 section 16).
LARGEST_WINDOW = 2**62 - 1
# RFC 9000 section 14.1, and what an IPv4 packet of 1500 bytes carries.
SMALLEST_MTU, LARGEST_MTU = 1200, 1472
MOST_DIGITS = 20
LATEST_NS = 3600 * 1_000_000_000


class Words(NamedTuple):
    """One of some words."""

    known: tuple[str, ...]

    def parse(self, name: str, value: str) -> str:
        if value not in self.known:
            raise Unsupported(f"option {name}={value}: unknown; known are {', '.join(self.known)}")
        return value


class WholeNumber(NamedTuple):
    """A whole number of something."""

    unit: str
    smallest: int
    largest: int

    def parse(self, name: str, value: str) -> int:
        is_number = value.isascii() and value.isdigit() and len(value) <= MOST_DIGITS
        if not (is_number and self.smallest <= int(value) <= self.largest):
            wanted = f"a whole number of {self.unit} from {self.smallest} to {self.largest}"
            raise Unsupported(f"option {name}={value}: write {wanted}")
        return int(value)


class Time(NamedTuple):
    """A time since the start of the program, in nanoseconds."""

    def parse(self, name: str, value: str) -> int:
        for unit, factor in (("ms", 1_000_000), ("s", 1_000_000_000)):
            digits = value.removesuffix(unit)
            if digits != value and digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS:
                ns = int(digits) * factor
                if ns <= LATEST_NS:
                    return ns
                break
        raise Unsupported(
            f"option {name}={value}: write a time since the start up to an hour, such as 2s or 1500ms"
        )


Options = Mapping[str, str | int]  # those that were given, by name
Kind = Words | WholeNumber | Time


def parse(given: Mapping[str, str], known: Mapping[str, Kind]) -> Options:
    """The values of the options that were given."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise Unsupported(f"option {unknown[0]}: unknown; known are {', '.join(known)}")
    return {name: known[name].parse(name, value) for name, value in given.items()}
