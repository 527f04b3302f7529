"""The page on TCP proxies around a satellite hop, QUIC beside them, and TCP under losses: what a paper has
published, and what is measured here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bentpipe.analysis.trial_marks import marked
from bentpipe.study import claims as study_claims
from bentpipe.study import closing, markdown
from bentpipe.study.front import folded
from bentpipe.study.markdown import code, literal, number, several, table
from bentpipe.study.source import Source

from . import answer, drawn, every_stack, first_window, losses, published
from .published import Kuhn
from .runs import ACCESS, CLEAN, PLACES, SATELLITE, SIZES, KuhnRuns, Sender, Transfers, rate

_OPENING = """A satellite operator splits TCP at both ends of the hop. A paper of 2020 measures what that
brings, in four configurations, and reads off the best of them what QUIC should reach: how many megabytes in
how many seconds. It also shows what random losses cost TCP. Here the same is done in virtual time, with
Linux's own TCP in guests and transparent proxies between them, and QUIC stands in the same tables."""
_CONFIGURATIONS = [
    ["none", "4", "6", "10"],
    ["A", "4", "6", "10"],
    ["B", "4", "6", "100"],
    ["C", "33", "33", "10"],
    ["D", "33", "33", "100"],
]
_CONFIGURED = """The source's table III: the proxies' settings. The ends keep their kernel's defaults, there
and here; here the client's kernel allows 32 MiB to receive and the server's 4 MiB to send. *CORE_RMEM_MAX*
of the table has no effect: sockets of the proxies are sized by the kernel, within the TCP limits."""
_DIFFERS = """- **The clock.** The source's tool is iperf3: no TLS, and its time begins when its connection is
  there. Here a file is asked for over TLS 1.3: two round trips, of TCP and of TLS, are over before the
  request. So each table has both: the time since the client's first packet, and that since the request.
- **Where packets are lost.** The source puts its losses "on the PEPSal 2 interface towards the iperf3
  client": beside the satellite, not on it. Both places are here, and they are the largest difference.
- **The kernels.** Linux 4.15 there, 6.12 here, on all four hosts. Beyond buffers and initial window, nothing
  that a kernel decides is set as it was then.
- **The proxies.** PEPSal there; here Bentpipe's own, which holds up to 256 KiB between two connections of
  each direction and leaves the rest to the kernel's buffers.
- **The link.** The source's text gives neither delay nor queue; for the delay it defers to a draft with a
  round trip of 650 ms. Here it is 300 ms each way and 1 BDP."""
