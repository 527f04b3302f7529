"""Command lines that pages tell people to type: found in shell text, and held against what the programs know,
without running them.

What is looked at: options of `bentpipe` and its commands, and which values they may have; options of the
programs behind `bentpipe perf` and the proxies; targets of the Makefile, and its variables; options of the
benchmarks; crates that cargo is asked for. A value that a reader is to put in, as RUN, is no matter.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from bentpipe.cli.commands import cli
from bentpipe.cli.programs import masque, pep, perf, tcp_pep
from bentpipe.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z][\w-]*):", MAKEFILE, re.MULTILINE))
ENDS = {"&&", "||", ";", "|", "&", "(", ")", "{", "}", "\n"}
BEFORE = {"sudo", "exec", "--"}
OPEN = re.compile(r"[…$]|\b[A-Z]{2,}\b|^mine$")  # what the reader, or the shell, puts in


def commands(text: str) -> Iterator[list[str]]:
    """The commands of a shell text that this module knows, each as its words, without what only the shell
    reads. Commands that are arguments of others, behind `--`, are commands too.
    """
    for line in text.replace("\\\n", " ").splitlines():
        for words in _simple(line):
            while words and (words[0] in BEFORE or re.match(r"\w+=", words[0])):
                words = words[1:]
            if words and _known(words[0]):
                yield words
            for at, word in enumerate(words[:-1]):
                if word == "--" and _known(words[at + 1]):
                    yield words[at + 1 :]


def _known(word: str) -> bool:
    name = word.rpartition("/")[2]
    return name in ("bentpipe", "make", "cargo") or _is_benchmark(word)


def _is_benchmark(word: str) -> bool:
    return word.startswith("benches/") and word.endswith(".py")


def _simple(line: str) -> Iterator[list[str]]:
    """The simple commands of a line. ValueError if its quotes do not end."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    skip = False
    for token in [*lexer, ";"]:
        if token in ENDS:
            if words:
                yield words
            words = []
        elif token.startswith((">", "<")):
            skip = True  # and what it leads to
            if words and words[-1] == "2":
                words.pop()
        elif skip:
            skip = False
        else:
            words.append(token)


def fault(words: Sequence[str]) -> str | None:
    """What the program would not understand of a command; None if there is nothing."""
    name, *rest = words
    if _is_benchmark(name):
        return _fault_of_benchmark(name, rest)
    kind = name.rpartition("/")[2]
    return {"bentpipe": _fault_of_bentpipe, "make": _fault_of_make, "cargo": _fault_of_cargo}[kind](rest)


def _fault_of_bentpipe(words: list[str]) -> str | None:
    command: click.Command = cli
    context = click.Context(command, info_name="bentpipe")
    while True:
        if command in (perf, pep, tcp_pep, *masque.commands.values()):
            return _fault_of_program(command, words)
        if "--" in words and not isinstance(command, click.Group):
            words = words[: words.index("--")]
        try:
            given, words, _ = command.make_parser(context).parse_args(list(words))
        except click.BadOptionUsage as error:
            if words[-1] == error.option_name:  # named without a value, in a sentence
                return None
            return f"{context.info_name}: {error.format_message()}"
        except click.UsageError as error:
            return f"{context.info_name}: {error.format_message()}"
        for parameter in command.get_params(context):
            if why := _fault_of_value(parameter, given.get(parameter.name or "")):
                return f"{context.info_name}: {why}"
        if not isinstance(command, click.Group):
            return f"{context.info_name}: too many arguments: {shlex.join(words)}" if words else None
        if not words or OPEN.search(words[0]):
            return None
        try:
            inner = command.get_command(context, words[0])
        except UsageError:
            inner = None
        if inner is None:
            return f"{context.info_name}: there is no command {words[0]}"
        context = click.Context(inner, context, info_name=words[0], **inner.context_settings)
        command, words = inner, words[1:]


def _fault_of_value(parameter: click.Parameter, given: object) -> str | None:
    """Why an option cannot have its value, if it has only some."""
    values = given if isinstance(given, list | tuple) else [given]
    if isinstance(parameter.type, click.Choice):
        for value in values:
            if isinstance(value, str) and not OPEN.search(value) and value not in parameter.type.choices:
                return f"{parameter.opts[0]}: {value} is none of {', '.join(parameter.type.choices)}"
    return None


def _fault_of_program(command: click.Command, words: list[str]) -> str | None:
    """Of a program that reads its options itself: those that its help does not have."""
    of_masque = command in masque.commands.values()
    folder = f"masque/src/program/{command.name}" if of_masque else f"{command.name}/src"
    (place,) = (ROOT / "products" / folder).rglob("help.txt")
    known = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", place.read_text()))
    known |= {"--help", "-h"}
    asked = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    return f"{command.name}: it has no {', '.join(sorted(asked - known))}" if asked - known else None


def _fault_of_make(words: list[str]) -> str | None:
    targets = {word for word in words if "=" not in word}
    variables = {word.partition("=")[0] for word in words if "=" in word}
    lost = targets - TARGETS | {name for name in variables if f"$({name})" not in MAKEFILE}
    return f"the Makefile has no {', '.join(sorted(lost))}" if lost else None


def _fault_of_cargo(words: list[str]) -> str | None:
    files = [
        file
        for place in ("crates", "products", "middleboxes", "endpoints", "benches")
        for file in ROOT.glob(f"{place}/*/Cargo.toml")
    ]
    known = {tomllib.loads(file.read_text())["package"]["name"] for file in files}
    asked = {words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-p", "--package")}
    lost = {name for name in asked - known if name.startswith("bentpipe")}
    return f"there is no crate {', '.join(sorted(lost))}" if lost else None


def _fault_of_benchmark(name: str, words: list[str]) -> str | None:
    if not (ROOT / name).is_file():
        return f"there is no {name}"
    text = (ROOT / name).read_text()
    lost = [
        word for word in words if word.startswith("--") and f'"{word}"' not in text and word != "--smallest"
    ]
    return f"{name} has no {', '.join(lost)}" if lost else None
