"""The site of the documentation (`make site`): where its pages come from, that links in it are checked, and
that it is in order in a browser.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import installed_or_skip
from documents import PAGES, name_of
from open_page import opened

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "site"))

import build  # noqa: E402
import landing  # noqa: E402
import link_check  # noqa: E402
from site_source import Source, navigation  # noqa: E402

WIDTHS = (400, 900, 1500)
# A page of each kind: prose, a wide table, pictures, generated reference, a file that is no page, a notebook.
SEEN = (
    "index.html",
    "README.html",
    "docs/tutorials/first-run.html",
    "docs/reference/commands.html",
    "docs/reference/records.html",
    "studies/bbr_cases/bbr-cases.html",
    "studies/thesis/thesis-gallery.html",
    "examples/pep.toml.html",
    "docs/notebooks/one-run.ipynb.html",
    "search.html",
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """The sources of the site, put together."""
    made = Source(ROOT, tmp_path_factory.mktemp("site") / "source")
    made.write()
    return made


def test_every_page_is_in_the_navigation_once(source: Source) -> None:
    texts = {page: (ROOT / page).read_text() for page in source.pages}
    below = navigation(texts, {})
    listed = [page for pages in below.values() for page in pages]
    assert sorted(listed) == sorted(texts)


def test_no_line_of_a_page_moves(source: Source) -> None:
    """What is said of a line is said of the original: links and the navigation at the end differ."""
    for page in PAGES:
        if page.is_relative_to(ROOT / "tools" / "site"):
            continue
        original, staged = (
            file.read_text().split("\n") for file in (page, source.folder / page.relative_to(ROOT))
        )
        differ = [
            (was, now)
            for was, now in zip(original[:-1], staged, strict=False)
            if was != now and "](" not in was
        ]
        assert differ == [], name_of(page)


def write(root: Path, **files: str) -> Source:
    """The sources of the site of a small project."""
    texts = {
        "README.md": "# Small\n\n## Beside other tools\n\nNone.\n",
        "docs/README.md": "# Docs\n\n## How-to\n\n- [A page](papers.md)\n",
        "docs/papers.md": "# Page\n",
        "studies/README.md": "# Studies\n\n| question | answer | page |\n|---|---|---|\n",
        "endpoints/CONTRACT.md": "# Contract\n",
    }
    for name, text in (texts | files).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    made = Source(root, root / ".git" / "site")
    made.write()
    return made


def test_links_to_what_is_no_page_lead_to_one_that_shows_it(tmp_path: Path) -> None:
    text = """# Page

