"""Gathers the licenses of the crates whose code is in the programs of a wheel, as their terms ask."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

NAMES = re.compile(r"(licen[cs]e|copying|notice|unlicense)[^/]*", re.IGNORECASE)
LINE = "\n\n" + "-" * 80 + "\n\n"


def licenses(workspace: Path, members: Sequence[str], host: str) -> str:
    """The notices of all crates that these members of a workspace are built of for `host`, a target triple,
    other than its own.

    Those of them that only work at compile time are among them: what they write becomes part of the program.
    A `ValueError` if a member is not there.
    """
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host]
    told = json.loads(
        subprocess.run(command, cwd=workspace, check=True, capture_output=True, text=True).stdout
    )
    packages = {package["id"]: package for package in told["packages"]}
    used = [packages[one] for one in reached(told, packages, members)]
    foreign = [one for one in used if one["source"] is not None]
    foreign.sort(key=lambda one: (one["name"], one["version"]))
    where: dict[str, str] = {}
    notices = [notice(one, where) for one in foreign]
    return LINE.join(["Rust's standard library (MIT OR Apache-2.0)", *notices]) + "\n"


def reached(told: dict[str, Any], packages: dict[str, Any], members: Sequence[str]) -> set[str]:
    """The ids of all packages that the members need to be built."""
    own = {packages[one]["name"]: one for one in told["workspace_members"]}
    if absent := set(members) - set(own):
        raise ValueError(f"no members of the workspace: {', '.join(sorted(absent))}")
    nodes = {node["id"]: node for node in told["resolve"]["nodes"]}
    found, waiting = set(), [own[one] for one in members]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += needed(nodes[one])
    return found


def needed(node: dict[str, Any]) -> Iterator[str]:
    """The dependencies of a package in a build, not for its tests."""
    for edge in node["deps"]:
        if any(kind["kind"] != "dev" for kind in edge["dep_kinds"]):
            yield edge["pkg"]


def notice(package: dict[str, Any], where: dict[str, str]) -> str:
    """A package's name, version and license, and the texts that it comes with.

    `where` tells of each text the first package that had it: where it stands.
    """
    title = f"{package['name']} {package['version']} ({package['license'] or 'license in its text'})"
    by = f"by {', '.join(package['authors'])}" if package["authors"] else ""
    folder = Path(package["manifest_path"]).parent
    parts = [title, by]
    for file in sorted(one for one in folder.iterdir() if one.is_file() and NAMES.fullmatch(one.name)):
        text = file.read_text(errors="replace").strip().replace("\r\n", "\n")
        first = where.setdefault(text, title)
        parts.append(text if first == title else f"{file.name}: word for word that of {first}")
    return "\n\n".join(part for part in parts if part)
