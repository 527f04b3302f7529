"""Campaign files, what the command line changes in them, and the trials that come of it."""

import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from conftest import STACKS, Command

from bentpipe import paths, workload
from bentpipe.errors import UsageError
from bentpipe.execution import link_plan
from bentpipe.plan import campaign, scenarios
from bentpipe.plan.campaign import Plan
from bentpipe.plan.trial import Trial
from bentpipe.runs.records import MEASURED, measured, unmeasured
from bentpipe.stacks import catalogue
from bentpipe.workload import TESTCASES, files

FILE = """
title = "A test"
seed = 7
iterations = 2
workloads = ["transfer:1MiB"]
scenarios = ["sat"]
clients = ["toy"]
servers = ["toy", "toy:speed=slow"]
set = ["forward.rate = 10 Mbit/s"]

[sweep]
"forward.queue" = ["25 packets", "1BDP"]
"""


PAGE = (paths.root() / "docs" / "reference" / "campaigns.md").read_text()
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def section(title: str) -> str:
    """What stands under a heading of the reference."""
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def load(tmp_path: Path, text: str) -> Plan:
    file = tmp_path / "test.toml"
    file.write_text(text)
    return campaign.load(str(file))


def test_a_sweep_gives_a_label_to_each_value(tmp_path: Path) -> None:
    plan = load(tmp_path, FILE)
    assert plan.workloads == ("transfer:1048576",)
    assert plan.labels() == [
        "sat,forward.rate=10Mbit/s,forward.queue=25packets",
        "sat,forward.rate=10Mbit/s,forward.queue=1BDP",
    ]
    assert len(plan.trials()) == 2 * 1 * 2 * 2
    assert len({trial.id for trial in plan.trials()}) == 8


def test_pairs_of_the_same_stack(tmp_path: Path) -> None:
    lists = ('clients = ["toy"]', 'clients = ["toy", "quinn:iw=10", "noq"]\npairs = "self"')
    plan = load(tmp_path, FILE.replace(*lists).replace('"toy:speed=slow"', '"toy:speed=slow", "quinn"'))
    found = [(one.client, one.server) for one in plan.trials()]
    assert list(dict.fromkeys(found)) == [
        ("toy", "toy"),
        ("toy", "toy:speed=slow"),
        ("quinn:iw=10", "quinn"),
    ]
    assert {one.client for one in plan.trials(left_out=["toy"])} == {"quinn:iw=10"}


def test_a_run_needs_a_pair(bentpipe: Command, fake_sim: Path) -> None:
    shutil.copytree(STACKS / "toy", "stacks/other")
    file = Path("stacks/other/stack.toml")
    file.write_text(file.read_text().replace('name = "toy"', 'name = "other"'))
    pair = ("--client", "toy", "--server", "other", "--stacks", "stacks")
    done = bentpipe("run", "--scenario", "sat", *pair, "--pairs", "self")
    assert done.code == 2 and "no stack that can be started is both" in done.err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("iterations = 2", "iteration = 2", 'unknown key "iteration"'),
        ("iterations = 2", "iterations = 0", "iterations: 0"),
        ("seed = 7", 'seed = "seven"', "seed: 'seven'"),
        ('["transfer:1MiB"]', '["transfer:1 Mebi"]', 'workloads: "transfer:1 Mebi": "1 Mebi" is no size'),
        ('["transfer:1MiB"]', '["transfer:0"]', 'workloads: "transfer:0": "0" is no size'),
        ('["transfer:1MiB"]', "[]", "workloads: []"),
        ('["transfer:1MiB"]', "[1000]", "workloads: [1000]"),
        ('workloads = ["transfer:1MiB"]', 'bytes = "1MiB"', 'unknown key "bytes"'),
        ('scenarios = ["sat"]', "", 'the key "scenarios" is missing'),
        ('clients = ["toy"]', "clients = []", "clients: []"),
        ('["25 packets", "1BDP"]', "[25]", "sweep.forward.queue: [25]"),
        ('title = "A test"', 'title = "A test"\ntrace = "some"', 'trace: "some"'),
        ('title = "A test"', 'title = "A test"\npairs = "none"', 'pairs: "none"'),
        ('"forward.queue" =', "forward.queue =", "sweep.forward.queue: the key is not in quotes"),
        ('clients = ["toy"]', 'clients = ["toy", ""]', "clients: ['toy', '']"),
    ],
)
def test_mistakes_in_a_campaign_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in FILE
    with pytest.raises(UsageError) as error:
        load(tmp_path, FILE.replace(old, new))
    assert "test.toml: " in str(error.value)
    assert message in str(error.value)
    assert error.value.hint


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("ip = 5", "write 4 or 6"),
        ("ip = true", "write 4 or 6"),
        ('ip = "six"', "one of: 4, 6"),
        ("pairs = 5", 'write "all" or "self"'),
        ("trace = 5", 'write "all", "analysis", "median" or "none"'),
    ],
)
def test_of_fixed_words_the_hint_has_all(tmp_path: Path, line: str, hint: str) -> None:
    with pytest.raises(UsageError, match="is not valid") as error:
        load(tmp_path, f"{line}\n{FILE}")
    assert error.value.hint == hint


