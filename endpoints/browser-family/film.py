"""The film of a page while it was loaded: pictures as it changed, and its Speed Index."""

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
    """The picture from a moment on."""

    at_ns: int  # since 1970
    jpeg: bytes


@dataclass
class Film:
    """Pictures of a page, in the order in which they were drawn."""

    frames: list[FilmFrame] = field(default_factory=list)
    # Whether the first shows what was there before.
    has_beginning: bool = True

    def speed_index_ns(self) -> int | None:
        """The moment that lies the page's Speed Index behind its start: the mean of when it was drawn, each
        part with the share that it has of all that was drawn. None: nothing was, or its beginning is missing.

        Source: WebPageTest, Speed Index: the area above the curve of visual completeness. How complete a
        picture is comes from its colours, as in Speedline.
        """
        if len(self.frames) < 2 or not self.has_beginning:
            return None
        seen = [_histogram(one) for one in self.frames]
        if seen[0] == seen[-1]:
            return None
        complete = [_completeness(seen[0], one, seen[-1]) for one in seen]
        start = self.frames[0].at_ns
        steps = zip(pairwise(complete), self.frames[1:], strict=True)
        return start + round(sum((now - before) * (one.at_ns - start) for (before, now), one in steps))

    def report(self) -> list[dict[str, object]]:
        """The pictures that are left, as the client's report has them."""
        return [{"at_ns": one.at_ns, "jpeg": base64.b64encode(one.jpeg).decode()} for one in self._thinned()]

    def _thinned(self) -> list[FilmFrame]:
        """MOST of them: the first one, and the last of each equal part of the time."""
        if len(self.frames) <= MOST:
            return self.frames
        first, *others = self.frames
        parts, lasts_ns = MOST - 1, others[-1].at_ns - first.at_ns + 1
        return [first, *{(one.at_ns - first.at_ns) * parts // lasts_ns: one for one in others}.values()]


def _histogram(frame: FilmFrame) -> Sequence[int]:
    """How often each value of red, green and blue is there, side by side."""
    with Image.open(io.BytesIO(frame.jpeg)) as picture:
        found: list[int] = picture.convert("RGB").histogram()
    return found


def _completeness(first: Sequence[int], now: Sequence[int], last: Sequence[int]) -> float:
    """The share of what colours change from the first picture to the last one that has changed, 0 to 1."""
    whole = [abs(b - a) for a, b in zip(first, last, strict=True)]
    done = [min(abs(b - a), most) for a, b, most in zip(first, now, whole, strict=True)]
    return sum(done) / sum(whole)
