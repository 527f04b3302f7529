"""stack.toml, variants, and where stacks are looked for."""

import dataclasses
import json
from pathlib import Path

import pytest
from conftest import STACKS, Command

from bentpipe.errors import UsageError
from bentpipe.stacks import catalogue, pipe, protocol

GOOD = (STACKS / "toy" / "stack.toml").read_text()


def write(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "stack.toml").write_text(text)
    return folder


def test_a_stack_is_read() -> None:
    stack = catalogue.load(STACKS / "toy")
    assert (stack.name, stack.roles, stack.deterministic) == ("toy", ("client", "server"), True)
    assert stack.build is None
    assert stack.command("virtual-time")[1] == str(STACKS / "toy" / "endpoint.py")
    assert stack.missing("virtual-time") is None
    assert stack.missing("sockets") == "toy offers no mode sockets"


def test_a_stack_may_have_http3_alone(tmp_path: Path) -> None:
    alone = GOOD.replace("deterministic = true", 'deterministic = true\nalpn = ["h2", "h3"]', 1)
    stack = catalogue.load(write(tmp_path / "stack", alone))
    assert stack.file_protocol == "h3"
    assert pipe.hello("server", "transfer", {}, tmp_path, stack.file_protocol)["alpn"] == "h3"
    assert "alpn" not in pipe.hello("server", "transfer", {}, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "', 'titel = "', 'unknown key "titel"'),
        ('name = "toy"', 'name = "t oy"', "name: 't oy'"),
        ('roles = ["client", "server"]', 'roles = ["proxy"]', "roles: ['proxy']"),
        ("deterministic = true", 'deterministic = "yes"', "deterministic: 'yes'"),
        ('roles = ["client", "server"]\n', "", 'the key "roles" is missing'),
        ("roles = [", 'interop = ["x"]\nroles = [', "interop stands in place of [commands]"),
        ("virtual-time = [", "virtual_time = [", 'unknown key "commands.virtual_time"'),
        ('language = "Python"', "language = Python", "not valid TOML"),
        (
            "[commands]",
            '[build]\nneeds = ["cargo > 1"]\ncommand = ["x"]\n[commands]',
            "build.needs: 'cargo > 1'",
        ),
        ("[commands]", "[build]\ncommand = []\n[commands]", "build.command: []"),
        ("[commands]", '[build]\ncommand = ["x"]\nmemory = "2 GB"\n[commands]', "build.memory: '2 GB'"),
        ("[commands]", '[build]\ncommand = ["x"]\ninputs = ["../x"]\n[commands]', "build.inputs: ['../x']"),
        ('testcases = ["transfer"]', 'testcases = ["transfers"]', "testcases: ['transfers']"),
        ("deterministic = true", 'deterministic = true\nalpn = ["h2"]', "alpn: ['h2']"),
        ("deterministic = true", 'deterministic = true\nlogs = ["pcap"]', "logs: ['pcap']"),
        ('"{folder}/endpoint.py"', '"{bin}/endpoint.py"', "commands: {bin} is of stacks that are built"),
    ],
)
def test_mistakes_in_stack_toml_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    folder = write(tmp_path / "stack", GOOD.replace(old, new, 1))
    with pytest.raises(UsageError) as error:
        catalogue.load(folder)
    assert str(folder / "stack.toml") in str(error.value)
    assert message in str(error.value)


def test_an_absolute_input_is_told_what_to_begin_with(tmp_path: Path) -> None:
    build = '[build]\ncommand = ["x"]\ninputs = ["/opt/lib"]\n[commands]'
    with pytest.raises(UsageError) as error:
        catalogue.load(write(tmp_path / "stack", GOOD.replace("[commands]", build, 1)))
    assert "build.inputs: ['/opt/lib']" in str(error.value)
    assert "{root} or {folder}" in error.value.hint


def test_an_unknown_key_comes_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        catalogue.load(write(tmp_path / "stack", GOOD.replace("title", "titel", 1)))
    assert 'did you mean "title"?' in error.value.hint


