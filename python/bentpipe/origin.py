"""The origin of Bentpipe's own programs: the commit of the checkout, and in a package the compiler too, as
they were when the wheel was made.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from bentpipe import paths

# The files that studies write: they are made from runs, and changes none.
_PAGES = (":(exclude,glob)studies/*/*.md", ":(exclude,glob)studies/*/*.svg")


def made_from() -> dict[str, str]:
    """The entries `commit`, and in a package `rustc`; unknown ones are left out."""
    if paths.is_package():
        found: dict[str, str] = json.loads((paths.root() / paths.OF_A_PACKAGE).read_text())
        return found
    commit = commit_of(paths.root())
    return {"commit": commit} if commit else {}


def of_a_package(root: Path) -> dict[str, str]:
    """The entries of `made_from` for a package that is made from the checkout at `root`."""
    done = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True)
    commit = commit_of(root)
    return {"rustc": done.stdout.strip().removeprefix("rustc "), **({"commit": commit} if commit else {})}


def commit_of(root: Path) -> str | None:
    """The commit of a checkout, with `-dirty` if a file other than a page of a study has changed; None if it
    is no git checkout.
    """
    if not (root / ".git").exists() or shutil.which("git") is None:
        return None
    status = ["status", "--porcelain", "--untracked-files=no", "--", ".", *_PAGES]
    head, changes = (
        subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
        for words in (["rev-parse", "HEAD"], status)
    )
    if head.returncode != 0 or changes.returncode != 0:
        return None
    return head.stdout.strip() + ("-dirty" if changes.stdout.strip() else "")
