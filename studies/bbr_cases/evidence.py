"""The trials of the study's runs by sender and seed, and what each case comes to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from bentpipe import labels
from bentpipe.analysis import traces
from bentpipe.analysis.traces import TracedRun
from bentpipe.objectives.judge import has_failed
from bentpipe.runs.records import Record
from bentpipe.runs.trial_files import is_traced
from bentpipe.study.source import Source

from . import startup
from .cases import CASES, Case
from .judgement import Judgement, failed, untold
from .signals import PathFacts, Signals

COLUMNS = ["direction", "sent_s", "received_s", "acked_s", "lost_s", "ip_bytes", "fate", "copy", "connection"]
CUT = "bbr-cut"
BESIDE = ("noq:cc=bentpipe", "picoquic:cc=c4")  # no BBR
_CUT_S = re.compile(r'"([\d.]+)s","10.5Mbit/s"')
_NO_PAGE = "no workload that the application limits"


@dataclass(frozen=True)
class Trial:
    """A traced trial of a run."""

    source: Source
    record: Record

    @property
    def path(self) -> str:
        return labels.scenario(self.record.scenario).name

    @property
    def cut_s(self) -> float | None:
        """When the rate of its path fell, of those that differ in it alone."""
        found = _CUT_S.search(self.record.scenario)
        return float(found[1]) if found else None

    def signals(self, rate_bps: float | None = None) -> Signals:
        """What the wire showed; `rate_bps` counts in place of the path's."""
        return _signals(self.source.folder, self.record.trial, rate_bps)


@lru_cache(maxsize=8)
def _run(folder: Path) -> TracedRun:
    return TracedRun.read(folder)


@dataclass(frozen=True)
class Evidence:
    """The runs, and what the cases come to."""

    sources: Sequence[Source]

    @cached_property
    def trials(self) -> list[Trial]:
        """Those that have packets."""
        found = (Trial(source, one) for source in self.sources for one in source.in_order if one.ok)
        return [one for one in found if is_traced(one.source.folder / "trials" / one.record.trial)]

    @cached_property
    def servers(self) -> list[str]:
        """The senders over the steady path, those that are no BBR last."""
        found = dict.fromkeys(one.record.server for one in self.trials if one.path == "bbr-steady")
        return sorted(found, key=lambda one: one in BESIDE)

    def of(self, case: Case, server: str) -> list[Trial]:
        """The trials that a case is judged by, one for each seed."""
        mine = [one for one in self._over(case.scenario, server) if case.page in one.record.workload]
        if case.scenario == CUT:
            return list(self._at_drain(server))
        return mine

    def _over(self, path: str, server: str) -> list[Trial]:
        return [one for one in self.trials if one.path == path and one.record.server == server]

    def steady(self, server: str, trial: Trial) -> Trial | None:
        """The trial over the steady path of the same run, or of any."""
        known = self._over("bbr-steady", server)
        same = [one for one in known if one.source is trial.source]
        return next(iter(same or known), None)

    def _at_drain(self, server: str) -> Iterator[Trial]:
        """That whose rate fell nearest to the time at which DRAIN begins over the steady path."""
        known = [one for one in self._over(CUT, server) if one.cut_s is not None]
        steady = next(iter(self._over("bbr-steady", server)), None)
        begin = steady and startup.drain_begin_s(steady.signals())
        if known and begin:
            yield min(known, key=lambda one: abs((one.cut_s or 0.0) - begin))

    @cached_property
    def judgements(self) -> dict[tuple[int, str], list[Judgement]]:
        """By case and sender, a judgement for each seed."""
        return {
            (case.number, server): self._judged(case, server) for server in self.servers for case in CASES
        }

    def _judged(self, case: Case, server: str) -> list[Judgement]:
        known = self.of(case, server)
        found = []
        for one in known:
            steady = self.steady(server, one)
            found.append(case.judge(one.signals(case.rate_bps), steady.signals() if steady else None))
        found += map(_as_judgement, self._failures(case, server))
        return found or [self._missing(case, server)]

    def _failures(self, case: Case, server: str) -> list[Record]:
        """The trials of a case that failed; none where one of many is chosen by another path."""
        return [
            one
            for one in self._ran(case, server)
            if one.failed and case.page in one.workload and case.scenario != CUT
        ]

    def _ran(self, case: Case, server: str) -> list[Record]:
        ran = (one for source in self.sources for one in source.in_order if one.server == server)
        return [one for one in ran if labels.scenario(one.scenario).name == case.scenario]

    def _missing(self, case: Case, server: str) -> Judgement:
        """Why there is no trial with packets."""
        if case.scenario == CUT and self._ran(case, server):
            return untold("no DRAIN seen over the steady path")
        return untold(_NO_PAGE if case.page else "no trial")


def _as_judgement(record: Record) -> Judgement:
    """A trial that failed; the wire cannot tell what a sender does where the testbed failed."""
    if record.outcome == "invalid" and not has_failed(record):
        return untold(f"a trial says nothing: {record.detail}")
    return failed(f"{record.outcome.replace('_', ' ')}: {record.detail}")


@lru_cache(maxsize=6)
def _signals(folder: Path, trial: str, rate_bps: float | None) -> Signals:
    run = _run(folder)
    analysis = traces.of_trial(run.folder / "trials" / trial, run)
    link = analysis.link
    path = PathFacts(float(rate_bps or link.forward_rate_bps or 0), (link.rtt_ms or 0.0) / 1e3)
    packets = analysis.read_packets(COLUMNS, analysis.connection().connection)
    return Signals.of_table(packets, path)
