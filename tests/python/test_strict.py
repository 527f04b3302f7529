"""Strict reading: what is wrong with a file is said with its key, its value, and what to write instead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from bentpipe import strict
from bentpipe.errors import UsageError
from bentpipe.schema import reading


class Part(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    weight: Annotated[float, msgspec.Meta(gt=0)] = 1.0


class File(msgspec.Struct, forbid_unknown_fields=True):
    title: str
    count: Annotated[int, msgspec.Meta(ge=1)] = 1
    loud: bool = False
    words: tuple[str, ...] = ()
    colour: Literal["green", "blue"] = "green"
    size: Annotated[str, msgspec.Meta(pattern="^[0-9]+ m$", description="a length: 3 m")] = "1 m"
    table: Part | None = None
    parts: tuple[Part, ...] = ()
    known: dict[str, Part] = {}
    modes: dict[Literal["fast", "slow"], tuple[str, ...]] = {}
    lists: dict[str, tuple[Part, ...]] = {}


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("", 'the key "title" is missing', "add it"),
        ("title = 3", "title: 3 is not valid", "write a text in quotes"),
        ('titel = 3\ntitle = ""', 'unknown key "titel"', 'did you mean "title"? keys: title, count'),
        ("count = 0", "count: 0 is not valid", "write a whole number of at least 1"),
        ('loud = "yes"', "loud: 'yes' is not valid", "write true or false"),
        ('words = "one"', "words: 'one' is not valid", 'write a list of texts: ["…", "…"]'),
        ('words = ["one", 2]', "words: ['one', 2] is not valid", 'write a list of texts: ["…", "…"]'),
        ('colour = "gren"', 'colour: "gren" is not valid', 'did you mean "green"? one of: blue, green'),
        ('size = "3 km"', "size: '3 km' is not valid", "write a length: 3 m"),
        ("table = 1", "table: 1 is not valid", "write a table: [table]"),
        ("[table]", 'the key "table.name" is missing', "add it"),
        ('[table]\nname = "a"\nweight = 0', "table.weight: 0 is not valid", "write a number above 0"),
        ("parts = 1", "parts: 1 is not valid", "write tables: [[parts]]"),
        ('[[parts]]\nname = "a"\n[[parts]]\nweight = 1', 'the key "parts 2: name" is missing', "add it"),
        ('[known.a]\nname = "a"\n[known.b]\nname = 2', "known.b.name: 2 is not valid", "a text in quotes"),
        ('[known.a]\nname = "a"\n[known.b]\n', 'the key "known.b.name" is missing', "add it"),
        ('[known.b]\nname = "b"\nx = 1', 'unknown key "known.b.x"', "keys: name, weight"),
        ("[modes]\nfast = []\nslwo = []", 'unknown key "modes.slwo"', 'did you mean "slow"?'),
        ('[lists]\na = []\nb = [{ name = "b" }, { name = 1 }]', "lists.b 2: name: 1 is not valid", "a text"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str, hint: str) -> None:
    file = tmp_path / "a.toml"
    file.write_text(text if "title" in said or "title" in text else f'title = "t"\n{text}')
    with pytest.raises(UsageError) as caught:
        strict.read(file, File)
    assert str(caught.value) == f"{file}: {said}"
    assert hint in caught.value.hint


class Scenario(msgspec.Struct, forbid_unknown_fields=True):
    summary: dict[str, Any]


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    scenarios: dict[str, Scenario]
    counts: dict[str, dict[str, int]] = {}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"scenarios": {"a": {"summary": {}}, "b": {"summary": 3}}}, "scenarios.b.summary: 3 is not valid"),
        ({"scenarios": {"a": {"summary": {}}, "b": {}}}, 'the key "scenarios.b.summary" is missing'),
        ({"scenarios": {"a": {"summary": {}, "x": 1}}}, 'unknown key "scenarios.a.x"'),
        ({"scenarios": {"a": 7}}, "scenarios.a: 7 is not valid"),
        (
            {"scenarios": {}, "counts": {"a": {"b": 1}, "c": {"d": 1, "e": "f"}}},
            "counts.c.e: 'f' is not valid",
        ),
        ({"scenarios": "x" * 200}, f"scenarios: '{'x' * 99}… is not valid"),
    ],
)
def test_an_error_in_a_map_names_its_key(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as caught:
        reading.convert(values, Manifest, 1)
    assert str(caught.value).startswith(said)


def test_a_class_may_be_read_first_by_several_threads_at_once() -> None:
    """Without `prepared` msgspec 0.22 crashes within some of these rounds."""
    program = """
import sys, threading
import msgspec
from bentpipe import strict
sys.setswitchinterval(1e-6)
for _ in range(100):
    inner = msgspec.defstruct("Inner", [("a", int, 0), ("b", float | None, None), ("c", dict[str, int], {})])
    outer = msgspec.defstruct("Outer", [("x", int), ("y", inner), ("z", tuple[inner, ...])])
    values = {"x": 1, "y": {"a": 2, "b": 1.0}, "z": [{"c": {"d": 3}}]}
    together, read = threading.Barrier(8), []
    def go():
        together.wait()
        read.append(strict.convert(values, outer, "some.toml"))
    threads = [threading.Thread(target=go) for _ in range(8)]
    for one in threads: one.start()
    for one in threads: one.join()
    assert len(read) == 8, read
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
