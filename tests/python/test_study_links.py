"""Links between studies and the trials behind them: from a study's page in a site to reports and cells, and
from these back; and what of a page a site shows otherwise than as Markdown.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import fake_grid
import fake_run
import pytest
from conftest import Command

from bentpipe.analysis import trial_marks
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import RunCell, marked
from bentpipe.report.collection import ShownStudy, studies
from bentpipe.report.collection.studies import ShownRun
from bentpipe.runs.records import Record
from bentpipe.study import markdown, sheets

SAT = fake_run.record("sat", "quinn", "noq", 1)
RUN = RunCell(Path("run"), SAT.cell_key)


def body(
    folder: Path,
    text: str,
    *runs: ShownRun,
    trials: dict[str, RunCell] | None = None,
    linked: dict[RunCell, str] | None = None,
) -> str:
    page = folder / "mine.md"
    page.write_text(trial_marks.without(text))
    shown = ShownStudy("mine", "Mine", "?", (page,), frozenset({"mine"}), {page: text}, trials or {})
    return studies.rendered([shown], runs, (linked or {}).get)[page].body


def cell(*records: Record) -> Cell:
    return Cell.of(records[0].cell_key, records)


def test_a_mark_is_taken_out_again() -> None:
    made = marked("**8.7** \\[1]", cell(SAT))
    assert made.startswith("**8.7** \\[1]<!-- ") and made.index("--", made.index("<!--") + 4) == len(made) - 3
    assert trial_marks.without(f"| {made} | {made} |") == "| **8.7** \\[1] | **8.7** \\[1] |"
    assert trial_marks.read(made) == trial_marks.digest([SAT])
    assert trial_marks.read("<!-- trials -->") is None
    assert marked("-", None) == "-" and marked("", cell(SAT)) == ""


def test_a_mark_is_that_of_exactly_these_trials() -> None:
    """In whatever order; what is computed anew changes nothing, another run of the same seeds does."""
    more = [SAT, fake_run.change(SAT, iteration=2)]
    known = trial_marks.digest(more)
    assert trial_marks.digest(reversed(more)) == known
    assert trial_marks.digest([fake_run.change(one, goodput_bps=1.0) for one in more]) == known
    others = (more[:1], [*more, more[0]], [fake_run.change(one, wall_s=one.wall_s * 1.5) for one in more])
    for other in others:
        assert trial_marks.digest(other) != known


def test_a_mark_has_no_place_in_prose() -> None:
    """It would change where lines end."""
    text = marked("8.7 Mbit/s", cell(SAT))
    for part in (f"It has {text}.", f"- It has {text}."):
        with pytest.raises(ValueError, match="outside of a table"):
            markdown.page([part])
    assert text in markdown.page([markdown.table(["", "Mbit/s"], [["noq", text]])])


def test_a_sheet_has_no_marks(tmp_path: Path) -> None:
    rows = [["noq", marked("8.7", cell(SAT))]] * 50
    _, (file,) = sheets.folded_table("All", ["", "Mbit/s"], rows, tmp_path / "all.csv")
    assert file.read_text().splitlines() == [",Mbit/s", *["noq,8.7"] * 50]


def test_marked_cells_lead_to_their_trials(tmp_path: Path) -> None:
    """Those that a report of their run has; what stands in a table beside them stays as it is."""
    lost, pooled = (fake_run.change(SAT, iteration=number) for number in (2, 3))
    trials = {trial_marks.digest([SAT]): RUN, trial_marks.digest([lost]): RUN._replace(run=Path("other"))}
    texts = [marked("**8.7** (1)", cell(SAT)), marked("1.2", cell(lost)), marked("3.4", cell(SAT, pooled))]
    table = markdown.table(["server", "a", "b", "c", "d"], [["noq", *texts, "5.6"]])
    folded = f"<details>\n<summary>All</summary>\n\n{table}\n\n</details>\n"
    made = body(tmp_path, f"# Title\n\n{folded}", trials=trials, linked={RUN: "../run/report/cells/a.html"})
    assert re.findall(r"<td[^>]*>(.*?)</td>", made) == [
        "noq",
        '<a href="../../run/report/cells/a.html#trace"><strong>8.7</strong> (1)</a>',
        "1.2",
        "3.4",
        "5.6",
    ]
    assert "trials" not in made and "--&gt;" not in made


def test_what_is_folded_opens_and_other_html_is_text(tmp_path: Path) -> None:
    folded = "<details>\n<summary>3 <b>rows</b> &amp; more</summary>\n\n| a |\n|---|\n| 1 |\n\n</details>\n"
    made = body(tmp_path, f"# Title\n\n{folded}\n<script>x</script>\n")
    assert "<details><summary>3 &lt;b&gt;rows&lt;/b&gt; &amp; more</summary>" in made
    assert made.count("</details>") == 1 and "<p><details>" not in made and "<td>1</td>" in made
    assert "<script>" not in made
    for broken in (folded.replace("</details>", ""), f"</details>\n\n{folded.replace('</details>', '')}"):
        assert "<details>" not in body(tmp_path, f"# Title\n\n{broken}")


def test_a_page_lists_the_runs_of_its_study(tmp_path: Path) -> None:
    runs = [
        ShownRun("first", "mine", "../first/report/index.html"),
        ShownRun("second", "mine", None),
        ShownRun("third", "another", "../third/report/index.html"),
    ]
    made = body(tmp_path, "# Title\n", *runs)
    assert '<li><a href="../../first/report/index.html">first</a></li>' in made
    assert "<li>second, without a report: <code>bentpipe report second</code></li>" in made
    assert "third" not in made
    assert "Runs of this study" not in body(tmp_path, "# Title\n", runs[2])


def test_a_sheet_comes_into_the_site(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("a\n1\n")
    (tmp_path / "mine.md").write_text("# Title\n\n[all](mine.csv) [gone](gone.csv) [out](../out.csv)\n")
    shown = ShownStudy("mine", "Mine", "?", (tmp_path / "mine.md",))
    page = studies.rendered([shown])[tmp_path / "mine.md"]
    assert page.pictures == {"mine--mine.csv": tmp_path / "mine.csv"}
    assert '<a href="mine--mine.csv">all</a> gone out' in page.body


def test_study_and_reports_lead_to_each_other(bentpipe: Command) -> None:
    """No link of the study's pages or of the reports' last line leads nowhere."""
    fake_run.write(Path("run"), links=fake_run.OF_2021, iterations=2)
    done = bentpipe("study", "thesis", "--run", "run", "-o", "out", "--site", "public/site")
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == "public/site/studies/thesis.html"
    pages = [*Path("public/site/studies").glob("thesis*.html")]
    links = [
        (page, link)
        for page in pages
        for link in re.findall(r'href="([^"]*/report/[^"]*)"', page.read_text())
    ]
    assert sum("/cells/" in link for _, link in links) >= 16  # 4 by 4 stacks, of each scenario that has them
    for page in [*Path("run/report").glob("*.html"), *Path("run/report/cells").glob("*.html")]:
        (back,) = re.findall(r'<footer>.*?<a href="([^"]*)">Eleven stacks', page.read_text())
        links.append((page, back))
    for page, link in links:
        assert (page.parent / unquote(link.partition("#")[0])).is_file(), (page, link)


def test_each_number_leads_to_the_run_that_it_is_from(bentpipe: Command) -> None:
    """One that two runs have a part in leads nowhere. The page itself is the same with a site and without."""
    trial, reference, good, rash = fake_grid.trial, fake_grid.REFERENCE, fake_grid.GOOD, fake_grid.RASH
    runs = {
        "first": [trial(server, number) for server in (reference, good) for number in (1, 2)],
        "second": [trial(rash, 1), trial(rash, 2), trial(good, 3)],
    }
    for name, records in runs.items():
        fake_run.write(Path(name))
        fake_run.write_records(Path(name), records)
    words = ["study", "limit", *fake_run.named(runs)]
    for more in (["-o", "plain"], ["-o", "out", "--site", "site"]):
        done = bentpipe(*words, *more)
        assert done.code == 0, done.err
    files = sorted(file.name for file in Path("plain").iterdir())
    assert files == sorted(file.name for file in Path("out").iterdir()) and "limit.md" in files
    for name in files:
        assert Path("out", name).read_bytes() == Path("plain", name).read_bytes(), name
    made = Path("site/studies/limit.html").read_text()
    (table,) = re.findall(r"<table>(?:(?!</table>).)*>server</th>.*?</table>", made, re.DOTALL)
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in table.split("<tr>")[2:]]
    found = {
        row[0]: re.findall(r'href="\.\./\.\./(\w+)/(report/cells/[^"#]*)#trace"', row[1]) for row in rows
    }
    assert found[good] == [] and "85 %" in table
    for server, name in ((reference, "first"), (rash, "second")):
        ((run, page),) = found[server]
        assert run == name and server in Path(run, unquote(page)).read_text()


def test_a_report_names_the_studies_of_its_campaign(bentpipe: Command) -> None:
    """Without a link: where their pages are, it does not know."""
    fake_run.write_campaign("fairness-tcp", fake_run.write(Path("run")))
    assert bentpipe("report", "fairness-tcp").code == 0
    text = Path("fairness-tcp/report/index.html").read_text()
    (line,) = re.findall(r"<footer>.*</footer>", text)
    assert "part of the study What flows leave each other" in line and "<a " not in line
    assert "<code>bentpipe study fairness</code>" in line
    assert bentpipe("report", "run").code == 0  # of a campaign of nobody's
    assert "<footer>" not in Path("run/report/index.html").read_text()
