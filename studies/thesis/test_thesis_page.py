"""`bentpipe study`: pages written from the records of a run, which is made up here."""

import math
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import fake_run
import msgspec
import numpy as np
import pytest
from conftest import Command
from thesis import both_ends, controllers, gallery, intervals, published, virtual_time
from thesis.pairs import ServerChange, over_pairs

from bentpipe.analysis.cells import matrices
from bentpipe.plan import campaign, scenarios
from bentpipe.runs.records import Record
from bentpipe.study import catalogue
from bentpipe.study.markdown import literal
from bentpipe.study.source import without_folders

STUDIES = Path(__file__).resolve().parents[2] / "studies"
STACKS = ("aioquic", "noq", "quic-go", "quinn")
Change = Callable[[list[Record]], list[Record]]


def write(folder: Path, change: Change = lambda records: records, **options: object) -> list[Record]:
    """A run as `fake_run` makes it, its records changed."""
    records = change(fake_run.write(folder, links=fake_run.OF_2021, **options))  # type: ignore[arg-type]
    fake_run.write_records(folder, records)
    return records


def page(bentpipe: Command, run: str = "run") -> str:
    done = bentpipe("study", "thesis", "--run", run, "-o", "out")
    assert done.code == 0, done.err
    assert all(Path(line).is_file() for line in done.out.splitlines())
    return Path("out/thesis.md").read_text() + Path("out/thesis-pairs.md").read_text()


def rows(text: str, heading: str) -> dict[str, list[str]]:
    """The first table below a heading: first cell → the others."""
    below = text.partition(f"\n## {heading}\n")[2]
    found = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)
    assert found, heading
    lines = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in found[0].splitlines()]
    return {line[0]: line[1:] for line in lines}


def test_every_study_says_what_it_is() -> None:
    studies = catalogue.discover()
    assert set(studies) == {folder.name.replace("_", "-") for folder in STUDIES.iterdir() if folder.is_dir()}
    for one in studies.values():
        assert one.title and one.question.endswith("?") and callable(one.page())


def test_the_matrix_has_the_means_of_the_records(bentpipe: Command) -> None:
    records = write(Path("run"))
    text = page(bentpipe)
    table = rows(text, "sat-2021")
    assert table[r"client \\ server"] == list(STACKS)
    for client in STACKS:
        for server, shown in zip(STACKS, table[client], strict=True):
            mine = [r for r in records if (r.scenario, r.client, r.server) == ("sat-2021", client, server)]
            mean = statistics.fmean(r.goodput_bps for r in mine if r.goodput_bps is not None) / 1e6
            failed = sum(not r.ok for r in mine)
            assert shown == f"{mean:.2f}" + (f" ({failed})" if failed else "")
    assert table["aioquic"][3].endswith(" (1)")
    assert rows(text, "satloss-2021")["noq"][0] == "transfer timeout"
    assert rows(text, "goodput")["quic-go"][0] == "unsupported"


def by_runner(record: Record) -> float:
    """Goodput by the source's equation 4.1, of a trial."""
    return 8 * record.size_bytes / (record.runner_transfer_s or float("inf"))


def test_the_overview_counts_as_the_source_does(bentpipe: Command) -> None:
    """A pair with one failed trial is a failed pair, and in no mean; goodput is by the source's equation."""
    records = write(Path("run"))
    line = rows(page(bentpipe), "All pairs")["satloss-2021"]
    clean, best = {}, 0.0
    for client in STACKS:
        for server in STACKS:
            mine = [
                r for r in records if (r.scenario, r.client, r.server) == ("satloss-2021", client, server)
            ]
            if all(r.ok for r in mine):
                clean[client, server] = statistics.fmean(map(by_runner, mine)) / 1e6
                best = max(best, *map(by_runner, mine))
    assert f"{best / 1e6:.2f}" != f"{max(clean.values()):.2f}"  # a trial is better than the best mean
    assert len(clean) == 16 - 4 - 1 - 1
    assert line[:4] == [
        f"{statistics.fmean(clean.values()):.2f}",
        "2.86",
        f"{best / 1e6:.2f}",
        "11.5",
    ]
    # Four pairs to aioquic and quic-go → noq ran out of time, and so did the handshake of one more.
    assert line[6:] == [f"{100 * 6 / 16:.0f} %", "44 %", f"{100 * 6 / 16:.0f} %", "10 %", "16"]


