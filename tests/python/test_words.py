"""One concept, one name: the glossary of ARCHITECTURE.md against the types that modules export."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXPORTED = re.compile(r"^ *pub (?:struct|enum|trait|type) (\w+)", re.MULTILINE)
ANY = re.compile(r"^ *(?:pub(?:\([a-z]+\))? )?(?:struct|enum|trait|type) (\w+)", re.MULTILINE)
# Where a word of the glossary names more than one type of a language: how many at most, and why.
FURTHER = {
    "Path": (2, "a controller and a capture each know a path of their own: its RTTs, its two addresses"),
    "Segment": (2, "of TCP it is what RFC 9293 calls so"),
    "Verdict": (2, "of a trial and of a rule, as the glossary has it"),
    "Fate": (2, "what a link does with a packet, and what a capture tells of it"),
    "Record": (2, "as it stands in its file, and with what follows from that"),
    "Job": (3, "a trial's, a proxy's in it, and one of the qlog command"),
}
# Names that had to be decoded, and are gone.
DECODED = {"Asked", "Awake", "Cast", "Course", "Crossing", "Desk", "Lane", "Met", "Oddities",
           "Ours", "Passed", "Play", "Remains", "Rubbish", "Seats", "Sight", "Sighting", "Spot", "Told",
           "Trouble", "Turn", "Wake"}  # fmt: skip


def glossary() -> list[str]:
    """The words, in the order of the table."""
    table = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## Words\n")[2]
    rows = re.findall(r"^\| ([\w, ]+?) \| \S", table, re.MULTILINE)
    return [word for row in rows for word in row.split(", ") if word != "word"]


def rust_types() -> Counter[str]:
    """How many types of a name the crates export, tests left out."""
    files = [
        file
        for place in ("crates", "products")
        for file in ROOT.glob(f"{place}/*/src/**/*.rs")
        if not {"tests", "endpoint-tests"} & {*file.parts}
    ]
    return Counter(name for file in files for name in EXPORTED.findall(file.read_text()))


def every_rust_type() -> set[str]:
    """The names of all types of crates and endpoints, exported or not."""
    files = [
        file
        for folder in ("crates", "products", "endpoints")
        for file in (ROOT / folder).glob("*/src/**/*.rs")
    ]
    return {name for file in files for name in ANY.findall(file.read_text())}


# A first sentence that begins like this says something of a thing, and not what it is.
NO_NOUN = re.compile(r" */// (What|Whether|How|When|Where|Who|Why|Those|That|It|All|To|Some|Everything)\b")
DOCUMENTED = re.compile(
    r"((?:^ *///.*\n)+)(?:^ *#\[.*\n)*^ *pub (?:struct|enum|trait|type) (\w+)", re.MULTILINE
)


def test_the_first_sentence_says_what_a_type_is() -> None:
    """The first line of a run of `///` that stands right above a type, attributes between."""
    vague = {
        f"{file.relative_to(ROOT)}: {name}"
        for place in ("crates", "products")
        for file in ROOT.glob(f"{place}/*/src/**/*.rs")
        if not {"tests", "endpoint-tests"} & {*file.parts}
        for name in _first_lines_without_noun(file.read_text())
    }
    assert not vague


def _first_lines_without_noun(text: str) -> list[str]:
    """The types of a file whose documentation begins with no noun."""
    found = DOCUMENTED.findall(text)
    return [name for documentation, name in found if NO_NOUN.match(documentation)]


def python_types() -> Counter[str]:
    """Likewise, of the package."""
    files = (ROOT / "python" / "bentpipe").rglob("*.py")
    bodies = (ast.parse(file.read_text()).body for file in files)
    return Counter(one.name for body in bodies for one in body if isinstance(one, ast.ClassDef))


def test_the_glossary_says_each_word_once() -> None:
    words = glossary()
    assert len(words) > 25 and len(set(words)) == len(words)


@pytest.mark.parametrize("types", [rust_types, python_types])
def test_a_word_of_the_glossary_names_one_thing(types: Callable[[], Counter[str]]) -> None:
    found = types()
    many = {
        word: count
        for word in glossary()
        if (count := found[word.capitalize()]) > FURTHER.get(word.capitalize(), (1, ""))[0]
    }
    assert not many


def test_no_name_has_to_be_decoded() -> None:
    found = {*every_rust_type(), *python_types()}
    assert "TraceEntry" in found, "private types count too"
    assert not found & DECODED
