"""Packs a wheel, with programs that are there already:

    python tools/wheel/pack.py DIST PROGRAMS... [-- OPTIONS OF BDIST_WHEEL]

The sources of the package go into a folder of their own, with `data` beside the modules (`stage.py`), and
setuptools makes of that what it makes of any package. The wheel is of any Python 3, and of this machine's
kind: `linux_x86_64`. `tools/wheel.sh` looks at the programs, and names it by the C library that they need.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

from stage import LEFTOVERS, ROOT, stage

FILES = ("LICENSE", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "pyproject.toml")


def pack(dist: Path, folders: Sequence[Path], options: Sequence[str]) -> None:
    """Make the wheel in `dist`, with programs out of `folders`."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "bentpipe")
        source.mkdir()
        for name in FILES:
            shutil.copy2(ROOT / name, source / name)
        shutil.copytree(ROOT / "python" / "bentpipe", source / "python" / "bentpipe", ignore=LEFTOVERS)
        stage(source / "python" / "bentpipe" / "data", folders)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
        command += ["--no-deps", "--no-build-isolation", "--wheel-dir", str(dist)]
        for option in (f"--plat-name={platform}", *options):
            command += ["--config-settings", f"--build-option={option}"]
        subprocess.run([*command, str(source)], check=True)


if __name__ == "__main__":
    arguments, options = sys.argv[1:], []
    if "--" in arguments:
        arguments, options = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    pack(Path(arguments[0]).resolve(), [Path(folder) for folder in arguments[1:]], options)