def test_what_failed_is_listed_with_its_details(bentpipe: Command) -> None:
    write(Path("run"))
    text = page(bentpipe).partition("## Failed trials")[2].partition("\n## ")[0]
    assert "16 of 144 trials failed, and 3 more are unsupported." in text
    assert "| sat-2021 | crashed | 1 | aioquic → quinn | server: exit code 134: assertion failed |" in text
    assert "| goodput | unsupported | 3 | quic-go → aioquic |" in text
    assert "| satloss-2021 | transfer_timeout | 13 |" in text  # the same but for its numbers


def test_a_run_without_failures_says_so(bentpipe: Command) -> None:
    write(Path("run"), lambda records: [r for r in records if r.scenario == "sat-2021" and r.ok])
    text = page(bentpipe)
    assert "None of 47 trials failed." in text


def test_pairs_without_a_record_are_missed(bentpipe: Command) -> None:
    def drop(records: list[Record]) -> list[Record]:
        return [r for r in records if (r.scenario, r.client, r.server) != ("sat-2021", "noq", "quinn")]

    write(Path("run"), drop)
    text = page(bentpipe)
    assert "The run is not complete. Trials without a record: 3 over sat-2021." in text
    assert rows(text, "sat-2021")["noq"][3] == ""
    assert rows(text, "All pairs")["sat-2021"][-1] == "15"


def test_a_run_of_one_scenario_has_a_page_of_one(bentpipe: Command) -> None:
    write(Path("run"), lambda records: [r for r in records if r.scenario == "sat-2021"])
    with fake_run.changed_manifest(Path("run")) as manifest:
        manifest["options"]["scenarios"] = ["sat-2021"]
    text = page(bentpipe)
    assert "Not in this run, and so not on this page: goodput, satloss-2021, astra, eutelsat." in text
    assert "not complete" not in text
    assert "\n## sat-2021\n" in text and "\n## satloss-2021\n" not in text
    assert "Real links" not in text
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "thesis-boxes.svg",
        "thesis-claims.svg",
        "thesis-distributions.md",
        "thesis-matrices.svg",
        "thesis-pairs.md",
        "thesis-sat-2021.svg",
        "thesis-swarms.svg",
        "thesis-violins.svg",
        "thesis.md",
    ]


def test_an_interrupted_run_is_no_run_of_fewer_scenarios(bentpipe: Command) -> None:
    write(Path("run"), lambda records: [r for r in records if r.scenario == "goodput"][:-1])
    text = page(bentpipe)
    assert "Not in this run, and so not on this page: astra, eutelsat." in text
    assert "Trials without a record: 1 over goodput, 48 over sat-2021, 48 over satloss-2021." in " ".join(
        text.split()
    )


def test_a_scenario_in_which_nothing_succeeds_has_no_mean(bentpipe: Command) -> None:
    def fail(records: list[Record]) -> list[Record]:
        mine = [r for r in records if r.scenario == "satloss-2021"]
        return [
            fake_run.change(r, outcome="crashed", detail="", goodput_bps=None, efficiency=None) for r in mine
        ]

    write(Path("run"), fail)
    text = page(bentpipe)
    assert "**satloss-2021**: no pair is without a failed trial, so there is no mean." in text
    assert rows(text, "All pairs")["satloss-2021"][:3] == ["-", "2.86", "-"]


