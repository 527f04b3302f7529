"""The page of `bentpipe explore`, and the report of a run under way, in a real browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import browser
import children
import open_page
import pytest
from conftest import installed_or_skip
from open_page import OpenPage
from test_explore import Server, started

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(browser.CHROMIUM is None, reason="there is no Chromium: apt install chromium"),
]
DRAWN = "(window.bentpipeExplore?.drawn ?? 0)"
DONE = "(window.bentpipeExplore?.done ?? 0)"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    installed_or_skip("noq")
    yield from started(tmp_path, "--workload", "transfer:50kB", "--seeds", "3")


@pytest.fixture
def page(server: Server, tmp_path: Path) -> Iterator[OpenPage]:
    with open_page.opened(tmp_path / "profile") as page:
        page.resize(1400, 900)
        page.open(server.address)
        # The first frame is painted after its reply has come: on a busy machine after the last reply, too.
        page.wait_for(f"{DONE} > 0 && {DRAWN} > 0")
        yield page


def move(page: OpenPage, knob: str, place: int) -> None:
    """Move a slider, as a key would, and wait for what comes of it."""
    before = page.ask(DRAWN)
    page.ask(f"""(() => {{
        const knobs = [...document.querySelectorAll(".knob")];
        const knob = knobs.find((one) => one.textContent.startsWith("{knob}"));
        const range = knob.querySelector("input[type=range]");
        range.value = {place};
        range.dispatchEvent(new Event("input"));
        range.dispatchEvent(new Event("change"));
    }})()""")
    page.wait_for(f"{DRAWN} > {before}")


def press(page: OpenPage, text: str) -> None:
    page.ask(f"[...document.querySelectorAll('button')].find((b) => b.textContent === '{text}').click()")


def results(page: OpenPage) -> list[str]:
    found: list[str] = page.ask("[...document.querySelectorAll('.result')].map((one) => one.textContent)")
    return found


def test_a_slider_changes_results_and_undo_and_the_link_restore_them(server: Server, page: OpenPage) -> None:
    first = results(page)
    assert len(first) == 2 and all(re.match(r"[\d.]+", one) for one in first)
    plots = page.ask("[...document.querySelectorAll('.stage figure')].map((one) => one.id)")
    assert plots == ["plot-offset", "plot-rate", "plot-in_flight", "plot-rtt", "plot-queue"]
    move(page, "Delay", 50)
    assert results(page) != first
    assert "forward.delay%3D100+ms" in page.ask("location.hash")
    assert "'forward.delay=100 ms'" in page.ask("document.querySelector('.commands').textContent")
    link, after = page.ask("location.href"), results(page)
    before = page.ask(DRAWN)
    press(page, "Undo")
    page.wait_for(f"{DRAWN} > {before}")
    assert results(page) == first and "delay" not in page.ask("location.hash")
    page.open("about:blank")
    page.open(link)
    page.wait_for(f"{DRAWN} > 0")
    assert results(page) == after
    assert page.ask("document.querySelector('.script-error')?.textContent") is None
    assert server.end() == 0


def test_curves_are_pinned_and_weather_has_its_plots(page: OpenPage) -> None:
    press(page, "Pin")
    move(page, "Rain forward", 200)
    keys = page.ask("[...document.querySelectorAll('#plot-offset .key')].map((one) => one.textContent)")
    assert {"A, pinned", "B, pinned", "A", "B"} <= set(keys)
    assert page.ask("document.querySelector('#plot-es_n0') !== null")
    assert "rain of 10 dB" in page.ask("document.querySelector('.diagram svg').getAttribute('aria-label')")


def test_all_controls_have_names_and_nothing_is_wider_than_the_page(page: OpenPage) -> None:
    nameless = page.ask("""[...document.querySelectorAll("input, select, textarea, button, summary")]
        .filter((one) => !(one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim()))
        .map((one) => one.outerHTML)""")
    assert nameless == []
    for width in (1400, 900, 400):
        page.resize(width, 850)
        assert page.wait_for(f"document.documentElement.scrollWidth <= {width}")


def test_an_error_is_said_on_the_page_and_a_dead_server_too(server: Server, page: OpenPage) -> None:
    page.ask("""(() => {
        const area = document.querySelector(".panel textarea");
        area.value = "forward.nonsense=1";
        area.dispatchEvent(new Event("change"));
    })()""")
    said = page.wait_for("document.querySelector('.summary .failure')?.textContent")
    assert "nonsense" in said
    busy = ".results[aria-busy=true]"
    assert page.wait_for(f"!document.querySelector('{busy}')")
    # Nothing is offered for a state that has no path.
    assert page.ask("document.querySelector('.commands').textContent") == ""
    assert page.ask("document.querySelector('.diagram').classList.contains('stale')")
    press(page, "As the scenario has it")
    assert page.wait_for("document.querySelector('.commands').textContent")
    assert page.wait_for("document.querySelectorAll('.result').length === 2")
    assert not page.ask("document.querySelector('.diagram').classList.contains('stale')")
    assert server.end() == 0
    assert page.wait_for("!document.querySelector('.banner').hidden")
    assert "does not answer" in page.ask("document.querySelector('.banner').textContent")


def test_a_link_out_of_bounds_is_refused_once_and_in_words(page: OpenPage) -> None:
    before = page.ask(DONE)
    page.ask("location.hash = location.hash.replace('seeds=3', 'seeds=1000')")
    page.wait_for(f"{DONE} > {before}")
    assert "1 to 100" in page.ask("document.querySelector('.summary .failure').textContent")
    assert page.ask("document.querySelector('.banner').hidden")
    press(page, "Undo")
    page.wait_for("document.querySelectorAll('.result').length === 2")


def test_a_page_finds_its_server_again(tmp_path: Path, server: Server) -> None:
    """One that is there again at the same address: the page asks for its state once more."""
    port = server.host.rpartition(":")[2]
    token = server.address.split("/")[3]
    with open_page.opened(tmp_path / "profile") as page:
        page.open(server.address)
        page.wait_for(f"{DONE} > 0")
        assert server.end() == 0
        page.wait_for("!document.querySelector('.banner').hidden")
        before = page.ask(DRAWN)
        again = tmp_path / "again"
        again.mkdir()
        for _ in started(again, "--port", port, "--seeds", "1", token=token):
            page.wait_for(f"{DRAWN} > {before}")
            assert page.ask("document.querySelector('.banner').hidden")


@pytest.mark.virtual_time
def test_a_run_is_watched_until_its_page_is_closed(tmp_path: Path) -> None:
    """Cells fill in; then the page has the run's own report, and closing that ends the command."""
    installed_or_skip("noq")
    words = ["run", "--scenario", "sat,goodput", "--client", "noq", "--server", "noq,quinn", "--bytes", "1MB"]
    words += ["--iterations", "3", "--jobs", "1", "--watch", "--out", str(tmp_path / "run")]
    err = tmp_path / "err"
    with open_page.opened(tmp_path / "profile") as page:
        with err.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "bentpipe", *words],
                stdout=subprocess.DEVNULL,
                stderr=file,
                env={**os.environ, "BROWSER": "true"},
            )
        children.wait_for("the address", lambda: "watch: " in err.read_text())
        (address,) = re.findall(r"watch: (\S+)", err.read_text())
        page.open(address)
        page.wait_for("document.querySelector('.watching')?.textContent.includes('complete')")
        page.wait_for("document.querySelectorAll('a.cell').length === 4")
        page.ask("document.querySelector('a.cell').click()")
        page.wait_for("document.body?.dataset.page === 'cell'")
        with pytest.raises(subprocess.TimeoutExpired):  # somebody looks at it
            process.wait(5)
    assert process.wait(children.PATIENCE_S) == 0
    assert (tmp_path / "run/report/index.html").is_file()
