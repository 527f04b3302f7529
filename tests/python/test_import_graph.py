"""Circles of imports, in Python and in Rust, as `import_graph` finds them in a few lines of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_graph import circles, of_crate, of_python


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    "back",
    [
        "from own.a import one",
        "from . import a",
        "def late():\n    from .a import one",
        "if TYPE_CHECKING:\n    import own.a",
    ],
)
def test_python_modules_that_import_each_other_are_a_circle(tmp_path: Path, back: str) -> None:
    folder = written(
        tmp_path / "own", {"a.py": "from own import b", "b.py": back, "c.py": "from own import a"}
    )
    assert circles(of_python([folder])) == {frozenset({"own.a", "own.b"})}


def test_a_chain_of_python_modules_is_no_circle(tmp_path: Path) -> None:
    files = {"__init__.py": "from own.a import one", "a.py": "from own.b import two", "b.py": "import json"}
    assert circles(of_python([written(tmp_path / "own", files)])) == set()


PARENT = "mod a;\nmod b;\npub use a::One;\npub use b::Two;\npub struct Own;\n"


@pytest.mark.parametrize(
    ("a", "b", "circle"),
    [
        ("use super::Two;\npub struct One(Two);", "use super::Own;\npub struct Two(Own);", False),
        ("use super::Two;\npub struct One(Two);", "use crate::One;\npub struct Two(One);", True),
        ("pub struct One(crate::b::Two);", "use super::{Own, a::{self}};\npub struct Two(a::One);", True),
        ("use super::b as other;\npub struct One(other::Two);", "// crate::One\npub struct Two;", False),
        ("use super::Two;\npub struct One;", "#[cfg(test)]\nmod tests {\nuse crate::One;\n}", False),
    ],
)
def test_rust_modules_are_judged_by_the_names_that_they_use(
    tmp_path: Path, a: str, b: str, circle: bool
) -> None:
    folder = written(tmp_path, {"lib.rs": PARENT, "a.rs": a, "b.rs": b})
    assert circles(of_crate(folder)) == ({frozenset({"a.rs", "b.rs"})} if circle else set())


def test_a_glob_leads_to_the_file_that_has_the_name(tmp_path: Path) -> None:
    parent = "mod a;\nmod b;\npub use b::*;"
    files = {
        "lib.rs": parent,
        "a.rs": "use crate::Two;\npub fn f() {}",
        "b.rs": "use crate::a;\npub struct Two;",
    }
    folder = written(tmp_path, files)
    assert of_crate(folder)["a.rs"] == {"b.rs"}
    assert circles(of_crate(folder)) == set(), "a module that is named and not used is no tie"
