"""Why a server is far from others with the controller of the same name: one thing changed at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bentpipe import labels
from bentpipe.analysis import inference
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.comparison import FALSE_DISCOVERIES
from bentpipe.analysis.inference import Ratio
from bentpipe.analysis.trial_marks import marked
from bentpipe.study.intervals import with_ends
from bentpipe.study.markdown import literal, several, table
from bentpipe.study.means import GeometricMean

from .control import short
from .controllers import named
from .runs import BURSTS, CAUSES, QUEUE, StackRuns, in_order

_TEXT = """Servers that are far from others, again, and with one thing changed: an option of the server, a
queue of 1 BDP in place of 25 packets, or losses that come in bursts of four on average, as many in all.
Mbit/s, geometric means with their 95 % intervals; *times* is the goodput over that of the server as it is,
with the 95 % interval (Welch's t on logarithms), whose p is adjusted over all of the table by Benjamini and
Hochberg: in brackets where it is not below 5 %, so that chance could have made it."""


@dataclass(frozen=True)
class Change:
    """A server, and what was changed in it or in its path; "" where it is as it is."""

    server: str  # with nothing changed
    change: str
    cells: dict[str, Cell]  # by scenario

    def goodputs(self, scenario: str) -> list[float]:
        cell = self.cells.get(scenario)
        return cell.values("goodput_bps") if cell else []


def changes(runs: StackRuns) -> list[Change]:
    """By server, what is unchanged first."""
    found: dict[tuple[str, str], dict[str, Cell]] = {}
    for campaign, word in ((CAUSES, ""), (QUEUE, "queue of 1 BDP"), (BURSTS, "losses in bursts of 4")):
        for cell in runs.cells(campaign):
            variant = labels.variant(cell.key.server)
            own = [one for one in variant.settings if not one.startswith("cc=")]
            plain = f"{variant.stack}:cc={variant.options['cc']}"
            path = _LOSSY if campaign == BURSTS else short(cell.key.scenario)
            by_path = found.setdefault((plain, ", ".join([*own, word] if word else own)), {})
            by_path[path] = cell
    made = [Change(server, change, cells) for (server, change), cells in found.items()]
    order = in_order([one.server for one in made])
    return sorted(made, key=lambda one: (order.index(one.server), one.change))


_LOSSY = "satloss"  # whose losses come in bursts where they do


def _ratios(made: Sequence[Change], scenarios: Sequence[str]) -> dict[tuple[str, str, str], Ratio | None]:
    """(server, change, scenario) → goodput over the unchanged server's; p is adjusted over all."""
    plain = {one.server: one for one in made if not one.change}
    keys, ratios = [], []
    for one in made:
        for name in scenarios:
            if one.change:
                keys.append((one.server, one.change, name))
                before = plain[one.server].goodputs(name) if one.server in plain else []
                ratios.append(inference.ratio(before, one.goodputs(name)))
    chances = inference.adjusted([None if one is None else one.p for one in ratios])
    shown = (
        None if one is None else Ratio(one.value, one.low, one.high, p)
        for one, p in zip(ratios, chances, strict=True)
    )
    return dict(zip(keys, shown, strict=True))


def section(runs: StackRuns) -> list[str]:
    """The experiments, below the tables that ask for them; nothing without their run."""
    made = changes(runs)
    if not made:
        return []
    scenarios = list(dict.fromkeys(name for one in made for name in one.cells))
    ratios = _ratios(made, scenarios)
    rows = [_row(one, scenarios, ratios) for one in made]
    count = sum(len(one.goodputs(name)) for one in made for name in one.cells)
    head = ["server", "", "changed", *(text for name in scenarios for text in (name, "times"))]
    return [
        "#### Causes",
        _TEXT,
        table(head, rows, left=3),
        f"{several(count, 'trial')}.",
        *_found(made),
    ]


def _row(
    one: Change, scenarios: Sequence[str], ratios: dict[tuple[str, str, str], Ratio | None]
) -> list[str]:
    row = [literal(one.server), named(one.server), literal(one.change) or "-"]
    for name in scenarios:
        mean = GeometricMean.of(one.goodputs(name))
        row.append(marked(mean.written(1e-6) if mean else "-", one.cells.get(name)))
        row.append(_times(ratios.get((one.server, one.change, name))) if one.change else "")
    return row


def _times(ratio: Ratio | None) -> str:
    if ratio is None:
        return "-"
    text = with_ends(ratio.value, ratio.low, ratio.high, always=False)
    return text if ratio.p is not None and ratio.p < FALSE_DISCOVERIES else f"({text})"


def _found(made: Sequence[Change]) -> Iterator[str]:
    known = [FOUND[one] for one in dict.fromkeys(one.server for one in made) if one in FOUND]
    if known:
        yield "\n".join(f"- {text}" for text in known)


# Server → what was found out of the experiments, the library's code and its traces.
FOUND: dict[str, str] = {
    "quiche:cc=newreno": """**quiche** sends at once what its window allows; only its BBR is paced. A
  queue of 25 packets drops the bursts of NewReno and CUBIC, and slow start is over early. Before a
  queue of 1 BDP both are as fast as others; HyStart++ has no part in it.""",
    "quiche:cc=cubic": """**quiche's CUBIC** over satloss takes a loss for spurious where less than a fifth of
  the window was lost, and undoes its answer ([its page](../../endpoints/quiche/README.md)); that is from its
  code, as no option turns it off.""",
    "ngtcp2:cc=newreno": """**ngtcp2** with NewReno and CUBIC sends bursts of up to 64 KiB, 45 packets,
  of which a queue of 25 drops the rest. Bursts of 10 packets, or a queue of 1 BDP, take the
  difference away.""",
    "ngtcp2:cc=cubic": """**ngtcp2's CUBIC** over satloss is twice as fast as the median, and neither
  bursts nor queue change that: why is open.""",
    "picoquic:cc=cubic": """**picoquic's CUBIC** backs off only where its smoothed share of lost
  packets is above 15 % (`PICOQUIC_SMOOTHED_LOSS_THRESHOLD` in `cc_common.h`): a loss alone counts 6
  %, three of them in a row 18 %. As many losses in bursts of four slow it down, and make others
  faster, who halve their window more seldom.""",
    "noq:cc=bbr3": """**noq's BBR** does not pace its start, and takes the round trip for 333 ms ([found
  before](../../docs/upstream/noq-bbr3.md)): a short queue drops what it sends. A queue of 1 BDP makes it
  three times as fast; that a smaller initial window does, these trials do not show. The median of the
  three BBRs over satloss is low because of this, and because tquic's leaves a link half empty whose queue is
  short ([its page](../../endpoints/tquic/README.md)): picoquic's is twice that.""",
    "quiche:cc=bbr2": """**quiche's BBR** believes in no round trip longer than the one that it assumes
  before it has measured one, 333 ms: with 700 ms in its place it is as fast as others.""",
    "tquic:cc=bbr": """**tquic's BBR** begins with 10 packets, where quinn's begins with 200: with as
  many it is as fast over sat. That is not all of it: quinn's with 10 is no slower. Over satloss the
  difference stays, and is open.""",
}