def test_scenario_files_count_from_the_campaign_file(tmp_path: Path) -> None:
    plan = load(
        tmp_path, FILE.replace('scenarios = ["sat"]', 'scenarios = ["sat", "mine/own.toml", "/own2.toml"]')
    )
    assert plan.scenarios == ("sat", str(tmp_path / "mine" / "own.toml"), "/own2.toml")
    assert plan.labels()[2].startswith("own,")


def test_a_scenario_file_with_a_comma_is_refused(tmp_path: Path) -> None:
    plan = load(tmp_path, FILE.replace('scenarios = ["sat"]', 'scenarios = ["a,b.toml"]'))
    with pytest.raises(UsageError, match="comma"):
        plan.labels()


def test_a_folder_is_no_campaign_file(tmp_path: Path) -> None:
    (tmp_path / "dir.toml").mkdir()
    with pytest.raises(UsageError, match=r"dir\.toml is a folder"):
        campaign.load(str(tmp_path / "dir.toml"))


@pytest.mark.parametrize("block", BLOCKS)
def test_the_examples_of_the_reference_are_campaigns(tmp_path: Path, block: str) -> None:
    plan = load(tmp_path, block)
    assert plan.sweep or plan.flows or plan.pep
    assert all(label.startswith("sat") for label in plan.labels())
    known = catalogue.discover()
    for one in (*plan.clients, *plan.servers):
        assert catalogue.variant(one, known).label == one


def test_the_reference_has_every_key_and_its_default(tmp_path: Path) -> None:
    lines = [line for line in section("Keys").splitlines() if line.startswith("| `")]
    rows = {(cells := line.split("|"))[1].strip(" `[]"): cells[2].strip(" `") for line in lines}
    # A name is the file's, and cells are named by checks alone.
    known = [field for field in msgspec.structs.fields(Plan) if field.name not in ("name", "cells")]
    fields = {field.name: field for field in known}
    assert rows.keys() == fields.keys()
    for key, field in fields.items():
        if field.required or key == "sweep":
            assert rows[key] == ("empty" if key == "sweep" else "none")
        elif key == "workloads":
            assert workload.canonical(json.loads(rows[key]), key) == field.default
        elif key == "draws":  # a plan without is from before there was a choice
            assert json.loads(rows[key]) == campaign.DEFAULT_DRAWS != field.default
        else:
            assert json.loads(rows[key]) == (
                list(field.default) if isinstance(field.default, tuple) else field.default
            )
    example = load(tmp_path, BLOCKS[0])
    assert f"= {len(example.trials())} trials" in PAGE.replace("\n", " ")


CAMPAIGNS = sorted(paths.campaigns().values())


@pytest.mark.parametrize("file", CAMPAIGNS, ids=lambda file: file.stem)
def test_a_campaign_that_comes_along_can_be_run(file: Path) -> None:
    """Its scenarios are valid, changes included, and so are its variants."""
    plan = campaign.load(file.stem)
    assert plan.title and len(set(plan.labels())) == len(plan.cases())
    resolved = link_plan.scenarios_of(plan) if plan.link else scenarios.resolve_all(plan.cases())
    assert all(one.label in plan.labels() for one in resolved)
    known = catalogue.discover()
    for one in (*plan.clients, *plan.servers):
        variant = catalogue.variant(one, known)
        assert variant.label == one
        for key in variant.options.keys() & {"cc", "ss"}:  # a stack lists their values
            assert variant.options[key] in re.findall(r"[\w+-]+", variant.stack.options[key]), one


