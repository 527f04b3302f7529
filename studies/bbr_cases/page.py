"""The page on BBR's own cases: senders by cases, a figure for each case, and noq's BBR3 with jitter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bentpipe import labels
from bentpipe.study import closing, markdown
from bentpipe.study.markdown import literal, number, several, table
from bentpipe.study.source import Source

from . import drawn, jitter
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
The draft tests a sender's variables; here a case is judged by what the wire shows: when packets are sent,
arrive and are acknowledged. So *pass* says that the packets are as the draft's rules make them, not that the
stack has these rules; *fail*, that they are not; `?`, that it cannot be told, for the reason given. A BBR of
an earlier version is held to this one like the others. The last two senders are no BBR and stand for
comparison. Each case names the sections that define what is asked for; the thresholds are in the study's
code, each with its section. Where seeds disagree, the table says how many of them give the verdict."""
_NOTE = {
    True: "Judged are {seeds} of each sender; figures show the first.",
    False: "Judged is one trial of each sender.",
}


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its figures to `folder`. BentpipeError if no run has the steady path."""
    evidence = Evidence(tuple(runs))
    if not evidence.servers:
        raise runs[0].refused("wanted are trials over bbr-steady, with packets", "study bbr-cases")
    figures = {case.number: _figure(evidence, case, folder) for case in CASES}
    file = folder / "bbr-cases.md"
    file.write_text(markdown.page(_sections(evidence, figures)))
    return [file, *(one for one in figures.values() if one)]


def _sections(evidence: Evidence, figures: dict[int, Path | None]) -> list[str]:
    parts = ["# BBR's own cases", _answer(evidence), _matrix(evidence), _HOW.format(draft=DRAFT), _hidden()]
    for case in CASES:
        parts += _section(evidence, case, figures[case.number])
    parts += [*_corners(evidence), *jitter.sections(evidence), "## Limits", _limits()]
    return [*parts, *closing.of_all(evidence.sources)]


def _verdict(evidence: Evidence, case: Case, server: str) -> str:
    return over_seeds(evidence.judgements[case.number, server]).outcome


def _counts(evidence: Evidence, server: str) -> dict[str, int]:
    found = [_verdict(evidence, case, server) for case in CASES]
    return {outcome: found.count(outcome) for outcome in ("pass", "fail", "?")}


def _answer(evidence: Evidence) -> str:
    """Who passes most, who least, and the cases that nobody passes."""
    bbrs = [one for one in evidence.servers if one not in BESIDE]
    ordered = sorted(bbrs, key=lambda one: -_counts(evidence, one)["pass"])
    best, worst = ordered[0], ordered[-1]
    text = (
        f"Of {several(len(CASES), 'case')} that show on the wire, {literal(best)} passes "
        f"{_counts(evidence, best)['pass']}, the most of {several(len(bbrs), 'BBR')}, and {literal(worst)} "
        f"{_counts(evidence, worst)['pass']}, the fewest."
    )
    none = [one for one in CASES if not any(_verdict(evidence, one, each) == "pass" for each in bbrs)]
    if none:
        text += f" Nobody passes {markdown.listed(f'{one.name} ({one.title})' for one in none)}."
    return text


def _matrix(evidence: Evidence) -> str:
    """Rows are senders, columns cases."""
    rows = [
        [
            literal(server),
            *(in_words(evidence.judgements[case.number, server]) for case in CASES),
            *(str(one) for one in _counts(evidence, server).values()),
        ]
        for server in evidence.servers
    ]
    return table(["server", *(case.name for case in CASES), "pass", "fail", "?"], rows)


def _hidden() -> str:
    cases = "\n".join(f"- A.{number}: {why}" for number, why in HIDDEN.items())
    return f"Of no sender can be told, by the wire alone:\n\n{cases}"


def _section(evidence: Evidence, case: Case, figure: Path | None) -> list[str]:
    parts = [
        f"## {case.name}: {case.title}",
        f"Held to: section{'s' if ',' in case.sections else ''} {case.sections}. {case.asked} "
        f"Path: {_path(evidence, case)}. {_seeds(evidence, case)}",
    ]
    if figure:
        parts.append(f"![{case.title}]({figure.name})")
    return [*parts, _seen(evidence, case)]


def _path(evidence: Evidence, case: Case) -> str:
    for source in evidence.sources:
        for label, state in source.manifest.scenarios.items():
            if labels.scenario(label).name == case.scenario:
                return literal(str(state.summary["title"]))
    return "not run"


def _seeds(evidence: Evidence, case: Case) -> str:
    most = max((len(evidence.judgements[case.number, one]) for one in evidence.servers), default=1)
    return _NOTE[most > 1].format(seeds=several(most, "seed"))


def _seen(evidence: Evidence, case: Case) -> str:
    """A line for each outcome: who, and what was seen."""
    lines = []
    for outcome, name in (("pass", "pass"), ("fail", "fail"), ("?", "cannot be told")):
        mine = [one for one in evidence.servers if _verdict(evidence, case, one) == outcome]
        if not mine:
            continue
        seen = {one: over_seeds(evidence.judgements[case.number, one]).seen for one in mine}
        texts: dict[str, list[str]] = {}
        for server, text in seen.items():
            texts.setdefault(text, []).append(literal(server))
        said = "; ".join(f"{', '.join(who)}: {literal(text)}" for text, who in texts.items())
        lines.append(f"- **{name}**: {said}")
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