def test_a_variant_has_its_options() -> None:
    known = catalogue.discover([STACKS / "toy"])
    variant = catalogue.variant("toy:speed=slow", known)
    assert variant.program("virtual-time").options == {"speed": "slow"}
    assert variant.program("virtual-time").name == "toy:speed=slow"


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("tpy", 'unknown stack "tpy"'),
        ("toy:sped=slow", 'toy has no option "sped"'),
        ("toy:speed", '"speed" is no option'),
        ("toy:speed=slow:speed=slow", '"speed" is given twice'),
    ],
)
def test_mistakes_in_variants_are_named(label: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        catalogue.variant(label, catalogue.discover([STACKS / "toy"]))
    assert error.value.hint


def test_a_later_folder_replaces_a_stack_of_the_same_name(tmp_path: Path) -> None:
    other = write(tmp_path / "other", GOOD)
    assert catalogue.discover([STACKS, other])["toy"].folder == other.resolve()


def test_two_stacks_of_one_name_in_one_folder_are_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a", GOOD)
    write(tmp_path / "b", GOOD)
    with pytest.raises(UsageError, match='"toy" is taken by'):
        catalogue.discover([tmp_path])


def test_a_folder_without_stacks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no stack\.toml"):
        catalogue.discover([tmp_path])
    with pytest.raises(UsageError, match="no such folder"):
        catalogue.discover([tmp_path / "nowhere"])


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    text = GOOD.replace('"{python}", "{folder}/endpoint.py"', '"{folder}/nothing"')
    stack = catalogue.load(write(tmp_path / "stack", text))
    absent = f"{stack.folder}/nothing"
    assert stack.missing("virtual-time") == f"toy cannot be started: there is no program {absent}"


def test_a_stack_that_stands_in_for_one_of_ours_is_noted(bentpipe: Command, tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", GOOD.replace('"toy"', '"quinn"', 1))
    listed = bentpipe("stacks", "--stacks", folder, "--json")
    assert f"{folder} stands in for the stack quinn of Bentpipe" in listed.err
    (quinn,) = (stack for stack in json.loads(listed.out) if stack["name"] == "quinn")
    assert (quinn["folder"], quinn["modes"]) == (str(folder), ["virtual-time"])
    assert "stands in" not in bentpipe("stacks", "show", "toy").err


@pytest.mark.parametrize("command", ["stacks", "scenarios"])
def test_lists_fit_into_80_columns(bentpipe: Command, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = bentpipe(command).out.splitlines()
    assert lines
    assert max(map(len, lines)) <= 80


def test_titles_of_scenarios_are_listed_whole(bentpipe: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = " ".join(bentpipe("scenarios").out.split())
    listed = json.loads(bentpipe("scenarios", "--json").out)
    assert {"goodput", "sat", "satloss"} <= {one["name"] for one in listed}
    assert [one["title"] for one in listed if " ".join(one["title"].split()) not in shown] == []


def test_a_stack_without_options_says_so(bentpipe: Command, tmp_path: Path) -> None:
    options = GOOD[GOOD.index("[options]") : GOOD.index("[commands]")]
    folder = write(tmp_path / "plain", GOOD.replace(options, "").replace('"toy"', '"plain"', 1))
    assert "options: none" in bentpipe("stacks", "show", "plain", "--stacks", folder).out


def test_hq_interop_is_spoken_where_both_ends_have_it() -> None:
    toy = catalogue.load(STACKS / "toy")
    both, h3 = dataclasses.replace(toy, alpn=("h3", "hq-interop")), dataclasses.replace(toy, alpn=("h3",))
    assert [protocol.common(both, one) for one in (toy, both, h3)] == ["hq-interop", "hq-interop", "h3"]
    assert protocol.common(toy, h3) is None


def test_there_is_h3_in_some_test_cases_alone() -> None:
    h3 = dataclasses.replace(catalogue.load(STACKS / "toy"), alpn=("h3",))
    assert protocol.common(h3, h3, "multiplexing") == "h3"
    assert protocol.common(h3, h3, "upload") is None