@pytest.mark.parametrize("file", CAMPAIGNS, ids=lambda file: file.stem)
def test_a_campaign_that_comes_along_says_what_it_is_for(file: Path) -> None:
    rows = [[cell.strip() for cell in line.split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
    listed = {row[1]: row for row in rows}
    assert int(listed[file.stem][3]) == len(campaign.load(file.stem).trials())
    if file.stem == "demo":  # its own question is Bentpipe's
        return
    opening = re.match(r"(?:#.*\n)+", file.read_text())
    assert opening
    words = " ".join(line.lstrip("# ") for line in opening[0].splitlines())
    assert words.startswith("Question: ") and "Source:" in words and "Takes:" in words
    minutes = re.search(r"(?:about |under )(a|\d+) minutes?", words)
    assert minutes and minutes[1].replace("a", "1") == listed[file.stem][4]


def test_the_reference_lists_no_campaign_that_is_not_there() -> None:
    rows = [
        line for line in section("Campaigns that come with Bentpipe").splitlines() if line.startswith("| ")
    ]
    assert {row.split("|")[1].strip() for row in rows} == {"campaign", *(file.stem for file in CAMPAIGNS)}


def test_the_reference_has_every_workload_and_its_count() -> None:
    rows = [line.split("|") for line in section("Workloads").splitlines() if line.startswith("| `")]
    counts = {}
    for row in rows:
        examples = [workload.parse(one, "docs") for one in re.findall(r"`([^`]+)`", row[1])]
        counts[examples[0].testcase] = row[3].strip()
    assert counts.keys() == TESTCASES.keys()
    pages = [name for name in counts if name.startswith("page")]
    assert {counts.pop(name) for name in pages} == {"the page's"}
    assert [counts.pop(name) for name in ("live", "frames")] == ["the stream's", "the stream's"]
    for name, known in files.KIND.testcases.items():
        default = "must be given" if known.default is None else str(known.default)
        assert counts[name] == default + (f", at least {known.least}" if known.least > 1 else "")


def test_a_setting_of_the_command_line_ends_its_sweep(tmp_path: Path) -> None:
    plan = load(tmp_path, FILE).changed({"set": ("forward.queue=4BDP",)})
    assert plan.labels() == ["sat,forward.rate=10Mbit/s,forward.queue=4BDP"]
    again = load(tmp_path, FILE).changed({"set": ("forward.rate=5Mbit/s",)})
    assert again.labels()[0] == "sat,forward.rate=5Mbit/s,forward.queue=25packets"


def test_a_plan_survives_the_manifest(tmp_path: Path) -> None:
    plan = load(tmp_path, FILE)
    assert msgspec.convert(msgspec.to_builtins(plan), Plan) == plan
    assert campaign.difference(plan, plan) is None
    assert campaign.difference(plan, plan.changed({"seed": 8})) == "seed: the run has 7, now it is 8"


def trial(**changes: object) -> Trial:
    values = {
        "campaign_seed": 1,
        "scenario": "sat",
        "workload": "transfer:1000",
        "size_bytes": 1000,
        "client": "toy",
        "server": "toy",
        "iteration": 1,
    }
    return Trial(**{**values, **changes})  # type: ignore[arg-type]


def test_a_seed_comes_from_what_the_trial_is() -> None:
    # Written down once: it must not change between versions, or old runs could not be repeated.
    assert trial().seed == "1b89f18fc0df7675"
    seeds = {
        trial(**change).seed
        for change in (
            {},
            {"campaign_seed": 2},
            {"scenario": "satloss"},
            {"workload": "transfer:1001"},
            {"client": "toy:a=1"},
            {"server": "toy:a=1"},
            {"treatment": "quic-pep"},
            {"iteration": 2},
        )
    }
    assert len(seeds) == 8
    assert trial(testbed="emu").seed == trial().seed


def test_common_draws_come_from_the_iteration_alone() -> None:
    # Written down once, too.
    common = trial(draws="common")
    assert common.seed == "e61b9f584dbe2774"
    others: list[dict[str, object]] = [
        {"scenario": "satloss"}, {"workload": "transfer:1001"}, {"client": "toy:a=1"}, {"server": "toy:a=1"},
        {"treatment": "quic-pep"}, {"testbed": "emu"}, {"ip": 6},
    ]  # fmt: skip
    assert {trial(draws="common", **one).seed for one in others} == {common.seed}
    assert len({common.seed, trial(draws="common", iteration=2).seed,
                trial(draws="common", campaign_seed=2).seed, trial().seed}) == 4  # fmt: skip
    assert common.id == trial().id, "folders have the same names either way"
    assert len({trial(draws="common", **one).id for one in others}) == 6, "a testbed has runs of its own"


def test_a_campaign_file_may_ask_for_independent_draws(tmp_path: Path) -> None:
    ends = 'scenarios = ["sat"]\nclients = ["noq"]\nservers = ["noq", "quinn"]\n'
    common, apart = load(tmp_path, ends), load(tmp_path, f'{ends}draws = "independent"\n')
    assert len({one.seed for one in common.trials()}) == common.iterations
    assert len({one.seed for one in apart.trials()}) == 2 * apart.iterations
    with pytest.raises(UsageError, match='draws: "each" is not valid'):
        load(tmp_path, f'{ends}draws = "each"\n')


def test_an_id_is_a_file_name() -> None:
    odd = trial(scenario="sat,forward.rate=10Mbit/s" + "x" * 300, client="../toy:a=\x00").id
    assert "/" not in odd and "\x00" not in odd and not odd.startswith(".")
    assert len(odd) < 200


def test_what_the_testbed_answers_is_checked() -> None:
    with pytest.raises(ValueError, match=r"columns are not those of a record: .*goodput_bps"):
        measured(trial(), {"outcome": "ok"})
    record = unmeasured(trial(), "invalid", "why")
    values = {name: getattr(record, name) for name in MEASURED}
    assert measured(trial(), values) == record
    with pytest.raises(ValueError, match="outcome: 'fine' is not valid"):
        measured(trial(), values | {"outcome": "fine"})


@pytest.mark.parametrize(
    ("sweep", "options", "said"),
    [
        ('"bad.queue" = ["1BDP"]', [], 'sweep."bad.queue" = "1BDP" of the campaign plan.toml'),
        ('"forward.queue" = ["1BDP"]', ["--set", "bad=1"], "--set bad=1"),
    ],
)
def test_a_setting_that_is_wrong_is_named_as_it_was_written(
    bentpipe: Command, fake_sim: Path, sweep: str, options: list[str], said: str
) -> None:
    text = f'scenarios = ["sat"]\nclients = ["toy"]\nservers = ["toy"]\n[sweep]\n{sweep}\n'
    Path("plan.toml").write_text(text)
    done = bentpipe("run", "plan.toml", *options)
    assert done.code == 2 and said in done.err
    assert ("--set" in done.err) == bool(options)


def test_qlogs_need_a_trace(bentpipe: Command, fake_sim: Path) -> None:
    text = 'scenarios = ["sat"]\nclients = ["toy"]\nservers = ["toy"]\nqlog = true\n'
    Path("plan.toml").write_text(text)
    done = bentpipe("run", "plan.toml")
    assert done.code == 2 and "plan.toml: qlog: there is no trace" in done.err


JOINED = """
scenarios = ["sat"]
clients = ["toy"]
servers = ["toy"]

[sweep]
"forward.loss, return.loss" = ["0 %", "1 %"]
"forward.queue" = ["1 BDP"]
"""


def test_keys_of_a_sweep_that_are_joined_take_the_same_value(tmp_path: Path) -> None:
    plan = load(tmp_path, JOINED)
    assert plan.labels() == [
        "sat,forward.loss=0%,return.loss=0%,forward.queue=1BDP",
        "sat,forward.loss=1%,return.loss=1%,forward.queue=1BDP",
    ]
    one = plan.changed({"set": ("forward.loss=2 %",)})
    assert (
        one.labels()[0] == "sat,forward.loss=2%,return.loss=0%,forward.queue=1BDP" and len(one.labels()) == 2
    )
    both = plan.changed({"set": ("forward.loss=2 %", "return.loss=2 %")})
    assert both.labels() == ["sat,forward.loss=2%,return.loss=2%,forward.queue=1BDP"]
