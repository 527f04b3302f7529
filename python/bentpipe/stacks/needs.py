"""The needs of a build: the tools and libraries of the `[build]` of a `stack.toml`, whether they are here,
how to get them, and their versions.
"""

from __future__ import annotations

import re
import shutil
import subprocess

from bentpipe.stacks.installable import Installable, Need

_INSTALL = {
    "cargo": "install it with: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh",
    "cc": "install it with: sudo apt install build-essential",
    "bc": "install it with: sudo apt install bc",
    "bison": "install it with: sudo apt install bison",
    "c++": "install it with: sudo apt install build-essential",
    "clang": "install it with: sudo apt install clang",
    "cmake": "install it with: sudo apt install cmake",
    "flex": "install it with: sudo apt install flex",
    "go": "get it from https://go.dev/dl",
    "java": "install it with: sudo apt install default-jdk",
    "javac": "install it with: sudo apt install default-jdk",
    "make": "install it with: sudo apt install build-essential",
    "mvn": "install it with: sudo apt install maven",
    "npm": "install it with: sudo apt install npm",
    "perl": "install it with: sudo apt install perl",
    "pkg-config": "install it with: sudo apt install pkg-config",
    "gnutls": "install it with: sudo apt install libgnutls28-dev",
    "jansson": "install it with: sudo apt install libjansson-dev",
    "libngtcp2": "install it with: sudo apt install libngtcp2-dev",
    "libngtcp2_crypto_gnutls": "install it with: sudo apt install libngtcp2-crypto-gnutls-dev",
    "openssl": "install it with: sudo apt install libssl-dev",
}
_WITH = {"cargo": "rustc"}  # what a tool works with, whose version is worth knowing too
_NAMES = {"cargo": "Rust", "go": "Go"}  # what has the version that people look for


def what_is_missing(wanted: Installable) -> str | None:
    """The first missing requirement of a build, and how to get it; None if nothing is missing."""
    if wanted.build is None:
        return None
    missing = [why for need in wanted.build.needs if (why := _missing(need, wanted)) is not None]
    missing += [why for need in wanted.build.libraries if (why := _missing_library(need)) is not None]
    if why := wanted.missing_source():
        missing.append(why)
    return "; ".join(f"{wanted.name} needs {why}" for why in missing) or None


def versions(wanted: Installable) -> dict[str, str]:
    """The versions of the tools and libraries of a build, as far as they report them."""
    if wanted.build is None:
        return {}
    tools = [need.name for need in wanted.build.needs]
    found = {
        name: _version(name, wanted) for name in (*tools, *(_WITH[one] for one in tools if one in _WITH))
    }
    found |= {need.name: _library_version(need.name) for need in wanted.build.libraries}
    return {name: _dotted(version) for name, version in found.items() if version is not None}


def _missing(need: Need, wanted_by: Installable) -> str | None:
    """The program if it is missing or too old, and how to get it; None if it is not."""
    wanted, how = _wanted(need)
    if shutil.which(need.name) is None:
        return f"{wanted}; {how}"
    if not need.version:
        return None
    found = _version(need.name, wanted_by)
    if found is None:
        return f"{wanted}, and {need.name} does not say which it is; {how}"
    return None if found >= need.version else f"{wanted}, and {need.name} is {_dotted(found)}; {how}"


def _missing_library(need: Need) -> str | None:
    """The library if it is missing or too old, and how to get it; None if it is not."""
    wanted, how = _wanted(need)
    if shutil.which("pkg-config") is None:
        return f"pkg-config, which knows of {need.name}; {_INSTALL['pkg-config']}"
    found = _library_version(need.name)
    if found is None:
        return f"the library {wanted}; {how}"
    if found >= need.version:
        return None
    return f"the library {wanted}, and {need.name} is {_dotted(found)}; {how}"


def _wanted(need: Need) -> tuple[str, str]:
    """The need in words, and how to get it."""
    name = _NAMES.get(need.name, need.name) if need.version else need.name
    wanted = f"{name} {_dotted(need.version)} or newer" if need.version else name
    return wanted, _INSTALL.get(need.name, f"install {need.name}")


def _version(program: str, wanted_by: Installable) -> tuple[int, ...] | None:
    """The version of `program` in the folder of what is built, where a file may choose it: (1, 88, 0); None
    if it says none.
    """
    asked = [program, "version" if program == "go" else "--version"]
    try:
        done = subprocess.run(
            asked, cwd=wanted_by.folder, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError:
        return None
    found = re.search(r"\d+(?:\.\d+)+", done.stdout)
    return tuple(int(part) for part in found[0].split(".")) if found and done.returncode == 0 else None


def _library_version(name: str) -> tuple[int, ...] | None:
    """The version of a library; None if pkg-config does not know it, or is not there."""
    if shutil.which("pkg-config") is None:
        return None
    asked = ["pkg-config", "--modversion", name]
    done = subprocess.run(asked, capture_output=True, text=True, errors="replace", check=False)
    found = re.match(r"\d+(?:\.\d+)*", done.stdout) if done.returncode == 0 else None
    return tuple(int(part) for part in found[0].split(".")) if found else None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
