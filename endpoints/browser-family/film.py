"""What was to be seen of a page while it was loaded: pictures as it changed, and its Speed Index."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from PIL import Image

# As many pictures are left, at equal distances of time.
MOST = 24


@dataclass(frozen=True)
class FilmFrame:
    """What was to be seen from a moment on."""

    at_ns: int  # since 1970
    jpeg: bytes


@dataclass
class Film:
    """Pictures of a page, in the order in which they were drawn: the first shows what was there before."""

    frames: list[FilmFrame] = field(default_factory=list)

    def speed_index_ns(self) -> int | None:
        """The moment that lies the page's Speed Index behind its start: the mean of when it was drawn, each
        part with the share that it has of all that was drawn. None: nothing was.

        Source: WebPageTest, Speed Index: the area above the curve of visual completeness, which is told from
        histograms of colours.
        """
        if len(self.frames) < 2:
            return None
        seen = [_histogram(one) for one in self.frames]
        whole = _distance(seen[0], seen[-1])
        if not whole:
            return None
        complete = [1 - _distance(one, seen[-1]) / whole for one in seen]
        start = self.frames[0].at_ns
        steps = zip(pairwise(complete), self.frames[1:], strict=True)
        return start + round(sum((now - before) * (one.at_ns - start) for (before, now), one in steps))

    def report(self) -> list[dict[str, object]]:
        """The pictures that are left, as the client's report has them."""
        said = [{"at_ns": one.at_ns, "jpeg": base64.b64encode(one.jpeg).decode()} for one in self._thinned()]
        return list(said)

    def _thinned(self) -> list[FilmFrame]:
        """The last in each of MOST equal parts of the time, the first picture and the last one among them."""
        if len(self.frames) <= MOST:
            return self.frames
        first, last = self.frames[0], self.frames[-1]
        parts = {
            (one.at_ns - first.at_ns) * (MOST - 2) // (last.at_ns - first.at_ns + 1): one
            for one in self.frames
        }
        return [first, *(one for one in parts.values() if one is not first)]


def _histogram(frame: FilmFrame) -> Sequence[int]:
    """How often each value of red, green and blue is there, side by side."""
    with Image.open(io.BytesIO(frame.jpeg)) as picture:
        found: list[int] = picture.convert("RGB").histogram()
    return found


def _distance(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))
