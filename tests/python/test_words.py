"""One concept, one name: the glossary of ARCHITECTURE.md against the types that modules export; and phrases
that do not come back.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from documents import prose, tracked

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
DECODED = {"Alike", "Alone", "Asked", "Awake", "Cast", "Course", "Crossing", "Cut", "Deal", "Desk", "Ears",
           "Feed", "Fits", "Harvest", "Heard", "Hearing", "Here", "Hold", "Lane", "Look", "Losing", "Met",
           "Oddities", "Ours", "Passed", "Passing", "Play", "Remains", "Rubbish", "Seats", "Sight",
           "Sighting", "Spot", "Tap", "Told", "Trouble", "Turn", "Two", "Wake", "Why", "Wrong"}  # fmt: skip


def glossary() -> list[str]:
    """The words, in the order of the table."""
    table = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## Words\n")[2]
    rows = re.findall(r"^\| ([\w, ]+?) \| \S", table, re.MULTILINE)
    return [word for row in rows for word in row.split(", ") if word != "word"]


def rust_types() -> Counter[str]:
    """How many types of a name the crates export, tests left out."""
    files = [
        file
        for place in ("crates", "products", "middleboxes")
        for file in ROOT.glob(f"{place}/*/src/**/*.rs")
        if not {"tests", "endpoint-tests"} & {*file.parts}
    ]
    return Counter(name for file in files for name in EXPORTED.findall(file.read_text()))


def every_rust_type() -> set[str]:
    """The names of all types of crates and endpoints, exported or not."""
    files = [
        file
        for folder in ("crates", "products", "middleboxes", "endpoints")
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
        for place in ("crates", "products", "middleboxes")
        for file in ROOT.glob(f"{place}/*/src/**/*.rs")
        if not {"tests", "endpoint-tests"} & {*file.parts}
        for name in _first_lines_without_noun(file.read_text())
    }
    assert not vague


def _first_lines_without_noun(text: str) -> list[str]:
    """The types of a file whose documentation begins with no noun."""
    found = DOCUMENTED.findall(text)
    return [name for documentation, name in found if NO_NOUN.match(documentation)]


# Documentation that begins like this has to be decoded, whatever it documents.
DECODED_BEGINNING = re.compile(r" *//[/!] (What|So many|So much|As many|As much|Likewise|Nobody|Whoever)\b")
DOCUMENTATION = re.compile(r"(?:^ *//[/!].*\n)+", re.MULTILINE)


def test_no_documentation_in_rust_begins_with_a_riddle() -> None:
    """The first line of a run of `///` or `//!`."""
    names = {str(file.relative_to(ROOT)): file for file in tracked("*.rs")}
    found = {
        f"{name}: {documentation.splitlines()[0].strip()}"
        for name, file in names.items()
        for documentation in DOCUMENTATION.findall(file.read_text())
        if DECODED_BEGINNING.match(documentation)
    }
    assert len(names) > 500 and not found


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


# Phrases that a reader of this field has to decode, each with what to say. A pattern is matched across line
# ends and without regard to case. It names a phrase that is wrong wherever it stands, never a common word: a
# test cannot judge prose.
PHRASES = {
    r"hands? back what it is sent": "relays without on-board processing",
    r"to be chosen apart|chosen apart from": "selectable independently",
    r"losses of captures": "loss models fitted from captures",
    r"\bin both times\b": "in simulation and in emulation",
    r"(real|virtual) time alone\b": "emulation only, simulation only",
    r"built from other sources than|built from something else": "verified against its source hash",
    r"lives? by a time": "has its own clock",
    r"(their|for|the) last words\b": "final reports",
    r"\bsame luck\b": "the same random streams",
    r"(found|finds|find|has|have|wants|want) (no )?room\b|fiftieth of the room": "overflow; capacity, space",
    r"\bfell silent\b": "stopped answering, became silent",
    r"\bas in life\b|\bslow in life\b|\bin life[,:]": "in practice",
    r"\b(can|cannot) be had\b|\bnot to be had\b": "is available, is not available",
    r"\bwas at hand\b|\bis at hand\b": "was available",
    r"\bcomes? along\b|\bbr(ing|ings|ought) along\b": "is included, installs, copies",
    r"\. told (is|are)\b|^told (is|are)\b|\bis told alone\b": "reported; or name the column",
    r"\bwhat (it|they|a run|a trial|a campaign) came to\b|\bcomes? to the same\b": "the result; agree",
    r"\bplays? (it|them|each|four|stacks|two|each stack) against\b": "run against",
    r"\bheld (it|them|the transfer|the page) up\b": "limited, delayed",
    r"\bholds? (the|a) (sender|peer|client|server) back\b": "stops, limits",
    r"\band (its|their) kin\b": "and related columns, and other programs",
    r"\bso many (bytes|seconds|megabytes|mb|packets|requests|streams)\b": "the number, or nothing",
    r"\bheld against\b|\bholds? (the two|two runs|them) against\b": "compared with",
    r"\btakes? the place of\b": "replaces",
    r"\bto be mended\b|\b(is|are|was|were) mended\b|\bwould mend\b": "fixed, would fix",
    r"[|:=] \"?likewise\b|, likewise\.|\bbecause likewise\b": "the cell's own content",
    r"\bits own affair\b|\bown business\b": "say who decides",
    r"\bwants to go where\b|\bwherever it likes\b": "destination; anywhere",
    r"\bwhat is understood\b": "the parsed file",
    r"contract\.md,? section \d|section \d+ of the contract": "the page and its heading",
    r"\bcontract's frames\b|\bframes? of the contract\b": "messages",
    r"\btold one by one\b|\b(rates|steps|times) that are told\b": "printed, listed",
    r"\b(hears?|heard) of (a |the )?(mark|loss)": "is reported to, is acknowledged",
    r"\bfor want of room\b": "because it is full",
    r"\btakings\b": "bytes received, goodput",
    r"\bsoonest first\b": "fastest first",
    r"\bwhat has no (room|space)\b": "packets that do not fit",
    r"\b(is|are|was|were|looks?|called) alike\b": "equal, the same, similar",
}
# The places that keep to them, as globs of git.
PLACES = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "LIMITATIONS.md",
    "benches/*.py",
    "campaigns/*.toml",
    "docs/**/*.md",
    "endpoints/CONTRACT.md",
    "endpoints/contract/*.md",
    "endpoints/*/README.md",
    "endpoints/*/stack.toml",
    "examples/*",
    "guest/README.md",
    "middleboxes/**/README.md",
    "middleboxes/*/middlebox.toml",
    "products/**/README.md",
    "products/*/src/**/help.txt",
    "python/**/*.py",
    "scenarios/*.toml",
    "schemas/*.toml",
    "studies/**/*.md",
    "studies/**/*.py",
    "studies/**/*.toml",
    "suites/*.toml",
    "tools/**/*.py",
)
# Generated pages of the reference: their words are those of their sources, such as `schemas/*.toml`.
GENERATED = {
    "analysis", "bundle", "commands", "job", "manifest", "records", "requests", "scenarios", "stacks",
    "test-times", "verdicts",
}  # fmt: skip
QUOTED = re.compile(r"`[^`\n]*`")
COMMENT = re.compile(r"^[ \t]*#[ \t]?", re.MULTILINE)  # what begins a line of a comment


def decoded_phrases(text: str) -> list[str]:
    """The phrases of a text that do not come back, with what to say instead."""
    plain = " ".join(QUOTED.sub("", text).lower().split())
    return [
        f"{found[0]!r}: say {instead}"
        for pattern, instead in PHRASES.items()
        for found in re.finditer(pattern, plain)
    ]


def hand_written() -> list[Path]:
    """The files of the places above, without generated pages."""
    pages = tracked(*(f":(glob){place}" for place in PLACES))
    return [page for page in pages if page.parent.name != "reference" or page.stem not in GENERATED]


@pytest.mark.parametrize("page", hand_written(), ids=lambda page: str(page.relative_to(ROOT)))
def test_phrases_that_had_to_be_decoded_do_not_come_back(page: Path) -> None:
    text = prose(page) if page.suffix == ".md" else COMMENT.sub("", page.read_text())
    assert not decoded_phrases(text.partition("<!-- findings: begin")[0])


def test_a_phrase_is_found_across_line_ends_and_not_in_code() -> None:
    assert decoded_phrases("a satellite that hands back\n  what it is sent") == [
        "'hands back what it is sent': say relays without on-board processing"
    ]
    assert not decoded_phrases("`the same luck`")
