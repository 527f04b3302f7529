"""What a treatment does to the time of a transfer or a page, beside none: how many times as long it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bentpipe import labels, workload
from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.inference import Ratio, adjusted
from bentpipe.plan.treatments import DIRECT
from bentpipe.study.markdown import bytes_as

SAME = 0.05  # times that differ by less count as equal
SIGNIFICANT = 0.05
FASTER, SLOWER, EQUAL, OPEN = "faster", "slower", "equal", "open"

# The paths of the campaigns in plain words, and in the order of tables and panels.
PATHS = {
    "geo-tum": "GEO",
    "dvb-s2-rain": "GEO, rain",
    "viasat-dama": "GEO, DAMA return",
    "leo-tum": "LEO",
    "starlink": "LEO, handovers",
}
# By the canonical form of a treatment; the order is that of tables and figures.
TREATMENTS = {
    DIRECT: "direct",
    "quic-pep terminal:mode=warm,gateway:mode=warm": "quic-pep",
    "tcp-pep terminal,gateway": "tcp-pep",
    "masque terminal:mode=warm,gateway": "masque",
    "masque terminal:mode=warm:nested=off,gateway:nested=off": "masque, not nested",
    "fec terminal,gateway": "fec",
    "sidecar terminal,gateway": "sidecar",
}


class Setting(NamedTuple):
    """A path with its loss in percent, what is fetched over it, and by whom it is sent."""

    path: str  # of PATHS
    loss: str  # "0 %"
    workload: str
    sender: str  # the server's variant


@dataclass(frozen=True)
class Effect:
    """How many times as long a treatment takes as none, and the verdict on that."""

    ratio: Ratio

    @property
    def verdict(self) -> str:
        """Faster or slower by 5 % beyond chance; equal where the whole interval is within 5 %; else open."""
        value, low, high, p = self.ratio.value, self.ratio.low, self.ratio.high, self.ratio.p
        if low is None or high is None or p is None:
            return OPEN
        if p < SIGNIFICANT and not 1 / (1 + SAME) < value < 1 + SAME:
            return FASTER if value < 1 else SLOWER
        return EQUAL if low > 1 / (1 + SAME) and high < 1 + SAME else OPEN


def setting(cell: Cell) -> Setting:
    """What a cell has beside its treatment."""
    label = labels.scenario(cell.key.scenario)
    loss = label.values.get("forward.loss", "0%").replace("%", " %")
    return Setting(label.name, loss, cell.key.workload, cell.key.server)


def treatment(cell: Cell) -> str:
    """The name of a cell's treatment; its label if it is none of this study's."""
    return TREATMENTS.get(cell.key.treatment, cell.key.treatment)


def by_setting(cells: Iterable[Cell]) -> dict[Setting, dict[str, Cell]]:
    """The cells of each setting by treatment."""
    found: dict[Setting, dict[str, Cell]] = {}
    for one in cells:
        found.setdefault(setting(one), {})[treatment(one)] = one
    return found


def effects(grouped: dict[Setting, dict[str, Cell]]) -> dict[tuple[Setting, str], Effect]:
    """The effect of each treatment in each setting, on completion; p is adjusted over all of them."""
    raw: dict[tuple[Setting, str], Ratio] = {}
    for where, row in grouped.items():
        base = row.get(DIRECT)
        for name, cell in row.items():
            if base is None or name == DIRECT or cell.failures or base.failures:
                continue
            found = cell_ratio(base, cell, "completion_s")
            if found is not None:
                raw[where, name] = found
    chances = adjusted([one.p for one in raw.values()])
    return {
        key: Effect(Ratio(one.value, one.low, one.high, p))
        for (key, one), p in zip(raw.items(), chances, strict=True)
    }


def size(text: str) -> int | None:
    """The bytes of a transfer's file; None of another workload."""
    parsed = workload.parse(text, "workload")
    return (
        sum(parsed.files.values()) if parsed.testcase == "transfer" and parsed.duration_ms is None else None
    )


def named(text: str) -> str:
    """A workload in words: `10 MB`."""
    count = size(text)
    return text if count is None else bytes_as(count)


def in_order(settings: Iterable[Setting]) -> list[Setting]:
    """By path, then loss, then size, then sender."""
    paths = list(PATHS)

    def place(one: Setting) -> tuple[int, float, int, str]:
        path = paths.index(one.path) if one.path in paths else len(paths)
        return path, float(one.loss.removesuffix(" %")), size(one.workload) or 0, one.sender

    return sorted(settings, key=place)


def treatments_of(rows: Iterable[Mapping[str, Cell]]) -> list[str]:
    """The treatments that occur, in this study's order."""
    seen = {name for row in rows for name in row}
    known = [name for name in TREATMENTS.values() if name in seen]
    return [*known, *sorted(seen - set(known))]


def on_path(grouped: dict[Setting, dict[str, Cell]], path: str, loss: str) -> Sequence[Setting]:
    """The settings of a path with that loss."""
    return in_order(one for one in grouped if (one.path, one.loss) == (path, loss))
