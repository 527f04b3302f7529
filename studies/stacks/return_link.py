"""What clients put on the return link (the thesis's section 5.6.9.1), and whether it is a limit."""

from __future__ import annotations

from bentpipe.study.markdown import literal, several, table
from bentpipe.study.means import GeometricMean

from .packets import Transfers, over
from .published import Published
from .runs import PACKETS

FIGURE = "stacks-return.svg"
_CHANGED = 0.05  # of the goodput: pairs that a wider return link changes by more are counted

_ACKS = """Of each client, over its servers: medians, and in brackets the least and the most. *Mean rate*:
over the transfer; *largest*: of a bin of 1 s, and when it was, as a share of the time to completion.
*Packets*: those with an ACK per packet with data. *Bytes*: of an IP packet of the client, the mean.
*Follows*: Pearson's correlation of the rate of both links, bin by bin: 1, where the return link is used as
the forward link is."""
_WIDER = """The thesis concludes that the rate of ACKs should not matter. The same pairs with a return link of
{} in place of {}: goodput over that, a pair's trial each; geometric means over the servers of a client, with
their 95 % intervals (t on logarithms)."""


def in_short(found: Transfers, known: Published) -> str:
    """What a line says of it."""
    largest = [one.largest_return_bps / 1e3 for one in found.all]
    above = sum(one > known.return_link.largest_kbps for one in largest)
    return (
        f"The return link carries up to {max(largest):.0f} kbit/s in a second, and in {above} of "
        f"{several(len(largest), 'trial')} more than the {known.return_link.largest_kbps:g} kbit/s that were "
        "published as the most."
    )


def section(found: Transfers, known: Published) -> list[str]:
    """The part of the page."""
    return [
        "### Return link",
        f"![Rate of both links over time, a client each]({FIGURE})",
        f"The trial with the median goodput of each client, {len(found.by('client'))} of "
        f"{several(len(found.all), 'trial')}. Blue: the return link, kbit/s, left; orange: the forward link, "
        "Mbit/s, right; both as they are sent, before the queue, in bins of 1 s.",
        _ACKS,
        _clients(found),
        _range(found, known),
        *_wider(found),
    ]


def _clients(found: Transfers) -> str:
    rows = [
        [
            literal(name),
            over(mine, lambda one: (one.record.return_rate_bps or 0.0) / 1e3, 0),
            over(mine, lambda one: one.largest_return_bps / 1e3, 0),
            over(mine, lambda one: one.largest_at, 2),
            over(mine, lambda one: one.record.acks_per_data_packet, 2),
            over(mine, lambda one: one.return_bytes, 0),
            over(mine, lambda one: one.follows, 2),
            str(len(mine)),
        ]
        for name, mine in found.by("client").items()
    ]
    head = ["client", "mean rate, kbit/s", "largest, kbit/s", "when", "packets", "bytes", "follows", "trials"]
    return table(head, rows)


def _range(found: Transfers, known: Published) -> str:
    """Beside what was published of the return link."""
    largest = sorted(one.largest_return_bps / 1e3 for one in found.all)
    above = sum(one > known.return_link.largest_kbps for one in largest)
    top = max(found.all, key=lambda one: one.largest_return_bps)
    text = (
        f"Published: from {known.return_link.least} to {known.return_link.largest_kbps:g} kbit/s "
        f"({known.return_link.source}), and no uniform pattern. Here the largest bin of a trial has "
        f"{largest[0]:.0f} to {largest[-1]:.0f} kbit/s, in {above} of {several(len(largest), 'trial')} more "
        f"than was published; the most with {literal(top.record.client)} → {literal(top.record.server)}. "
    )
    dropped = sum(bool(one.record.return_queue_drops) for one in found.all)
    return f"{text}The return link's own queue dropped packets in {several(dropped, 'trial')}."


def _wider(found: Transfers) -> list[str]:
    """The experiment with a wider return link; nothing without its run."""
    cells = found.runs.cells(PACKETS)
    first = cells[0].key.scenario if cells else ""
    before = {(one.key.client, one.key.server): one for one in cells if one.key.scenario == first}
    ratios: dict[str, list[float]] = {}
    changed: list[tuple[float, str]] = []
    rates: set[str] = set()
    for cell in cells:
        rate = cell.key.scenario_label.values.get("return.rate")
        old, new = before.get((cell.key.client, cell.key.server)), cell.goodput_mean_bps
        if rate is None or old is None or old.goodput_mean_bps is None or new is None:
            continue
        rates.add(rate)
        ratio = new / old.goodput_mean_bps
        ratios.setdefault(cell.key.client, []).append(ratio)
        if abs(ratio - 1) > _CHANGED:
            changed.append((ratio, f"{cell.key.client} → {cell.key.server} {ratio:.2f}"))
    if not ratios:
        return []
    rows = [
        [literal(client), mean.written(), str(mean.count)]
        for client, values in sorted(ratios.items())
        if (mean := GeometricMean.of(values))
    ]
    pairs = sum(map(len, ratios.values()))
    most = sorted(changed, key=lambda one: -abs(one[0] - 1))[:_NAMED]
    text = f"It changes by more than {100 * _CHANGED:g} % in {len(changed)} of {several(pairs, 'pair')}"
    text += f", most in: {literal('; '.join(name for _, name in most))}." if most else "."
    narrow = found.runs.of(PACKETS)[0].manifest.scenarios[first].summary["return_rate_bps"] / 1e6
    wide = ", ".join(sorted(rates)).replace("Mbit", " Mbit").replace("  ", " ")
    head = ["client", "times", "servers"]
    return [_WIDER.format(wide, f"{narrow:g} Mbit/s"), table(head, rows), text]


_NAMED = 6  # pairs that change most