def test_figures_are_vector_graphics_that_name_every_stack(bentpipe: Command) -> None:
    write(Path("run"))
    page(bentpipe)
    for name in ("matrices", "goodput", "sat-2021", "satloss-2021"):
        file = Path(f"out/thesis-{name}.svg")
        texts = " ".join(ElementTree.parse(file).getroot().itertext())
        assert all(stack in texts for stack in STACKS), name
        assert file.stat().st_size < 300_000
    assert "mean published, 4.88 Mbit/s" in Path("out/thesis-sat-2021.svg").read_text()


def test_the_same_records_give_the_same_bytes(bentpipe: Command) -> None:
    write(Path("run"))
    page(bentpipe)
    first = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    page(bentpipe)
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == first


def test_the_page_says_how_it_was_made_and_nothing_of_this_machine(bentpipe: Command, tmp_path: Path) -> None:
    def hostile(records: list[Record]) -> list[Record]:
        detail = f"server: {tmp_path}/bin/endpoint | <b>died</b>\nat once"
        return [fake_run.change(records[0], outcome="crashed", detail=detail), *records[1:]]

    write(Path("run"), hostile)
    with fake_run.changed_manifest(Path("run")) as manifest:
        manifest["left_out"] = {"kwik": f"kwik is not built: there is no program {tmp_path}/bin/kwik"}
    text = bentpipe.page("thesis", "--run", tmp_path / "run")
    assert str(tmp_path) not in text
    assert "server: endpoint \\| \\<b\\>died\\</b\\> at once" in text
    assert "Left out: kwik is not built: there is no program kwik." in text
    assert "Stacks that were left out, why is said below: kwik." in text.partition("## All pairs")[0]
    assert "bentpipe run --seed 7\nbentpipe study thesis --run run\n" in text
    assert "| bentpipe | 0.1.0 |" in text and "| quic-go | 1.2.3 |" in text


def test_stacks_of_the_publication_are_compared_with_it(bentpipe: Command) -> None:
    records = write(Path("run"))
    text = page(bentpipe)
    section = text.partition("## Stacks that were in the publication")[2].partition("\n## ")[0]
    now = [
        statistics.fmean(by_runner(r) for r in records if key(r) == ("sat-2021", client, "aioquic"))
        for client in STACKS
    ]
    shown = f"| 1.01 to 1.06 (5) | {min(now) / 1e6:.2f} to {max(now) / 1e6:.2f} (4) |"
    assert f"| sat-2021 | aioquic | faster with every client {shown}" in section
    assert re.search(r"\| satloss-2021 \| quic-go \|.* \(3\) \|$", section, re.MULTILINE)  # one in part
    assert "| satloss-2021 | aioquic | failed with every client, then and now | failed | failed |" in section
    assert re.search(r"\| sat-2021 \| aioquic → quic-go \| 8\.75 \| \d+\.\d\d \| .* \| \d\.\d\d \|", text)
    assert "| aioquic | 0.9.17 | NewReno | 1.2.3 |" in section
    assert "| picoquic | 8.85 to 9.44 (5) | 2.35 to 10.43 (6) | 2.41 to 10.50 (5) |" in section
    assert "| sat-2021 | quinn |" not in section


def key(record: Record) -> tuple[str, str, str]:
    return record.scenario, record.client, record.server


def test_a_run_without_a_published_server_says_so(bentpipe: Command) -> None:
    write(Path("run"), lambda records: [r for r in records if r.server in ("noq", "quinn")])
    assert "No server of this run is among the published pairs." in page(bentpipe)


