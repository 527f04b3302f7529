"""The site of many runs: its data against records, what it refuses, and its pages in a real browser."""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import browser
import fake_run
import numpy as np
import pytest
from conftest import Command

from bentpipe.analysis import comparison
from bentpipe.analysis.comparison import MEASURES, ComparedRun
from bentpipe.report import collection
from bentpipe.report.collection import ShownStudy, failures, studies
from bentpipe.runs.records import Record

HOSTILE = "</script><script>document.title='harmed'</script><img src=x onerror=\"document.title='harmed'\">"


def write(folder: Path, day: int, *, version: str = "1.2.3", factor: float = 1.0) -> list[Record]:
    """A run of two stacks that began on that day, in which the server quinn is faster by `factor`; two trials
    failed.
    """
    records = [
        fake_run.change(
            one,
            goodput_bps=one.goodput_bps and one.goodput_bps * (factor if one.server == "quinn" else 1),
            server_version=version if one.server == "quinn" else "1.2.3",
            client_version=version if one.client == "quinn" else "1.2.3",
        )
        for one in fake_run.write(folder, stacks=("noq", "quinn"), iterations=5)
    ]
    for place in (4, 9):
        detail = f"{1000 * place} of 10485760 bytes after 120 s"
        records[place] = fake_run.change(records[place], outcome="transfer_timeout", detail=detail)
    told = json.loads((folder / "manifest.json").read_text()) | {"started": f"2026-03-{day:02}T10:00:00Z"}
    told["versions"]["stacks"]["quinn"] = version
    (folder / "manifest.json").write_text(json.dumps(told))
    (folder / "records.jsonl").write_text("".join(f"{one.to_json()}\n" for one in records))
    return records


@pytest.fixture
def runs(tmp_path: Path) -> dict[str, list[Record]]:
    """Three runs of one campaign: in the third quinn is of another version, and a third faster."""
    return {
        "first": write(tmp_path / "first", 1),
        "second": write(tmp_path / "second", 2),
        "third": write(tmp_path / "third", 3, version="2.0.0", factor=1.33),
    }


@pytest.fixture
def site(bentpipe: Command, runs: dict[str, list[Record]]) -> Path:
    done = bentpipe("site", *sorted(runs, reverse=True), "-o", "site", "--title", "Nightly", "--no-studies")
    assert (done.code, done.out, done.err) == (0, "site/index.html\n", "")
    return Path("site").resolve()


def read_data(path: Path) -> Any:
    """What a data script assigns."""
    match = re.fullmatch(r"window\.\w+=(.*);\n", path.read_text())
    assert match, path
    return json.loads(match[1])


def column(site: Path, name: str | int) -> list[float | None]:
    packed = read_data(site / f"data/columns/{name}.js")
    planes = np.frombuffer(zlib.decompress(base64.b64decode(packed["base64"])), np.uint8).reshape(4, -1)
    values = np.ascontiguousarray(planes.T).view("<f4").ravel()
    assert len(values) == packed["count"]
    return [None if np.isnan(value) else float(value) for value in values]


# Its data


def test_runs_stand_in_the_order_of_time_with_what_they_came_to(
    site: Path, runs: dict[str, list[Record]]
) -> None:
    data = read_data(site / "data/site.js")
    assert data == json.loads((site / "site.json").read_text())
    assert [run["name"] for run in data["runs"]] == ["first", "second", "third"]
    for run in data["runs"]:
        own = runs[run["name"]]
        assert run["trials"] == len(own)
        assert run["failed"] == sum(one.outcome != "ok" for one in own)
        assert run["report"] is None
    versions = [{one["name"]: one["version"] for one in run["stacks"]} for run in data["runs"]]
    assert versions == [{"noq": "1.2.3", "quinn": "1.2.3"}] * 2 + [{"noq": "1.2.3", "quinn": "2.0.0"}]


