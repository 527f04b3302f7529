"""stack.toml, variants, and where stacks are looked for."""

from pathlib import Path

import pytest
from conftest import STACKS, Command

from bentpipe import stacks
from bentpipe.errors import UsageError

GOOD = (STACKS / "toy" / "stack.toml").read_text()


def write(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "stack.toml").write_text(text)
    return folder


def test_a_stack_is_read() -> None:
    stack = stacks.load(STACKS / "toy")
    assert (stack.name, stack.roles, stack.deterministic) == ("toy", ("client", "server"), True)
    assert stack.build is None
    assert stack.command("virtual-time")[1] == str(STACKS / "toy" / "endpoint.py")
    assert stack.missing("virtual-time") is None
    assert stack.missing("sockets") == "toy offers no mode sockets"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "', 'titel = "', 'unknown key "titel"'),
        ('name = "toy"', 'name = "t oy"', "name: 't oy'"),
        ('roles = ["client", "server"]', 'roles = ["proxy"]', "roles: ['proxy']"),
        ("deterministic = true", 'deterministic = "yes"', "deterministic: 'yes'"),
        ("deterministic = true\n", "", 'the key "deterministic" is missing'),
        ("virtual-time = [", "virtual_time = [", 'unknown key "commands.virtual_time"'),
        ('language = "Python"', "language = Python", "not valid TOML"),
    ],
)
def test_mistakes_in_stack_toml_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    folder = write(tmp_path / "stack", GOOD.replace(old, new, 1))
    with pytest.raises(UsageError) as error:
        stacks.load(folder)
    assert str(folder / "stack.toml") in str(error.value)
    assert message in str(error.value)


def test_an_unknown_key_comes_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        stacks.load(write(tmp_path / "stack", GOOD.replace("title", "titel", 1)))
    assert 'did you mean "title"?' in error.value.hint


def test_a_variant_has_its_options() -> None:
    known = stacks.discover([STACKS / "toy"])
    variant = stacks.variant("toy:speed=slow", known)
    assert variant.endpoint()["options"] == {"speed": "slow"}
    assert variant.endpoint()["name"] == "toy:speed=slow"


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
        stacks.variant(label, stacks.discover([STACKS / "toy"]))
    assert error.value.hint


def test_a_later_folder_replaces_a_stack_of_the_same_name(tmp_path: Path) -> None:
    other = write(tmp_path / "other", GOOD)
    assert stacks.discover([STACKS, other])["toy"].folder == other.resolve()


def test_two_stacks_of_one_name_in_one_folder_are_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a", GOOD)
    write(tmp_path / "b", GOOD)
    with pytest.raises(UsageError, match='"toy" is taken by'):
        stacks.discover([tmp_path])


def test_a_folder_without_stacks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no stack\.toml"):
        stacks.discover([tmp_path])
    with pytest.raises(UsageError, match="no such folder"):
        stacks.discover([tmp_path / "nowhere"])


def test_a_program_that_is_not_built_is_named(tmp_path: Path) -> None:
    text = GOOD.replace('"{python}", "{folder}/endpoint.py"', '"{folder}/nothing"')
    stack = stacks.load(write(tmp_path / "stack", text))
    assert stack.missing("virtual-time") == f"toy is not built: there is no program {stack.folder}/nothing"


def test_build_leaves_out_what_needs_a_missing_tool(bentpipe: Command, tmp_path: Path) -> None:
    text = GOOD + '\n[build]\nneeds = ["no-such-tool"]\ncommand = ["true"]\n'
    folder = write(tmp_path / "stack", text.replace('"toy"', '"needy"', 1))
    done = bentpipe("stacks", "--stacks", folder, "build", "needy", "toy")
    assert done.code == 2
    assert "left out: needy needs no-such-tool; install no-such-tool" in done.err


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("false", 1)])
def test_build_says_whether_it_worked(bentpipe: Command, tmp_path: Path, command: str, code: int) -> None:
    text = GOOD + f'\n[build]\ncommand = ["{command}"]\n'
    folder = write(tmp_path / "stack", text.replace('"toy"', '"made"', 1))
    done = bentpipe("stacks", "build", "made", "--stacks", folder)
    assert done.code == code
    assert ("made was not built: false ended with 1" in done.err) is (code == 1)