def test_what_stacks_used_is_summed_up(bentpipe: Command) -> None:
    records = write(Path("run"))
    table = rows(page(bentpipe), "What slows which stack down")
    ran = [r for r in records if r.wall_s > 0]
    mine = [r.cpu_server_s for r in ran if r.server == "noq"]
    assert table["noq"][1] == f"{statistics.fmean(mine):.2f}"
    shares = [int(row[-1].removesuffix(" %")) for name, row in table.items() if name in STACKS]
    assert 50 < sum(shares) < 100  # the rest is the coordinator's
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize(
    ("then", "now", "verdict"),
    [
        ([1.0, 1.1], [5.0, 6.0], "faster with every client"),
        ([5.0, 6.0], [1.0, 1.1], "slower with every client"),
        ([1.0, 6.0], [1.5, 6.2], "about as much with its best client"),
        ([1.0, 6.0], [1.5, 3.5], "0.6 times as much with its best client"),
        ([1.0, 2.0], [1.5, 5.0], "2.5 times as much with its best client"),
        ([1.0, 10.0], [0.5, 1.2], "0.12 times as much with its best client"),
        ([], [1.0], "failed with every client then, succeeds now"),
        ([1.0], [], "succeeded then, fails with every client now"),
        ([], [], "failed with every client, then and now"),
    ],
)
def test_verdicts(then: list[float], now: list[float], verdict: str) -> None:
    def clients(values: list[float]) -> dict[str, float]:
        return {str(number): value for number, value in enumerate(values)}

    assert ServerChange("x", clients(then), clients(now)).verdict == verdict


def test_trials_without_a_start_cost_nothing() -> None:
    made = fake_run.record("sat-2021", "noq", "quinn", 1)
    unsupported = msgspec.structs.replace(made, outcome="unsupported", wall_s=0.0, cpu_client_s=9.0)
    assert virtual_time.costs([unsupported]) == []
    assert {one.stack for one in virtual_time.costs([made, unsupported])} == {"noq", "quinn"}


def test_published_figures_are_those_of_the_papers() -> None:
    """A few from every table, typed in from the papers once more."""
    known = published.load()
    assert list(known.scenarios) == ["goodput", "sat-2021", "satloss-2021", "astra", "eutelsat"]
    assert set(known.scenarios) <= set(scenarios.names())
    sat, eutelsat = known.scenarios["sat-2021"], known.scenarios["eutelsat"]
    assert (sat.mean, sat.max, sat.max_efficiency, sat.failed, sat.timeout) == (4.88, 12.0, 60, 28, 3)
    assert (eutelsat.mean, eutelsat.max, eutelsat.failed, eutelsat.real_link) == (6.01, 17.5, 45, True)
    bps = known.pairs["sat-2021"].bps
    assert bps["aioquic", "aioquic"] == 1_058_000 and bps["lsquic", "lsquic"] == 10_509_000
    assert bps["lsquic", "picoquic"] == 10_434_000 and bps["kwik", "kwik"] == 2_656_000
    assert ("msquic", "aioquic") not in bps  # no value: it failed
    assert known.pairs["goodput"].bps["mvfst", "neqo"] == 4_175_000
    assert known.pairs["satloss-2021"].bps["lsquic", "picoquic"] == 10_502_000
    assert known.pairs["satloss-2021"].of_server("aioquic") == {}
    assert known.stacks["quic-go"].version == "0.23.0"
    for name, one in known.scenarios.items():
        link = scenarios.resolve(name).summary["forward_rate_bps"] / 1e6
        assert one.max / link == pytest.approx(one.max_efficiency / 100, abs=0.006)


def test_pairs_that_failed_in_part_are_failed() -> None:
    """By hand: three pairs of 8, 6 and 10 Mbit/s, the last with a trial that ran out of time."""
    made = [
        msgspec.structs.replace(
            fake_run.record("sat-2021", client, "noq", iteration),
            outcome=outcome,
            goodput_bps=bps if outcome == "ok" else None,
            efficiency=bps / 20e6 if outcome == "ok" else None,
        )
        for client, iteration, outcome, bps in (
            ("noq", 1, "ok", 7e6),
            ("noq", 2, "ok", 9e6),
            ("quinn", 1, "ok", 5e6),
            ("quinn", 2, "ok", 7e6),
            ("aioquic", 1, "ok", 10e6),
            ("aioquic", 2, "transfer_timeout", 0.0),
        )
    ]
    ours = over_pairs(matrices(made)[0])
    assert (ours.pairs, ours.failed, ours.timeout, ours.unsupported) == (3, 1, 1, 0)
    assert (ours.mean_bps, ours.mean_efficiency) == (7e6, 0.35)
    assert (ours.max_bps, ours.max_efficiency) == (9e6, 0.45)  # of a trial, as in the source