def test_columns_are_those_of_the_records(site: Path, runs: dict[str, list[Record]]) -> None:
    data, every = read_data(site / "data/site.js"), [one for own in runs.values() for one in own]
    for name in ("goodput_bps", "handshake_s", "forward_packets", "wall_s"):
        found = column(site, data["columns"].index(name))
        assert found == [
            None if (value := getattr(one, name)) is None else pytest.approx(value, rel=1e-7)
            for one in every
        ]  # fmt: skip
    cells = [data["cells"][int(place or 0)] for place in column(site, "cell")]
    for key in ("scenario", "workload", "treatment", "client", "server"):
        assert [cell[key] for cell in cells] == [getattr(one, key) for one in every]
    assert [data["outcomes"][int(place or 0)] for place in column(site, "outcome")] == [
        one.outcome for one in every
    ]
    assert "plt_s" not in data["columns"], "no trial has one"


def test_a_site_is_the_same_however_many_records_are_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Endpoints say numbers or texts under a name, and of pages other columns are known than of files."""
    records = write(tmp_path / "run", 1)
    more: dict[int, dict[str, Any]] = {
        0: {"server_statistics": {"numbers": 5, "either": 5}},
        3: {"server_statistics": {"numbers": 6, "either": "none"}, "plt_s": 1.5},
        7: {"server_statistics": {"text": "x", "either": 7}, "handshake_s": None},
    }
    changed = [fake_run.change(one, **more.get(place, {})) for place, one in enumerate(records)]
    (tmp_path / "run" / "records.jsonl").write_text("".join(f"{one.to_json()}\n" for one in changed))
    wanted = collection.Collection([tmp_path / "run"], "Runs")
    collection.build(wanted, tmp_path / "whole")
    monkeypatch.setattr("bentpipe.runs.table._GROUP", 2)
    collection.build(wanted, tmp_path / "parts")
    files = sorted(file.relative_to(tmp_path / "whole") for file in (tmp_path / "whole/data").rglob("*.js"))
    assert len(files) > 20
    for file in files:
        assert (tmp_path / "parts" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
    names = read_data(tmp_path / "whole/data/site.js")["columns"]
    assert "server_statistics.numbers" in names and "server_statistics.either" not in names
    assert names.index("handshake_s") < names.index("plt_s") < names.index("wall_s")
    assert column(tmp_path / "whole", names.index("plt_s"))[:5] == [None, None, None, 1.5, None]


def test_failures_are_grouped_by_what_was_said(site: Path, runs: dict[str, list[Record]]) -> None:
    groups = read_data(site / "data/failures.js")
    failed = sorted(one.trial for own in runs.values() for one in own if not one.ok)
    assert len(failed) == 6
    assert [(one["outcome"], one["detail"], len(one["trials"])) for one in groups] == [
        ("transfer_timeout", "… of … bytes after … s", 6)
    ]
    assert sorted(trial["trial"] for group in groups for trial in group["trials"]) == failed


@pytest.mark.parametrize(
    ("detail", "pattern"),
    [
        ("7340032 of 10485760 bytes after 120.5 s", "… of … bytes after … s"),
        ("server: exit code 134: assertion failed", "server: exit code 134: assertion failed"),
        ("client: killed by signal 11", "client: killed by signal 11"),
        ("TLS1 of h3, at 1,5.", "TLS1 of h3, at …."),
    ],
)
def test_details_differ_by_words_and_codes(detail: str, pattern: str) -> None:
    assert failures.pattern(detail) == pattern


def test_runs_are_linked_with_their_reports_where_these_lie(bentpipe: Command, tmp_path: Path) -> None:
    write(tmp_path / "runs" / "a b", 1)
    assert bentpipe("report", "runs/a b").code == 0
    assert bentpipe("site", "runs/a b", "-o", "public/site", "--no-studies").code == 0
    (run,) = read_data(Path("public/site/data/site.js"))["runs"]
    assert run["report"] == "../../runs/a%20b/report/index.html"
    trials = [one for group in read_data(Path("public/site/data/failures.js")) for one in group["trials"]]
    for trial in trials:
        assert (Path("public/site") / trial["href"].replace("%20", " ").replace("%3D", "=")).is_file()


# What it leaves out and refuses


def test_what_is_no_run_is_left_out_with_a_warning(bentpipe: Command, tmp_path: Path) -> None:
    write(tmp_path / "good", 1)
    (tmp_path / "bad").mkdir()
    done = bentpipe("site", "good", str(tmp_path / "bad"), "gone", "--no-studies", "--json")
    assert done.code == 0
    assert [line.split(":")[0] for line in done.err.splitlines()] == ["warning", "warning"]
    assert "bad is no run" in done.err and "gone: there is no such folder" in done.err
    assert [one["folder"] for one in json.loads(done.out)["skipped"]] == ["bad", "gone"]
    assert str(tmp_path) not in done.out
    assert json.loads(done.out) == json.loads(Path("site/site.json").read_text())


@pytest.mark.parametrize("words", [(), ("gone",)])
def test_no_runs_at_all_are_an_error(bentpipe: Command, words: tuple[str, ...]) -> None:
    done = bentpipe("site", *words)
    assert done.code == 1
    assert "hint: " in done.err
    assert not Path("site").exists() and not Path("site.partial").exists()


def test_only_a_site_is_replaced(bentpipe: Command, site: Path) -> None:
    (site / "stale.html").write_text("")
    assert bentpipe("site", "first", "-o", "site", "--no-studies").code == 0
    assert not (site / "stale.html").exists()
    assert len(read_data(site / "data/site.js")["runs"]) == 1
    other = Path("other")
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    done = bentpipe("site", "first", "-o", "other", "--no-studies")
    assert done.code == 2
    assert "other holds something else" in done.err and "hint: " in done.err
    assert [file.name for file in other.iterdir()] == ["thesis.tex"]
    assert bentpipe("site", "first", "-o", "first/manifest.json", "--no-studies").code == 2
    assert bentpipe("site", "first", "-o", ".", "--no-studies").code == 2


# Studies


def test_pages_of_studies_have_their_pictures_and_links(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    (one / "one.svg").write_text("<svg/>")
    (one / "one.md").write_text(
        f"# Title\n\n![A picture](one.svg) ![gone](gone.svg) ![out](../out.svg)\n\n"
        f"[other](../other/other.md#at-a-glance) [docs](../../docs/x.md) [web](https://example.org/)\n"
        f"[bad](javascript:alert(1))\n\n{HOSTILE}\n\n## At a glance\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    (other / "other.md").write_text("# Other\n")
    shown = [
        ShownStudy("one", "One", "?", (one / "one.md",)),
        ShownStudy("other", "Other", "?", (other / "other.md",)),
    ]
    page = studies.rendered(shown)[one / "one.md"]
    assert page.title == "Title"
    assert page.pictures == {"one--one.svg": one / "one.svg"}
    assert '<img src="one--one.svg" alt="A picture"' in page.body
    assert page.body.count("<img") == 1
    assert (
        '<a href="other.html#at-a-glance">other</a> docs <a href="https://example.org/">web</a>' in page.body
    )
    assert "javascript" not in re.sub(r"\[bad\]\([^)]*\)+", "", page.body)
    assert '<h2 id="at-a-glance">' in page.body and "<td>1</td>" in page.body
    assert "<script" not in page.body


def test_every_study_is_in_the_site(bentpipe: Command, tmp_path: Path) -> None:
    write(tmp_path / "first", 1)
    assert bentpipe("site", "first").code == 0
    entries = read_data(Path("site/data/site.js"))["studies"]
    assert {"kuhn", "reno", "thesis"} <= {one["name"] for one in entries}
    for one in entries:
        for page in one["pages"]:
            text = Path("site", page["href"]).read_text()
            for picture in re.findall(r'<img src="([^"]*)"', text):
                assert Path("site/studies", picture).is_file()
            for link in re.findall(r'<a href="([^":#]+\.html)', text):
                assert Path("site/studies", link).is_file()


# Its pages in a browser


@pytest.fixture
def dom(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    def read(address: str) -> str:
        profile = tmp_path_factory.mktemp("profile")
        page = browser.dump(address, profile, "--virtual-time-budget=20000")
        assert "script-error" not in page
        return html.unescape(page).replace("\u202f", " ")

    return read


@pytest.mark.browser
def test_every_page_can_be_drawn(site: Path, dom: Callable[[str], str]) -> None:
    page = dom((site / "index.html").as_uri())
    assert len(re.findall(r'<tr id="run-\d"', page)) == 3
    assert page.count('class="mark" title="1.2.3 → 2.0.0"') == 1
    page = dom((site / "distributions.html").as_uri() + "#column=handshake_s&by=scenario")
    assert "handshake in s (handshake_s)" in page
    assert page.count("<figure>") == page.count("<svg xmlns=") == 2
    page = dom((site / "failures.html").as_uri() + "#run=2")
    assert "2 of 60 trials failed" in page
    page = dom((site / "failures.html").as_uri())
    assert "6 of 180 trials failed" in page and page.count('class="failure-group"') == 1
    assert "… of … bytes after … s" in page and "4000 of 10485760" in page
    assert "made without studies" in dom((site / "studies.html").as_uri())


@pytest.mark.browser
def test_two_runs_are_compared_as_the_command_does(site: Path, dom: Callable[[str], str]) -> None:
    """The page has statistics of its own, for pairs that nobody knew of before: the same ones."""
    page = dom((site / "compare.html").as_uri() + "#a=first&b=third&measure=goodput_bps")
    rows = re.findall(r"<tr[^>]*>(<th scope=\"row\".*?)</tr>", page)
    shown = {}
    for row in rows:
        name, *cells = (
            re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
        )
        shown[name] = cells
    both = comparison.compare(
        ComparedRun.read(Path("first")), ComparedRun.read(Path("third")), MEASURES["goodput_bps"]
    )
    assert len(rows) == len(shown) == len(both.cells) == 12
    for cell in both.cells:
        left, right, ratio, interval, mark, ok, _ = shown[
            f"{cell.key.client} → {cell.key.server}{cell.key.scenario}"
        ]
        assert cell.ratio is not None and cell.ratio.low is not None and cell.ratio.high is not None
        assert [left, right] == [both.measure.text(cell.a.mean), both.measure.text(cell.b.mean)]
        assert ratio == f"{cell.ratio.value:.3f}"
        assert re.split(r"[^\d.]", interval) == [f"{cell.ratio.low:.3f}", f"{cell.ratio.high:.3f}"]
        assert mark == ("*" if cell.significant else "")
        assert ok.split(",")[0] == f"{cell.a.ok}/{cell.a.trials}"
    assert 0 < sum(cell.significant for cell in both.cells) < 12
    said = [remark for remark in comparison.remarks(both) if "quinn" in remark]
    assert said == ["quinn is 1.2.3 in A, 2.0.0 in B"]
    assert said[0] in page


@pytest.mark.browser
def test_a_change_is_marked_where_it_is_more_than_chance(site: Path, dom: Callable[[str], str]) -> None:
    page = dom((site / "changes.html").as_uri() + "#changed=yes")
    assert "goodput in Mbit/s, medians: 6 of 12 cells. Of 24 steps" in page
    assert "6 are more than chance" in page
    assert page.count("in third (2026-03-03 10:00): quinn: 1.2.3 → 2.0.0") == 6
    assert page.count('class="ring"') == 6


@pytest.mark.browser
def test_names_from_outside_do_no_harm_in_the_site(
    bentpipe: Command, tmp_path: Path, dom: Callable[[str], str]
) -> None:
    records = write(tmp_path / "run", 1)
    changed = [fake_run.change(one, detail=HOSTILE, client=HOSTILE, scenario=HOSTILE) for one in records]
    changed[0] = fake_run.change(changed[0], outcome="crashed")
    (tmp_path / "run/records.jsonl").write_text("".join(f"{one.to_json()}\n" for one in changed))
    told = json.loads((tmp_path / "run/manifest.json").read_text()) | {"title": HOSTILE, "campaign": HOSTILE}
    (tmp_path / "run/manifest.json").write_text(json.dumps(told))
    assert bentpipe("site", "run", "--title", HOSTILE, "--no-studies").code == 0
    for name in ("index", "changes", "compare", "distributions", "failures"):
        page = browser.dump((tmp_path / f"site/{name}.html").as_uri(), tmp_path / f"p-{name}",
                            "--virtual-time-budget=20000")  # fmt: skip
        assert "script-error" not in page
        assert "<title>harmed" not in page and "<img" not in page
        assert "&lt;/script&gt;" in page
