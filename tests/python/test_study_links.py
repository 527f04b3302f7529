"""Links between studies and the trials behind them: from a study's page in a site to reports and cells, and
from these back; and what of a page a site shows otherwise than as Markdown.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import fake_run
from conftest import Command

from bentpipe.analysis import matrix_marks
from bentpipe.analysis.cells import MatrixKey
from bentpipe.report.collection import ShownStudy, studies
from bentpipe.report.collection.studies import ShownRun
from bentpipe.runs.records import CellKey

KEY = MatrixKey("sat", "transfer:10485760", "direct", "sim")
TABLE = (
    "| client \\\\ server | noq | quic-go |\n|---|---:|---:|\n| quinn | 1.0 | crashed |\n| noq |  | 2.0 |\n"
)


def body(folder: Path, text: str, *runs: ShownRun, linked: dict[CellKey, str] | None = None) -> str:
    (folder / "mine.md").write_text(text)
    shown = ShownStudy("mine", "Mine", "?", (folder / "mine.md",), frozenset({"mine"}))
    return studies.rendered([shown], runs, (linked or {}).get)[folder / "mine.md"].body


def test_a_mark_is_a_comment_that_is_read_again() -> None:
    odd = KEY._replace(scenario='sat--x,forward.queue={size="1BDP",aqm="codel"}')
    for key in (KEY, odd):
        mark = matrix_marks.mark(key)
        assert mark.startswith("<!-- ") and mark.index("--", 4) == len(mark) - 3
        assert matrix_marks.read(mark) == key
    for other in ("<!-- matrix {} -->", "<!-- matrix {1} -->", "<!-- something -->", "matrix"):
        assert matrix_marks.read(other) is None


def test_a_marked_matrix_leads_to_its_cells(tmp_path: Path) -> None:
    """Those that a report has; the table that follows without a mark stays as it is."""
    linked = {
        CellKey(*KEY, client="quinn", server="noq"): "../run/report/cells/a.html",
        CellKey(*KEY, client="quinn", server="quic-go"): "../run/report/cells/b.html",
        CellKey(*KEY, client="noq", server="noq"): "../run/report/cells/c.html",
    }
    made = body(tmp_path, f"# Title\n\n{matrix_marks.mark(KEY)}\n\n{TABLE}\nText.\n\n{TABLE}", linked=linked)
    assert re.findall(r'<a href="([^"]*)">([^<]*)</a>', made) == [
        ("../../run/report/cells/a.html#trace", "1.0"),
        ("../../run/report/cells/b.html#trace", "crashed"),
    ]
    assert "matrix" not in made and made.count("<table>") == 2


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
