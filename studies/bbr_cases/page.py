"""The page on BBR's own cases: who passes how many, a figure for each case, and noq's BBR3 with jitter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bentpipe import labels
from bentpipe.study import closing, markdown
from bentpipe.study.front import folded
from bentpipe.study.markdown import listed, literal, number, several, table
from bentpipe.study.source import Source

from . import answer, drawn, jitter
from .answer import Ranking
from .cases import CASES, HIDDEN, Case
from .evidence import BESIDE, Evidence
from .judgement import in_words, over_seeds

DRAFT = "https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06"
CORNERS = {  # path → what it is
    "bbr-small": "64 kbit/s, 10 ms",
    "bbr-slow": "64 kbit/s, 1 s",
    "bbr-steady": "20 Mbit/s, 50 ms",
    "bbr-far": "20 Mbit/s, 1 s",
    "bbr-fast": "10 Gbit/s, 1 ms",
}
_HOW = """[Draft-ietf-ccwg-bbr-06]({draft}) has 22 test cases for implementations of BBR (appendix A).
The draft tests a sender's variables; this study judges a case by what the wire shows: when packets are sent,
arrive and are acknowledged. So *pass* says that the packets are as the draft's rules make them, not that the
stack has these rules; *fail*, that they are not; `?`, that the wire cannot tell, for the reason given. A BBR
of an earlier version is held to this one like the others. {beside}Each case names the sections that define
what is asked for; the thresholds are in the study's code, each with its section. Where seeds disagree, the
table says how many of them give the verdict."""
_OUTCOMES = ("pass", "fail", "?")
_NOTE = {
    True: "{seeds} of each sender are judged; figures show the first.",
    False: "One trial of each sender is judged.",
}


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its figures to `folder`. BentpipeError if no run has a BBR over the steady
    path.
    """
    evidence = Evidence(tuple(runs))
    if all(one in BESIDE for one in evidence.servers):
        raise runs[0].refused("wanted are trials of a BBR over bbr-steady, with packets", "study bbr-cases")
    figures = {case.number: _figure(evidence, case, folder) for case in CASES}
    ranking = Ranking(evidence)
    front = answer.front(ranking, folder)
    file = folder / "bbr-cases.md"
    file.write_text(markdown.page([*front.parts(), *_sections(ranking, figures)]))
    return [file, folder / answer.PICTURE, *(one for one in figures.values() if one)]


def _sections(ranking: Ranking, figures: dict[int, Path | None]) -> list[str]:
    evidence = ranking.evidence
    parts = ["## What was run", _how(evidence), _hidden(), "## Verdicts", _matrix(ranking), answer.HOW]
    for case in CASES:
        parts += _section(ranking, case, figures[case.number])
    parts += [*_corners(evidence), *jitter.sections(evidence), "## Limits", _limits()]
    return [*parts, *closing.of_all(evidence.sources)]


def _how(evidence: Evidence) -> str:
    known = [literal(one) for one in evidence.servers if one in BESIDE]
    verb = "is no BBR and stands" if len(known) == 1 else "are no BBR and stand"
    return _HOW.format(draft=DRAFT, beside=f"{listed(known)} {verb} for comparison. " if known else "")


def _matrix(ranking: Ranking) -> str:
    """Rows are senders, columns cases."""
    rows = [
        [
            literal(server),
            *(in_words(ranking.evidence.judgements[case.number, server]) for case in CASES),
            *(str(sum(ranking.judged(case, server) == one for case in CASES)) for one in _OUTCOMES),
            found.span,
        ]
        for server, found in ranking.passed.items()
    ]
    return table(["server", *(case.name for case in CASES), *_OUTCOMES, "passes"], rows)


def _hidden() -> str:
    cases = "\n".join(f"- A.{number}: {why}" for number, why in HIDDEN.items())
    return f"By the wire alone no sender can be judged in these cases:\n\n{cases}"


