"""How exact real time is on this machine, beside how exactly it wakes a thread at all: `bentpipe-emu bench`.

    benches/real_time.py [--json] [--seconds 5] [--smallest]

So long each: the timer alone, asleep and kept awake; delays of 300 ms; three rates; 1 Gbit/s.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

import settings

from bentpipe import paths


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON")
    parser.add_argument("--seconds", type=int, default=5, metavar="N", help="of each (default 5)")
    given = settings.read(parser, seconds=1)
    command = [str(paths.program("bentpipe-emu")), "bench", "--seconds", str(given.seconds)]
    return subprocess.run([*command, *(["--json"] if given.json else [])]).returncode


if __name__ == "__main__":
    sys.exit(main())
