"""The load on the return link (the thesis's section 5.6.9.1), and whether it is a limit."""

from __future__ import annotations

from collections.abc import Mapping

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.study.front import folded
from bentpipe.study.markdown import literal, several, table
from bentpipe.study.means import GeometricMean

from .packets import TracedTransfer, Transfers, over
from .published import Published
from .runs import PACKETS, in_order

FIGURE = "stacks-return.svg"

_ACKS = """Of each client, over its servers: medians, and in brackets the least and the most. *Mean rate*:
over the transfer; *largest*: of a bin of 1 s, and when it was, as a share of the time to completion.
*Packets*: those with an ACK per packet with data. *Bytes*: of an IP packet of the client, the mean.
*Follows*: Pearson's correlation of the rate of both links, bin by bin: 1, where the return link is used as
the forward link is."""
_WIDER = """The thesis concludes that the rate of ACKs should not matter. The same pairs with a return link of
{} in place of {}: goodput over that, a pair's trial each; geometric means over the servers of a client, with
their 95 % intervals (t on logarithms)."""


# How often quiche acknowledges depends on how often its program asks it for packets: its own server's loop
# first reads all datagrams that wait, the endpoint here asks after each. So its rate is not its own alone.
_POLLED = "quiche"
_NOT_COUNTED = """quiche's client is not counted: how often it acknowledges depends on how often its program
asks it for packets, and the endpoint here asks after each datagram, where the library's own programs read all
that wait."""


def _counted(found: Transfers) -> list[TracedTransfer]:
    """The trials whose rate of ACKs is the stack's own."""
    return [one for one in found.all if labels.variant(one.record.client).stack != _POLLED]


def in_short(found: Transfers, known: Published) -> str:
    """The summary in a line."""
    counted = _counted(found)
    if not counted:
        return f"What clients send towards the return link is not known. {_NOT_COUNTED}"
    largest = [one.largest_return_bps / 1e3 for one in counted]
    above = sum(one > known.return_link.largest_kbps for one in largest)
    return (
        f"Clients send up to {max(largest):.0f} kbit/s in a second towards the return link, and in {above} "
        f"of {several(len(largest), 'trial')} more than the {known.return_link.largest_kbps:g} kbit/s that "
        "were published as the most."
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
        *folded("Rates and ACKs of each client", _clients(found)),
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
    of_stacks = _counted(found)
    if not of_stacks:
        return _NOT_COUNTED
    largest = sorted(one.largest_return_bps / 1e3 for one in of_stacks)
    above = sum(one > known.return_link.largest_kbps for one in largest)
    top = max(of_stacks, key=lambda one: one.largest_return_bps)
    text = (
        f"Published: from {known.return_link.least} to {known.return_link.largest_kbps:g} kbit/s "
        f"({known.return_link.source}), and no uniform pattern. Here the largest bin of a trial has "
        f"{largest[0]:.0f} to {largest[-1]:.0f} kbit/s, in {above} of {several(len(largest), 'trial')} more "
        f"than was published; the most with {literal(top.record.client)} → {literal(top.record.server)}. "
    )
    counted = [n for one in found.all if (n := one.record.return_queue_drops) is not None]
    dropped = several(sum(one > 0 for one in counted), "trial")
    some = f" of the {len(counted)} in which they were counted" if len(counted) < len(found.all) else ""
    polled = f" {_NOT_COUNTED}" if len(of_stacks) < len(found.all) else ""
    return f"{text}The return link's own queue dropped packets in {dropped}{some}.{polled}"


def _wider(found: Transfers) -> list[str]:
    """The experiment with a wider return link; nothing without its run."""
    cells = found.runs.cells(PACKETS)
    wide = [one for one in cells if _rate(one)]
    before = {(one.key.client, one.key.server): one for one in cells if not _rate(one)}
    ratios: dict[str, list[float]] = {}
    full: list[float] = []  # where the queue of the return link had dropped packets
    for cell in wide:
        old, new = before.get((cell.key.client, cell.key.server)), cell.goodput_mean_bps
        if old is None or old.goodput_mean_bps is None or new is None:
            continue
        ratios.setdefault(cell.key.client, []).append(new / old.goodput_mean_bps)
        if any(one.return_queue_drops for one in old.ok):
            full.append(new / old.goodput_mean_bps)
    means = {client: mean for client in in_order(list(ratios)) if (mean := GeometricMean.of(ratios[client]))}
    if not means:
        return []
    scenario = found.runs.of(PACKETS)[0].manifest.scenarios[found.scenarios[0]]
    narrow = scenario.summary["return_rate_bps"] / 1e6
    rows = [[literal(client), mean.written(), str(mean.count)] for client, mean in means.items()]
    text = _WIDER.format(_rate(wide[0]).replace("Mbit", " Mbit"), f"{narrow:g} Mbit/s")
    return [text, table(["client", "times", "servers"], rows), _shown(means, GeometricMean.of(full))]


def _rate(cell: Cell) -> str:
    """The rate that was set of the return link; "" where none was."""
    return cell.key.scenario_label.values.get("return.rate", "")


def _shown(means: Mapping[str, GeometricMean], full: GeometricMean | None) -> str:
    apart = [
        client
        for client, one in means.items()
        if one.low is not None and one.high is not None and not one.low <= 1 <= one.high
    ]
    text = f"Intervals that leave out 1: of {literal(', '.join(apart)) or 'no client'}."
    if full is not None:
        text += (
            f" Over the {several(full.count, 'pair')} of which the return link's queue had dropped packets: "
            f"{full.written()}."
        )
    return text + ("" if apart else " So these trials do not show that the return link matters.")