@pytest.mark.parametrize(
    ("run", "code", "said"),
    [
        ("nowhere", 2, "nowhere: there is no such folder"),
        ("plain", 1, "plain is no run"),
        ("empty", 1, "there are no records"),
        ("small", 1, "wanted is transfer:10485760 over one of goodput, sat-2021"),
        ("changed", 1, "the run has sat-2021,forward.queue=1BDP with transfer:10485760"),
        ("broken", 1, "records.jsonl:1: not a record"),
    ],
)
def test_what_is_missing_is_said(bentpipe: Command, run: str, code: int, said: str) -> None:
    Path("plain").mkdir()
    write(Path("empty"), lambda _: [])
    one = fake_run.record("sat-2021", "noq", "noq", 1)
    write(Path("small"), lambda _: [fake_run.change(one, workload="transfer:1000", size_bytes=1000)])
    write(Path("changed"), lambda _: [fake_run.change(one, scenario="sat-2021,forward.queue=1BDP")])
    write(Path("broken"))
    Path("broken/records.jsonl").write_text('{"trial": 1}\n')
    done = bentpipe("study", "thesis", "--run", run, "-o", "out")
    assert done.code == code and said in done.err and "hint: " in done.err
    assert "Traceback" not in done.err and not Path("out").exists()


def test_an_unknown_page_is_an_error(bentpipe: Command) -> None:
    done = bentpipe("study", "thesys", "--run", "run")
    assert done.code == 2 and "thesis" in done.err


def test_texts_from_outside_stay_texts() -> None:
    assert literal("a|b *c* `d` [e](f)") == r"a\|b \*c\* \`d\` \[e\](f)"
    assert without_folders("no /a/b-c/d.py, 3/4 packets, https://x.org/y/z") == (
        "no d.py, 3/4 packets, https://x.org/y/z"
    )


def test_a_ratio_between_scenarios_has_an_interval_over_stacks(bentpipe: Command) -> None:
    """Of the means over the pairs that never failed over both, by hand."""
    records = write(Path("run"))
    text = page(bentpipe)
    shown = re.search(r"\(SATLOSS / SAT\) \| 0\.58 \| (\S+) \((\S+) to (\S+)\) \| ([\w ]+) \|", text)
    assert shown
    means = {}
    for scenario in ("sat-2021", "satloss-2021"):
        for pair in {(r.client, r.server) for r in records}:
            mine = [r for r in records if (r.scenario, r.client, r.server) == (scenario, *pair)]
            if all(r.ok for r in mine):
                means[scenario, pair] = statistics.fmean(map(by_runner, mine))
    both = [pair for name, pair in means if name == "satloss-2021" and ("sat-2021", pair) in means]
    lossy, sat = (
        statistics.fmean(means[name, pair] for pair in both) for name in ("satloss-2021", "sat-2021")
    )
    assert float(shown[1]) == pytest.approx(lossy / sat, abs=0.005)
    assert float(shown[2]) < lossy / sat < float(shown[3])
    assert shown[4] == ("same direction" if float(shown[3]) < 0.98 else "cannot tell")
    title = text.splitlines()[0]
    assert re.fullmatch(r"# The best of 16 pairs uses \d+ % \(\d+ to \d+\) of a GEO link, and .*", title)