def _section(ranking: Ranking, case: Case, figure: Path | None) -> list[str]:
    evidence = ranking.evidence
    parts = [
        f"## {case.name}: {case.title}",
        f"Defined in section{'s' if ',' in case.sections else ''} {case.sections}. {case.asked} "
        f"Path: {_path(evidence, case)}. {_seeds(evidence, case)}",
    ]
    if figure:
        parts.append(f"![{case.title}]({figure.name})")
    return [*parts, *folded("What was seen of each sender", _seen(ranking, case))]


def _path(evidence: Evidence, case: Case) -> str:
    for source in evidence.sources:
        for label, state in source.manifest.scenarios.items():
            if labels.scenario(label).name == case.scenario:
                return literal(str(state.summary["title"]))
    return "not run"


def _seeds(evidence: Evidence, case: Case) -> str:
    most = max((len(evidence.judgements[case.number, one]) for one in evidence.servers), default=1)
    return _NOTE[most > 1].format(seeds=several(most, "seed"))


def _seen(ranking: Ranking, case: Case) -> str:
    """A line for each outcome: who, and what was seen."""
    lines = []
    for outcome, name in (("pass", "pass"), ("fail", "fail"), ("?", "cannot be told")):
        mine = [one for one in ranking.passed if ranking.judged(case, one) == outcome]
        if not mine:
            continue
        seen = {one: over_seeds(ranking.evidence.judgements[case.number, one]).seen for one in mine}
        texts: dict[str, list[str]] = {}
        for server, text in seen.items():
            texts.setdefault(text, []).append(literal(server))
        shown = "; ".join(f"{', '.join(who)}: {literal(text)}" for text, who in texts.items())
        lines.append(f"- **{name}**: {shown}")
    return "\n".join(lines)


def _figure(evidence: Evidence, case: Case, folder: Path) -> Path | None:
    """Draw the first trial of each sender; None if there is none."""
    panels = []
    for server in evidence.servers:
        trials = evidence.of(case, server)
        if trials:
            word = in_words(evidence.judgements[case.number, server])
            panels.append(drawn.Panel(f"{server}: {word}", trials[0].signals(case.rate_bps)))
    if not panels:
        return None
    path = folder / f"bbr-{case.number:02}.svg"
    drawn.draw(case, panels, path)
    return path


def _corners(evidence: Evidence) -> list[str]:
    """Goodput at the corners of the draft's ranges, as a share of the link's rate."""
    found: dict[tuple[str, str], list[float]] = {}
    for source in evidence.sources:
        for one in source.in_order:
            path = labels.scenario(one.scenario).name
            if path in CORNERS and one.goodput_bps is not None:
                rate = source.manifest.scenarios[one.scenario].summary["forward_rate_bps"]
                found.setdefault((path, one.server), []).append(one.goodput_bps / rate)
    paths = [one for one in CORNERS if any(path == one for path, _ in found)]
    rows = [
        [literal(server), *(_median(found.get((path, server), [])) for path in paths)]
        for server in evidence.servers
    ]
    return [
        "## From 64 kbit/s to 10 Gbit/s, from 1 ms to 1 s",
        "Goodput as a share of the link's rate, from the first byte of data on: of 20 s at 20 Mbit/s, of a "
        "minute at 64 kbit/s, of 200 MB at 10 Gbit/s. Headers take 2 to 4 % of it.",
        table(["server", *(CORNERS[one] for one in paths)], rows),
    ]


def _median(values: Sequence[float]) -> str:
    return number(sorted(values)[len(values) // 2], 2) if values else "-"


def _limits() -> str:
    return """- One flow at a time: cases of coexistence are not in the draft's appendix.
- Paths are modelled, and endpoints take no CPU time: pacing is as exact as a stack's timers.
- What the draft says of states is seen through paces and bytes in flight. A sender of another design can
  pass a case: C4, and Bentpipe's own.
- Senders that the application limits: of the stacks with a BBR, noq, quinn and Linux load pages here."""