_TIMES = """Seconds until the whole file is there: the median, with the least and the most in brackets where
trials differ. *From the request*: the same without the handshakes. **Bold**: every
trial is within the objective."""
_FULL = 0.9  # of the link's rate
_LEFT_OUT = """- Figures 1, 4 and 5 show testbeds. Figures 2 and 3, pages over a public access, are
  [a study of their own](../simple_pages/simple-pages.md). Table I is of losses on a real link: the scenarios
  `public-satcom-wired` and `public-satcom-wifi` have them.
- Its configurations end to end, beyond the server's buffers and initial window.
- Its model of losses in bursts, of table I. Bursts are here of two packets alone, for table II.
- Segmentation offload itself, which virtual time has not.
- What QUIC's proxies do beyond these times: that is [the study kosek](../kosek/kosek.md)."""


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its figures to `folder`; the files, the page first. BentpipeError if the first run
    has no transfers over TCP with proxies and without.
    """
    known = KuhnRuns.of(runs)
    configured = known.configured(CLEAN)
    if "none" not in configured or len(configured) < 2:
        raise runs[0].refused(
            "wanted are files over cnes-50-10, over TCP without proxies and with them", "run kuhn"
        )
    then = published.load()
    files = drawn.draw(known, then.objectives, folder)
    path = folder / "kuhn.md"
    found = answer.claims(known, then)
    front = answer.front(known, then, found, folder)
    claimed = [
        "## The paper's claims",
        study_claims.rows(found, "the paper says"),
        study_claims.RULE,
        answer.HOW,
    ]
    head = [*front.parts(), "## What was run", _OPENING, *claimed, *_met(known, then)]
    path.write_text(markdown.page([*head, *_sections(known, then, files)]))
    return [path, *([] if front.picture is None else [front.picture.file]), *files.values()]


def _sections(runs: KuhnRuns, known: Kuhn, files: dict[str, Path]) -> list[str]:
    figures = [f"![{drawn.NAMES[name]}]({path.name})" for name, path in files.items()]
    parts = [
        "## Differences from the source",
        _DIFFERS,
        "## The configurations",
        table(["", "sender's buffer (MB)", "receiver's (MB)", "initial window (packets)"], _CONFIGURATIONS),
        _CONFIGURED,
        "## Times to completion",
        _TIMES,
    ]
    for place in PLACES:
        if runs.senders(place):
            parts += [f"### {drawn.TITLES[place]}", *_place(runs, place, known)]
    parts += ["## Over time", _FIGURES, *figures]
    parts += _order(runs, known)
    parts += _changes(runs)
    parts += first_window.sections(runs, known)
    parts += losses.sections(runs, known)
    parts += every_stack.sections(runs, known)
    parts += ["## What is left out", _LEFT_OUT, *_failed(runs)]
    return [*parts, *_made(runs), "## Sources", f"- {known.source}"]


_FIGURES = f"""As the source's figures 6 to 9, with time since the request. The upper picture has means over
the trials, the lower a rate over {drawn.WINDOW_S:g} s, two round trips, of the first trial of each. Bytes are
payload that reached the client, with headers of TLS or QUIC and what came twice. Curves are of the largest
file that was sent, whose trials are counted above, and stay where they are once it is complete. Crosses are
the objectives: a curve above or to the left of one meets it. Where a curve with proxies halts and then leaps,
the terminal waited for packets that the queue had dropped, and then handed on over the cable what had come
meanwhile; rates above the link's are cut off."""


def _middle(found: Transfers | None) -> float | None:
    return None if found is None else found.middle_s


def _gain(runs: KuhnRuns, place: str, pair: tuple[str, str], size: int) -> float | None:
    slow, fast = (_middle(runs.transfer(place, runs.configured(place).get(one), size)) for one in pair)
    return None if slow is None or fast is None else slow - fast


def _met(runs: KuhnRuns, known: Kuhn) -> list[str]:
    """The section on the senders that meet all objectives of a path."""
    rows = []
    for place in PLACES:
        senders = runs.senders(place)
        if not senders:
            continue
        names, since = (
            "; ".join(one.name for one in senders if _meets(runs, place, one, known, from_request=way))
            for way in (False, True)
        )
        sizes = [size for size in SIZES if any(runs.transfer(place, one, size) for one in senders)]
        shown = names if names == since else f"{names or 'none'}; from the request: {since}"
        rows.append(
            [
                f"{drawn.TITLES[place]}, {', '.join(map(str, sizes))} MB",
                literal(shown) or "none",
                "TCP with proxies D",
            ]
        )
    return ["## Who meets the objectives", table(["", "here", "published"], rows, left=3)]


def _meets(runs: KuhnRuns, place: str, sender: Sender, known: Kuhn, *, from_request: bool) -> bool:
    wanted = answer.objectives(place, known)
    found = {size: runs.transfer(place, sender, size) for size in SIZES}
    there = {size: one for size, one in found.items() if one is not None}
    return bool(there) and all(
        one.is_within(wanted.of(size), from_request=from_request) for size, one in there.items()
    )


def _place(runs: KuhnRuns, place: str, known: Kuhn) -> list[str]:
    wanted = answer.objectives(place, known)
    senders = [one for one in runs.senders(place) if one.configuration or not one.is_tcp]
    sizes = [one for one in SIZES if any(runs.transfer(place, sender, one) for sender in senders)]
    head = ["", *(text for size in sizes for text in (f"{size} MB", "from the request"))]
    rows = [["objective", *(f"{wanted.of(size):g}" for size in sizes for _ in range(2))]]
    for sender in senders:
        row = [literal(sender.name)]
        for size in sizes:
            found = runs.transfer(place, sender, size)
            row += [_cell(found, wanted.of(size), from_request=since) for since in (False, True)]
        rows.append(row)
    times = folded("Times of each sender", table(head, rows))
    parts = [f"Objectives: {wanted.place}.", *times, _trials(runs, place, senders)]
    return [*parts, *([_PLACE[place]] if place in _PLACE else [])]


