"""`bentpipe trace`."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from bentpipe.analysis import traces
from bentpipe.analysis.traces import Analysis
from bentpipe.cli import passive_summary
from bentpipe.cli.captured import CaptureArguments, captured, find
from bentpipe.cli.layout import ROWS, aligned, folded, more
from bentpipe.runs import trial_files
from bentpipe.schema.analysis import Connection, Establishment, Evidence, Finding, Metrics, PlotPlace

_WIDTH = 100
_UNKNOWN = "-"
_IN_FULL = 3  # connections; of more, each has a line
_ENOUGH = 10  # data packets, for a ratio to mean something
_BOUND = "\u00a0"  # between a number and its unit, which stay on one line


@click.command(short_help="Measure and explain the connections in captures.")
@captured
@click.option("--explain", is_flag=True, help="Also say what delayed the transfer, with the evidence.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write packets and analysis to this folder.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help=f"Print each connection in full, also where they are more than {_IN_FULL}.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the analysis as JSON.")
def trace(named: CaptureArguments, explain: bool, out: Path | None, every: bool, as_json: bool) -> int:
    """Measure the QUIC and TCP connections in captures (pcapng, pcap) or in the folders of trials, in turn.

    Two captures of the same connections, one taken at each side, are given together. Forward is from server
    to client. Times count from the connection's first packet; - means not measured.

    With -o, DIR has the packets in packets.parquet and the analysis in analysis.json;
    docs/reference/traces.md says what is in them.

    Without TLS secrets it measures what everybody on the path can see: handshakes, spin bits, datagrams
    and, where both sides were captured, losses, delays and RTTs.

    Exit code: 0; 1 if a file could not be read to its end, or if --keylog decrypts nothing: what there is has
    been printed; 2 if nothing was read.

    \b
    Examples:
      bentpipe trace runs/demo/trials/sat_quinn_noq_1-0a1b2c3d --explain
      bentpipe trace runs/demo/trials/* --explain
      bentpipe trace client.pcap server.pcap --keylog keys.log
      bentpipe trace capture.pcapng -o analysis && bentpipe plot analysis
    """
    several = len(named.files) > 1 and all(file.is_dir() for file in named.files)
    if not several or as_json or out is not None:
        return _trace(named, explain, out, every, as_json)
    codes = []
    for file in named.files:
        click.echo(f"{file.name}:")
        codes.append(_trace(dataclasses.replace(named, files=(file,)), explain, None, every, False))
        click.echo()
    return max(codes)


def _trace(named: CaptureArguments, explain: bool, out: Path | None, every: bool, as_json: bool) -> int:
    """Measure the connections of some captures, or of a trial's folder. The exit code."""
    analysis = find(named, out)
    if as_json:
        click.echo(json.dumps(json.loads((analysis.folder / trial_files.SUMMARY).read_text()), indent=1))
    else:
        if every or len(analysis.summary.connections) <= _IN_FULL:
            _print(analysis, named, explain)
        else:
            _print_many(analysis.summary.connections, explain)
        _undecoded(analysis)
        if analysis.other_hops:
            others = " ".join(shlex.quote(str(path)) for path in analysis.other_hops)
            click.echo(f"note: this is the hop at the client; the others: {others}")
    if out is not None:
        click.echo(f"{out / trial_files.PACKETS}\n{out / trial_files.SUMMARY}", err=as_json)
    errors = [traces.with_hint(error) for error in analysis.summary.errors]
    if named.keylog and analysis.is_sealed():
        text = f"--keylog: {named.keylog}: nothing of the data could be decrypted with it"
        errors.append((text, "its secrets seem to be of other connections"))
    for text, hint in errors:
        click.echo(f"error: {text}" + (f"\nhint: {hint}" if hint else ""), err=True)
    return 1 if errors else 0


def _print(analysis: Analysis, named: CaptureArguments, explain: bool) -> None:
    summary = analysis.summary
    for connection in summary.connections:
        for line in _connection(connection):
            click.echo(line)
        if explain:
            for line in _explain(analysis, connection, named):
                click.echo(line)
        click.echo()


def _print_many(connections: Sequence[Connection], explain: bool) -> None:
    """A line for each of those with the most bytes; the others are counted."""
    ordered = sorted(connections, key=lambda one: -_bytes(one.metrics))
    click.echo(f"{len(connections)} connections; those with the most bytes:")
    rows = [["connection", "handshake", "IP bytes forward", "return", "mean rate forward", "lost"]]
    for one in ordered[:ROWS]:
        metrics = one.metrics
        rows.append(
            [
                f"{one.connection}: {one.protocol.upper()}, {one.client} → {one.server}",
                _unit(metrics.handshake_s, ".3f", "s"),
                _count(metrics.forward.ip_bytes),
                _count(metrics.return_.ip_bytes),
                _rate(metrics.forward.mean_rate_bps),
                _share(metrics.forward.lost_share),
            ]
        )
    for line in aligned(rows, {0}):
        click.echo(line)
    if len(ordered) > ROWS:
        click.echo(more(len(ordered) - ROWS, "connections"))
    else:
        click.echo("each in full: --all")
    holding: dict[str, list[int]] = {}
    for one in connections if explain else ():
        for finding in one.findings:
            if finding.verdict == "yes":
                holding.setdefault(finding.title, []).append(one.connection)
    for title, where in sorted(holding.items(), key=lambda each: -len(each[1])):
        click.echo(folded(f"yes, in {len(where)}, first in connection {where[0]}: {title}", further="  "))


def _bytes(metrics: Metrics) -> int:
    """IP bytes both ways, as far as they are known: these are without secrets, too."""
    return (metrics.forward.ip_bytes or 0) + (metrics.return_.ip_bytes or 0)


def _undecoded(analysis: Analysis) -> None:
    summary = analysis.summary
    for missing in summary.undecoded:
        what = f"{missing.count} {missing.what}"
        if not any(what in error for error in summary.errors):
            text = f"not decoded: {what} (first in frame {missing.first_frame})"
            click.echo(textwrap.fill(text, _width(), subsequent_indent="  "))


def _connection(one: Connection) -> Iterator[str]:
    """The measures of a connection; without those that need secrets, if it has none."""
    yield from _heading(one)
    sealed = bool(one.sealed)
    if sealed:
        yield from _indented(_SEALED, 2)
    elif one.protocol == "tcp" and one.establishment and one.establishment.zero_rtt_bytes is None:
        yield from _indented(_SEALED_TLS, 2)
    metrics, passive = one.metrics, one.passive
    yield ""
    for name, value in _whole(metrics, sealed):
        yield f"  {name:<22} {value}"
    for name, value in passive_summary.whole(passive) if passive else ():
        yield f"  {name:<22} {value}"
    yield ""
    yield _row("", "forward", "return")
    for name, key, show in _ONE_WAY:
        values = [show(getattr(one_way, key)) for one_way in (metrics.forward, metrics.return_)]
        if not (sealed and key in _OF_STREAMS):
            yield _row(name, *values)
    for row in passive_summary.one_way(passive) if passive else ():
        yield _row(*row)
    if sealed:
        return
    yield ""
    yield _row("data sent", "forward", "return")
    for name, *shown in zip(_ACKED, *_acknowledged(metrics), strict=True):
        yield _row(name, *shown)


def _heading(one: Connection) -> Iterator[str]:
    unseen = "TCP" if one.protocol == "tcp" else "QUIC by the form of its packets"
    version = f"QUIC version {one.version}" if one.version else unseen
    where = {"both": "both sides", "unknown": "one place, unknown which"}.get(
        one.vantage, f"the {one.vantage}'s side"
    )
    yield f"connection {one.connection}: {version}, captured at {where}"
    yield f"  client {one.client}, server {one.server}"
    if one.passive:
        for line in (*passive_summary.names(one.passive), *passive_summary.connection_ids(one.passive)):
            yield from _indented(line, 2)
    if one.establishment:
        yield from _indented(f"handshake: {_established(one.establishment, one.protocol == 'tcp')}", 2)


def _row(name: str, forward: str, back: str) -> str:
    return f"  {name:<24} {forward:>15} {back:>15}"


def _established(shown: Establishment, is_tcp: bool) -> str:
    """The lines on the connection's establishment."""
    words = ["complete" if shown.complete else "not complete"]
    if shown.retry:
        words.append("after a Retry")
    if shown.client_hellos != 1:
        words.append(f"{shown.client_hellos} ClientHellos")
    if shown.resumed is not None:
        words.append("resumed with a ticket" if shown.resumed else "not resumed")
    early = shown.zero_rtt_bytes
    if early is None and not is_tcp:
        words.append("0-RTT that was not decrypted")
    elif early:
        taken = {True: "accepted", False: "not accepted", None: "accepted or not is not known"}
        words.append(f"{early:,} stream bytes in 0-RTT, {taken[shown.zero_rtt_accepted]}")
    return ", ".join(words)


def _acknowledged(metrics: Metrics) -> Iterator[tuple[str, str, str]]:
    """Of each way: packets with data, packets with ACKs that came back, and these per one of those."""
    for way, back in ((metrics.forward, metrics.return_), (metrics.return_, metrics.forward)):
        ratio, acks = way.acks_per_data_packet, back.acks_sent
        data = round(acks / ratio) if acks and ratio else None
        meant = data is not None and data >= _ENOUGH
        yield _count(data), _count(acks), _ratio(ratio if meant else None)


def _whole(metrics: Metrics, sealed: bool) -> Iterator[tuple[str, str]]:
    """The measures of a connection as a whole; without secrets only the first line."""
    if sealed:
        yield "handshake complete", _unit(metrics.handshake_s, ".3f", "s")
        return
    for name, time_s in (
        ("handshake complete", metrics.handshake_s),
        ("first stream byte", metrics.ttfb_s),
        ("last stream byte", metrics.completion_s),
        ("transfer", metrics.transfer_s),
    ):
        yield name, _unit(time_s, ".3f", "s")
    yield "goodput", _rate(metrics.goodput_bps)
    yield "bytes from server", _count(metrics.stream_bytes)
    yield "bytes from client", _count(metrics.upload_bytes)
    rtts_ms = (metrics.rtt_min_ms, metrics.rtt_median_ms, metrics.rtt_max_ms)
    spread = [_unit(rtt_ms, ".1f", "") for rtt_ms in rtts_ms]
    yield "RTT min/median/max", f"{' / '.join(spread)} ms"
    yield "most bytes in flight", _count(metrics.in_flight_max_bytes)


def _unit(value: float | None, form: str, unit: str) -> str:
    return _UNKNOWN if value is None else f"{value:{form}} {unit}".rstrip()


def _rate(bps: float | None) -> str:
    return _UNKNOWN if bps is None else f"{bps / 1e6:.3f} Mbit/s"


def _count(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:,.0f}"


def _share(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value * 100:.2f} %"


def _milliseconds(value: float | None) -> str:
    return _unit(value, ".1f", "ms")


def _ratio(value: float | None) -> str:
    return _unit(value, ".2f", "")


_ONE_WAY = (
    ("packets", "packets", _count),
    ("datagrams", "datagrams", _count),
    ("IP bytes", "ip_bytes", _count),
    ("mean rate", "mean_rate_bps", _rate),
    ("stream bytes", "stream_bytes", _count),
    ("retransmitted bytes", "retransmitted_bytes", _count),
    ("  share", "retransmitted_share", _share),
    ("lost packets", "lost_packets", _count),
    ("  share", "lost_share", _share),
    ("reordered packets", "reordered_packets", _count),
    ("duplicates", "duplicates", _count),
    ("one-way delay, least", "one_way_delay_min_ms", _milliseconds),
    ("  median", "one_way_delay_median_ms", _milliseconds),
    ("  most", "one_way_delay_max_ms", _milliseconds),
    ("IP packet, mean bytes", "mean_datagram_bytes", _count),
    ("IP packet, most bytes", "largest_datagram_bytes", _count),
)
_OF_STREAMS = ("stream_bytes", "retransmitted_bytes", "retransmitted_share")
_SEALED = (
    "There are no TLS secrets of it: what follows is what everybody on the path can see. With --keylog KEYS, "
    "as endpoints write it with SSLKEYLOGFILE=KEYS, streams and acknowledgements are measured, too."
)
_SEALED_TLS = (
    "Its TLS could not be decrypted: bytes and times are those of TCP's streams, TLS's own messages among "
    "them. With --keylog KEYS they are the application's."
)
_ACKED = ("data packets", "ACK packets coming back", "  per data packet")


def _explain(analysis: Analysis, one: Connection, named: CaptureArguments) -> Iterator[str]:
    """The findings: those that hold first, then those left open, then what was ruled out."""
    by_verdict: dict[str, list[Finding]] = {"yes": [], "not_sure": [], "no": []}
    for finding in one.findings:
        by_verdict[finding.verdict].append(finding)
    yield ""
    if not by_verdict["yes"]:
        yield f"  {_nothing(one.findings, by_verdict['not_sure'])}"
    for finding in by_verdict["yes"]:
        yield f"  yes: {finding.title}"
        yield from _indented(finding.text, 4)
        for evidence in finding.evidence:
            yield from _indented(f"- {_evidence(evidence)}", 4)
        if finding.plot is not None:
            yield f"    see: {_plot_command(finding.plot, one, named, analysis)}"
    for why, titles in _by_reason(by_verdict["not_sure"]).items():
        yield from _indented(f"not sure: {'; '.join(titles)}", 2)
        yield from _indented(why, 4)
    if by_verdict["no"]:
        yield from _indented("ruled out: " + "; ".join(finding.title for finding in by_verdict["no"]), 2)


def _nothing(rules: Sequence[Finding], open_: Sequence[Finding]) -> str:
    if not rules:
        return "no finding"
    if len(open_) == len(rules):
        return "no rule could judge"
    if not open_:
        return "no flaw was found"
    return f"{len(open_)} of {len(rules)} rules could not judge; the others found no flaw"


def _by_reason(findings: Sequence[Finding]) -> dict[str, list[str]]:
    """Why something is left open → the titles of what is."""
    reasons: dict[str, list[str]] = {}
    for finding in findings:
        reasons.setdefault(finding.text.removeprefix("Not sure: "), []).append(finding.title)
    return reasons


def _evidence(one: Evidence) -> str:
    value = f"{one.value:,.0f}" if abs(one.value) >= 1000 else f"{one.value:.4g}"
    when = f"at {one.at_s:.3f}{_BOUND}s"
    if one.until_s is not None:
        when = f"from {one.at_s:.3f}{_BOUND}s to {one.until_s:.3f}{_BOUND}s"
    return f"{one.what}: {value}{_BOUND}{one.unit} {when}"


def _plot_command(
    plot: PlotPlace, connection: Connection, named: CaptureArguments, analysis: Analysis
) -> str:
    words = ["bentpipe", "plot", *map(traces.argument, named.files)]
    words += ["--keylog", traces.argument(named.keylog)] if named.keylog else []
    words += [word for qlog in named.qlogs for word in ("--qlog", traces.argument(qlog))]
    words += ["--link", named.link] if named.link else []
    words += ["--kind", plot.kind]
    from_s, to_s = analysis.window(connection, plot.from_s, plot.to_s)
    for option, time_s in (("--from", from_s), ("--to", to_s)):
        words += [option, f"{time_s:.3f}".rstrip("0").rstrip(".")]
    words += ["--connection", str(connection.connection)] if connection.connection else []
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """A word for the shell. One that is not fit to be seen is written in the form $'…' of POSIX 2024."""
    if word.isprintable():
        return shlex.quote(word)
    plain = (
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b"'\\" else f"\\{byte:03o}"
        for byte in os.fsencode(word)
    )
    return f"$'{''.join(plain)}'"


def _indented(text: str, by: int) -> list[str]:
    hanging = by + 2 if text.startswith("- ") else by
    lines = textwrap.wrap(text, _width(), initial_indent=" " * by, subsequent_indent=" " * hanging)
    return [line.replace(_BOUND, " ") for line in lines]


def _width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDTH)
