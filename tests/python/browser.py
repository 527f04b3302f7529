"""A page in a real browser, opened from the file system."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

_OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def dump(address: str, profile: Path, *options: str) -> str:
    """What the document at `address` has become; `profile` is a folder for this call alone."""
    command = [str(CHROMIUM), *_OPTIONS, f"--user-data-dir={profile}", *options, "--dump-dom", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
