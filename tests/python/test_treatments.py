"""What stands between the ends: how it is written, what a job and a seed have of it, where users see it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fake_run
import msgspec
import pytest
from browser import dump
from conftest import Command

from bentpipe.analysis.cells import cells
from bentpipe.errors import UsageError
from bentpipe.plan import campaign, treatments
from bentpipe.plan.campaign import Plan
from bentpipe.report import build, slugs
from bentpipe.report.command import reproduce
from bentpipe.runs.records import Record
from bentpipe.runs.run_folder import RunFolder

SPEC = "terminal:iw=100:cc=newreno,gateway:iw=100:cc=newreno"
CANONICAL = "quic-pep terminal:cc=newreno:iw=100,gateway:cc=newreno:iw=100"
RUN = ("run", "--scenario", "sat", "--client", "toy", "--server", "toy", "--bytes", "1000")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (SPEC, CANONICAL),
        ("terminal", "quic-pep terminal"),
        (" gateway : mode=warm ", "quic-pep gateway:mode=warm"),
        ("terminal:saved=1500000@600ms,gateway", "quic-pep terminal:saved=1500000@600ms,gateway"),
    ],
)
def test_a_chain_has_one_canonical_form(text: str, canonical: str) -> None:
    found = treatments.chain(text, "--pep")
    assert str(found) == canonical
    assert treatments.parse(canonical, "manifest") == found


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("satellite", 'unknown place "satellite"', "places: terminal, gateway"),
        ("terminl:iw=1", 'unknown place "terminl"', 'did you mean "terminal"?'),
        ("terminal:iw=100,cc=newreno", 'unknown place "cc=newreno"', "joined by colons"),
        ("terminal,terminal:iw=1", "two middleboxes at the terminal", "each place once"),
        ("gateway:iw=9,terminal:b=1:a=2", "gateway before the terminal", "terminal:a=2:b=1,gateway:iw=9"),
        ("terminal,", "an empty place", "as in"),
        ("", "an empty place", "as in"),
        ("terminal:iw", '"iw" is no option', "terminal:option=value"),
        ("terminal:=1", '"=1" is no option', "terminal:option=value"),
        ("terminal:iw=1 0", "white space", "single words"),
        ("terminal:iw=1:iw=2", '"iw" is given twice', "once"),
    ],
)
def test_what_is_no_chain_is_refused(text: str, said: str, hint: str) -> None:
    with pytest.raises(UsageError, match=r"^--pep: ") as caught:
        treatments.chain(text, "--pep")
    assert said in str(caught.value) and hint in caught.value.hint


@pytest.mark.parametrize("text", ["", "quic-pep", "direct terminal", "pep terminal"])
def test_what_is_no_treatment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="manifest: "):
        treatments.parse(text, "manifest")


def plan(**values: Any) -> Plan:
    return Plan(name="x", scenarios=("sat",), clients=("toy",), servers=("toy",), iterations=2, **values)


def test_each_chain_is_a_treatment_of_its_own_with_seeds_of_its_own() -> None:
    made = plan(treatments=("direct", "quic-pep"), pep=("terminal:iw=9", "gateway")).trials()
    assert [one.treatment for one in made] == [
        *["direct"] * 2, *["quic-pep terminal:iw=9"] * 2, *["quic-pep gateway"] * 2
    ]  # fmt: skip
    assert len({one.seed for one in made}) == len({one.id for one in made}) == 6
    assert [one.seed for one in made[:2]] == [one.seed for one in plan().trials()]
    assert made[2].id.startswith("sat_toy_toy_quic-pep_1-")


def test_without_a_chain_there_is_a_proxy_at_each_place() -> None:
    made = plan(treatments=("quic-pep",)).trials()
    assert {one.treatment for one in made} == {"quic-pep terminal,gateway"}


def test_plans_of_earlier_versions_are_direct() -> None:
    values = msgspec.to_builtins(plan())
    del values["treatments"], values["pep"]
    assert {one.treatment for one in msgspec.convert(values, Plan).trials()} == {"direct"}


def write(text: str) -> Path:
    path = Path("plan.toml")
    path.write_text(f'scenarios = ["sat"]\nclients = ["toy"]\nservers = ["toy"]\niterations = 1\n{text}\n')
    return path


def test_a_campaign_names_treatments_and_chains(bentpipe: Command) -> None:
    found = campaign.load(str(write(f'treatments = ["direct", "quic-pep"]\npep = ["{SPEC}", "gateway"]')))
    assert found.treatments == ("direct", "quic-pep")
    assert [str(one) for one in found.parsed_treatments] == ["direct", CANONICAL, "quic-pep gateway"]


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        (
            'treatments = ["quick-pep"]',
            'treatments: unknown treatment "quick-pep"',
            'did you mean "quic-pep"?',
        ),
        ('treatments = ["terminal:iw=1"]', "treatments: unknown treatment", "quic-pep=terminal:iw=100"),
        ('treatments = ["quic-pep terminal"]', "treatments: unknown treatment", "quic-pep=terminal:iw=100"),
        ("treatments = []", "treatments", "at least one"),
        ('pep = ["terminal"]', "pep: no treatment is quic-pep", 'treatments = ["direct", "quic-pep"]'),
        ('treatments = ["quic-pep"]\npep = ["x"]', 'pep: "x": unknown place "x"', "places"),
    ],
)
def test_a_campaign_that_cannot_be_meant_is_refused(
    bentpipe: Command, text: str, said: str, hint: str
) -> None:
    done = bentpipe("run", write(text))
    assert done.code == 2 and f"plan.toml: {said}" in done.err and hint in done.err


@pytest.mark.parametrize(
    ("options", "said", "hint"),
    [
        (["--pep", "terminal"], "--pep: no treatment is quic-pep", "--treatment direct,quic-pep"),
        (["--treatment", "qic-pep"], '--treatment: unknown treatment "qic-pep"', 'did you mean "quic-pep"?'),
        (["--treatment", "quic-pep", "--pep", "moon"], '--pep: "moon": unknown place', "terminal, gateway"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(
    bentpipe: Command, fake_sim: Path, options: list[str], said: str, hint: str
) -> None:
    done = bentpipe(*RUN, *options)
    assert done.code == 2 and said in done.err and hint in done.err
    assert not Path("runs").exists()


def test_a_proxy_that_is_not_built_is_told_before_the_run(bentpipe: Command, fake_sim: Path) -> None:
    done = bentpipe(*RUN, "--treatment", "quic-pep")
    assert done.code == 1 and "bentpipe-pep is not built" in done.err and not Path("runs").exists()


@pytest.fixture
def fake_pep(fake_sim: Path) -> Path:
    """A program that can be found; the stand-in for the simulator starts none."""
    program = fake_sim / "bentpipe-pep"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    return program


def run(bentpipe: Command, *options: str) -> list[dict[str, Any]]:
    done = bentpipe(*RUN, "--iterations", "2", "--json", "--out", "out", *options)
    assert done.code == 0, done.err
    return done.records()


def test_a_job_has_the_proxies_of_its_treatment(
    bentpipe: Command, fake_pep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SIM", "jobs")
    monkeypatch.setenv("FAKE_SIM_LOG", str(Path("jobs.jsonl").resolve()))
    run(bentpipe, "--treatment", "direct,quic-pep", "--pep", SPEC, "--no-report")
    jobs = [json.loads(line) for line in Path("jobs.jsonl").read_text().splitlines()]
    told = sorted((job.get("proxies", []) for job in jobs), key=len)
    assert told[:2] == [[], []] and told[2] == told[3]
    assert told[2] == [
        {
            "place": place,
            "command": [str(fake_pep), "--virtual-time"],
            "options": {"iw": "100", "cc": "newreno"},
            "name": f"{place}:cc=newreno:iw=100",
            "relays": "split",
            "carries": "udp",
            "lead_ms": 0,
            "mtu_bytes": None,
        }
        for place in ("terminal", "gateway")
    ]


def test_a_run_with_proxies_is_shown_and_resumed(bentpipe: Command, fake_pep: Path) -> None:
    records = run(bentpipe, "--treatment", "direct,quic-pep", "--pep", SPEC)
    assert [one["treatment"] for one in records] == ["direct"] * 2 + [CANONICAL] * 2
    assert len({one["trial"] for one in records}) == 4 and len({one["seed"] for one in records}) == 2
    pages = sorted(page.stem for page in Path("out/report/cells").glob("*.html"))
    assert len(pages) == 2 and pages[0] == "sat--toy--toy" and pages[1].startswith("sat--toy--toy--quic-pep-")
    resumed = bentpipe("run", "--resume", "out", "--no-report")
    assert resumed.code == 0
    assert "sat: GEO, 20/2 Mbit/s, direct" in resumed.out
    assert ", quic-pep\n" in resumed.out
    other = bentpipe("run", "--resume", "out", "--treatment", "direct")
    assert other.code == 2 and "treatments: the run has" in other.err


def of_treatment(name: str, scale: float) -> list[Record]:
    made = [fake_run.record("sat", "quinn", "quinn", number) for number in (1, 2, 3)]
    return [
        fake_run.change(one, treatment=name, goodput_bps=1e7 * scale * part, trial=f"{name[:9]}-{one.trial}")
        for one, part in zip(made, (0.99, 1, 1.01), strict=True)
    ]


def write_run(*groups: list[Record]) -> None:
    fake_run.write(Path("run"))
    lines = [f"{record.to_json()}\n" for group in groups for record in group]
    Path("run/records.jsonl").write_text("".join(lines))


def test_one_treatment_is_held_against_another_of_the_same_run(bentpipe: Command) -> None:
    write_run(of_treatment("direct", 1), of_treatment(CANONICAL, 1.5))
    done = bentpipe("compare", "run", "run", "--treatments", "direct", "quic-pep")
    assert done.code == 0, done.err
    words = " ".join(done.out.split())  # lines are folded
    assert "A run: sim, IPv4, direct, 1 cells" in words
    assert f"B run: sim, IPv4, {CANONICAL}, 1 cells" in words
    (row,) = (line.split() for line in done.out.splitlines() if "→" in line)
    assert row[4:7] == ["10.00", "15.00", "1.500"]
    values = json.loads(bentpipe("compare", "run", "run", "--treatments", SPEC, "direct", "--json").out)
    assert values["a"]["treatment"] == CANONICAL and values["cells"][0]["ratio"] == pytest.approx(1 / 1.5)


def test_cells_of_several_treatments_are_told_apart(bentpipe: Command) -> None:
    write_run(of_treatment("direct", 1), of_treatment(CANONICAL, 1.5), of_treatment("quic-pep gateway", 1))
    done = bentpipe("compare", "run", "run")
    rows = [line for line in done.out.splitlines() if "→" in line]
    assert len(rows) == 3 and sum(CANONICAL in row for row in rows) == 1, done.out
    several = bentpipe("compare", "run", "run", "--treatments", "direct", "quic-pep")
    assert several.code == 2 and 'has several "quic-pep"' in several.err and CANONICAL in several.err
    none = bentpipe("compare", "run", "run", "--treatments", "direct", "terminal")
    assert none.code == 2 and 'has no "terminal"' in none.err
    one = bentpipe("compare", "run", "run", "--treatments", "direct", "gateway")
    assert one.code == 0, one.err


def test_names_of_cells_are_unique_and_commands_repeat_them(bentpipe: Command) -> None:
    many = ("direct", CANONICAL, "quic-pep gateway", "quic-pep gateway:iw=5")
    made = cells([record for name in many for record in of_treatment(name, 1)])
    names = slugs.assign(cell.key for cell in made)
    assert len(names) == 4 and all("/" not in name and " " not in name for name in names)
    command = reproduce(made[1], fake_run.manifest("sat", seed=7))
    assert f"--treatment {CANONICAL.replace(' ', '=')}" in command
    assert "--treatment" not in reproduce(made[0], fake_run.manifest())


def test_treatments_come_in_the_order_of_the_campaign(bentpipe: Command) -> None:
    chains = ["terminal:iw=9", "gateway"]
    write_run(*(of_treatment(name, 1) for name in ("quic-pep gateway", "quic-pep terminal:iw=9", "direct")))
    manifest = json.loads(Path("run/manifest.json").read_text())
    manifest["options"] |= {"treatments": ["direct", "quic-pep"], "pep": chains}
    Path("run/manifest.json").write_text(json.dumps(manifest))
    build(Path("run"))
    script = Path("run/report/data/run.js").read_text().removeprefix("window.bentpipeRun=").rstrip(";\n")
    found = [one["treatment"] for one in json.loads(script)["matrices"]]
    assert found == ["direct", "quic-pep terminal:iw=9", "quic-pep gateway"]


def hop(between: str, **changes: Any) -> dict[str, Any]:
    first, second = between.split("-")
    counts = {
        f"{way}_{what}": 0
        for way in ("forward", "return")
        for what in ("packets", "bytes", "queue_drops", "losses")
    }
    decoded = {
        "connections": 1,
        "rtt_min_ms": 0.2,
        "rtt_median_ms": 0.3,
        "retransmitted_share": 0.0,
        "findings": [],
    }
    return {"from": first, "to": second, **counts, **decoded, **changes}


def with_proxies(records: list[Record]) -> list[Record]:
    proxies: list[dict[str, Any]] = [
        {"place": place, "name": f"{place}:iw=100", "version": "pep 1", "driver": "d", "cpu_s": 0.25,
         "memory_bytes": 40_000_000, "statistics": {}}
        for place in ("terminal", "gateway")
    ]  # fmt: skip
    hops = [
        hop("client-terminal"),
        hop("terminal-gateway", forward_packets=9000, forward_queue_drops=321, rtt_min_ms=500.0),
        hop("gateway-server", rtt_min_ms=80.0, retransmitted_share=None),
    ]
    return [fake_run.change(one, proxies=proxies, hops=hops) for one in records]


def cell_page(folder: Path, slug: str) -> dict[str, Any]:
    text = (folder / f"report/data/cells/{slug}.js").read_text()
    values: dict[str, Any] = json.loads(text.partition("=")[2].rstrip(";\n"))
    return values


def test_a_cell_has_its_hops_and_what_the_proxies_took(bentpipe: Command) -> None:
    write_run(of_treatment("direct", 1), with_proxies(of_treatment(CANONICAL, 1.5)))
    folder = Path("run/trials") / of_treatment(CANONICAL, 1.5)[0].trial
    folder.mkdir(parents=True)
    for name in ("trace.pcapng", "trace-terminal-gateway.pcapng"):
        (folder / name).write_bytes(b"not a capture")
    build(Path("run"))
    (slug,) = (path.stem for path in Path("run/report/cells").glob("*quic-pep*.html"))
    found = cell_page(Path("run"), slug)
    assert [one["from"] for one in found["hops"]] == ["client", "terminal", "gateway"]
    assert found["proxies"][0] == {"place": "terminal", "cpu_s": 0.25, "memory_bytes": 40_000_000}
    assert [one["role"] for one in found["endpoints"]][2:] == [
        "proxy at the terminal",
        "proxy at the gateway",
    ]
    labels = [one["label"] for one in found["iterations"][0]["files"]]
    assert labels == ["trace", "trace terminal-gateway"]
    assert cell_page(Path("run"), "sat--quinn--quinn")["hops"] == []


@pytest.mark.browser
def test_a_browser_shows_hops_and_the_way_to_other_treatments(bentpipe: Command, tmp_path: Path) -> None:
    write_run(of_treatment("direct", 1), with_proxies(of_treatment(CANONICAL, 1.5)))
    build(Path("run"))
    (proxied,) = Path("run/report/cells").glob("*quic-pep*.html")
    shown = dump(proxied.resolve().as_uri(), tmp_path / "profile")
    assert "terminal \u2013 gateway" in shown and "321, 0" in shown and "500.0 ms" in shown
    assert 'href="sat--quinn--quinn.html">direct</a>' in shown
    direct = dump((proxied.parent / "sat--quinn--quinn.html").resolve().as_uri(), tmp_path / "other")
    assert f'href="{proxied.name}"' in direct and "<h2>Hops</h2>" not in direct
    index = dump(Path("run/report/index.html").resolve().as_uri(), tmp_path / "index")
    assert ">sat (direct)</a>" in index and f">sat ({CANONICAL})</a>" in index


def test_a_trace_is_forgotten_with_those_of_its_other_hops(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    trial = folder.trial("x")
    trial.mkdir(parents=True)
    for name in ("trace.pcapng", "trace-terminal-gateway.pcapng", "packets.parquet", "gateway.log"):
        (trial / name).write_bytes(b"x")
    folder.forget_trace("x")
    assert [path.name for path in trial.iterdir()] == ["gateway.log"]
    folder.close()
