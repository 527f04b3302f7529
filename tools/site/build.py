"""Builds the site of the documentation: build.py OUT WORK.

It says every link that leads nowhere, with its file and line, and fails then. `make site` calls it, in an
environment of its own (`requirements.lock`).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import link_check
from site_source import Source

ROOT = Path(__file__).resolve().parents[2]
# Every warning is an error, also of a link that leads nowhere.
SPHINX = [
    *["-m", "sphinx", "--fresh-env", "--fail-on-warning", "--keep-going", "--quiet", "--jobs", "2"],
    *["--builder", "html", "--conf-dir", str(Path(__file__).resolve().parent)],
]


def main() -> int:
    out, work = (Path(word).resolve() for word in sys.argv[1:])
    source = Source(ROOT, work / "source")
    source.write()
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, *SPHINX, "--doctree-dir", str(work / "doctrees"), str(source.folder), str(out)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    sys.stderr.write(done.stderr.replace(f"{source.folder}/", ""))
    if done.returncode:
        return 1
    for extra in (".buildinfo", "objects.inv"):
        (out / extra).unlink(missing_ok=True)
    wrong = link_check.wrong(out, ROOT)
    for one in wrong:
        print(f"error: {one}", file=sys.stderr)
    if wrong:
        return 1
    print(f"site: {out.relative_to(Path.cwd()) / 'index.html'}, {len(list(out.rglob('*.html')))} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