[file](../examples/a.toml), [folder](../examples) and [picture](b.svg), [part](../README.md#small),
[elsewhere](https://example.org/a.toml)

```text
[file](../examples/a.toml)
```
"""
    files = {"docs/papers.md": text, "docs/b.svg": "<svg/>", "examples/a.toml": "x = 1\n```\n"}
    files["examples/all.csv"] = "a,b\n1,2\n"  # nothing colours it
    made = write(tmp_path, **files)
    staged = (made.folder / "docs/papers.md").read_text()
    assert "[file](../examples/a.toml.md), [folder](../examples/files.md) and [picture](b.svg)" in staged
    assert "[part](../README.md#small)" in staged and "(https://example.org/a.toml)" in staged
    assert "```text\n[file](../examples/a.toml)\n```" in staged
    assert (made.folder / "docs/b.svg").read_text() == "<svg/>"
    assert "````toml\nx = 1\n```\n````" in (made.folder / "examples/a.toml.md").read_text()
    assert "```text\na,b\n1,2\n```" in (made.folder / "examples/all.csv.md").read_text()
    assert "[`a.toml`](a.toml.md)" in (made.folder / "examples/files.md").read_text()


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ('<a href="there.html#here">', ""),
        ('<a href="https://example.org/">', ""),
        ('<a href="missing.html">', "leads nowhere"),
        ('<a href="../outside.html">', "leads nowhere"),
        ('<a href="there.html#missing">', "no such place"),
        ('<a href="#missing">', "no such place"),
        ('<a href="file:///etc/hosts">', "a link of this machine"),
        ('<img src="missing.svg">', "leads nowhere"),
        ('<script src="https://example.org/x.js"></script>', "loaded from elsewhere"),
        ('<link href="//example.org/x.css">', "loaded from elsewhere"),
        ('<img src="data:image/png;base64,AA">', ""),
    ],
)
def test_the_check_of_links_finds_what_is_wrong(tmp_path: Path, html: str, said: str) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (tmp_path / "outside.html").write_text("")
    (folder / "there.html").write_text('<p id="here">')
    (folder / "page.html").write_text(f"<p>\n{html}")
    found = link_check.wrong(folder, ROOT)
    assert len(found) == bool(said)
    assert not said or (found[0].startswith("page.html:2: ") and said in found[0])


def test_what_styles_load_and_where_the_site_was_made_is_checked(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@import 'https://example.org/a.css'; p { background: url(b.png) }")
    (tmp_path / "b.css").write_text("p { background: url('//example.org/b.png') }")
    (tmp_path / "c.html").write_text(f"<p>{tmp_path / 'mine'}")
    said = link_check.wrong(tmp_path, tmp_path / "mine")
    assert [one.split(":")[0] for one in said] == ["a.css", "b.css", "c.html"]


def lost_links_are_said(folder: Path) -> None:
    """By the generator, as `make site` calls it, with file and line."""
    folder.mkdir()
    (folder / "index.md").write_text(
        "# A\n\n[x](lost.md)\n\n[y](b.md#lost)\n\n[z](b.md#here)\n\n```{toctree}\nb\n```\n"
    )
    (folder / "b.md").write_text("# B\n\n## Here\n")
    python = ROOT / "target" / "site-venv" / "bin" / "python"
    # Where CI is set it would colour what it says.
    command = [str(python), *build.SPHINX, "--no-color", str(folder), str(folder / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [line.removeprefix(f"{folder}/").partition(": ")[0] for line in done.stderr.splitlines()]
    assert done.returncode != 0 and said == ["index.md:3", "index.md:5"], done.stderr


@pytest.mark.smoke
@pytest.mark.browser
def test_the_site_is_made_and_in_order_at_three_widths(tmp_path: Path) -> None:
    """Every page seen fits its window and loads nothing from elsewhere; search finds a page by its words."""
    done = subprocess.run(["make", "site"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lost_links_are_said(tmp_path / "small")
    with opened(tmp_path / "profile") as page:
        for name in SEEN:
            page.open((ROOT / "site" / name).as_uri())
            page.wait_for(f"document.readyState === 'complete' && location.pathname.endsWith('{name}')")
            for width in WIDTHS:
                for dark in (False, True):
                    page.resize(width, 800, dark)
                    wide = page.ask("document.documentElement.scrollWidth")
                    assert wide <= width, f"{name} is {wide} px wide in a window of {width}"
            loaded = page.ask("performance.getEntriesByType('resource').map(one => one.name)")
            assert [one for one in loaded if not one.startswith(("file:", "data:"))] == []
        page.open((ROOT / "site/search.html").as_uri() + "?q=dualpi2+prague")
        page.wait_for("document.querySelectorAll('#search-results a').length > 0")


def test_the_first_page_has_every_answer_and_the_table_of_tools(source: Source) -> None:
    page = (source.folder / "index.md").read_text()
    studies = (ROOT / "studies/README.md").read_text()
    rows = [line for line in studies.splitlines() if line.startswith("|")][2:]
    found = list(landing.answers(studies))
    assert len(found) == len(rows) > 20
    assert all(f"- [{one.question}]({one.page})" in page and one.answer in page for one in found)
    assert "## Beside other tools\n\n| |" in page and "<!--" not in page.replace("<!-- not run", "")


def test_a_section_that_is_gone_is_said() -> None:
    with pytest.raises(ValueError, match=r'no section "Beside other tools"'):
        landing.section("# Small\n\n## Elsewhere\n", "Beside other tools")


@pytest.mark.virtual_time
def test_the_picture_of_the_first_page_is_that_of_these_programs(tmp_path: Path) -> None:
    """To a tenth of a second, as it says. It is drawn again by tools/site/picture.py."""
    installed_or_skip("noq")
    command = [sys.executable, str(ROOT / "tools/site/picture.py"), str(tmp_path)]
    subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, check=True)
    for kind in ("light", "dark"):
        name = f"cubic-and-bentpipe-{kind}.svg"
        said, shown = (
            re.findall(r"cc=\w+: \d+\.\d s", (folder / name).read_text())
            for folder in (tmp_path, ROOT / "docs/images")
        )
        assert said == shown and len(said) == 2