_PLACE = {
    ACCESS: """Losses are between terminal and client, both ways, where 0.1 ms lie between them: proxies
repair them there, and the satellite does not see them. QUIC is not split, so that to it they are losses of
the whole path.""",
    SATELLITE: """Losses are on the satellite, both ways. Proxies end nothing but what lies beside it: the
connection between them has the losses and nearly the whole round trip, as without them. Larger buffers do
not help; a larger initial window helps the first megabytes alone. What helps is a congestion control that
does not take each loss for congestion.""",
}


def _cell(found: Transfers | None, wanted: float | None, *, from_request: bool) -> str:
    if found is None:
        return "-"
    text = _seconds(found, from_request=from_request)
    text = f"**{text}**" if found.is_within(wanted, from_request=from_request) else text
    return marked(text, found.cell)


def _seconds(found: Transfers | None, *, from_request: bool) -> str:
    """The median, and from where to where; without an end, what had come."""
    if found is None:
        return "-"
    if not found.times_s:
        if from_request:
            return f"> {found.until_s:.0f}"
        return f"> {found.until_s:.0f}, {found.reached_mb or 0:.0f} MB by then"
    times = found.from_request_s if from_request else found.times_s
    middle = found.middle_from_request_s if from_request else found.middle_s
    if middle is None:
        missing = len(found.cell.records) - len(found.times_s)
        return f"{missing} of {len(found.cell.records)} not complete"
    spread = f" ({times[0]:.2f} to {times[-1]:.2f})" if times[-1] - times[0] >= 0.01 else ""
    return f"{middle:.2f}" + ("" if from_request else spread)


def _trials(runs: KuhnRuns, place: str, senders: Sequence[Sender]) -> str:
    counts: dict[int, set[int]] = {}
    for sender in senders:
        for size in SIZES:
            found = runs.transfer(place, sender, size)
            if found is not None:
                counts.setdefault(size, set()).add(len(found.cell.records))
    told = [
        f"{several(many.pop(), 'trial') if len(many) == 1 else f'{min(many)} to {max(many)} trials'} "
        f"of {size} MB"
        for size, many in counts.items()
    ]
    return f"Each: {', '.join(told)}."


def _order(runs: KuhnRuns, known: Kuhn) -> list[str]:
    """The source's order of the configurations, in words beside numbers."""
    found = {
        word: made
        for word, sender in runs.configured(CLEAN).items()
        if (made := runs.transfer(CLEAN, sender, 100)) is not None and made.cell.goodput_mean_bps is not None
    }
    if not {"none", "A", "B", "C", "D"} <= found.keys():
        return []
    link_mbps = runs.rate_bps(CLEAN) / 1e6
    rows = [[word, *_course(one, link_mbps)] for word, one in found.items()]
    head = ["", "goodput, Mbit/s", "median rate, Mbit/s", f"{_FULL:.0%} of the link after"]
    gain = _gain(runs, CLEAN, ("C", "D"), 10)
    return [
        "## The order of the configurations",
        f"100 MB over 50/10 Mbit/s. The rate is over {drawn.WINDOW_S:g} s; its time is since the request.",
        table(head, rows),
        _ORDER.format(
            round_trip_mb=float(rows[0][2]) * 0.6 / 8,
            published=known.initial_window_gain_s,
            gain=number(gain),
            why="; the next table shows why it is less" if _changes(runs) else "",
        ),
    ]


