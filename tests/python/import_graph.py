"""The imports among modules, of Python and of the crates, and the circles that they make.

Of Rust it reads text: names after `use`, and paths such as `crate::a::B`. It sees neither what macros make,
nor files behind `#[path]`, nor methods of types that a file never names. A re-export leads to the file that
defines the name, and neither it nor `mod child;` is an import of its own. What a module takes from those that
it is inside of makes no circle: it is a part of them. Code for tests does not count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

Graph = dict[str, set[str]]


def circles(graph: Graph) -> set[frozenset[str]]:
    """The sets of modules of which each leads to each other one."""
    reached = {module: _reached(graph, module) for module in graph}
    found = {
        frozenset(other for other in after if module in reached[other]) for module, after in reached.items()
    }
    return {one for one in found if len(one) > 1}


def _reached(graph: Graph, module: str) -> set[str]:
    found: set[str] = set()
    left = [module]
    while left:
        left.extend(more := graph[left.pop()] - found)
        found |= more
    return found


def of_python(folders: Iterable[Path]) -> Graph:
    """The imports among the modules below `folders`, also those inside functions and for type checkers. Names
    are those of files, from the folder that holds each of `folders`.
    """
    files: dict[str, Path] = {}
    for folder in folders:
        for file in folder.rglob("*.py"):
            if not file.name.startswith("test_"):
                parts = file.relative_to(folder.parent).with_suffix("").parts
                files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return {name: {*_imports(name, file, files)} - {name} for name, file in files.items()}


def _imports(name: str, file: Path, files: dict[str, Path]) -> Iterator[str]:
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            named: list[tuple[str, ...]] = [(alias.name,) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            place = ".".join([*above, *([node.module] if node.module else [])])
            named = [(f"{place}.{alias.name}", place) for alias in node.names]
        else:
            continue
        for candidates in named:  # scripts of one folder import each other without its name
            known = (one for text in candidates for one in (text, f"{package}.{text}") if one in files)
            yield from [*known][:1]


# Also what is quoted. A quote in quotes begins no text.
_COMMENTS = re.compile(r"""//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])'|r#".*?"#|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:pub )?mod \w+ \{.*", re.DOTALL)
_USE = re.compile(r"^[ \t]*(pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
_DEFINED = re.compile(
    r"\b(?:fn|struct|enum|trait|type|const|static|union|macro_rules!)\s+(?:mut )?([A-Za-z_]\w*)"
)
_PATH = re.compile(r"(?<![\w:])([a-zA-Z_]\w*(?:::[a-zA-Z_]\w*)+)")


@dataclass
class RustModule:
    """A file of a crate: what it defines, and under which names it knows what others define."""

    file: Path
    text: str  # without comments, texts and tests
    defined: set[str]
    named: dict[str, list[str]] = field(default_factory=dict)  # name in this file → its path
    exported: dict[str, list[str]] = field(default_factory=dict)  # those of them that are re-exported
    everything: list[list[str]] = field(default_factory=list)  # paths of `pub use path::*`
    uses: list[list[str]] = field(default_factory=list)  # paths of all imports but re-exports


def of_crate(source: Path) -> Graph:
    """The imports among the files of a crate, below its folder `src`."""
    files = [file for file in source.rglob("*.rs") if not _is_test(file)]
    if (source / "lib.rs") in files:  # a program beside it is a crate of its own
        files = [file for file in files if file != source / "main.rs"]
    modules = {_module_path(file, source): _read(file) for file in files}
    names = {path: str(one.file.relative_to(source)) for path, one in modules.items()}
    graph: Graph = {name: set() for name in names.values()}
    for path, module in modules.items():
        paths = [*module.uses, *(text.split("::") for text in _PATH.findall(module.text))]
        for one in paths:
            target = _resolve(modules, path, one, 0)
            if target is not None and path[: len(target)] != target:
                graph[names[path]].add(names[target])
    return graph


def _is_test(file: Path) -> bool:
    return file.name == "tests.rs" or "tests" in file.parts or "bin" in file.parts


def _module_path(file: Path, source: Path) -> tuple[str, ...]:
    parts = file.relative_to(source).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts


def _read(file: Path) -> RustModule:
    text = _TESTS.sub("", _COMMENTS.sub(" ", file.read_text()))
    module = RustModule(file, _USE.sub("", text), {*_DEFINED.findall(text)})
    for public, tree in _USE.findall(text):
        for path, name in _flat(" ".join(tree.split())):
            if name == "*" and public:
                module.everything.append(path)
            elif public:
                module.exported[name] = path
            else:
                module.uses.append(path)
            module.named[name] = path
    return module


def _flat(tree: str) -> Iterator[tuple[list[str], str]]:
    """The paths of a `use`, each with the name that it gets."""
    head, brace, inner = tree.partition("{")
    if not brace:
        path, _, alias = tree.partition(" as ")
        words = [word for word in path.strip().split("::") if word]
        words = words[:-1] if words[-1] == "self" and len(words) > 1 else words
        yield (words[:-1], "*") if words[-1] == "*" else (words, alias.strip() or words[-1])
        return
    for part in _parts(inner[: inner.rindex("}")]):
        for inside, name in _flat(part):
            own = [word for word in head.strip().split("::") if word]
            yield [*own, *([] if inside == ["self"] else inside)], own[-1] if name == "self" else name


def _parts(text: str) -> Iterator[str]:
    """What commas separate outside braces."""
    depth, begin = 0, 0
    for place, letter in enumerate(f"{text},"):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if text[begin:place].strip():
                yield text[begin:place].strip()
            begin = place + 1


Modules = dict[tuple[str, ...], RustModule]


def _resolve(modules: Modules, here: tuple[str, ...], path: list[str], depth: int) -> tuple[str, ...] | None:
    """The module that defines what `path` leads to, seen from the module `here`; None for another crate's."""
    place, rest = here, list(path)
    if rest[0] == "crate":
        place, rest = (), rest[1:]
    elif rest[0] in ("self", "super"):
        while rest and rest[0] in ("self", "super"):
            place, rest = (place[:-1] if rest[0] == "super" else place), rest[1:]
    elif (*here, rest[0]) not in modules:
        known = modules[here].named.get(rest[0])
        if known is None or depth > 8 or known == path:
            return None
        return _resolve(modules, here, [*known, *rest[1:]], depth + 1)
    while rest and (*place, rest[0]) in modules:
        place, rest = (*place, rest[0]), rest[1:]
    if not rest:  # a module as a whole: what is used of it stands behind its name
        return None
    if place not in modules or rest[0] in modules[place].defined or depth > 8:
        return place if place in modules else None
    exported = modules[place].exported.get(rest[0])
    ways = [exported] if exported else [[*path, rest[0]] for path in modules[place].everything]
    found = (_resolve(modules, place, [*one, *rest[1:]], depth + 1) for one in ways)
    return next((one for one in found if one not in (None, place)), place)
