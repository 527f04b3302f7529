"""A time of the day in which a machine is to be left alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bentpipe.errors import UsageError


@dataclass(frozen=True)
class Pause:
    """A time of the local day in which no trial starts; it may pass midnight."""

    start: tuple[int, int]  # hour, minute
    end: tuple[int, int]

    @classmethod
    def parse(cls, text: str) -> Pause:
        """The pause in a text `HH:MM-HH:MM`."""
        try:
            first, last = (datetime.strptime(part.strip(), "%H:%M") for part in text.split("-"))
        except ValueError:
            raise UsageError(
                f'--pause-between: "{text}" is no span of the day', "write HH:MM-HH:MM"
            ) from None
        if first == last:
            raise UsageError(f'--pause-between: "{text}" is empty', "give two different times")
        return cls((first.hour, first.minute), (last.hour, last.minute))

    @property
    def until(self) -> str:
        """Its end, as `HH:MM`."""
        return f"{self.end[0]:02}:{self.end[1]:02}"

    def holds(self, at: datetime) -> bool:
        """Whether no trial may start at `at`, local time. The end itself is outside."""
        moment = (at.hour, at.minute)
        if self.start < self.end:
            return self.start <= moment < self.end
        return moment >= self.start or moment < self.end