def _course(found: Transfers, link_mbps: float) -> list[str]:
    first = found.cell.ok[0]
    times = np.arange(0, 60, 0.05)
    rates = rate(first, times, drawn.WINDOW_S)
    during = rates[(rates > 0) & (times < (found.middle_from_request_s or 0))]
    full = rates >= _FULL * link_mbps
    return [
        f"{(found.cell.goodput_mean_bps or 0) / 1e6:.1f}",
        f"{np.median(during):.1f}",
        f"{times[int(np.argmax(full))]:.1f} s" if full.any() else "never",
    ]


_ORDER = """- **A and B** are hardly better than no proxies in the source, and so they are here. Their
  sender's buffer of 4 MB is that of the server without them. The kernel counts more than data in it: the
  median rate of none comes to {round_trip_mb:.1f} MB in each round trip of 600 ms.
- **C and D** reach the capacity of the link in the source, and so they do here.
- **An initial window of 100** gets D up to speed approximately {published:g} s sooner in the source. To
  double from 10 to 100 takes 3.3 round trips, which are 2.0 s. Here D has 10 MB {gain} s before C{why}."""


def _changes(runs: KuhnRuns) -> list[str]:
    """One change at a time, without losses."""
    changed = [
        one
        for one in runs.senders(CLEAN)
        if one.is_tcp and not one.configuration and one.first_buffer is None
    ]
    if not changed:
        return []
    mine = runs.configured(CLEAN)
    ends = [one for one in changed if one.name.startswith("TCP, server")]
    rows = []
    for sender in [
        *_some(mine, "none"),
        *ends,
        *_some(mine, "C", "D"),
        *(x for x in changed if x not in ends),
    ]:
        found = [runs.transfer(CLEAN, sender, size) for size in SIZES]
        drops = next((f.cell.records[0].forward_queue_drops for f in reversed(found) if f is not None), None)
        dropped = "-" if drops is None else str(drops)
        texts = [marked(_seconds(one, from_request=False), one.cell if one else None) for one in found]
        rows.append([literal(sender.name), *texts, dropped])
    head = ["50/10 Mbit/s, no losses", *(f"{size} MB" for size in SIZES), "packets dropped, largest file"]
    return ["## One change at a time", table(head, rows), _CHANGES]


_CHANGES = """Time since the client's first packet, in seconds, one trial each: without losses they repeat.

- **The server's settings** alone do as much as proxies that have them. What proxies bring over this path is
  large buffers and a large first window where the server has none; that they split brings nothing more.
- **The initial window** ceases to matter near 45 packets. A receiving kernel's first window is 64 KiB, which
  is 45 packets of 1448 bytes: a sender may not send more, whatever its own window. To double from 10 to 45
  takes 2.2 round trips, 1.3 s. For the source's 2 s a receiver has to allow 100 packets at once, by a larger
  middle value of `tcp_rmem` (`rmem`), for which the source's table has no setting.
- **One proxy** at the gateway does as much as two, and what may wait inside a proxy changes nothing."""


def _some(configured: dict[str, Sender], *words: str) -> list[Sender]:
    return [configured[word] for word in words if word in configured]


def _failed(runs: KuhnRuns) -> list[str]:
    failed = [one for one in runs.records if not one.ok]
    count = several(len(runs.records), "trial")
    if not failed:
        return ["## Failed trials", f"None of {count} failed."]
    outcomes = sorted({one.outcome.replace("_", " ") for one in failed})
    return ["## Failed trials", f"{len(failed)} of {count} did not complete: {', '.join(outcomes)}."]


def _made(runs: KuhnRuns) -> list[str]:
    rows = [
        [
            one.manifest.campaign,
            one.manifest.title,
            str(len(one.records)),
            str(one.manifest.plan.seed),
            one.manifest.finished or "not finished",
        ]
        for one in runs.sources
    ]
    every = " --all" if len(runs.sources) > 5 else ""
    return [
        "## How this page was made",
        code(f"bentpipe study kuhn{every}"),
        "It carries out these campaigns; `bentpipe run NAME` runs one of them.",
        table(["campaign", "", "trials", "seed", "finished"], rows, left=2),
        *closing.stacks(runs.sources),
    ]