def mean(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float(values.mean())


def test_a_ratio_of_independent_ratios_has_an_interval() -> None:
    """Of 1 and 4 the geometric mean is 2; with one degree of freedom t is 12.706."""
    found = intervals.over_ratios([math.log(1), math.log(4)])
    assert found is not None
    reach = math.exp(12.706 * math.log(4) / 2)
    assert (found.value, found.low, found.high) == pytest.approx((2, 2 / reach, 2 * reach), rel=1e-3)
    assert intervals.over_ratios([math.log(4)]) is None


def test_a_pair_that_is_close_to_a_bound_keeps_it(bentpipe: Command) -> None:
    """And claims that no trial decides are in no tally."""
    write(Path("run"))
    text = page(bentpipe)
    lines = [line for line in text.splitlines() if "mean efficiency is above this" in line]
    assert lines and not any("same direction" in line for line in lines)
    count = int(re.search(r"Of (\d+) claims? of the thesis", " ".join(text.split()))[1])  # type: ignore[index]
    below = text.partition("| the thesis says |")[2].partition("\n\n")[0].splitlines()[2:]
    assert count == sum("not judged" not in line for line in below)
    much = next(line for line in below if line.startswith("| No pair is much better over SATLOSS"))
    assert "the surest is of" in much


def test_pairs_of_one_client_are_independent_and_say_so() -> None:
    """Pairs that share clients and servers are not: their interval is that over stacks."""
    of_one = {("a", "1"): 1.0, ("a", "2"): 4.0}
    assert intervals.over_pairs(of_one) == intervals.over_ratios([0.0, math.log(4)])
    assert intervals.scope(of_one) == ", of one client"
    shared = {(client, server): float(server) for client in "abcd" for server in "1234"}
    found = intervals.over_pairs(shared)
    surer = intervals.over_ratios([math.log(one) for one in shared.values()])
    assert found is not None and surer is not None and found.low < surer.low
    assert intervals.scope(shared) == ""


def test_intervals_are_of_stacks_and_not_of_pairs() -> None:
    """Sixteen pairs, but all that varies are four servers: a bootstrap of pairs would be too sure."""
    table = {(client, server): float(server) for client in "abcd" for server in "1234"}
    found = intervals.over_stacks([table], mean)
    assert found is not None and found.value == 2.5
    assert found.low <= 1.5 and found.high >= 3.5
    assert intervals.over_stacks([{("a", "1"): 1.0, ("b", "1"): 2.0}], mean) is None


def test_rank_correlation_knows_ties() -> None:
    first, second = np.array([1.0, 2.0, 2.0, 4.0]), np.array([10.0, 30.0, 20.0, 90.0])
    assert intervals.ranks(first, second) == pytest.approx(9 / 90**0.5)  # ranks 1, 2½, 2½, 4 and 1, 3, 2, 4


def test_experiments_stand_beside_the_pairs(bentpipe: Command) -> None:
    """A queue for the burst, and a probe timeout that is a loss; made up, as everything here."""
    write(Path("run"))
    short, long = "sat-2021,forward.queue=25packets", "sat-2021,forward.queue=40packets"
    made = [
        fake_run.change(
            fake_run.record("sat-2021", client, server, 1),
            scenario=scenario,
            server=label,
            goodput_bps=bps,
            completion_s=80.0,
            forward_queue_drops=drops,
        )
        for scenario, client, server, label, bps, drops in (
            (short, "aioquic", "quic-go", "quic-go", 1.5e6, 8),
            (long, "aioquic", "quic-go", "quic-go", 9e6, 500),
            (short, "quinn", "quic-go", "quic-go", 1.5e6, None),  # which nobody counted
            (long, "quinn", "quic-go", "quic-go", 9e6, 7),
            (short, "aioquic", "aioquic", "aioquic", 6e6, 0),
            (short, "aioquic", "aioquic", "aioquic:pto=loss", 1.1e6, 0),
            (long, "aioquic", "aioquic", "aioquic", 6e6, 0),
        )
    ]
    for scenario, label, seconds in (
        (short, "aioquic:pto=loss", 80.0),
        (short, "aioquic:pto=loss:iw=100", 70.0),
        (long, "aioquic:pto=loss", 80.0),
        (long, "aioquic:pto=loss:iw=100", 60.0),
    ):
        one = fake_run.record("sat-2021", "qh3", "aioquic", 1)
        one = fake_run.change(one, scenario=scenario, server=label, completion_s=seconds)
        made.append(fake_run.change(one, forward_queue_drops=24 if seconds == 70.0 else 0))
    words = fake_run.write_campaign("thesis-start", made)
    text = bentpipe.page("thesis", "--run", "run", *words)
    assert "| aioquic | 1.50 | 9.00 | 8 | 500 |" in text
    assert "| quinn | 1.50 | 9.00 | - | 7 |" in text
    assert "| aioquic | 1.06 | 6.00 | 1.10 |" in text  # 2021, now, and with that one thing put back
    assert "| aioquic:pto=loss:iw=100 | 70.0 (-12 %) | 60.0 (-25 %) | 24 | 0 |" in text
    assert "Left out, as not all of its trials succeeded: aioquic. The nearest" in " ".join(text.split())
    assert "3 trials, 1 of each. Over goodput" in " ".join(text.split())  # those of the table, of one queue
    assert "### Congestion control" not in text  # that run is not there


def test_a_stack_counts_once_however_many_clients_it_has(bentpipe: Command) -> None:
    """BBR is twice as fast as CUBIC of one stack, eight times of the other, with either client."""
    write(Path("run"))
    made = [
        fake_run.change(fake_run.record("sat-2021", client, "quinn", 1), server=server, goodput_bps=bps)
        for client in ("aioquic", "quinn")
        for server, bps in (("quinn", 1e6), ("quinn:cc=bbr", 2e6), ("quiche", 1e6), ("quiche:cc=bbr2", 8e6))
    ]
    words = fake_run.write_campaign("thesis-controllers", made)
    done = bentpipe("study", "thesis", "--run", "run", *words, "-o", "out")
    assert done.code == 0, done.err
    shown = re.search(r"sat-2021: 4\.0 \((\S+) to (\S+)\) over 2\s+stacks", Path("out/thesis.md").read_text())
    assert shown and float(shown[1]) < 1 < 4 < float(shown[2])


def test_more_trials_of_the_campaign_are_added_to_its_pairs(bentpipe: Command) -> None:
    """A further run of the same campaign: one pair over sat, with twice the goodput it had."""
    records = write(Path("run"))
    mine = [r for r in records if (r.scenario, r.client, r.server) == ("sat-2021", "noq", "quinn")]
    more = [fake_run.change(r, seed=f"more {r.seed}", goodput_bps=2 * (r.goodput_bps or 0)) for r in mine]
    write(Path("more"), lambda _: more)
    done = bentpipe("study", "thesis", "--run", "run", "--run", "more", "-o", "out")
    assert done.code == 0, done.err
    mean = statistics.fmean(r.goodput_bps or 0 for r in mine + more) / 1e6
    assert rows(Path("out/thesis-pairs.md").read_text(), "sat-2021")["noq"][3] == f"{mean:.2f}"
    assert "147 trials in virtual time" in " ".join(Path("out/thesis.md").read_text().split())


def test_the_queue_of_the_simulator_stands_beside_2021(bentpipe: Command) -> None:
    """Over the longer queue quiche is made up to have what it had, by equation 4.1, the others half more."""
    write(Path("run"))
    made = []
    for queue, factor in (("25packets", 0.5), ("125packets", 1.0)):
        for server, then, more in (
            ("quiche", 4.963e6, 1.0),
            ("quic-go", 8.748e6, 1.5),
            ("ngtcp2:cc=bbr", 8.249e6, 1.5),
        ):
            one = fake_run.record("sat-2021", "aioquic", server.partition(":")[0], 1)
            seconds = 8 * one.size_bytes / (then * factor * more)
            made.append(
                fake_run.change(
                    one,
                    scenario=f"sat-2021,forward.queue={queue},return.queue={queue}",
                    server=server,
                    runner_transfer_s=seconds,
                )
            )
    run = fake_run.write_campaign("thesis-runner-queue", made)
    text = bentpipe.page("thesis", "--run", "run", *run)
    assert "| sat-2021 | quiche | 4.96 | 2.48 | 4.96 | 0.50 | 1.00 |" in text
    assert "| sat-2021 | ngtcp2:cc=bbr | 8.25 | 6.19 | 12.37 | 0.75 | 1.50 |" in text
    words = " ".join(text.split())
    told = re.search(r"sat-2021, 125 packets: (\S+) \((\S+) to (\S+)\) of 3 servers", words)
    assert told and told[1] == "1.31" and float(told[2]) < 1 < float(told[3])  # 1.5 ** (2 / 3)
    assert (
        "HyStart++" not in text.partition("## Causes")[2].partition("## All pairs")[0]
    )  # no other quiche is there


def test_traces_of_the_gallery_are_of_its_campaigns() -> None:
    """Each is of a pair that one of the study's campaigns runs, and has a picture of its own."""
    plans = [
        campaign.load(run.campaign.stem)
        for run in catalogue.find("thesis").runs
        if "gallery" in run.campaign.stem
    ]
    ran = {(s, c, v) for plan in plans for s in plan.labels() for c in plan.clients for v in plan.servers}
    shown = gallery.load()
    assert all((one.scenario, one.client, one.server) in ran for one in shown)
    assert len({one.file for one in shown}) == len(shown)


def test_the_controller_of_a_variant_is_what_it_chooses() -> None:
    known = {
        label: controllers.controller(label)
        for label in ("tquic", "tquic:cc=cubic", "ngtcp2:cc=bbr2", "mine")
    }
    assert known == {"tquic": "BBR", "tquic:cc=cubic": "CUBIC", "ngtcp2:cc=bbr2": "BBR", "mine": None}
    servers = campaign.load("thesis").servers
    assert all(controllers.controller(one) for one in servers)


def test_the_clients_part_of_the_variance_is_of_a_complete_table() -> None:
    """By hand: rows that differ and columns that do not, the other way round, and both by the same."""
    rows = {(one, other): value for one, value in (("a", 1.0), ("b", 2.0)) for other in ("a", "b")}
    columns = {(other, one): value for (one, other), value in rows.items()}
    both = {pair: rows[pair] * columns[pair] for pair in rows}
    shares = [both_ends.share_of_client(one, ("a", "b"), ("a", "b")) for one in (rows, columns, both)]
    assert shares == pytest.approx([1.0, 0.0, 0.5])
    assert both_ends.share_of_client(rows, ("a", "c"), ("a", "b")) is None
    assert both_ends.share_of_client(dict.fromkeys(rows, 3.0), ("a", "b"), ("a", "b")) is None


def test_the_slides_own_matrix_says_both_by_what_is_left_out() -> None:
    known = published.load().pairs["sat-2021"].bps
    span = both_ends.range_of_2021(known)
    assert span is not None and span[0] < 0.12 and span[1] > 0.75
    assert {"kwik", "lsquic"} <= {*both_ends.same_stacks(known)}


def test_a_short_queue_stands_beside_the_queue_of_2021(bentpipe: Command) -> None:
    """Half of what the pairs had, made up."""
    records = write(Path("run"))
    label = "sat-2021,forward.queue=25packets,return.queue=25packets"
    made = [
        fake_run.change(one, scenario=label, goodput_bps=one.goodput_bps and one.goodput_bps / 2)
        for one in records
        if one.scenario == "sat-2021"
    ]
    words = fake_run.write_campaign("thesis-short-queue", made, fake_run.OF_2021)
    text = bentpipe.page("thesis", "--run", "run", *words)
    assert re.search(r"\| sat-2021 \| \d+\.\d\d \| \d+\.\d\d \| 0\.50 \(0\.50 to 0\.50\) \| 15 \|", text)
